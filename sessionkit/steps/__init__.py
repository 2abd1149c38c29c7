"""Records of any length, a step at a time: what a task of Spark and a file larger than memory both do."""

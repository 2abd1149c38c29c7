"""How the records of a Spark DataFrame reach the tasks, each partition in its order."""

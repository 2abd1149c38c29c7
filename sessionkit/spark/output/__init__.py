"""What a run on Spark gives to other systems."""

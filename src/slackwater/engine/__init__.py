"""The engine: what happens to a row between its source and its sink, on Spark and in memory alike."""

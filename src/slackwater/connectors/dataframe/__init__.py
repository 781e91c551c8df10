"""Spark DataFrames as a source, and any Spark writer as a sink."""

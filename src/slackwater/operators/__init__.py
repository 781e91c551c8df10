"""Operators: plain functions over Polars frames, run on Spark and in memory alike."""

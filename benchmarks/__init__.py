"""Benchmarks: Slackwater beside Spark's own windows on the same data, and how its cost grows."""

"""The engine without Spark: the same five steps in one process, for tests and examples."""

"""Delta Lake: Spark's connector for it."""

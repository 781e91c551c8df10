"""Running a plan on Spark: session, checkpoint, query, batches, job."""

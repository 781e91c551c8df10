"""The engine on Spark: session, query, workers, and the job that runs the batches."""

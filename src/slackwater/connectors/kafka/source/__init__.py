"""Kafka as a source: topics are read by Spark's own connector and watched by the driver."""

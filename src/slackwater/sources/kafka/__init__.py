"""Kafka as a source: topics read by Spark's own connector, and the driver's watch on them."""

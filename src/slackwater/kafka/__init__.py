"""Kafka: the jars it needs, and a broker of one's own for development and tests."""

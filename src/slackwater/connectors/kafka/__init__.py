"""Kafka as a source and as a sink, its tools, and a broker for development."""

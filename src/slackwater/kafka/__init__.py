"""Kafka: how to reach a cluster, the jars that reading it needs, and a broker of one's own for development."""

from slackwater.kafka.connection import Connection, Sasl, Tls, sasl, tls

__all__ = ["Connection", "Sasl", "Tls", "sasl", "tls"]

"""Kafka: how to reach a cluster, the jars that reading it needs, and a broker for development."""

from typing import TYPE_CHECKING

from slackwater.ground.foreign_names import hinting
from slackwater.kafka.connection import Connection, Sasl, Tls, sasl, tls

__all__ = ["Connection", "Sasl", "Tls", "sasl", "tls"]

if not TYPE_CHECKING:  # a type checker knows what a module does not have
    __getattr__ = hinting(__name__, __all__)

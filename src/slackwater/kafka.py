"""Kafka: connections to a cluster, and its client on the driver."""

from typing import TYPE_CHECKING

from slackwater.base.foreign_names import hinting
from slackwater.connectors.kafka.connection import Connection, Sasl, Tls, sasl, tls

__all__ = ["Connection", "Sasl", "Tls", "sasl", "tls"]

if not TYPE_CHECKING:  # a type checker reports missing names itself
    __getattr__ = hinting(__name__, __all__)

"""Reports whether a cluster answers: once when it stops, and once when it is back.

librdkafka logs an unavailable broker several times a second, on standard error. `Presence.settings` silences its
clients and routes their errors to us.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

from slackwater.base.errors import SlackwaterWarning, notice
from slackwater.connectors.kafka.client import confluent
from slackwater.connectors.kafka.connection import Connection


class KafkaWarning(SlackwaterWarning):
    """A condition of Kafka that the user should know about; the job continues."""


@dataclass(kw_only=True)
class Presence:
    """The last known availability of a client's cluster."""

    connection: Connection
    is_away: bool = False

    @property
    def settings(self) -> dict[str, Any]:
        """The client settings that route its errors only to us."""
        return {"log_level": "2", "error_cb": self._on_error}

    def answers(self) -> None:
        """Note that the cluster has answered."""
        if self.is_away:
            self.is_away = False
            warn_of(notice("KAFKA_BACK", servers=self.connection))

    def _on_error(self, error: Any) -> None:  # noqa: ANN401  the client's own type
        if error.code() == confluent().KafkaError._ALL_BROKERS_DOWN and not self.is_away:  # noqa: SLF001  librdkafka's own name
            self.is_away = True
            warn_of(notice("KAFKA_WAITING", servers=self.connection))


def warn_of(text: str) -> None:
    """Issue a `KafkaWarning`."""
    warnings.warn(text, KafkaWarning, stacklevel=3)

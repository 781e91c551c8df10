"""Whether a cluster answers: reported once when it stops and once when it is back.

librdkafka logs a broker that is away several times a second, on standard error. `Presence.settings` keep its clients
quiet and send their errors to us.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

from slackwater.errors import SlackwaterWarning, notice
from slackwater.kafka.client import confluent
from slackwater.kafka.connection import Connection


class KafkaWarning(SlackwaterWarning):
    """Something that Kafka does and the user should know about; the job continues."""


@dataclass(kw_only=True)
class Presence:
    """What a client last reported about its cluster."""

    connection: Connection
    is_away: bool = False

    @property
    def settings(self) -> dict[str, Any]:
        """The client's settings that send its errors to us alone."""
        return {"log_level": "2", "error_cb": self._on_error}

    def answers(self) -> None:
        """Take note of a sign of life."""
        if self.is_away:
            self.is_away = False
            warn_of(notice("KAFKA_BACK", servers=self.connection))

    def _on_error(self, error: Any) -> None:  # noqa: ANN401  the client's own type
        if error.code() == confluent().KafkaError._ALL_BROKERS_DOWN and not self.is_away:  # noqa: SLF001  librdkafka's own name
            self.is_away = True
            warn_of(notice("KAFKA_WAITING", servers=self.connection))


def warn_of(text: str) -> None:
    """Warn of something that Kafka does."""
    warnings.warn(text, KafkaWarning, stacklevel=3)

"""Whether a cluster answers: said once when it stops and once when it is back, in place of the client's own lines.

librdkafka tells of a broker that is away several times a second, on standard error. Its clients are made with
`Presence.settings` instead, which keep it quiet and let it tell us.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

from slackwater.errors import SlackwaterWarning, notice
from slackwater.kafka.client import confluent
from slackwater.kafka.connection import Connection


class KafkaWarning(SlackwaterWarning):
    """Something of Kafka's that the user should know, though the work goes on."""


@dataclass(kw_only=True)
class Presence:
    """What a client was last heard to say of its cluster."""

    connection: Connection
    is_away: bool = False

    @property
    def settings(self) -> dict[str, Any]:
        """The client's settings by which it tells us, and nobody else."""
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

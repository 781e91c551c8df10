"""What a Kafka error means for a batch: a transient failure, or a fault that somebody has to fix."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from slackwater.base.errors import fault
from slackwater.connectors.kafka.client import confluent
from slackwater.connectors.kafka.connection import Connection
from slackwater.connectors.sink import Unavailable

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

_FENCED: Final = ("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")
_DENIED: Final = (
    "TOPIC_AUTHORIZATION_FAILED",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
    "CLUSTER_AUTHORIZATION_FAILED",
    "GROUP_AUTHORIZATION_FAILED",
    "SASL_AUTHENTICATION_FAILED",
    "_AUTHENTICATION",
)
_FINAL: Final = ("INVALID_CONFIG", "POLICY_VIOLATION", "TOPIC_EXCEPTION", "UNSUPPORTED_VERSION", "_UNSUPPORTED_FEATURE")
"""Errors that a retry does not change."""
_GONE: Final = ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION")
"""Errors for a deleted topic; a broker that is restarting also returns them briefly."""


@dataclass(frozen=True, kw_only=True)
class SlotTarget:
    """The target of a slot, for error messages."""

    connection: Connection
    topic: str
    output: str
    slot: int
    timeout_ms: int
    """How long a transaction may take."""

    def meaning(self, error: KafkaError) -> Exception:
        """Return the exception for `error`.

        Unless known to be final, it counts as transient: the slot is reopened, which aborts any open transaction. If
        the failure persists, it becomes a fault when `retry_for` has passed.
        """
        name, words = error.name(), error.str()
        final = self._fault(name, words)
        if final is not None:
            return final
        if name in _GONE:
            return Unavailable(f"topic {self.topic} or one of its partitions does not exist: {words}")
        return Unavailable(words)

    def _fault(self, name: str, words: str) -> Exception | None:
        facts = {"topic": self.topic, "servers": self.connection, "output": self.output}
        found: Exception | None = None
        if name in _FENCED:
            found = fault("SINK_FENCED", sink=f"Kafka {self.topic}", output=self.output, slot=self.slot)
        elif name in _DENIED:
            found = fault("KAFKA_SINK_DENIED", what=f"replied: {words}", **facts)
        elif name == "INVALID_TRANSACTION_TIMEOUT":
            found = fault("KAFKA_SINK_TIMEOUT", got=self.timeout_ms, limit="less", servers=self.connection)
        elif name == "MSG_SIZE_TOO_LARGE":
            found = self.too_large("the topic allows", f"the topic's max.message.bytes (the broker replied: {words})")
        elif name == "INVALID_RECORD":
            found = fault("KAFKA_SINK_RECORD", cause=words, **facts)
        elif name in _FINAL:
            found = fault("KAFKA_REFUSED", servers=self.connection, cause=words)
        return found

    def too_large(self, limit: str, remedy: str) -> Exception:
        """Return the fault for a record that is too large."""
        return fault("KAFKA_SINK_TOO_LARGE", output=self.output, topic=self.topic, limit=limit, remedy=remedy)

    def is_fencing(self, error: KafkaError) -> bool:
        """Return whether `error` means that the producer was fenced."""
        return error.name() in _FENCED

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Translate the client's exceptions into ours."""
        try:
            yield
        except confluent().KafkaException as error:
            raise self.meaning(error.args[0]) from error

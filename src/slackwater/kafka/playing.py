"""Between a log and a topic: playing the one into the other, and writing the other down as the one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from slackwater.errors import fault
from slackwater.kafka.client import Cluster, confluent, kafka_errors
from slackwater.kafka.connection import Connection
from slackwater.kafka.reading import topic_messages
from slackwater.log_writer import LogWriter
from slackwater.sources.log_listing import LogFile, list_log
from slackwater.sources.log_reader import read_chunks

_SLICE: Final = 1_000
_TIMEOUT_S: Final = 60.0
_POLL_S: Final = 1.0

Told = Callable[[int], None]


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How fast a log is played: so many records a second, so many times as fast as it was written, or at once."""

    rate: float | None = None
    speed_up: float | None = None


def play(folder: Path, connection: Connection, topic: str, *, pace: Pace, told: Told = lambda _: None) -> int:
    """Send every record of a log of JSON lines to `topic`, in the order of its files' times; return how many.

    Each partition of the log goes to one partition of the topic, so that its order is kept.
    """
    files = sorted(list_log(folder), key=lambda file: (file.modified_ms, file.partition, file.path))
    if not files:
        raise fault("PLAY_EMPTY", path=folder)
    with kafka_errors(connection):
        places = Cluster(connection=connection).partitions([topic])
    if not places:
        raise fault("KAFKA_TOPIC_MISSING", topics=topic, servers=connection.servers)
    numbers = {name: at % len(places) for at, name in enumerate(sorted({file.partition for file in files}))}
    failed: list[str] = []

    def delivered(error: Any, _message: Any) -> None:  # noqa: ANN401  the client's own types
        if error is not None:
            failed.append(error.str())

    producer = confluent().Producer({**connection.for_librdkafka(), "linger.ms": 20, "enable.idempotence": True})
    sent, began = 0, time.monotonic()
    for file, lines in _slices(files):
        _wait(pace, sent, file.modified_ms - files[0].modified_ms, began)
        for line in lines:
            while True:
                try:
                    producer.produce(topic, line, partition=numbers[file.partition], on_delivery=delivered)
                    break
                except BufferError:
                    producer.poll(_POLL_S)
        producer.poll(0)
        sent += len(lines)
        told(sent)
    left = producer.flush(_TIMEOUT_S)
    if failed or left:
        cause = failed[0] if failed else f"{left} records were not taken in {_TIMEOUT_S:.0f} s"
        raise fault("KAFKA_REFUSED", servers=connection, cause=cause)
    return sent


def export(connection: Connection, topic: str, folder: Path, *, told: Told = lambda _: None) -> tuple[int, int]:
    """Write what `topic` holds now into a log of JSON lines; return how many records, and how many had no value.

    Each partition becomes one of the log. Keys and headers have no place in a log and are left out.
    """
    written = empty = 0
    with LogWriter(folder) as log:
        for messages in topic_messages(connection, [topic]):
            for message in messages:
                if message.value() is None:
                    empty += 1
                    continue
                log.append(message.value(), str(message.partition()))
                written += 1
            told(written)
    return written, empty


def _slices(files: list[LogFile]) -> Iterator[tuple[LogFile, list[bytes]]]:
    for file in files:
        for chunk in read_chunks(file.path, length=file.length, modified_ms=file.modified_ms, kind="json"):
            lines = chunk.frame["__payload"]
            for start in range(0, len(lines), _SLICE):
                yield file, lines[start : start + _SLICE].to_list()


def _wait(pace: Pace, sent: int, after_ms: int, began: float) -> None:
    due = 0.0
    if pace.rate:
        due = sent / pace.rate
    if pace.speed_up:
        due = max(due, after_ms / 1000 / pace.speed_up)
    time.sleep(max(0.0, began + due - time.monotonic()))

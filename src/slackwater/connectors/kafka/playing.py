"""Plays a log into a topic at a given pace, each partition in order."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import polars as pl

from slackwater.base.errors import fault, listed, near_miss
from slackwater.connectors.kafka.client import confluent
from slackwater.connectors.kafka.connection import Connection
from slackwater.connectors.kafka.presence import Presence
from slackwater.connectors.kafka.reading import existing_partitions
from slackwater.connectors.log.listing import LogFile, list_log
from slackwater.connectors.log.reading import read_file

_AT_ONCE: Final = 1_000
_AT_ONCE_S: Final = 0.05
_TIMEOUT_S: Final = 60.0
_STOP_S: Final = 10.0
_POLL_S: Final = 0.1
_BY_KEY: Final = -1
"""Lets the client choose the partition by key."""

OnProgress = Callable[[int], None]


@dataclass(frozen=True, kw_only=True)
class Pace:
    """The pace of playing a log: records per second, a multiple of the speed at which it was written, or unlimited."""

    rate: float | None = None
    speed_up: float | None = None

    @property
    def at_once(self) -> int:
        """The number of records sent together: with a rate, those of a twentieth of a second, for an even flow."""
        return _AT_ONCE if self.rate is None else min(_AT_ONCE, max(1, round(self.rate * _AT_ONCE_S)))

    def due_s(self, sent: int, after_ms: int) -> float:
        """Return when the next record is due, from the start, after `sent` records and `after_ms` of log time."""
        by_rate = sent / self.rate if self.rate else 0.0
        return max(by_rate, after_ms / 1000 / self.speed_up) if self.speed_up else by_rate


@dataclass(frozen=True, kw_only=True)
class Played:
    """The outcome of playing a log."""

    delivered: int
    """Records that the cluster has acknowledged."""
    unsure: int = 0
    """Records that the cluster had not acknowledged when playing was stopped."""
    is_stopped: bool = False


def play(
    folder: Path,
    connection: Connection,
    topic: str,
    *,
    pace: Pace,
    key: str | None = None,
    on_progress: OnProgress = lambda _: None,
    is_stopping: Callable[[], bool] = lambda: False,
) -> Played:
    """Send every record of a log of JSON lines to `topic`, in the order of its files' times.

    Each partition of the log goes to one partition of the topic, which preserves its order. With `key`, a field of the
    records, the field's text is the record's key and determines its partition, as with Java's producers; records
    without the field have no key, but at least one of the first records must have it. `on_progress` is called regularly
    with the number of records that the cluster has acknowledged. Once `is_stopping` returns True, nothing more is sent,
    and records in flight get a few seconds.
    """
    files = sorted(list_log(folder), key=lambda file: (file.modified_ms, file.partition, file.path))
    if not files:
        raise fault("PLAY_EMPTY", path=folder)
    if key is not None:
        _check_key(folder, files, key)
    count = len(existing_partitions(connection, [topic]))
    numbers = {name: at % count for at, name in enumerate(sorted({file.partition for file in files}))}
    sending = _Sending(connection=connection, topic=topic, on_progress=on_progress, is_stopping=is_stopping)
    began = time.monotonic()
    for file, lines, keys in _slices(files, pace.at_once, key):
        sending.wait_until(began + pace.due_s(sending.sent, file.modified_ms - files[0].modified_ms))
        for line, line_key in zip(lines, keys, strict=True):
            sending.send(line, numbers[file.partition] if key is None else _BY_KEY, line_key)
        if sending.is_over:
            break
    unsure = sending.finish()
    stopped = is_stopping()
    if sending.failed or (unsure and not stopped):
        cause = sending.failed[0] if sending.failed else f"no ack of {unsure:,} records for {_TIMEOUT_S:.0f} s"
        raise fault(
            "PLAY_UNDELIVERED",
            delivered=f"{sending.delivered:,} records",
            folder=folder,
            servers=connection,
            cause=cause,
        )
    return Played(delivered=sending.delivered, unsure=unsure, is_stopped=stopped)


@dataclass(kw_only=True)
class _Sending:
    """A producer and the outcome of its records."""

    connection: Connection
    topic: str
    on_progress: OnProgress
    is_stopping: Callable[[], bool]
    sent: int = 0
    delivered: int = 0
    failed: list[str] = field(default_factory=list)
    _producer: Any = field(init=False)
    _presence: Presence = field(init=False)

    def __post_init__(self) -> None:
        self._presence = Presence(connection=self.connection)
        settings = {
            "linger.ms": 20,
            "enable.idempotence": True,
            "partitioner": "murmur2_random",
            **self._presence.settings,
        }
        self._producer = confluent().Producer({**self.connection.for_librdkafka(), **settings})

    @property
    def is_over(self) -> bool:
        """Whether to stop sending."""
        return bool(self.failed) or self.is_stopping()

    def wait_until(self, due: float) -> None:
        """Wait until `due`, serving delivery reports meanwhile."""
        self._hear(0)
        while not self.is_over and (left := due - time.monotonic()) > 0:
            self._hear(min(left, _POLL_S))

    def send(self, line: bytes, partition: int, key: str | None) -> None:
        """Queue a record as soon as there is room for it."""
        while not self.is_over:
            try:
                self._producer.produce(self.topic, line, key=key, partition=partition, on_delivery=self._on_delivery)
            except BufferError:
                self._hear(_POLL_S)
            else:
                self.sent += 1
                return

    def finish(self) -> int:
        """Wait for records in flight while the cluster keeps answering; return how many remain."""
        heard, before = time.monotonic(), self.delivered
        stop_by = float("inf")
        while left := int(self._producer.flush(_POLL_S)):
            self.on_progress(self.delivered)
            now = time.monotonic()
            if self.delivered > before:
                heard, before = now, self.delivered
            if self.is_stopping():
                stop_by = min(stop_by, now + _STOP_S)
            if now > min(heard + _TIMEOUT_S, stop_by):
                return left
        return 0

    def _hear(self, for_s: float) -> None:
        self._producer.poll(for_s)
        self.on_progress(self.delivered)

    def _on_delivery(self, error: Any, _message: Any) -> None:  # noqa: ANN401  the client's own types
        if error is None:
            self.delivered += 1
            self._presence.answers()
        else:
            self.failed.append(error.str())


def _slices(
    files: list[LogFile], at_once: int, key: str | None
) -> Iterator[tuple[LogFile, list[bytes], list[str | None]]]:
    for file in files:
        for chunk in read_file(file.path, length=file.length, modified_ms=file.modified_ms, kind="json"):
            lines = chunk.frame["__payload"]
            for start in range(0, len(lines), at_once):
                part = lines[start : start + at_once]
                yield file, part.to_list(), [None] * len(part) if key is None else keys_of(part, key)


def _check_key(folder: Path, files: list[LogFile], key: str) -> None:
    """Refuse a field that none of the first records has, before anything is sent: it is probably misspelt."""
    names = dict[str, None]()
    for _, lines, keys in _slices(files, _AT_ONCE, key):
        if any(found is not None for found in keys):
            return
        names |= dict.fromkeys(name for line in lines for name in _fields(line))
        if names:
            break
    if names and key not in names:
        known, hint = listed(names, near=key), near_miss(key, names)
        raise fault("PLAY_KEY", path=folder, key=key, hint=hint, known=known)


def _fields(line: bytes) -> list[str]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return []
    return list(record) if isinstance(record, dict) else []


def keys_of(lines: pl.Series, field: str) -> list[str | None]:
    """Return the text of a field of each line; None if the line is not a JSON object or lacks the field."""
    found: list[str | None] = []
    for line in lines.to_list():
        try:
            value = json.loads(line)[field]
        except (ValueError, KeyError, TypeError, RecursionError):
            value = None
        found.append(value if value is None or isinstance(value, str) else json.dumps(value))
    return found

"""A small job whose every batch has rows for the sink, corrections and retractions among them.

file      0     1     2     3     …
on time   :00   1:00  2:00  3:00  …     one minute each, every key
corrects              :30   1:30  …     a minute that was shown with the file before
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

import slackwater as sw
from slackwater.connectors.sink import Sink
from slackwater.pipeline import Pipeline
from tests.on_spark.jobs import MINUTE, CrashError, record, stream, write_log

LONG, SHORT = 7, 4
KEYS: Final = tuple(f"k{number}" for number in range(6))


def write_matrix_log(log: Path, count: int) -> None:
    """Write a log of so many files, each a batch."""
    files = []
    for minute in range(count):
        times = [minute * MINUTE + 1_000, minute * MINUTE + 59_000, *([minute * MINUTE - 90_000] if minute > 1 else [])]
        rows = [(key, time) for time in times for key in KEYS]
        files.append([record(1_000 * minute + number, time, key) for number, (key, time) in enumerate(rows)])
    write_log(log, files)


def matrix_pipeline(log: Path, *sinks: Sink) -> Pipeline:
    """Return sums per key and minute, shown again when a late row corrects them, into `sinks`."""
    events = stream(log)
    results = (
        events.key_by("k")
        .window(sw.tumbling("1m"), allowed_lateness="5m", accumulation="retracting")
        .aggregate(n=sw.count(), total=sw.sum("v"))
    )
    ends = [results.to(sink) for sink in sinks]
    return sw.Pipeline("matrix", *ends, results.late.drop(), events.dead_letters.drop(), key_groups=2)


@contextmanager
def crashing(monkeypatch: pytest.MonkeyPatch, folder: Path, point: str, batch: int) -> Iterator[None]:
    """Let the driver fail, once, at a point of a batch, where the kill test would kill it."""

    def die(_pid: int, _signal: int) -> None:
        raise CrashError

    with monkeypatch.context() as patch:
        patch.setenv("SLACKWATER_CRASH", f"{point}@{batch}")
        patch.setenv("SLACKWATER_CRASH_ONCE", str(folder / f"crashed-{uuid.uuid4()}"))
        patch.setattr(os, "kill", die)
        yield

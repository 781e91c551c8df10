"""Dead letters made up for tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import polars as pl

import slackwater as sw
from slackwater.formats.dead_letter_columns import DEAD_LETTER_SCHEMA, HEADERS, dead_letters
from slackwater.testing.sinks import SinkHarness

NOON_MS = 1_772_366_400_000
"""2026-03-01 12:00 UTC."""


def letters(payloads: Sequence[bytes | None], *, first: int = 0, hour: int = 0, **more: Any) -> pl.DataFrame:  # noqa: ANN401  as dead_letters'
    """Return letters of a log's partition, one a payload, with offsets that follow `first`."""
    given: dict[str, Any] = {
        "partition": "phones",
        "source": "/data/orders/phones/0.jsonl",
        "step": "orders.decode",
        "reason": "malformed",
        "message": "broken off",
        "ingestion_time_ms": NOON_MS + hour * 3_600_000 - 5_000,
        "processed_at_ms": NOON_MS + hour * 3_600_000,
        "offset": pl.Series(range(first, first + len(payloads)), dtype=pl.Int64),
    }
    return dead_letters(payload=pl.Series(payloads, dtype=pl.Binary), **{**given, **more})


def headers(*lists: list[tuple[str, bytes | None]] | None) -> pl.Series:
    return pl.Series(
        [None if one is None else [{"name": name, "value": value} for name, value in one] for one in lists],
        dtype=HEADERS,
    )


def deliver(folder: Path, *batches: pl.DataFrame, format: Literal["parquet", "json"] = "parquet") -> Path:  # noqa: A002
    """Write each frame as a batch of the files sink."""
    sink = sw.sinks.files(folder, format=format)
    with SinkHarness(sink=sink, schema=DEAD_LETTER_SCHEMA, pipeline="p", output="orders.dead_letters") as job:
        job.start()
        for rows in batches:
            job.deliver(rows)
    return folder

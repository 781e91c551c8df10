"""Jobs that deliver rows to a receiver, and what became of the rows."""

from __future__ import annotations

from typing import Any

import polars as pl

from slackwater.connectors.http.sink import HttpSink, http
from slackwater.connectors.memory.sink import MemorySink, memory
from slackwater.testing import SinkHarness
from tests.connectors.http.receiver import Fault, Receiver, Seen

SCHEMA = pl.Schema({"user": pl.String(), "orders": pl.Int64()})
BAD = 13
"""The number of orders that the receiver refuses."""


def rows(*orders: int, user: str | None = None) -> pl.DataFrame:
    return pl.DataFrame([(user or f"user-{n}", n) for n in orders], schema=SCHEMA, orient="row")


def job(receiver: Receiver, run: dict[str, Any] | None = None, **options: Any) -> SinkHarness:  # noqa: ANN401  theirs
    told: dict[str, Any] = {"rejected": memory(), "key": "user", "retry_for": "20s"} | options
    sink = http(receiver.url, **told)
    return SinkHarness(sink=sink, schema=SCHEMA, **run or {})


def letters(run: SinkHarness) -> pl.DataFrame:
    assert isinstance(run.sink, HttpSink)
    assert isinstance(run.sink.rejected, MemorySink)
    return run.sink.rejected.rows()


def taken(receiver: Receiver) -> list[int]:
    return sorted(row["orders"] for row in receiver.rows)


def refuses_bad_rows(seen: Seen) -> Fault | None:
    sent = seen.body if isinstance(seen.body, list) else [seen.body]
    is_bad = any(row["orders"] == BAD for row in sent)
    return Fault(status=422, body=b'{"error":"thirteen"}') if is_bad else None

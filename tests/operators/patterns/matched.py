"""A pattern step on its own: rows in, matches out."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import polars as pl

import slackwater as sw
from slackwater.base.times import EPOCH
from slackwater.operators.patterns import Pattern
from slackwater.plan.streams import Output, Stream
from slackwater.testing import Harness, rows_source

FAR_BEHIND = "3650d"
"""So out of order that only the test moves the watermark."""
DDL = "key string, ts long, kind string, name string, price long"


class Matched:
    """A harness around one step; rows go in by `add`, the watermark moves by `advance`."""

    def __init__(self, pattern: Pattern, *, key_groups: int = 1) -> None:
        stream = sw.stream("events", rows_source(DDL)).event_time("ts", out_of_orderness=FAR_BEHIND)
        self.pattern = pattern
        self.results = stream.key_by("key").match(pattern)
        self.dead_letters = stream.dead_letters
        ended: list[Stream | Output] = [self.results, self.results.late, self.dead_letters]
        self.pipeline = sw.Pipeline("test", *(out.to(sw.sinks.memory()) for out in ended), key_groups=key_groups)
        self.harness = Harness(self.pipeline)

    def add(self, *rows: dict[str, Any], partition: str = "0") -> list[str]:
        """Run a batch of rows; returns the matches it shows."""
        self.harness.send("events", list(rows), partition=partition)
        return self._shown(self.harness.run_batch())

    def advance(self, watermark_ms: int) -> list[str]:
        """Move the watermark; returns the matches that shows."""
        return self._shown(self.harness.advance_watermark(watermark_ms))

    def finish(self) -> list[str]:
        """End the input; returns the matches that shows."""
        return self._shown(self.harness.finish())

    def rows(self) -> pl.DataFrame:
        """Return all results so far."""
        return self.harness.output(self.results)

    def state_rows(self) -> int:
        """Return how many rows the state holds."""
        return sum(held["rows"] for held in self.harness.last.state.values())

    def _shown(self, outputs: dict[str, pl.DataFrame]) -> list[str]:
        return [self._names(row) for row in outputs[self.results.name].iter_rows(named=True)]

    def _names(self, row: dict[str, Any]) -> str:
        """Return the names of a match's rows in the order of the steps."""
        steps = self.pattern.steps[: 1 if self.pattern.is_absence else None]
        found = [row[f"{step.name}_name"] for step in steps]
        return " ".join(name for each in found for name in (each if isinstance(each, list) else [each]) if name)


def row(name: str, ts: int, *, key: str | None = "k", price: int | None = None) -> dict[str, Any]:
    """Return a row whose kind is the first letter of its name."""
    return {"key": key, "ts": ts, "kind": name[:1], "name": name, "price": price}


def letters(text: str) -> list[dict[str, Any]]:
    """Return a row for each word of `text`, one second apart."""
    return [row(name, 1000 * at) for at, name in enumerate(text.split())]


def matches(pattern: Pattern, rows: Iterable[dict[str, Any]]) -> list[str]:
    """Return the matches of a pattern in rows that all come in one batch."""
    step = Matched(pattern)
    return step.add(*rows) + step.finish()


def ms(moment: datetime) -> int:
    """Return a time in epoch milliseconds."""
    return round((moment - EPOCH).total_seconds() * 1000)

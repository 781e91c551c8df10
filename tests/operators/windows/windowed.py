"""A windowed step on its own: typed rows (key, ts, id) in, results with the ids of each window out."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import polars as pl

import slackwater as sw
from slackwater.base.times import EPOCH
from slackwater.operators.aggregates import Aggregate
from slackwater.plan.streams import Output, Stream
from slackwater.testing import Harness, rows_source
from slackwater.windows import Window

Row = tuple[str | None, int, int]
"""Key, event time in milliseconds, id."""
FAR_BEHIND = "3650d"
"""So out of order that only the test moves the watermark."""


class Windowed:
    """A harness around one step; rows go in by `add`, the watermark moves by `advance`."""

    def __init__(
        self,
        window: Window,
        *,
        key_groups: int = 1,
        aggregates: dict[str, Aggregate] | None = None,
        **options: Any,  # noqa: ANN401  as `window` takes them
    ) -> None:
        stream = sw.stream("events", rows_source("key string, ts long, id long")).event_time(
            "ts", out_of_orderness=FAR_BEHIND
        )
        aggregates = {"ids": sw.collect_list("id")} if aggregates is None else aggregates
        self.results = stream.key_by("key").window(window, **options).aggregate(**aggregates)
        ended: list[Stream | Output] = [self.results, self.results.late, stream.dead_letters]
        self.pipeline = sw.Pipeline("test", *(out.to(sw.sinks.memory()) for out in ended), key_groups=key_groups)
        self.harness = Harness(self.pipeline)

    def add(self, *rows: Row) -> list[dict[str, Any]]:
        """Run a batch of rows; returns what it shows."""
        self.harness.send("events", [dict(zip(("key", "ts", "id"), row, strict=True)) for row in rows])
        return self._shown(self.harness.run_batch())

    def advance(self, watermark_ms: int) -> list[dict[str, Any]]:
        """Move the watermark; returns what that shows."""
        return self._shown(self.harness.advance_watermark(watermark_ms))

    def wait(self, by: str) -> list[dict[str, Any]]:
        """Move processing time; returns what that shows."""
        return self._shown(self.harness.advance_processing_time(by))

    def finish(self) -> list[dict[str, Any]]:
        """End the input; returns what that shows."""
        return self._shown(self.harness.finish())

    def late_ids(self) -> list[int]:
        """Return the ids of all late rows so far."""
        return self.harness.output(self.results.late)["id"].to_list()

    def state_rows(self) -> int:
        """Return how many rows the state holds."""
        return sum(held["rows"] for held in self.harness.last.state.values())

    def _shown(self, outputs: dict[str, pl.DataFrame]) -> list[dict[str, Any]]:
        return [
            {**row, "start": _ms(row["window_start"]), "end": _ms(row["window_end"])}
            for row in outputs[self.results.name].iter_rows(named=True)
        ]


def panes(rows: Iterable[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return (start, end, ids, pane) of result rows, with a minus before the pane of a retraction."""
    return sorted(
        (row["start"], row["end"], row["ids"], ("-" if row["is_retraction"] else "") + row["pane"]) for row in rows
    )


def _ms(moment: datetime | None) -> int | None:
    return None if moment is None else round((moment - EPOCH).total_seconds() * 1000)

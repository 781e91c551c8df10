"""The FRONT part of a window join: the rows of one side with the first end of their windows, without late rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from slackwater.eventtime.lateness import is_late
from slackwater.eventtime.step_time import StepTime
from slackwater.operators.joins.cells import Celled
from slackwater.operators.joins.columns import IN_LOG, SideName
from slackwater.operators.late_rows import late_rows
from slackwater.operators.step import Guard, PortFront, Taken
from slackwater.operators.windows.aligned import checked_cells
from slackwater.operators.windows.late_rows import missed_windows

if TYPE_CHECKING:
    from slackwater.operators.joins.windowed import WindowedJoin


@dataclass(frozen=True, kw_only=True)
class WindowedFront(PortFront):
    """Sends the rows of one side to the channel named after it, with the first end of their windows in `__end`."""

    step: WindowedJoin
    side: SideName

    def take(self, rows: pl.DataFrame, time: StepTime, guard: Guard) -> Taken:
        """Split off rows whose windows are all forgotten, and leave out rows that cannot match anything."""
        step, window = self.step, self.step.window
        if not window.is_trusted:
            rows = guard(rows, partial(checked_cells, window=window))
        watermark_ms, lateness_ms = time.judge_ms, step.lateness_ms
        celled = Celled.of(rows, window)
        end = pl.col("__end")
        facts = celled.per_row(first=end.min(), last=end.max(), next=end.filter(~is_late(end, time, lateness_ms)).min())
        late_ones = is_late(facts["last"], time, lateness_ms).fill_null(value=False)
        late = None
        if late_ones.any():
            late = self._late(celled.rows.filter(late_ones), watermark_ms)
        keys = step.ports[self.side].keys
        has_key = rows.select(pl.all_horizontal(pl.col(keys).is_not_null())).to_series()
        is_kept = facts["next"].is_not_null() & (has_key | pl.Series([step.pads(self.side)]))
        kept = facts.filter(is_kept)
        refired = int((kept["next"] <= watermark_ms).sum())
        counts = {
            "late": 0 if late is None else late.height,
            "no_window": int(facts["last"].null_count()),
            "unmatched": int((facts["next"].is_not_null() & ~is_kept).sum()),
            "refired": refired,
            "on_time": kept.height - refired,
            "partly_late": int(is_late(kept["first"], time, lateness_ms).sum()),
        }
        names = [*step.ports[self.side].schema, *(IN_LOG if step.columns.has_places else ())]
        sent = rows.filter(is_kept).select(*names, "__ts").with_columns(kept["first"].alias("__end"))
        return Taken(kept=sent, late=late, counts=counts)

    def merge(self, parts: list[pl.DataFrame], time: StepTime) -> dict[str, pl.DataFrame]:  # noqa: ARG002  judged before
        """Concatenate the rows of a file's chunks, in order."""
        return {self.side: pl.concat(parts)}

    def _late(self, rows: pl.DataFrame, watermark_ms: int) -> pl.DataFrame:
        step = self.step
        placed = step.as_late(self.side, rows.with_columns(missed_windows(rows, step.window)))
        more = {"side": pl.lit(self.side), "windows": pl.col("__windows")}
        return late_rows(placed, step.late_types, step.name, watermark_ms, **more)

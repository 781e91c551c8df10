"""The FRONT part of a join: the rows of one side, without late rows and rows that cannot match anything."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import polars as pl

from slackwater.eventtime.lateness import is_late
from slackwater.eventtime.step_time import StepTime
from slackwater.operators.joins.columns import IN_LOG, SideName
from slackwater.operators.joins.conditions import tried
from slackwater.operators.joins.step import JoinStep
from slackwater.operators.late_rows import late_rows
from slackwater.operators.step import Guard, PortFront, Taken


@dataclass(frozen=True, kw_only=True)
class JoinFront(PortFront):
    """Sends the rows of one side to the channel named after it, with their time in `__end`."""

    step: JoinStep
    side: SideName
    judges: bool
    """Whether a row behind the watermark is late."""
    keeps_null_keys: bool
    """Whether a row with a null key, which matches nothing, is still a result."""
    parts: tuple[pl.Expr, ...] = ()
    """Parts of the condition on pairs in KEYED: a row on which one of them fails becomes a dead letter here."""
    behind: str = "processed_late"
    """The count for rows behind the watermark that are not late."""
    extra: tuple[pl.Expr, ...] = ()
    """Additional columns that KEYED needs."""

    def take(self, rows: pl.DataFrame, time: StepTime, guard: Guard) -> Taken:
        """Split off late rows, and leave out rows that cannot match anything."""
        late = None
        if self.judges and (late_ones := is_late(rows["__ts"] + 1, time)).any():
            late = self._late(rows.filter(late_ones), time.judge_ms)
            rows = rows.filter(~late_ones)
        if self.extra:
            rows = guard(rows, lambda some: some.with_columns(self.extra))
        if self.parts and rows.height:
            schema = self.step.ports[self.side].schema
            rows = guard(rows, partial(tried, parts=self.parts, side=self.side, schema=schema))
        keys, height = self.step.ports[self.side].keys, rows.height
        if not self.keeps_null_keys and any(rows[key].null_count() for key in keys):
            rows = rows.drop_nulls(keys)
        counts = {"late": 0 if late is None else late.height, "unmatched": height - rows.height}
        behind = int((rows["__ts"] < time.judge_ms).sum())
        for what, number in (("on_time", rows.height - behind), (self.behind, behind)):
            counts[what] = counts.get(what, 0) + number
        added = [*(IN_LOG if self.step.columns.has_places else ()), *(extra.meta.output_name() for extra in self.extra)]
        names = [*self.step.ports[self.side].schema, *dict.fromkeys(added)]
        kept = rows.select(*names, pl.col("__ts").alias("__end"))
        return Taken(kept=kept, late=late, counts=counts)

    def merge(self, parts: list[pl.DataFrame], time: StepTime) -> dict[str, pl.DataFrame]:  # noqa: ARG002  judged before
        """Concatenate the rows of a file's chunks, in order."""
        return {self.side: pl.concat(parts)}

    def _late(self, rows: pl.DataFrame, watermark_ms: int) -> pl.DataFrame:
        types = self.step.late_types
        assert types is not None
        side = {"side": pl.lit(self.side)} if "side" in types else {}
        return late_rows(self.step.as_late(self.side, rows), types, self.step.name, watermark_ms, **side)

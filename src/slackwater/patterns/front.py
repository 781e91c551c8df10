"""The FRONT part of a pattern step: split off late rows, and record which conditions each row meets."""

from __future__ import annotations

from typing import Final

import polars as pl

from slackwater.patterns.spec import PatternSpec
from slackwater.state.late_rows import late_rows
from slackwater.state.step import Guard, PortFront, Taken
from slackwater.state.step_time import StepTime

OPEN: Final = "open"
"""The channel of rows that the watermark has not passed."""


class PatternFront(PortFront):
    """Splits off late rows, and leaves out rows that no step could take."""

    def __init__(self, spec: PatternSpec) -> None:
        self.spec = spec
        met = [pl.lit(value=True) if each.own is None else each.own.fill_null(value=False) for each in spec.conditions]
        bits = [each.cast(pl.Int64) * (1 << at) for at, each in enumerate(met)]
        self._fits = pl.sum_horizontal(bits).alias("__fits")
        # With strict contiguity, a row that no step can take ends the match before it.
        self._may_leave_out = spec.pattern.contiguity == "relaxed"

    def take(self, rows: pl.DataFrame, time: StepTime, guard: Guard) -> Taken:
        """Record which conditions each row meets; a row on which a condition fails becomes a dead letter."""
        spec, late = self.spec, None
        rows = rows.with_columns((pl.col("__ts") + 1).alias("__end"))
        is_late = rows["__end"] <= time.gone_ms(spec.lateness_ms)
        if is_late.any():
            late = late_rows(rows.filter(is_late), spec.late_types, spec.name, time.judge_ms)
            rows = rows.filter(~is_late)
        rows = guard(rows, self._judged)
        counts = {"on_time": rows.height, "late": 0 if late is None else late.height}
        if self._may_leave_out:
            rows = rows.filter(pl.col("__fits") != 0)
        held = [name for name in spec.state_types if name in rows.columns]
        return Taken(kept=rows.select(held), late=late, counts=counts)

    def merge(self, parts: list[pl.DataFrame], time: StepTime) -> dict[str, pl.DataFrame]:  # noqa: ARG002  judged before
        """Concatenate the rows of a file's chunks."""
        return {OPEN: pl.concat(parts)}

    def _judged(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return rows with the conditions they meet; fail if a condition would fail on one of them in KEYED.

        To test that, columns of another step's row are read from the row itself, if that step can take it.
        """
        spec = self.spec
        rows = rows.with_columns(self._fits)
        tied = [condition for condition in spec.conditions if condition.tied is not None]
        if tied:
            taken = {at: spec.pattern.steps[at].name for condition in tied for at in condition.refers}
            own = pl.struct(spec.fields)
            met = [pl.when((pl.col("__fits") & (1 << at)) != 0).then(own).alias(name) for at, name in taken.items()]
            rows.with_columns(met).select(
                condition.tied.alias(str(number)) for number, condition in enumerate(tied) if condition.tied is not None
            )
        return rows

"""The FRONT part of a pattern step: split off late rows, and record which conditions each row meets."""

from __future__ import annotations

from typing import Final

import polars as pl

from slackwater.base.expressions import FAILURES
from slackwater.eventtime.lateness import is_late
from slackwater.eventtime.step_time import StepTime
from slackwater.operators.late_rows import late_rows
from slackwater.operators.patterns.spec import PatternSpec
from slackwater.operators.step import Guard, PortFront, Taken

OPEN: Final = "open"
"""The channel of rows that the watermark has not passed."""


class PatternFront(PortFront):
    """Splits off late rows, and leaves out rows that no step could take."""

    def __init__(self, spec: PatternSpec) -> None:
        self.spec = spec
        met = [pl.lit(value=True) if each.own is None else each.own.fill_null(value=False) for each in spec.conditions]
        bits = [each.cast(pl.Int64) * (1 << at) for at, each in enumerate(met)]
        self._fits = pl.sum_horizontal(bits).alias("__fits")
        self._tied, taken = list[pl.Expr](), set[int]()
        for condition in spec.conditions:
            if condition.tied is not None and can_judge_alone(condition.tied, spec):
                self._tied.append(condition.tied)
                taken.update(condition.refers)
        names = {at: spec.pattern.steps[at].name for at in sorted(taken)}
        own = pl.struct(spec.fields) if names else pl.lit(None)
        self._before = [
            pl.when((pl.col("__fits") & (1 << at)) != 0).then(own).alias(name) for at, name in names.items()
        ]
        self._nothing_before = [pl.lit(None, dtype=_fields(spec)).alias(name) for name in names.values()]
        self._nothing_next = [pl.lit(None, dtype=dtype).alias(name) for name, dtype in spec.row_schema.items()]
        # With strict contiguity, a row that no step can take ends the match before it.
        self._may_leave_out = spec.pattern.contiguity == "relaxed"

    def take(self, rows: pl.DataFrame, time: StepTime, guard: Guard) -> Taken:
        """Record which conditions each row meets; a row on which a condition fails becomes a dead letter."""
        spec, late = self.spec, None
        rows = rows.with_columns((pl.col("__ts") + 1).alias("__end"))
        late_ones = is_late(rows["__end"], time, spec.lateness_ms)
        if late_ones.any():
            late = late_rows(rows.filter(late_ones), spec.late_types, spec.name, time.judge_ms)
            rows = rows.filter(~late_ones)
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
        """Return rows with the conditions they meet; fail if a condition fails because of one of them alone.

        To test that, a row is paired with a row of nulls, on which built-in expressions are null: once as the row that
        a step takes, once as the one that was taken before. Pairs that fail otherwise do not match.
        """
        rows = rows.with_columns(self._fits)
        if self._tied:
            as_next = rows.select(*self.spec.row_schema.names(), *self._nothing_before)
            as_next.select(tied.alias(str(number)) for number, tied in enumerate(self._tied))
            as_before = rows.select(*self._nothing_next, *self._before)
            as_before.select(tied.alias(str(number)) for number, tied in enumerate(self._tied))
        return rows


def can_judge_alone(tied: pl.Expr, spec: PatternSpec) -> bool:
    """Return whether a condition can be tested on nulls; a user's function may fail on them, which no row ever has."""
    if "python_udf" in str(tied):
        return False
    names = {step.name: _fields(spec) for step in spec.pattern.steps if step.name not in spec.row_schema}
    nothing = pl.DataFrame(schema={**spec.row_schema, **names}).clear(1)
    try:
        nothing.select(tied)
    except FAILURES:
        return False
    return True


def _fields(spec: PatternSpec) -> pl.Struct:
    return pl.Struct({name: spec.row_schema[name] for name in spec.fields})

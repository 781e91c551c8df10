"""Aggregates that depend on event time: first, last and the exponentially weighted mean."""

# ruff: noqa: D102  the contract in base.py says what the methods do

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl

from slackwater.operators.aggregates.base import ColumnAggregate, FloatAggregate, gathered, part, state
from slackwater.operators.aggregates.ragged import first_of_each, flat, items, pick


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class First(ColumnAggregate):
    """The value of the earliest row; among rows with equal times, of the first in the log.

    The state is the value and its place: `ts`, `part`, `off`.
    """

    name: ClassVar[str] = "first"
    is_trusted: ClassVar[bool] = True
    may_stream: ClassVar[bool] = False
    is_last: ClassVar[bool] = False

    def output_type(self, schema: pl.Schema) -> pl.DataType:
        return self.input_type(schema)

    def partial(self, alias: str) -> list[pl.Expr]:
        values = self.values(alias)
        kept = {"~value": values, "~ts": pl.col("__ts"), "~part": pl.col("__part"), "~off": pl.col("__off")}
        return gathered(alias, kept, where=values.is_not_null())

    def merge(self, alias: str) -> list[pl.Expr]:
        place = [state(alias, "ts"), state(alias, "part"), state(alias, "off")]
        columns = [state(alias, "value"), *place]
        ordered = [column.sort_by(place, nulls_last=not self.is_last) for column in columns]
        return [column.last() if self.is_last else column.first() for column in ordered]

    def compact(self, frame: pl.DataFrame, alias: str) -> pl.DataFrame:
        raw = {key: part(alias, f"~{key}") for key in ("value", "ts", "part", "off")}
        if raw["ts"] not in frame.columns:
            return frame
        # Times are almost always distinct, so only ties are sorted by position in the log.
        rows = flat(frame, {raw["ts"]: "ts"})
        times = frame[raw["ts"]].list
        bound = times.max() if self.is_last else times.min()
        tied = rows["ts"].to_numpy() == bound.fill_null(0).to_numpy()[rows["row"].to_numpy()]
        log = {key: items(frame[raw[key]]) for key in ("part", "off")}
        best = rows.with_columns(**log).filter(pl.Series(tied, dtype=pl.Boolean))
        best = best.sort("row", "part", "off", descending=[False, self.is_last, self.is_last])
        frame = pick(frame, list(raw.values()), first_of_each(best, 1))
        found = [pl.col(column).list.first().alias(part(alias, key)) for key, column in raw.items()]
        return frame.with_columns(found).drop(raw.values())

    def finish(self, frame: pl.DataFrame, alias: str) -> pl.DataFrame:
        return frame.with_columns(state(alias, "value").alias(alias))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Last(First):
    """The value of the latest row; among rows with equal times, of the last in the log."""

    name: ClassVar[str] = "last"
    is_last: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Ewma(FloatAggregate):
    """The mean of a column in which the weight of a value halves for each `half_life` of its age.

    Ages are in event time, so the order of arrival does not matter. The state is the latest time
    and, relative to it, the sum of weights and the weighted sum; merging rescales to the later time.
    """

    name: ClassVar[str] = "ewma"
    half_life_ms: int

    def partial(self, alias: str) -> list[pl.Expr]:
        values = self.values(alias).cast(pl.Float64)
        kept = {"~values": values, "~ts": pl.col("__ts")}
        return gathered(alias, kept, where=values.is_not_null())

    def merge(self, alias: str) -> list[pl.Expr]:
        ts = state(alias, "ts")
        decay = self._decay(ts)
        return [ts.max(), (state(alias, "weight") * decay).sum(), (state(alias, "sum") * decay).sum()]

    def compact(self, frame: pl.DataFrame, alias: str) -> pl.DataFrame:
        raw = {part(alias, name): name for name in ("~values", "~ts")}
        if part(alias, "~ts") not in frame.columns:
            return frame
        # Weights relative to the latest time of each group: three times faster here than in a group_by.
        rows = flat(frame, raw)
        row, ts = rows["row"].to_numpy(), rows["~ts"].to_numpy()
        latest = frame[part(alias, "~ts")].list.max()
        decay = np.exp2((ts - latest.fill_null(0).to_numpy()[row]) / self.half_life_ms)
        sums = {"weight": decay, "sum": rows["~values"].to_numpy() * decay}
        found = {name: np.bincount(row, weights=each, minlength=frame.height) for name, each in sums.items()}
        columns = [pl.Series(part(alias, name), each, dtype=pl.Float64) for name, each in found.items()]
        return frame.drop(raw).with_columns(latest.alias(part(alias, "ts")), *columns)

    def finish(self, frame: pl.DataFrame, alias: str) -> pl.DataFrame:
        weight = state(alias, "weight")
        return frame.with_columns(pl.when(weight > 0).then(state(alias, "sum") / weight).alias(alias))

    def _decay(self, ts: pl.Expr) -> pl.Expr:
        return pl.lit(2.0).pow((ts - ts.max()) / self.half_life_ms)

"""Quantiles within a relative error, by a DDSketch: a histogram with logarithmic buckets."""

# ruff: noqa: D102  the contract in base.py says what the methods do

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from slackwater.base.errors import refuse
from slackwater.base.expressions import as_written
from slackwater.operators.aggregates.base import ColumnAggregate, part, state
from slackwater.operators.aggregates.ragged import flat, items, joined, lengths, lists_of

_INFINITY: Final = (1 << 31) - 1
_LEAST_LOG: Final = 746.0
"""A bound for how far the logarithm of a float can be below zero."""
_LEAST_ERROR: Final = 1e-6
"""The smallest relative error: codes of finer buckets would not fit 32 bits."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Quantiles(ColumnAggregate):
    """Several quantiles of a column, each within `relative_error` of an exact one; a list of Float64.

    The quantile q of n values is the one at rank floor(q * (n - 1)), counted from zero. Skips NaN.
    The state is two lists: bucket codes in ascending order, and the number of values in each. Bucket
    i has the values in (g^(i-1), g^i] with g = (1 + e) / (1 - e). A code is i shifted to be positive;
    negative values have negative codes, zero is 0, and the infinities are the outermost codes.
    """

    name: ClassVar[str] = "quantiles"
    is_trusted: ClassVar[bool] = True
    may_stream: ClassVar[bool] = False
    q: tuple[float, ...]
    relative_error: float = 0.01

    def __post_init__(self) -> None:
        if not self.q:
            raise refuse("QUANTILES_EMPTY", aggregate=self.describe(), got="none")
        for q in self.q:
            if not _is_number(q) or not 0 <= q <= 1:
                percent = q if isinstance(q, int) and 1 < q <= 100 else 95  # noqa: PLR2004  probably meant as a percentage
                advice = f"{percent / 100:g} is the {percent}th percentile"
                shown = f"{self.name}({as_written(self.column)})"
                raise refuse("QUANTILE_RANGE", aggregate=shown, got=q, advice=advice)
        if not _is_number(self.relative_error) or not _LEAST_ERROR <= self.relative_error < 1:
            raise refuse("QUANTILE_ERROR", least=_LEAST_ERROR, got=self.relative_error)

    def output_type(self, schema: pl.Schema) -> pl.DataType:
        self.number_type(schema)
        return pl.List(pl.Float64)

    def prepare(self, alias: str) -> list[pl.Expr]:
        value = self.inputs()[0].cast(pl.Float64).fill_nan(None)
        # The logarithms of zero and infinity are infinite, and are clipped to the outermost codes.
        size = ((value.abs().log() / self._log).ceil() + self._shift).clip(1.0, float(_INFINITY))
        return [(size * value.sign()).cast(pl.Int32).alias(part(alias, "~code"))]

    def partial(self, alias: str) -> list[pl.Expr]:
        return [state(alias, "~code").drop_nulls().implode().alias(part(alias, "~codes"))]

    def merge(self, alias: str) -> list[pl.Expr]:
        return [joined(state(alias, "codes")), joined(state(alias, "counts"))]

    def compact(self, frame: pl.DataFrame, alias: str) -> pl.DataFrame:
        raw, codes, counts = (part(alias, name) for name in ("~codes", "codes", "counts"))
        if raw in frame.columns:
            buckets = _counted(flat(frame, {raw: "code"}), None)
            frame = frame.drop(raw)
        else:
            buckets = flat(frame, {codes: "code", counts: "count"})
            buckets = _counted(buckets, buckets["count"].to_numpy())
        return frame.with_columns(lists_of(frame.height, buckets, {"code": codes, "count": counts}))

    def finish(self, frame: pl.DataFrame, alias: str) -> pl.DataFrame:
        found = pl.Series(self._estimates(frame, alias)).arr.to_list()
        is_full = state(alias, "codes").list.len() > 0
        return frame.with_columns(pl.when(is_full).then(found).alias(alias))

    def _estimates(self, frame: pl.DataFrame, alias: str) -> npt.NDArray[np.float64]:
        """Return one row of quantiles for each state; NaN for a state without values."""
        sizes = lengths(frame[part(alias, "codes")])
        codes, counts = (items(frame[part(alias, name)]).to_numpy() for name in ("codes", "counts"))
        totals = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        ends = np.cumsum(sizes)
        before, after = totals[ends - sizes], totals[ends]
        found = np.full((frame.height, len(self.q)), np.nan)
        full = np.flatnonzero(sizes)
        for place, q in enumerate(self.q):
            rank = np.floor(q * (after - before - 1)).astype(np.int64)[full]
            bucket = np.searchsorted(totals, before[full] + rank, side="right") - 1
            found[full, place] = self._middle(codes[bucket])
        return found

    def _middle(self, codes: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
        """Return the value in each bucket that has the same relative distance to both ends."""
        sizes = np.abs(codes.astype(np.int64))
        with np.errstate(over="ignore"):
            middle = np.exp((sizes - self._shift) * self._log) * (1 - self.relative_error)
        middle = np.minimum(middle, np.finfo(np.float64).max)
        return np.where(sizes == _INFINITY, np.inf, middle) * np.sign(codes)

    @property
    def _log(self) -> float:
        return math.log1p(self.relative_error) - math.log1p(-self.relative_error)

    @property
    def _shift(self) -> int:
        return math.ceil(_LEAST_LOG / self._log) + 1


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Quantile(Quantiles):
    """One quantile of a column, within `relative_error` of the exact one, as Float64."""

    name: ClassVar[str] = "quantile"

    def output_type(self, schema: pl.Schema) -> pl.DataType:
        self.number_type(schema)
        return pl.Float64()

    def finish(self, frame: pl.DataFrame, alias: str) -> pl.DataFrame:
        found = pl.Series(alias, self._estimates(frame, alias)[:, 0]).fill_nan(None)
        return frame.with_columns(found)


def _counted(codes: pl.DataFrame, counts: npt.NDArray[np.int64] | None) -> pl.DataFrame:
    """Return each distinct `row` and `code` once, sorted, with its counts summed; None counts each as 1."""
    # Row and code are combined into one number, because numbers sort several times faster than frames.
    keys = (codes["row"].to_numpy() << 32) + codes["code"].to_numpy() + (1 << 31)
    if counts is None:
        keys.sort()
    else:
        order = np.argsort(keys)
        keys, counts = keys[order], counts[order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    if counts is None:
        totals = np.diff(starts, append=len(keys))
    else:
        totals = np.add.reduceat(counts, starts) if len(starts) else counts
    found = keys[starts]
    code = ((found & 0xFFFFFFFF) - (1 << 31)).astype(np.int32)
    return pl.DataFrame({"row": found >> 32, "code": code, "count": totals})


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)

"""Key equality, defined once: which rows belong to the same key.

Two keys are equal when they are the same value of the same type. Null equals null, NaN equals NaN, and -0.0 equals 0.0.

Keys are compared in four ways: by their stable hash, by Polars when rows are grouped or sorted, by joins, and by `==`
on columns. They agree because

1. `canonical` gives equal keys the same bits on their way into a keyed step (`engine/front/arrivals.py`), so no result
   depends on which of two zeros came first;
2. `stable_hash` hashes values, to the last nanosecond;
3. `join_on_keys` is the only join by key: Polars compares NaN differently where both frames have a single row.

A test rejects any other join with `nulls_equal`. docs/inside/decisions/018-one-equality-of-keys.md has the reasons.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import polars as pl

_PAIRED: Final = "__paired"
How = Literal["left", "inner", "semi", "anti"]


def canonical(rows: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Return `rows` with keys that are equal only if their bits are: one zero and one NaN."""
    floats = [key for key in keys if rows.schema[key].is_float()]
    if not floats:
        return rows
    one_zero = [pl.when(pl.col(key) != 0.0).then(pl.col(key)).otherwise(pl.col(key).abs()).alias(key) for key in floats]
    return rows.with_columns(one_zero).with_columns(pl.col(floats).fill_nan(float("nan")))


def join_on_keys(
    left: pl.DataFrame,
    right: pl.DataFrame,
    keys: Sequence[str],
    *,
    how: How,
    order: Literal["left", "left_right"] = "left",
) -> pl.DataFrame:
    """Join two frames by key, in the order of the left one, which a replayed batch repeats."""
    if not any(left.schema[key].is_float() for key in keys):
        return left.join(right, on=list(keys), how=how, nulls_equal=True, maintain_order=order)
    # With two columns, Polars compares encoded rows, in which all NaN are equal.
    paired = pl.lit(value=True).alias(_PAIRED)
    joined = left.with_columns(paired).join(
        right.with_columns(paired), on=[*keys, _PAIRED], how=how, nulls_equal=True, maintain_order=order
    )
    return joined.drop(_PAIRED)

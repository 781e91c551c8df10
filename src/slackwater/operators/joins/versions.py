"""Versions: which version of its key is valid at a row's time, and which versions no row can need any more."""

from __future__ import annotations

import polars as pl

from slackwater.operators.joins.kept_rows import RANK
from slackwater.operators.joins.matching import Pairs

GONE = "__gone"
"""The column that says whether a version is a deletion, which ends the version before it."""


def valid_versions(
    rows: pl.DataFrame, versions: pl.DataFrame, keys: tuple[str, ...], their_keys: tuple[str, ...], ttl_ms: int
) -> Pairs:
    """Return the pairs of rows and their versions, by their numbers, for the rows that have one.

    A version is valid from its time until the next one of its key, but no longer than `ttl_ms`. If versions have the
    same time, the last by its place is valid. Rows and versions have keys, and their times in `__end`.
    """
    both = pl.concat(
        [
            versions.select(
                *(pl.col(their).alias(key) for key, their in zip(keys, their_keys, strict=True)),
                "__end",
                pl.lit(value=False).alias("__asks"),
                RANK,
                pl.int_range(pl.len(), dtype=pl.Int64).alias("__number"),
            ),
            rows.select(
                *keys,
                "__end",
                pl.lit(value=True).alias("__asks"),
                pl.lit(0, dtype=pl.Int64).alias(RANK),
                pl.int_range(pl.len(), dtype=pl.Int64).alias("__number"),
            ),
        ]
    )
    # Keys are replaced by numbers, which sort faster and are equal if and only if the keys are.
    same_key = pl.col("__row").first().over(keys).alias("__key")
    is_version = ~pl.col("__asks")
    newest = [
        pl.when(is_version).then(name).forward_fill().alias(f"{name}_valid") for name in ("__key", "__end", "__number")
    ]
    found = (
        both.with_row_index("__row")
        .select(same_key, "__end", "__asks", RANK, "__number")
        .sort("__key", "__end", "__asks", RANK)
        .with_columns(newest)
        .filter(
            "__asks",
            pl.col("__key") == pl.col("__key_valid"),
            pl.col("__end") - pl.col("__end_valid") <= ttl_ms,
        )
        .sort("__number")
    )
    pairs = Pairs(found["__number"].to_numpy(), found["__number_valid"].to_numpy())
    if GONE not in versions.columns:
        return pairs
    return pairs.where(~versions[GONE].gather(pairs.theirs).to_numpy())


def superseded(versions: pl.DataFrame, keys: tuple[str, ...], watermark_ms: int) -> pl.Series:
    """Return which versions no row at or after the watermark can need: a newer one of their key is valid there."""
    time = pl.col("__end")
    newest = pl.when(time <= watermark_ms).then(time).max().over(keys)
    return versions.select((time < newest).fill_null(value=False) | replaced(keys)).to_series()


def replaced(keys: tuple[str, ...]) -> pl.Expr:
    """Return which versions have been replaced by another one of the same time."""
    return pl.col(RANK) < pl.col(RANK).max().over(*keys, "__end")

"""Random rows for the aggregates, and the ways in which their pieces may come together."""

from __future__ import annotations

import math
import random
from typing import Any

import polars as pl
from hypothesis import strategies as st

from slackwater.operators.aggregates import Aggregate
from slackwater.operators.aggregates.combine import combine_rows, compact, empty_state, finish, merge_states

Row = dict[str, Any]
Results = dict[tuple[Any, ...], Row]
"""By key (and instant): the result of each alias."""

SCHEMA = pl.Schema(
    {
        "k": pl.String(),
        "x": pl.Float64(),
        "i": pl.Int64(),
        "s": pl.String(),
        "b": pl.Boolean(),
        "d": pl.Decimal(12, 2),
        "__ts": pl.Int64(),
        "__part": pl.String(),
        "__off": pl.Int64(),
    }
)
VISIBLE = pl.Schema({name: dtype for name, dtype in SCHEMA.items() if not name.startswith("__")})


@st.composite
def many_rows(draw: st.DrawFn) -> list[Row]:
    """Rows of few keys, with nulls in all columns and several rows at one instant."""
    row = st.fixed_dictionaries(
        {
            "k": st.sampled_from(["a", "b", None]),
            "x": st.none() | st.floats(-1e6, 1e6).map(lambda x: x + 0.0) | st.just(float("nan")),
            "i": st.none() | st.integers(-(10**12), 10**12) | st.integers(-3, 3),
            "s": st.none() | st.sampled_from(["", "a", "ab", "b"]),
            "b": st.none() | st.booleans(),
            "d": st.none() | st.decimals(-10_000, 10_000, places=2),
            "__ts": st.integers(-3, 12),
            "__part": st.sampled_from(["p0", "p1"]),
        }
    )
    rows = draw(st.lists(row, min_size=1, max_size=15))
    for number, each in enumerate(rows):
        each["__off"] = number
    draw(st.randoms(use_true_random=False)).shuffle(rows)
    return rows


def frame_of(rows: list[Row]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=SCHEMA)


def in_log_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row["__ts"], row["__part"], row["__off"]))


def at_once(many: dict[str, Aggregate], rows: list[Row]) -> Results:
    """The results of each key, all rows in one frame."""
    return results(combine_rows(frame_of(rows), ["k"], many), many)


def in_pieces(many: dict[str, Aggregate], rows: list[Row], dice: random.Random) -> Results:
    """The results of each key, with random pieces merged in random order; some states are of no rows at all."""
    pieces: dict[int, list[Row]] = {}
    for row in rows:
        pieces.setdefault(dice.randrange(4), []).append(row)
    states = [combine_rows(frame_of(piece), ["k"], many) for piece in pieces.values()]
    keys = states[0]["k"]
    states.append(empty_state(VISIBLE, many, len(keys)).with_columns(keys).select(states[0].columns))
    while len(states) > 1:
        dice.shuffle(states)
        states = [merge_states(pl.concat([states.pop(), states.pop()]), ["k"], many), *states]
    return results(states[0], many)


def rolling(many: dict[str, Aggregate], rows: list[Row], size_ms: int) -> Results:
    """The results of the last `size_ms` up to each instant of each key, merged as sliding windows do."""
    instants = combine_rows(frame_of(rows), ["k", "__ts"], many).sort("k", "__ts")
    merges = [merge for alias, aggregate in many.items() for merge in aggregate.merge(alias)]
    windows = instants.rolling("__ts", period=f"{size_ms}i", group_by=["k"], closed="right").agg(merges)
    return results(compact(windows, many), many)


def results(states: pl.DataFrame, many: dict[str, Aggregate]) -> Results:
    """The finished results by what is not one of them."""
    rows = finish(states, many).to_dicts()
    return {
        tuple(value for name, value in row.items() if name not in many): {alias: row[alias] for alias in many}
        for row in rows
    }


def assert_same(found: Results, wanted: Results) -> None:
    """Assert that the results are equal, floats up to rounding and NaN to itself."""
    assert found.keys() == wanted.keys()
    for key, row in wanted.items():
        wrong = {
            alias: (found[key][alias], value) for alias, value in row.items() if not _same(found[key][alias], value)
        }
        assert not wrong, f"found and wanted of {key}"


def _same(found: object, wanted: object) -> bool:
    if isinstance(found, float) and isinstance(wanted, float):
        both_nan = math.isnan(found) and math.isnan(wanted)
        return both_nan or math.isclose(found, wanted, rel_tol=1e-9, abs_tol=1e-6)
    if isinstance(found, list) and isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(_same, found, wanted))
    if isinstance(found, dict) and isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(_same(found[key], wanted[key]) for key in found)
    return found == wanted

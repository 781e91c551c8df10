"""Window kinds that users write: what is wrong with one is refused when it is built, or is a dead letter of its row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl
import pytest

import slackwater as sw
from slackwater.errors import DefinitionError
from slackwater.testing import Harness, rows_source

Bounds = Callable[[pl.Expr], tuple[pl.Expr, pl.Expr]]


@dataclass(frozen=True, kw_only=True)
class Own(sw.windows.AlignedWindow):
    """Windows as a function gives them."""

    function: Bounds

    def bounds(self, ts: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
        return self.function(ts)

    def __str__(self) -> str:
        return "own"


def floor(ts: pl.Expr) -> pl.Expr:
    return ts // 10 * 10


def fails_at_25(times: pl.Series) -> pl.Series:
    if (times == 25).any():
        raise ValueError("no window at 25")
    return times


def harness(function: Bounds) -> Harness:
    stream = sw.stream("s", rows_source("k string, ts long")).event_time("ts", out_of_orderness="1h")
    results = stream.key_by("k").window(Own(function=function), name="w").aggregate(n=sw.count())
    ends = [out.to(sw.sinks.memory()) for out in (results, results.late, stream.dead_letters)]
    return Harness(sw.Pipeline("p", *ends, key_groups=2))


BAD: dict[str, tuple[Bounds, str]] = {
    "no pair": (floor, "TypeError"),  # type: ignore[dict-item]
    "not around the event": (lambda ts: (floor(ts) + 10, floor(ts) + 20), "a window must contain its event"),
    "fractions": (lambda ts: (ts / 10, ts / 10 + 1), "start is Float64"),
    "no end": (lambda ts: (floor(ts), pl.lit(None, dtype=pl.Int64)), "to None"),
    "empty": (lambda ts: (ts, ts), "must contain its event"),
    "of no time": (lambda ts: (pl.col("nothing"), ts + 1), "ColumnNotFoundError"),
}


@pytest.mark.parametrize("function, text", BAD.values(), ids=BAD)
def test_kind_that_is_wrong_for_any_event_is_refused_when_the_pipeline_is_built(function: Bounds, text: str) -> None:
    with pytest.raises(DefinitionError, match=rf"WINDOW_BOUNDS.*`Own` in step `w` does not: .*{text}"):
        harness(function)


ODD: dict[str, Bounds] = {
    "a null": lambda ts: (floor(ts), pl.when(ts != 25).then(floor(ts) + 10)),
    "the end of time": lambda ts: (floor(ts), pl.when(ts == 25).then(2**62).otherwise(floor(ts) + 10)),
    "elsewhere": lambda ts: (floor(ts), pl.when(ts == 25).then(floor(ts) - 10).otherwise(floor(ts) + 10)),
    "a failure": lambda ts: (floor(ts), ts.map_batches(fails_at_25, pl.Int64) // 10 * 10 + 10),
}


@pytest.mark.parametrize("function", ODD.values(), ids=ODD)
def test_row_for_which_a_kind_is_wrong_is_a_dead_letter_and_the_others_are_counted(function: Bounds) -> None:
    run = harness(function).send("s", pl.DataFrame({"k": "a", "ts": [1, 5, 25, 31]}))
    run.finish()
    assert sorted(run.output("w")["n"]) == [1, 2]
    [letter] = run.output("s.dead_letters").to_dicts()
    assert (letter["step"], letter["reason"], letter["offset"]) == ("w", "failed", 2)
    assert run.pieces == 0

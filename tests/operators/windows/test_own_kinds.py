"""Window kinds that users write: what is wrong with one is refused when it is built, or is a dead letter of its row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

import polars as pl
import pytest

import slackwater as sw
from slackwater.base.errors import DefinitionError
from slackwater.testing import Harness, rows_source

HOUR = 3_600_000
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


CHANCE = count()


def alternating(ts: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """Even hours begin a day, odd ones an hour: they overlap."""
    hour = ts // HOUR * HOUR
    return hour, hour + pl.when(ts // HOUR % 2 == 0).then(24 * HOUR).otherwise(HOUR)


def around_another(ts: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """An hour of its own inside each day."""
    day = ts // (24 * HOUR) * 24 * HOUR
    is_inner = (ts // HOUR % 24) == 13
    return day + pl.when(is_inner).then(13 * HOUR).otherwise(0), day + pl.when(is_inner).then(14 * HOUR).otherwise(
        24 * HOUR
    )


def harness(function: Bounds) -> Harness:
    stream = sw.stream("s", rows_source("k string, ts long")).event_time("ts", out_of_orderness="1h")
    results = stream.key_by("k").window(Own(function=function), name="w").aggregate(n=sw.count())
    ends = [out.to(sw.sinks.memory()) for out in (results, results.late, stream.dead_letters)]
    return Harness(sw.Pipeline("p", *ends, key_groups=2))


BAD: dict[str, tuple[Bounds, str]] = {
    "no pair": (floor, "TypeError"),  # type: ignore[dict-item]
    "not around the event": (
        lambda ts: (floor(ts) + 10, floor(ts) + 20),
        r"the window from 1970-01-01 00:00:00\.010 to",
    ),
    "fractions": (lambda ts: (ts / 10, ts / 10 + 1), "start is Float64"),
    "no end": (lambda ts: (floor(ts), pl.lit(None, dtype=pl.Int64)), "to null"),
    "empty": (lambda ts: (ts, ts), r"from 1970-01-01 00:00:00\.000 to 1970-01-01 00:00:00\.000"),
    "around each event": (lambda ts: (ts - 10, ts + 10), "assigns an event at .* to a different window"),
    "around another": (around_another, "assigns an event at .* to a different window"),
    "of other rows": (lambda ts: (ts.min(), ts.max() + 1), "depends on other rows"),
    "of chance": (
        lambda ts: (floor(ts) - next(CHANCE), floor(ts) + 10),
        "assigns an event at .* to a different window",
    ),
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


def test_windows_that_overlap_for_some_events_are_refused_or_lose_no_row() -> None:
    with pytest.raises(DefinitionError, match=r"WINDOW_BOUNDS.*assigns an event at .* to a different window"):
        harness(alternating)

    def only_in_1980(ts: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
        start, end = alternating(ts)
        is_in_1980 = ts.is_between(315_532_800_000, 347_155_200_000)
        return pl.when(is_in_1980).then(start).otherwise(floor(ts)), pl.when(is_in_1980).then(end).otherwise(
            floor(ts) + 10
        )

    run = harness(only_in_1980).send("s", pl.DataFrame({"k": "a", "ts": [1, 325_000_000_000, 325_003_600_000]}))
    run.finish()
    counted = run.output("w")["n"].sum() + run.output("s.dead_letters").height
    assert counted == 3
    assert "a different window" in run.output("s.dead_letters")["message"][0]


@pytest.mark.parametrize("size", [20, 30])
def test_kind_whose_code_has_changed_is_another_one_in_a_checkpoint(size: int) -> None:
    def of(function: Bounds) -> str:
        return harness(function).plan.by_name["w"].spec.layout["window"]

    tens = of(lambda ts: (floor(ts), floor(ts) + 10))
    assert tens == of(lambda ts: (floor(ts), floor(ts) + 10))
    assert tens != of(lambda ts: (ts // size * size, ts // size * size + size))


def test_kind_that_is_no_dataclass_differs_from_another_by_its_windows() -> None:
    class Plain(sw.windows.AlignedWindow):
        def __init__(self, hours: int) -> None:
            self.size = hours * HOUR

        def bounds(self, ts: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
            return ts // self.size * self.size, ts // self.size * self.size + self.size

        def __str__(self) -> str:
            return "plain"

    assert Plain(1).layout_text == Plain(1).layout_text
    assert Plain(1).layout_text != Plain(2).layout_text

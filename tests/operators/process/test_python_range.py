"""Events with dates and times beyond Python's: each is a dead letter that names its column, and the others continue."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest

import slackwater as sw
from slackwater.formats.python_range import limited, split_off
from slackwater.plan.streams import Results
from slackwater.testing import Harness
from tests.operators.process.test_time_of_state import ORDERS

FAR_US = 253_402_300_800_000_000
"""The first microsecond of the year 10000."""
FIRST_US = -62_135_596_800_000_000
"""The first microsecond of the year 1."""
TIMES = pl.Datetime("us", "UTC")
BEYOND: list[tuple[pl.DataType, int, int]] = [
    (pl.Date(), 2_932_897, 2_932_896),
    (pl.Date(), -719_163, -719_162),
    (TIMES, FAR_US, FAR_US - 1),
    (TIMES, FIRST_US - 1, FIRST_US),
    (pl.Datetime("us"), FAR_US, FAR_US - 1),
    (pl.Datetime("ms"), 1 << 62, FAR_US // 1000 - 1),
    (pl.Datetime("us", "Europe/Berlin"), FAR_US - 1, 0),
    (pl.Duration("ms"), 1 << 62, 1 << 40),
]


class Count(sw.Process):
    """Counts the events of a key."""

    n = sw.value_state("long", ttl="1h")

    def on_event(self, event: dict[str, Any], ctx: sw.Context) -> Iterator[dict[str, Any]]:
        self.n.set((self.n.get() or 0) + 1)
        yield {"n": self.n.get()}


def column(dtype: pl.DataType, *values: int | None) -> pl.Series:
    whole = pl.Int32 if isinstance(dtype, pl.Date) else pl.Int64
    return pl.Series("x", values, dtype=whole).cast(dtype)


def started(order: Any, key: str = "key", made: pl.Expr | None = None) -> tuple[Harness, Results]:  # noqa: ANN401  one of two words
    events = sw.stream("events", sw.testing.rows_source("key long, x long, ts long")).event_time("ts")
    events = events.with_columns(x=pl.col("x").cast(TIMES) if made is None else made)
    results = events.key_by(key).process(Count(), output="n long", order=order, name="counted")
    ends = [results.to(sw.sinks.memory()), events.dead_letters.to(sw.sinks.memory())]
    ends += [results.late.drop()] if order == "event_time" else []
    return Harness(sw.Pipeline("p", *ends, key_groups=1)), results


@ORDERS
@pytest.mark.parametrize("key", ["key", "x"])
def test_an_event_beyond_pythons_years_is_a_dead_letter_and_the_others_continue(order: str, key: str) -> None:
    test, results = started(order, key)
    test.send("events", [{"key": 1, "x": x, "ts": ts} for ts, x in enumerate((0, FAR_US, None, 0))]).run_batch()
    test.send("events", [{"key": 1, "x": 0, "ts": 4}]).run_batch()
    test.finish()
    counted = {"key": [1, 2, 3, 4], "x": [1, 1, 2, 3]}[key]
    assert sorted(test.output(results)["n"]) == counted
    (letter,) = test.output("events.dead_letters").to_dicts()
    assert (letter["reason"], letter["step"], letter["offset"]) == ("out_of_range", "counted", 1)
    assert "column `x`" in letter["message"]
    assert str(FAR_US) in letter["message"]


def test_a_duration_beyond_pythons_is_a_dead_letter() -> None:
    test, results = started("arrival", made=pl.col("x").cast(pl.Duration("ms")))
    test.send("events", [{"key": 1, "x": x, "ts": 0} for x in (5, 1 << 62)]).run_batch()
    assert test.output(results)["n"].to_list() == [1]
    assert test.output("events.dead_letters")["reason"].to_list() == ["out_of_range"]


@pytest.mark.parametrize("dtype, beyond, last", BEYOND, ids=str)
def test_the_range_is_exactly_what_python_can_convert(dtype: pl.DataType, beyond: int, last: int) -> None:
    plain = column(dtype, last, beyond, None).to_frame()
    listed = plain.select(x=pl.col("x").reshape((-1, 1)))
    nested = plain.select(x=pl.struct(deep=pl.concat_list(pl.struct("x"))))
    for frame in (plain, listed, nested):
        sound, split, messages = split_off(frame, limited(frame.schema))
        assert sound.to_dicts()[0] == frame[:1].to_dicts()[0]
        assert (sound.height, split.height, len(messages)) == (2, 1, 1)
        assert str(beyond) in messages[0]
        with pytest.raises((OverflowError, ValueError, pl.exceptions.PanicException)):
            split.to_dicts()


@pytest.mark.parametrize("dtype", [pl.Int64(), pl.String(), pl.Datetime("ns"), pl.Duration("us"), pl.Time()], ids=str)
def test_a_type_that_always_fits_costs_no_check(dtype: pl.DataType) -> None:
    assert limited({"x": dtype, "y": pl.List(pl.Struct({"z": dtype}))}) == {}

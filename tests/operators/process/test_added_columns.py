"""`process(..., adds=...)`: results are the events with more columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest

import slackwater as sw
from slackwater.plan.streams import Results, Stream
from slackwater.testing import Harness

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
DDL = "user string, cents bigint, tags array<string>, at timestamp"


class Numbered(sw.Process):
    """Adds the number of the event among those of its key."""

    seen = sw.value_state(pl.Int64, ttl="1d")

    def on_event(self, event: dict[str, Any], ctx: sw.Context) -> Iterator[dict[str, Any]]:
        number = (self.seen.get() or 0) + 1
        self.seen.set(number)
        yield {"number": number}


class NumberedFrames(sw.FrameProcess):
    """Adds the same number to whole frames."""

    state = "seen bigint"
    ttl = "1d"

    def on_rows(
        self, rows: pl.DataFrame, state: pl.DataFrame, ctx: sw.FrameContext
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        known = rows.join(state, on="user", how="left", maintain_order="left")
        numbered = known.with_columns(
            number=pl.col("seen").fill_null(0) + pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over("user")
        )
        return numbered.drop("seen"), numbered.group_by("user").agg(seen=pl.col("number").max())


class Spoiled(sw.Process):
    """Yields what `given` is, and sets a timer if it is told to."""

    def __init__(self, given: dict[str, Any], *, on_timer: bool = False) -> None:
        self.given, self.waits = given, on_timer

    def on_event(self, event: dict[str, Any], ctx: sw.Context) -> Iterator[dict[str, Any]]:
        if self.waits:
            ctx.set_timer(ctx.event_time)
        else:
            yield self.given

    def on_timer(self, when: datetime, ctx: sw.Context) -> Iterator[dict[str, Any]]:
        yield self.given


def purchases() -> Stream:
    return sw.stream("purchases", sw.testing.rows_source(DDL)).event_time("at")


def purchase(user: str, cents: int, minutes: float) -> dict[str, Any]:
    return {"user": user, "cents": cents, "tags": ["a", None], "at": NOON + timedelta(minutes=minutes)}


def run(results: Results, *rows: dict[str, Any]) -> Harness:
    harness = Harness(
        sw.Pipeline("p", results.to(sw.sinks.memory()), late=sw.sinks.memory(), dead_letters=sw.sinks.memory())
    )
    harness.send("purchases", rows)
    harness.finish()
    return harness


@pytest.mark.parametrize("process", [Numbered(), NumberedFrames()], ids=["events", "frames"])
@pytest.mark.parametrize("order", ["arrival", "event_time"])
def test_result_is_the_event_with_the_added_columns(process: Any, order: Any) -> None:  # noqa: ANN401  of two kinds
    rows = [purchase("ada", 3, 0), purchase("bob", 5, 1), purchase("ada", 4, 2)]
    numbered = purchases().key_by("user").process(process, adds="number bigint", order=order)
    found = run(numbered, *rows).output(numbered)
    assert found.columns == ["user", "cents", "tags", "at", "number", "event_time"]
    expected = [{**row, "number": number, "event_time": row["at"]} for row, number in zip(rows, (1, 1, 2), strict=True)]
    assert found.sort("at").to_dicts() == expected


def test_step_may_add_to_results_of_a_window() -> None:
    minutes = purchases().key_by("user").window(sw.tumbling("1m"), name="minutes").aggregate(n=sw.count())
    numbered = minutes.key_by("user").process(Numbered(), adds="number bigint", order="event_time", name="numbered")
    again = numbered.key_by("user").process(Numbered(), output="number bigint", order="event_time", name="again")
    found = run(again, purchase("ada", 3, 0), purchase("ada", 3, 2)).output(again)
    assert found["number"].to_list() == [1, 2]


@pytest.mark.parametrize(
    "given, message",
    [
        ({"number": 1, "cents": 3}, "`adds` has no column `cents`; it has number"),
        ({}, "`adds` needs every column; got a row without `number`"),
        ({"number": "one"}, "column `number` of `adds` takes bigint; got 'one'"),
    ],
)
def test_event_is_a_dead_letter_if_its_row_is_not_the_added_columns(given: dict[str, Any], message: str) -> None:
    spoiled = purchases().key_by("user").process(Spoiled(given), adds="number bigint")
    harness = run(spoiled, purchase("ada", 3, 0))
    assert harness.output(spoiled).is_empty()
    [letter] = harness.output("dead_letters").to_dicts()
    assert message in letter["message"]


class Returned(sw.FrameProcess):
    """Returns what `made` makes of the rows."""

    state = "seen bigint"
    ttl = "1d"

    def __init__(self, made: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
        self.made = made

    def on_rows(
        self, rows: pl.DataFrame, state: pl.DataFrame, ctx: sw.FrameContext
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        return self.made(rows.with_columns(number=pl.lit(1))), state


@pytest.mark.parametrize(
    "made, message",
    [
        (lambda rows: rows.with_columns(cents=99), "got cents=99, which is not its event's"),
        (lambda rows: rows.with_columns(cents=pl.col("cents").reverse()), "got at=datetime"),
        (lambda rows: rows.with_columns(cents=None), "got cents=None, which"),
        (lambda rows: rows.with_columns(tags=pl.lit(["b"])), "got tags="),
        (lambda rows: rows.with_columns(event_time=pl.col("event_time").max()), "got event_time=datetime"),
        (lambda rows: rows.with_columns(event_time=None), "got event_time=None"),
        (lambda rows: rows.drop("event_time"), "results must have a column `event_time`"),
        (lambda rows: rows.drop("cents"), "results must have a column `cents`"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_events_are_dead_letters_if_a_returned_row_changes_their_columns(
    made: Callable[[pl.DataFrame], pl.DataFrame], message: str
) -> None:
    changed = purchases().key_by("user").process(Returned(made), adds="number bigint")
    harness = run(changed, purchase("ada", 3, 0), purchase("ada", 4, 2))
    assert harness.output(changed).is_empty()
    letters = harness.output("dead_letters")["message"].to_list()
    assert len(letters) == 2
    assert all(message in letter for letter in letters), letters


@pytest.mark.parametrize(
    "made, cents",
    [
        (lambda rows: rows.sort("cents", descending=True), [4, 3]),
        (lambda rows: rows.filter(pl.col("cents") == 4), [4]),
        (lambda rows: rows.head(0), []),
        (lambda rows: pl.concat([rows, rows.head(1)]), [3, 4, 3]),
        (lambda rows: rows.with_columns(pl.col("cents").cast(pl.Int32)), [3, 4]),
        (lambda rows: rows.select("number", "event_time", "at", "tags", "cents", "user", other="cents"), [3, 4]),
    ],
    ids=["sorted", "filtered", "none", "repeated", "of a narrower type", "in other columns"],
)
def test_returned_rows_may_be_any_of_the_batch(made: Callable[[pl.DataFrame], pl.DataFrame], cents: list[int]) -> None:
    chosen = purchases().key_by("user").process(Returned(made), adds="number bigint")
    harness = run(chosen, purchase("ada", 3, 0), purchase("ada", 4, 2))
    assert harness.output("dead_letters").is_empty()
    found = harness.output(chosen)
    assert found["cents"].to_list() == cents
    assert found["event_time"].to_list() == found["at"].to_list()


def test_key_may_be_yielded_with_the_added_columns() -> None:
    plain = purchases().key_by("user").process(Spoiled({"user": "ada", "number": 1}), adds="number bigint")
    assert run(plain, purchase("ada", 3, 0)).output(plain)["number"].to_list() == [1]


def test_timer_has_no_event_to_add_columns_to() -> None:
    timed = purchases().key_by("user").process(Spoiled({"number": 1}, on_timer=True), adds="number bigint")
    harness = run(timed, purchase("ada", 3, 0))
    assert harness.output(timed).is_empty()
    [letter] = harness.output("dead_letters").to_dicts()
    assert "columns are added to an event, and a timer has none" in letter["message"]


def test_explain_names_the_added_columns() -> None:
    numbered = purchases().key_by("user").process(Numbered(), adds="number bigint")
    pipeline = sw.Pipeline("p", numbered.to(sw.sinks.memory()), dead_letters=sw.sinks.memory())
    [line] = [line.split() for line in pipeline.explain().splitlines() if line.split()[:1] == ["adds"]]
    assert line == ["adds", "number", "bigint"]

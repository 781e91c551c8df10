"""A row that a keyed step cannot evaluate is a dead letter; what is no row's fault is an error with its place."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, ClassVar

import polars as pl
import pytest

import slackwater as sw
from slackwater.base.errors import RunError
from slackwater.plan.streams import Results, Stream
from slackwater.testing import Harness, rows_source
from slackwater.windows import Window

NUMBER = pl.col("v").cast(pl.Int64)
BAD, WORSE = "ten", "a lot"


class Total(sw.Accumulator):
    """The sum of texts that are numbers."""

    output: ClassVar[Any] = "long"

    def create(self) -> int:
        return 0

    def add(self, acc: int, value: str) -> int:
        return acc + int(value)

    def merge(self, a: int, b: int) -> int:
        return a + b

    def result(self, acc: int) -> int:
        return acc


def exits(value: str) -> int:
    if not value.isdigit():
        raise SystemExit(value)
    return int(value)


def panics() -> pl.Expr:
    """Return an expression at which Polars panics where `v` is no number."""
    return pl.col("v").map_batches(panicking, return_dtype=pl.Int64)


def panicking(values: pl.Series) -> pl.Series:
    if not values.str.contains(r"^\d+$").all():
        raise pl.exceptions.PanicException("index out of bounds")
    return values.cast(pl.Int64)


def events() -> Stream:
    return sw.stream("events", rows_source("k string, ts long, v string")).event_time("ts", out_of_orderness="3650d")


def ran(stream: Stream, results: Results, *batches: list[tuple[str, int, str]]) -> Harness:
    """Run batches of (key, time, value) to the end."""
    ends = [out.to(sw.sinks.memory()) for out in (results, results.late, stream.dead_letters)]
    harness = Harness(sw.Pipeline("p", *ends, key_groups=2))
    for rows in batches:
        harness.send("events", [{"k": key, "ts": ts, "v": value} for key, ts, value in rows])
        harness.run_batch()
    harness.finish()
    return harness


AGGREGATES = {
    "a cast": sw.sum(NUMBER),
    "SQL": sw.max("cast(v as bigint)"),
    "by": sw.top(1, by=NUMBER, column=NUMBER),
    "a list": sw.collect_list(NUMBER),
    "a sketch": sw.quantile(NUMBER, 0.5),
    "an accumulator": sw.accumulator(Total, "v"),
    "a function": sw.sum(pl.col("v").map_elements(exits, return_dtype=pl.Int64)),
    "a panic": sw.sum(panics()),
}
WINDOWS = [
    sw.tumbling("1s"),
    sw.hopping("2s", every="1s"),
    sw.sliding("1s"),
    sw.session("1s"),
    sw.cumulative("2s", every="1s"),
]


@pytest.mark.parametrize("what", AGGREGATES)
def test_row_that_an_aggregate_cannot_read_is_a_dead_letter(what: str) -> None:
    stream = events()
    results = stream.key_by("k").window(sw.tumbling("1s"), name="per_key").aggregate(out=AGGREGATES[what])
    rows = [("x", 1, "7"), ("y", 2, BAD), ("x", 3, "7"), ("z", 4, WORSE), ("x", 5, "7")]
    harness = ran(stream, results, rows)
    letters = harness.output(stream.dead_letters)
    assert letters.select("step", "reason", "offset").rows() == [("per_key", "failed", 1), ("per_key", "failed", 3)]
    assert letters["payload"][0] == b'{"k":"y","ts":2,"v":"ten"}'
    assert all(
        value in message for value, message in zip([BAD, WORSE], letters["message"], strict=True) if what != "a panic"
    )
    assert harness.output(results)["k"].to_list() == ["x"]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_bad_row_changes_nothing_for_the_others(window: Window) -> None:
    good = [("x", 1, "7"), ("x", 3, "8"), ("y", 5, "9")]
    bad = [("x", 2, BAD), ("y", 6, WORSE)]
    stream = events()
    results = stream.key_by("k").window(window).aggregate(total=sw.sum(NUMBER), own=sw.accumulator(Total, "v"))
    whole = ran(stream, results, [*good, *bad])
    assert whole.output(stream.dead_letters).height == 2
    expected = ran(stream, results, good).output(results).sort("k", "window_start", "window_end")
    assert whole.output(results).sort("k", "window_start", "window_end").equals(expected)


def test_late_row_is_late_though_it_could_not_be_evaluated() -> None:
    stream = events()
    results = stream.key_by("k").window(sw.tumbling("1s")).aggregate(total=sw.sum(NUMBER))
    ends = [out.to(sw.sinks.memory()) for out in (results, results.late, stream.dead_letters)]
    harness = Harness(sw.Pipeline("p", *ends))
    harness.advance_watermark(5000)
    harness.send("events", [{"k": "x", "ts": 1, "v": BAD}, {"k": "x", "ts": 6000, "v": WORSE}])
    harness.finish()
    assert harness.output(results.late)["v"].to_list() == [BAD]
    assert harness.output(stream.dead_letters)["offset"].to_list() == [1]


def test_row_without_a_gap_is_a_dead_letter() -> None:
    stream = events()
    results = stream.key_by("k").window(sw.session(NUMBER), name="visits").aggregate(n=sw.count())
    harness = ran(stream, results, [("x", 1, "7"), ("x", 2, BAD)])
    letters = harness.output(stream.dead_letters)
    assert letters.select("step", "reason").rows() == [("visits", "failed")]
    assert harness.output(results)["n"].to_list() == [1]


def test_bad_row_behind_the_watermark_of_sessions_is_a_dead_letter() -> None:
    stream = events()
    results = stream.key_by("k").window(sw.session("1s"), name="visits").aggregate(total=sw.sum(NUMBER))
    ends = [out.to(sw.sinks.memory()) for out in (results, results.late, stream.dead_letters)]
    harness = Harness(sw.Pipeline("p", *ends))
    harness.advance_watermark(60_000)
    harness.send("events", [{"k": "x", "ts": 1, "v": BAD}, {"k": "y", "ts": 1, "v": "7"}])
    harness.finish()
    assert harness.output(results.late)["k"].to_list() == ["y"]
    assert harness.output(stream.dead_letters)["message"].str.contains(BAD).to_list() == [True]


def test_result_that_the_next_step_cannot_read_is_a_dead_letter_of_the_stream() -> None:
    stream = events()
    first = stream.key_by("k").window(sw.tumbling("1s"), name="first").aggregate(v=sw.last("v"))
    second = first.key_by("k").window(sw.tumbling("10s"), name="second").aggregate(total=sw.sum(NUMBER))
    ends = [out.to(sw.sinks.memory()) for out in (first.late, second, second.late, stream.dead_letters)]
    harness = Harness(sw.Pipeline("p", *ends))
    harness.send("events", [{"k": "x", "ts": 1, "v": "7"}, {"k": "y", "ts": 2, "v": BAD}])
    harness.finish()
    assert harness.output(second)["total"].to_list() == [7]
    [letter] = harness.output(stream.dead_letters).to_dicts()
    assert (letter["source"], letter["step"], letter["reason"]) == ("first", "second", "failed")
    assert b'"v":"ten"' in letter["payload"]


def test_dead_letters_between_steps_may_have_a_place_of_their_own() -> None:
    stream = events()
    first = stream.key_by("k").window(sw.tumbling("1s"), name="first").aggregate(v=sw.last("v"))
    second = first.key_by("k").window(sw.tumbling("10s"), name="second").aggregate(total=sw.sum(NUMBER))
    ends = [out.to(sw.sinks.memory()) for out in (first.late, second, second.late, stream.dead_letters)]
    harness = Harness(sw.Pipeline("p", *ends, first.dead_letters.to(sw.sinks.memory())))
    harness.send("events", [{"k": "y", "ts": 2, "v": BAD}])
    harness.finish()
    assert harness.output(stream.dead_letters).is_empty()
    assert harness.output(first.dead_letters)["step"].to_list() == ["second"]


def failing(*args: object) -> int:
    raise KeyError("no such tide")


def only_rising(_: Total, acc: int, value: str) -> int:
    if int(value) < acc:
        raise ValueError(f"{value} after {acc}")
    return int(value)


BROKEN: list[tuple[str, Callable[..., Any], str]] = [
    ("merge", failing, "KeyError: 'no such tide'"),
    ("result", failing, "KeyError: 'no such tide'"),
    ("result", lambda *_: "seven", "TypeError: unexpected value"),
]


@pytest.mark.parametrize(
    "method, function, message", BROKEN, ids=lambda value: getattr(value, "__name__", str(value)[:25])
)
def test_window_on_which_an_accumulator_fails_is_a_dead_letter_and_the_others_fire(
    method: str, function: Callable[..., Any], message: str
) -> None:
    def sometimes(self: Total, *args: Any) -> Any:  # noqa: ANN401  any method
        return function() if max(a for a in args if isinstance(a, int)) >= 9 else getattr(Total, method)(self, *args)

    cls = type("Broken", (Total,), {method: sometimes})
    stream = events()
    results = stream.key_by("k").window(sw.tumbling("1s"), name="per_key").aggregate(out=sw.accumulator(cls, "v"))
    harness = ran(stream, results, [("x", 1, "9"), ("x", 1002, "7"), ("y", 2, "7")], [("x", 3, "20")])
    assert sorted(harness.output(results).select("k", "out").rows()) == [("x", 7), ("y", 7)]
    dead = harness.output(stream.dead_letters)
    assert set(dead["reason"]) == {"stored_rows_failed"}
    assert all(text.startswith(message) for text in dead["message"])
    payloads = [json.loads(payload) for payload in dead["payload"]]
    assert {(each["k"], each["window_start"]) for each in payloads} == {("x", "1970-01-01T00:00:00+00:00")}
    assert sum(each["rows"] for each in payloads) == 2


def test_row_that_an_accumulator_cannot_add_to_the_others_is_a_dead_letter() -> None:
    cls = type("Broken", (Total,), {"add": only_rising})
    stream = events()
    results = stream.key_by("k").window(sw.tumbling("1s"), name="per_key").aggregate(out=sw.accumulator(cls, "v"))
    harness = ran(stream, results, [("x", 1, "9"), ("x", 2, "7"), ("y", 2, "7")], [("x", 3, "20")])
    assert sorted(harness.output(results).select("k", "out").rows()) == [("x", 29), ("y", 7)]
    dead = harness.output(stream.dead_letters)
    assert dead.select("payload", "offset", "reason", "message").rows() == [
        (b'{"k":"x","ts":2,"v":"7"}', 1, "failed", "ValueError: 7 after 9")
    ]


@pytest.mark.parametrize("method", ["create", "__init__"])
def test_accumulator_that_cannot_be_created_stops_the_job(method: str) -> None:
    cls = type("Broken", (Total,), {method: failing})
    stream = events()
    results = stream.key_by("k").window(sw.tumbling("1s"), name="per_key").aggregate(out=sw.accumulator(cls, "v"))
    with pytest.raises(RunError, match="failed; got KeyError: 'no such tide'") as caught:
        ran(stream, results, [("x", 1, "9")])
    assert caught.value.code == "ACCUMULATOR_FAILED"


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_sum_that_does_not_fit_is_a_dead_letter_of_its_window(cut: int) -> None:
    stream = events()
    results = stream.key_by("k").window(sw.tumbling("1s"), name="per_key").aggregate(out=sw.sum(NUMBER))
    rows = [("x", 1, str(2**63 - 1)), ("x", 2, "1"), ("y", 2, "1")]
    harness = ran(stream, results, rows[:cut], rows[cut:])
    assert harness.output(results).select("k", "out").rows() == [("y", 1)]
    dead = harness.output(stream.dead_letters)
    assert set(dead["reason"]) == {"stored_rows_failed"}
    assert all("SUM_OVERFLOW" in text for text in dead["message"])
    assert sum(json.loads(payload)["rows"] for payload in dead["payload"]) == 2


def test_row_with_which_a_function_fails_only_among_others_is_a_dead_letter() -> None:
    def jealous(values: pl.Series) -> pl.Series:
        if len(values) > 1 and len(set(values)) > 1:
            raise ValueError("not with others")
        return values.cast(pl.Int64)

    stream = events()
    alone = pl.col("v").map_batches(jealous, return_dtype=pl.Int64)
    results = stream.key_by("k").window(sw.tumbling("1s"), name="per_key").aggregate(out=sw.sum(alone))
    harness = ran(stream, results, [("x", 1, "1"), ("x", 2, "2")])
    assert harness.output(results).select("k", "out").rows() == [("x", 1)]
    assert harness.output(stream.dead_letters)["payload"].to_list() == [b'{"k":"x","ts":2,"v":"2"}']


ROW_FUNCTIONS: dict[str, Callable[[Stream], Stream]] = {
    "where": lambda stream: stream.where(panics() > 0),
    "with_columns": lambda stream: stream.with_columns(n=panics()),
    "select": lambda stream: stream.select("k", n=panics()),
    "validate": lambda stream: stream.validate(positive=panics() > 0),
    "map": lambda stream: stream.map(lambda rows: rows.with_columns(n=panicking(rows["v"])), output="k string, n long"),
}


@pytest.mark.parametrize("function", ROW_FUNCTIONS)
def test_row_at_which_polars_panics_is_a_dead_letter(function: str) -> None:
    stream = sw.stream("s", rows_source("k string, v string"))
    made = ROW_FUNCTIONS[function](stream)
    pipeline = sw.Pipeline("p", made.to(sw.sinks.memory()), stream.dead_letters.to(sw.sinks.memory()))
    rows = [{"k": "x", "v": "7"}, {"k": "y", "v": BAD}, {"k": "z", "v": "8"}]
    outcome = sw.testing.run(pipeline, {"s": rows})
    assert outcome[made]["k"].to_list() == ["x", "z"]
    assert outcome[stream.dead_letters].select("step", "offset").rows() == [(f"s.{function}", 1)]

"""Every bad definition is refused when the pipeline is built, with its own code and words."""

# ruff: noqa: E501  one definition a line, with its code and words

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import polars.selectors as cs
import pytest

import slackwater
from slackwater.errors import DefinitionError
from slackwater.sinks.base import Sink, SinkWriter, Slot
from tests.unit.error_codes import uses

TESTS = Path(__file__).resolve().parents[1]
sw: Any = slackwater  # untyped: half of these definitions are wrong in their types
LOCKED: Any = threading.Lock().acquire
DDL = "user_id string, amount double, placed_at timestamp, tags array<string>"


def purchases(name: str = "purchases") -> Any:  # noqa: ANN401  as above
    """Return a stream of rows with an event time."""
    return sw.stream(name, sw.testing.rows_source(DDL)).event_time("placed_at")


def records() -> Any:  # noqa: ANN401
    """Return a stream of bytes, not decoded."""
    return sw.stream("purchases", sw.sources.log("data/purchases"))


def windowed(window: Any = None, **options: Any) -> Any:  # noqa: ANN401
    """Return a windowed stream of purchases."""
    return purchases().key_by("user_id").window(sw.tumbling("1m") if window is None else window, **options)


def unkeyed(method: str) -> Any:  # noqa: ANN401
    """Ask a stream without a key for what only keyed streams have."""
    return getattr(purchases(), method)(None)


REFUNDS = "user_id string, refunded double, at timestamp"


def refunds(ddl: str = REFUNDS) -> Any:  # noqa: ANN401
    """Return a second stream, to join purchases with."""
    return sw.stream("refunds", sw.testing.rows_source(ddl)).event_time("at")


def joined(other: Any = None, **options: Any) -> Any:  # noqa: ANN401
    """Build a pipeline of purchases joined with refunds."""
    other = refunds().key_by("user_id") if other is None else other
    results = purchases().key_by("user_id").join(other, **{"between": ("0s", "1d"), **options})
    return built(results, *([other.stream.dead_letters.drop()] if other.stream.name == "refunds" else []))


def as_of(**options: Any) -> Any:  # noqa: ANN401
    """Build a pipeline of purchases joined with the refund before each."""
    other = refunds()
    options = {"versions_ttl": sw.FOREVER, **options}
    return built(
        purchases().key_by("user_id").join_as_of(other.key_by("user_id"), **options), other.dead_letters.drop()
    )


def windows_joined(
    window: Any = None,  # noqa: ANN401  as above
    other: Any = None,  # noqa: ANN401
    *,
    how: str = "inner",
    theirs: Any = None,  # noqa: ANN401
    **options: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    """Build a pipeline of purchases and refunds in windows."""
    window = sw.tumbling("1m") if window is None else window
    right = (
        refunds()
        .key_by("user_id")
        .window(window if other is None else other, **(options if theirs is None else theirs))
    )
    return built(windowed(window, **options).join(right, how=how), right.keyed.stream.dead_letters.drop())


TABLE = sw.sinks.postgres("postgresql://localhost/db", table="t", upsert_on=["user_id", "window_start"])


def built(results: Any, *more: Any, sink: Any = None) -> Any:  # noqa: ANN401
    """Build a pipeline whose outputs all end somewhere."""
    source = results
    while isinstance(source.origin, slackwater.streams.Step):
        source = next(iter(source.origin.inputs.values())).stream
    late = [results.late.drop()] if isinstance(results, slackwater.streams.Results) else []
    return sw.Pipeline("p", results.to(sink or sw.sinks.memory()), *late, source.dead_letters.drop(), *more)


def one_folder() -> None:
    """Build a pipeline whose rows and dead letters go into one folder."""
    stream = purchases()
    sw.Pipeline("p", stream.to(sw.sinks.files("out")), stream.dead_letters.to(sw.sinks.files("./out")))


def one_topic() -> None:
    """Build a pipeline whose rows go to one topic by two sinks."""
    stream = purchases()
    ends = [stream.to(sw.sinks.kafka("localhost:9092", "rows", changelog=changelog)) for changelog in (True, False)]
    sw.Pipeline("p", *ends, stream.dead_letters.drop())


def same_folder() -> None:
    """Build a pipeline whose rows go to one folder by two sinks."""
    stream = purchases()
    ends = [stream.to(sw.sinks.files("out")), stream.to(sw.sinks.files("out", format="json"))]
    sw.Pipeline("p", *ends, stream.dead_letters.drop())


@dataclass(frozen=True, kw_only=True, eq=False)
class OwnSink(Sink):
    """A sink of a user's, with a slip of the pen."""

    def open(self, slot: Slot) -> SinkWriter:
        """Never get here."""
        raise AssertionError(slot)

    def __str__(self) -> str:
        return "own"


def own_sink(**fields: Any) -> None:  # noqa: ANN401  what is wrong with it
    """Build a pipeline with a sink of the user's own."""
    stream = purchases()
    sw.Pipeline("p", stream.to(OwnSink(**fields)), stream.dead_letters.drop())


def overwriting_topic() -> Any:  # noqa: ANN401
    """Build a pipeline whose windows would overwrite one another in a compacted topic."""
    sink = sw.sinks.kafka("localhost:9092", "rows", key="user_id", tombstones=True)
    return built(windowed().aggregate(n=sw.count()), sink=sink)


def no_such_key() -> None:
    """Build a pipeline whose rows have not the column that is to be a record's key."""
    stream = purchases()
    sw.Pipeline("p", stream.to(sw.sinks.kafka("localhost:9092", "rows", key="usr_id")), stream.dead_letters.drop())


def chained(first: Any) -> Any:  # noqa: ANN401
    """Build a pipeline with a second window on the results of `first`."""
    second = first.key_by("user_id").window(sw.tumbling("1h"), name="hourly").aggregate(n=sw.count())
    return built(second, first.late.drop())


class Mean(slackwater.Accumulator):
    """A complete accumulator class, but for its `output`."""

    def create(self) -> Any:  # noqa: ANN401
        return (0.0, 0)

    def add(self, acc: Any, value: Any) -> Any:  # noqa: ANN401
        return (acc[0] + value, acc[1] + 1)

    def merge(self, a: Any, b: Any) -> Any:  # noqa: ANN401
        return (a[0] + b[0], a[1] + b[1])

    def result(self, acc: Any) -> Any:  # noqa: ANN401
        return acc[0] / acc[1]


class Half(slackwater.Accumulator):
    """An accumulator class that lacks half its methods."""

    output = pl.Float64

    def create(self) -> Any:  # noqa: ANN401
        return 0.0

    def result(self, acc: Any) -> Any:  # noqa: ANN401
        return acc


def broken(frame: pl.DataFrame) -> pl.DataFrame:
    """Fail on an empty frame."""
    return frame.with_columns(first=pl.lit(frame["amount"][0]))


def two_times() -> Any:  # noqa: ANN401
    """Build a stream that branches before it takes its time."""
    bare = sw.stream("purchases", sw.testing.rows_source("a timestamp, b timestamp"))
    by_a, by_b = bare.event_time("a"), bare.event_time("b")
    return sw.Pipeline("p", by_a.to(sw.sinks.memory()), by_b.to(sw.sinks.memory()), bare.dead_letters.drop())


def two_steps() -> Any:  # noqa: ANN401
    """Build two windows on one stream, neither of which is given a name."""
    stream = purchases()
    minutes, hours = (
        stream.key_by("user_id").window(sw.tumbling(size)).aggregate(n=sw.count()) for size in ("1m", "1h")
    )
    return sw.Pipeline(
        "p",
        minutes.to(sw.sinks.memory()),
        hours.to(sw.sinks.memory()),
        minutes.late.drop(),
        hours.late.drop(),
        stream.dead_letters.drop(),
    )


def without_late() -> Any:  # noqa: ANN401
    """Build a pipeline that says nothing about its late rows."""
    stream = purchases()
    results = stream.key_by("user_id").window(sw.tumbling("1m")).aggregate(n=sw.count())
    return sw.Pipeline("p", results.to(sw.sinks.memory()), stream.dead_letters.drop())


def without_results(*more: Any) -> Any:  # noqa: ANN401
    """Build a pipeline whose late rows and dead letters end somewhere, and whose results do not."""
    stream = purchases()
    results = stream.key_by("user_id").window(sw.tumbling("1m")).aggregate(n=sw.count())
    return sw.Pipeline("p", results.late.drop(), stream.dead_letters.drop(), *more)


def beside_a_stream() -> Any:  # noqa: ANN401
    """Build the same beside a stream whose rows end somewhere."""
    more = purchases("more")
    return without_results(more.to(sw.sinks.memory()), more.dead_letters.drop())


def chain_without_results() -> Any:  # noqa: ANN401
    """Build a pipeline of two steps, of which the second ends nowhere."""
    stream = purchases()
    first = stream.key_by("user_id").window(sw.tumbling("1m")).aggregate(n=sw.count())
    second = first.key_by("user_id").window(sw.tumbling("1h"), name="hourly").aggregate(n=sw.count())
    ends = [first.late.drop(), second.late.drop(), stream.dead_letters.drop()]
    return sw.Pipeline("p", first.to(sw.sinks.memory()), *ends)


@dataclass(frozen=True)
class Bad:
    """A definition that must be refused, in a sentence, with its code and some of its words."""

    sentence: str
    code: str
    words: str
    define: Callable[[], Any]


def united(*others: str, **options: Any) -> Any:  # noqa: ANN401  as union's
    """Return a union that has purchases twice."""
    one = purchases()
    between = one.union(*map(purchases, others)) if others else one
    return between.union(one, **options)


TIME = [
    Bad("a window of zero length", "DURATION_TOO_SHORT", "tumbling window `size` must be longer than zero; got 0s", lambda: sw.tumbling("0s")),
    Bad("a window of negative length", "DURATION_TOO_SHORT", "`size` must be longer than zero; got -1m", lambda: sw.tumbling("-1m")),
    Bad("a slide of zero", "DURATION_TOO_SHORT", "hopping window `every` must be longer than zero", lambda: sw.hopping("1m", every="0s")),
    Bad("a negative slide", "DURATION_TOO_SHORT", "hopping window `every` must be longer than zero", lambda: sw.hopping("1m", every="-1s")),
    Bad("a sliding window of zero", "DURATION_TOO_SHORT", "sliding window `size` must be longer than zero", lambda: sw.sliding("0s")),
    Bad("a session without a gap", "DURATION_TOO_SHORT", "session window `gap` must be longer than zero", lambda: sw.session("0s")),
    Bad("a session of no length", "DURATION_TOO_SHORT", "session window `max_length`", lambda: sw.session("1m", max_length="0s")),
    Bad("negative allowed lateness", "DURATION_TOO_SHORT", "`allowed_lateness` must be zero or longer; got -5m", lambda: windowed(allowed_lateness="-5m")),
    Bad("negative out-of-orderness", "DURATION_TOO_SHORT", "`out_of_orderness` must be zero or longer", lambda: records().event_time("t", out_of_orderness="-1s")),
    Bad("a negative guard", "DURATION_TOO_SHORT", "`max_ahead` must be zero or longer", lambda: records().event_time("t", max_ahead=timedelta(seconds=-1))),
    Bad("idle at once", "DURATION_TOO_SHORT", "`idle_after` must be longer than zero", lambda: records().event_time("t", idle_after="0s")),
    Bad("a trigger every zero seconds", "DURATION_TOO_SHORT", "trigger `every`", lambda: sw.every("0s")),
    Bad("a half-life of zero", "DURATION_TOO_SHORT", "half_life of ewma", lambda: sw.ewma("amount", half_life="0s")),
    Bad("a duration without a unit", "DURATION_UNREADABLE", "got '90'; try \"30s\"", lambda: sw.tumbling("90")),
    Bad("a duration in an unknown unit", "DURATION_UNREADABLE", "units (ms, s, m, h, d, w)", lambda: sw.tumbling("1 fortnight")),
    Bad("a duration that is a number", "DURATION_UNREADABLE", "got 60", lambda: sw.tumbling(60)),
    Bad("a duration of microseconds", "DURATION_TOO_FINE", "whole number of milliseconds", lambda: sw.tumbling(timedelta(microseconds=1500))),
    Bad("a window of a thousand years", "DURATION_TOO_LONG", "shorter than a hundred years", lambda: sw.tumbling("365000d")),
    Bad("an offset as long as the window", "WINDOW_OFFSET", "`offset` of a tumbling window must be smaller than its `size` (1m); got 1m", lambda: sw.tumbling("1m", offset="1m")),
    Bad("an offset longer than the slide", "WINDOW_OFFSET", "smaller than its `every` (1m); got 2m", lambda: sw.hopping("10m", every="1m", offset="2m")),
    Bad("a negative offset as long as the window", "WINDOW_OFFSET", "got -1m", lambda: sw.tumbling("1m", offset="-1m")),
    Bad("a cumulative window of uneven parts", "CUMULATIVE_UNEVEN", "multiple of `every`; got size 1h, every 7m", lambda: sw.cumulative("1h", every="7m")),
    Bad("a session shorter than its gap", "SESSION_MAX_LENGTH", "got 10m with gap 30m", lambda: sw.session("30m", max_length="10m")),
    Bad("a gap by row that is text", "SESSION_GAP_TYPE", 'got col("user_id") of type String', lambda: built(windowed(sw.session(pl.col("user_id"))).aggregate(n=sw.count()))),
    Bad("an unknown word for touching sessions", "SESSION_TOUCHING", '"merge" or "separate"', lambda: sw.session("30m", touching="join")),
    Bad("an event time of text", "EVENT_TIME_TYPE", "in `purchases.event_time`", lambda: built(sw.stream("purchases", sw.testing.rows_source("t string")).event_time("t"))),
    Bad("two event times in one stream", "EVENT_TIME_TWICE", "got a second time in `purchases`", lambda: built(purchases().event_time("placed_at"))),
    Bad("different event times in two branches", "EVENT_TIME_TWICE", "before the stream branches", two_times),
    Bad("a window on rows without a time", "EVENT_TIME_MISSING", "got step `purchases.window` on stream `purchases`", lambda: built(sw.stream("purchases", sw.testing.rows_source(DDL)).key_by("user_id").window(sw.tumbling("1m")).aggregate(n=sw.count()))),
]  # fmt: skip

ROWS = [
    Bad("a stream without a proper name", "BAD_NAME", "a stream name must consist of letters", lambda: sw.stream("my orders", sw.testing.rows_source(DDL))),
    Bad("a pipeline without a name", "BAD_NAME", "a pipeline name", lambda: sw.Pipeline("", purchases().to(sw.sinks.memory()))),
    Bad("a step with a slash in its name", "BAD_NAME", "a step name", lambda: windowed(name="a/b")),
    Bad("two streams of one name", "STREAM_NAME_TWICE", "got `purchases` for two sources", lambda: sw.Pipeline("p", purchases().to(sw.sinks.memory()), purchases().to(sw.sinks.memory()))),
    Bad("bytes used without decoding", "DECODE_MISSING", "got stream `purchases` without", lambda: built(records().event_time("placed_at"))),
    Bad("bytes sent to a sink", "DECODE_MISSING", ".decode(sw.formats.json(", lambda: built(records())),
    Bad("rows decoded twice", "DECODE_TYPED", "got `purchases.decode` on typed rows", lambda: built(purchases().decode(sw.formats.json(DDL)))),
    Bad("a column that does not exist", "UNKNOWN_COLUMN", "got `weight` in `purchases.where`; the rows there have user_id, amount", lambda: built(purchases().where("weight > 1"))),
    Bad("a column with a typing error", "UNKNOWN_COLUMN", "got `amuont` in `purchases.where` (did you mean `amount`?)", lambda: built(purchases().where("amuont > 1"))),
    Bad("a key that does not exist", "UNKNOWN_COLUMN", "(did you mean `user_id`?)", lambda: built(purchases().key_by("userid").window(sw.tumbling("1m")).aggregate(n=sw.count()))),
    Bad("a new column that differs in case", "DUPLICATE_COLUMN", "got `Amount` after `amount` in `purchases.with_columns`; rename", lambda: built(purchases().with_columns(Amount="amount * 2"))),
    Bad("an aggregate of an unknown column", "UNKNOWN_COLUMN", "in `purchases.window, aggregate total`", lambda: built(windowed().aggregate(total=sw.sum("amounts")))),
    Bad("an expression that is a number", "EXPRESSION_KIND", "got 3", lambda: purchases().where(3)),
    Bad("SQL that cannot be read", "EXPRESSION_SQL", "check quotes", lambda: purchases().where("amount > ")),
    Bad("an expression of the wrong types", "EXPRESSION_TYPE", "in `purchases.with_columns`", lambda: built(purchases().with_columns(x=pl.col("user_id").dt.hour()))),
    Bad("a condition that is no truth value", "PREDICATE_TYPE", "of type Float64 in `purchases.where`", lambda: built(purchases().where("amount"))),
    Bad("a rule that is no truth value", "PREDICATE_TYPE", "in `purchases.validate, rule paid`", lambda: built(purchases().validate(paid="amount"))),
    Bad("a column with a hidden name", "RESERVED_COLUMN", "got `__mine`", lambda: built(purchases().with_columns(__mine="amount"))),
    Bad("no rule to validate", "VALIDATE_EMPTY", "got none in `purchases.validate`", lambda: purchases().validate()),
    Bad("nothing to select", "STEP_WITHOUT_COLUMNS", "got none in `purchases.select`; name at least one", lambda: purchases().select()),
    Bad("no columns to add", "STEP_WITHOUT_COLUMNS", "got none in `purchases.with_columns`", lambda: purchases().with_columns()),
    Bad("a selector that selects nothing", "STEP_WITHOUT_COLUMNS", "got none in `purchases.select`", lambda: built(purchases().select(cs.binary()))),
    Bad("a map that leaves no column", "MAP_EMPTY", "got a frame without columns in `purchases.map`", lambda: built(purchases().map(lambda frame: frame.select(pl.col("^__.*$"))))),
    Bad("a source that is nothing", "NOT_A_SOURCE", "got None for stream `a`; use sw.sources.log(...)", lambda: sw.stream("a", None)),
    Bad("a source that is a path", "NOT_A_SOURCE", "got 'data/x'", lambda: sw.stream("a", "data/x")),
    Bad("a condition on all rows", "EXPRESSION_NOT_A_ROW_VALUE", 'got [(col("amount")) > (col("amount").mean())] in `purchases.where`, which may read other rows', lambda: built(purchases().where(pl.col("amount") > pl.col("amount").mean()))),
    Bad("a condition on all rows in SQL", "EXPRESSION_NOT_A_ROW_VALUE", "use an aggregate of a keyed step, or a `map` that handles each row on its own", lambda: built(purchases().where("amount > AVG(amount)"))),
    Bad("a column from all rows", "EXPRESSION_NOT_A_ROW_VALUE", 'col("amount").min())] in `purchases.with_columns`', lambda: built(purchases().with_columns(z=pl.col("amount") - pl.col("amount").min()))),
    Bad("a selected sum", "EXPRESSION_NOT_A_ROW_VALUE", 'got col("amount").sum() in `purchases.select`', lambda: built(purchases().select(total=pl.col("amount").sum()))),
    Bad("an event time from all rows", "EXPRESSION_NOT_A_ROW_VALUE", "in `purchases.event_time`", lambda: built(sw.stream("purchases", sw.testing.rows_source(DDL)).event_time(pl.col("placed_at").max()))),
    Bad("a rule about all rows", "EXPRESSION_NOT_A_ROW_VALUE", "in `purchases.validate, rule unique`", lambda: built(purchases().validate(unique=pl.col("user_id").is_unique()))),
    Bad("a gap from all rows", "EXPRESSION_NOT_A_ROW_VALUE", 'got col("amount").cast(Int64).max() in `purchases.window`', lambda: built(windowed(sw.session(pl.col("amount").cast(pl.Int64, strict=False).max())).aggregate(n=sw.count()))),
    Bad("a condition on results that looks at other results", "EXPRESSION_NOT_A_ROW_VALUE", "in `purchases.window.where`", lambda: built(windowed().aggregate(n=sw.count()).where("n = MAX(n)"))),
    Bad("a condition that holds a lock", "EXPRESSION_NOT_PORTABLE", "in `purchases.where`: TypeError: cannot pickle '_thread.lock' object; create locks", lambda: built(purchases().where(pl.col("amount").map_batches(LOCKED)))),
    Bad("a sum by a function that holds a lock", "EXPRESSION_NOT_PORTABLE", "in `sum(", lambda: built(windowed().aggregate(s=sw.sum(pl.col("amount").map_batches(LOCKED))))),
    Bad("a column selected twice", "EXPRESSION_NAME_TWICE", 'got col("amount"), col("amount") in `purchases.select`, which produces a name twice', lambda: built(purchases().select("amount", "amount"))),
    Bad("a name given twice", "EXPRESSION_NAME_TWICE", 'col("user_id").alias("amount") in `purchases.with_columns`', lambda: built(purchases().with_columns(pl.col("amount"), amount="user_id"))),
    Bad("a condition on two columns at once", "EXPRESSION_NOT_ONE_COLUMN", "in `purchases.where`, which produces 2; name a single column", lambda: built(purchases().where(pl.col("amount", "user_id").is_null()))),
    Bad("a sum of two columns at once", "EXPRESSION_NOT_ONE_COLUMN", "which produces 2", lambda: built(windowed().aggregate(s=sw.sum(pl.col("amount", "user_id"))))),
    Bad("a map that does not give what it declares", "MAP_RESULT", "got one without zz (it has user_id, amount, placed_at, tags) in `purchases.map`", lambda: built(purchases().map(lambda frame: frame, output="zz long"))),
    Bad("a map that gives nothing, with its columns declared", "MAP_RESULT", "got NoneType in `purchases.map`", lambda: built(purchases().map(lambda frame: None, output="zz long"))),
    Bad("a map that exits", "MAP_EMPTY", "got SystemExit: 3 in `purchases.map`", lambda: built(purchases().map(lambda frame: sys.exit(3)))),
    Bad("a map that makes objects", "OBJECT_COLUMN", "got `o` of type Object in `purchases.map`", lambda: built(purchases().map(lambda frame: frame.with_columns(pl.Series("o", [], dtype=pl.Object))))),
    Bad("map with something that is no function", "MAP_FUNCTION", "from a Polars frame to a Polars frame; got 'upper'", lambda: purchases().map("upper")),
    Bad("map with a function that needs rows", "MAP_EMPTY", "in `purchases.map`", lambda: built(purchases().map(broken))),
    Bad("map with a function that returns something else", "MAP_RESULT", "got LazyFrame in `purchases.map`", lambda: built(purchases().map(lambda frame: frame.lazy()))),
    Bad("no key", "KEY_COLUMNS", "got [] on stream `purchases`", lambda: purchases().key_by()),
    Bad("one key twice", "KEY_COLUMNS", "distinct column names", lambda: purchases().key_by("user_id", "user_id")),
    Bad("a key that is an expression", "KEY_COLUMNS", ".with_columns(name=...)", lambda: purchases().key_by(pl.col("user_id"))),
    Bad("a key that is a list", "KEY_TYPE", "got `tags` of type List", lambda: built(purchases().key_by("tags").window(sw.tumbling("1m")).aggregate(n=sw.count()))),
    Bad("a key with the name of a result column", "KEY_TYPE", "got `pane`", lambda: built(purchases().with_columns(pane="user_id").key_by("pane").window(sw.tumbling("1m")).aggregate(n=sw.count()))),
    Bad("a column with the name of a late column", "LATE_COLUMN_TAKEN", "the rows of step `purchases.window` already have a column `event_time`", lambda: built(purchases().with_columns(event_time="placed_at").key_by("user_id").window(sw.tumbling("1m")).aggregate(n=sw.count()))),
    Bad("a schema of an unknown type", "BAD_SCHEMA", "unknown type `strnig` of `a` (did you mean `string`?)", lambda: sw.formats.json("a strnig")),
    Bad("a schema without columns", "BAD_SCHEMA", "got no column", lambda: sw.formats.json({})),
    Bad("a schema with a column twice", "DUPLICATE_COLUMN", "got `A` after `a`", lambda: sw.formats.json("a string, A int")),
    Bad("a schema with a hidden name", "RESERVED_COLUMN", "got `__ts`", lambda: sw.formats.json("__ts long")),
    Bad("a format limit of zero", "FORMAT_LIMIT", "format option `max_depth`", lambda: sw.formats.json("a string", max_depth=0)),
]  # fmt: skip

WINDOWS = [
    Bad("an idle stream that does neither", "WHEN_ALL_IDLE", "got 'sleep'", lambda: records().event_time("placed_at", when_all_idle="sleep")),
    Bad("time that goes on though nothing is ever idle", "WHEN_ALL_IDLE_NEVER", 'add idle_after="1m"', lambda: records().event_time("placed_at", when_all_idle="advance")),
    Bad("semantics that are a number", "NOT_SEMANTICS", "got 3", lambda: windowed(semantics=3)),
    Bad("an empty step name", "BAD_NAME", "a step name must consist of letters, digits", lambda: windowed(name="")),
    Bad("windows without number", "WINDOW_OVERLAP", "got a hopping window that puts each event into 86,400,000", lambda: sw.hopping("1d", every="1ms")),
    Bad("cumulative windows without number", "WINDOW_OVERLAP", "at most 100,000 windows", lambda: sw.cumulative("365d", every="1s")),
    Bad("any of no trigger", "TRIGGER_ANY_OF", "got nothing; give two different ones", sw.any_of),
    Bad("a window longer than the world", "DURATION_TOO_LONG", "tumbling window `size`", lambda: sw.tumbling(timedelta.max)),
    Bad("quantiles that are none", "QUANTILES_EMPTY", "got None; try [0.5, 0.95]", lambda: sw.quantiles("amount", None)),
    Bad("a window that is a string", "NOT_A_WINDOW", "got '1m'; use sw.tumbling", lambda: windowed("1m")),
    Bad("a trigger that is a string", "NOT_A_TRIGGER", "got '10s'", lambda: windowed(trigger="10s")),
    Bad("an unknown accumulation", "ACCUMULATION", "got 'summing';", lambda: windowed(accumulation="summing")),
    Bad("a misspelt accumulation", "ACCUMULATION", "got 'acumulating' (did you mean `accumulating`?);", lambda: windowed(accumulation="acumulating")),
    Bad("a global window that never fires", "GLOBAL_NEEDS_TRIGGER", "add trigger=sw.after_count(100)", lambda: windowed(sw.global_window())),
    Bad("a session gap that is no whole number", "SESSION_GAP_TYPE", "of type Float64", lambda: built(windowed(sw.session(pl.col("amount"))).aggregate(n=sw.count()))),
    Bad("lateness of a window without an end", "GLOBAL_LATENESS", "no row is late for it", lambda: built(windowed(sw.global_window(), trigger=sw.after_count(3), allowed_lateness="1m").aggregate(n=sw.count()))),
    Bad("a trigger on a sliding window", "SLIDING_TRIGGER", "remove `trigger`", lambda: windowed(sw.sliding("1m"), trigger=sw.every("10s"))),
    Bad("a sliding window that discards", "SLIDING_DISCARDING", 'use "accumulating" or "retracting"', lambda: windowed(sw.sliding("1m"), accumulation="discarding")),
    Bad("a count of zero", "TRIGGER_COUNT", "got 0", lambda: sw.after_count(0)),
    Bad("any of one trigger", "TRIGGER_ANY_OF", "two or more", lambda: sw.any_of(sw.after_count(1))),
    Bad("any of two counts", "TRIGGER_ANY_OF", "each at most once", lambda: sw.any_of(sw.after_count(1), sw.after_count(2))),
    Bad("any of a count that ends the window", "TRIGGER_ANY_OF", "any_of", lambda: sw.any_of(sw.after_count(1, once=True), sw.every("1s"))),
    Bad("an early part that waits for the watermark", "TRIGGER_EARLY", "`early` takes after_count(n)", lambda: sw.after_watermark(early=sw.after_watermark())),
    Bad("an early part that ends the window", "TRIGGER_EARLY", "once=True", lambda: sw.after_watermark(early=sw.after_count(2, once=True))),
    Bad("a late part by processing time", "TRIGGER_LATE", "`late` takes after_count(n), never() or None", lambda: sw.after_watermark(late=sw.every("1s"))),
    Bad("nothing to aggregate", "AGGREGATE_EMPTY", "got none in step `purchases.window`", lambda: windowed().aggregate()),
    Bad("an aggregate that is a column name", "NOT_AN_AGGREGATE", "got 'amount' for `total`", lambda: windowed().aggregate(total="amount")),
    Bad("an aggregate with the key's name", "AGGREGATE_NAME_TAKEN", "got `user_id`", lambda: built(windowed().aggregate(user_id=sw.count()))),
    Bad("an aggregate with a result column's name", "AGGREGATE_NAME_TAKEN", "got `pane_index`", lambda: built(windowed().aggregate(pane_index=sw.count()))),
    Bad("a sum of text", "AGGREGATE_INPUT_TYPE", "sum(user_id) needs numbers; got String", lambda: built(windowed().aggregate(total=sw.sum("user_id")))),
    Bad("the top by something without an order", "AGGREGATE_INPUT_TYPE", "an orderable `by`", lambda: built(windowed().aggregate(best=sw.top(3, by="tags")))),
    Bad("a sum of a sum", "AGGREGATE_INPUT_NOT_A_ROW_VALUE", "leave the aggregation to the aggregate", lambda: built(windowed().aggregate(total=sw.sum(pl.col("amount").sum())))),
    Bad("the top zero", "TOP_N", "got 0", lambda: sw.top(0, by="amount")),
    Bad("a quantile of 95", "QUANTILE_RANGE", "0.95 is the 95th percentile", lambda: sw.quantile("amount", 95)),
    Bad("no quantiles", "QUANTILES_EMPTY", "try [0.5, 0.95]", lambda: sw.quantiles("amount", [])),
    Bad("a quantile without error", "QUANTILE_ERROR", "0.01 means one percent", lambda: sw.quantile("amount", 0.5, relative_error=0)),
    Bad("degrees of freedom below zero", "AGGREGATE_DDOF", "got -1", lambda: sw.variance("amount", ddof=-1)),
    Bad("a sketch of one hash", "APPROX_DISTINCT_K", "got 1", lambda: sw.approx_distinct("user_id", k=1)),
    Bad("an accumulator that is an object", "ACCUMULATOR_CLASS", "pass `Mine` itself", lambda: sw.accumulator(Mean(), "amount")),
    Bad("an accumulator without a type", "ACCUMULATOR_OUTPUT", "Mean has `output` = nothing", lambda: sw.accumulator(Mean, "amount")),
    Bad("an accumulator that lacks methods", "ACCUMULATOR_METHODS", "Half lacks add, merge", lambda: sw.accumulator(Half, "amount")),
]  # fmt: skip

OUTPUTS = [
    Bad("no output", "PIPELINE_EMPTY", "got none in `p`", lambda: sw.Pipeline("p")),
    Bad("an output that ends nowhere", "OUTPUT_NOT_ENDED", "got a WindowResults in `p`", lambda: sw.Pipeline("p", windowed().aggregate(n=sw.count()))),
    Bad("results left unhandled", "RESULTS_UNHANDLED", "got none for step `purchases.window`; add .to(sink)", without_results),
    Bad("results of a chain left unhandled", "RESULTS_UNHANDLED", "step `hourly`", chain_without_results),
    Bad("results left unhandled beside a stream that is not", "RESULTS_UNHANDLED", "step `purchases.window`", beside_a_stream),
    Bad("rows left unhandled", "RESULTS_UNHANDLED", "got none for stream `purchases`", lambda: sw.Pipeline("p", purchases().dead_letters.to(sw.sinks.memory()))),
    Bad("late rows left unhandled", "LATE_UNHANDLED", "got none for step `purchases.window`; add results.late.to(sink)", without_late),
    Bad("dead letters left unhandled", "DEAD_LETTERS_UNHANDLED", "add purchases.dead_letters.to(sink)", lambda: sw.Pipeline("p", purchases().to(sw.sinks.memory()))),
    Bad("dead letters of results left unhandled", "DEAD_LETTERS_UNHANDLED", "got none for `purchases.window`", lambda: built(windowed().aggregate(n=sw.count()).where("n > 1"))),
    Bad("one output by two sinks into one topic", "SINK_TWICE", "`purchases.rows` has two sinks that are Kafka rows", one_topic),
    Bad("key of records that is no column", "KAFKA_SINK_COLUMN", "did you mean `user_id`", no_such_key),
    Bad("one output by two sinks into one folder", "SINK_SHARED", "/out` for both `purchases.rows` and `purchases.rows`", same_folder),
    Bad("promise that there is not", "SINK_PROMISE", "own of output `purchases.rows` has 'exacly_once'; correct `delivery`", lambda: own_sink(delivery="exacly_once")),
    Bad("change that there is not", "SINK_PROMISE", "has 'upsert'; correct `takes`", lambda: own_sink(takes=frozenset({"append", "upsert"}))),
    Bad("windows that overwrite one another in a compacted topic", "SINK_KEYS_OVERWRITE", "write key=['user_id', 'window_start']", overwriting_topic),
    Bad("two outputs in one folder", "SINK_SHARED", "/out` for both `purchases.rows` and `purchases.dead_letters`", one_folder),
    Bad("files that are nowhere", "NOT_A_FOLDER", "the files sink must be the path of a folder; got None", lambda: sw.sinks.files(None)),
    Bad("a log that is a number", "NOT_A_FOLDER", "a log must be the path of a folder; got 5", lambda: sw.sources.log(5)),
    Bad("a format that is a word", "NOT_A_FORMAT", "got 'json' in stream `purchases`; use, for example, sw.formats.json", lambda: records().decode("json")),
    Bad("a harness without a pipeline", "NOT_A_PIPELINE", "got 5", lambda: sw.testing.Harness(5)),
    Bad("a test that starts at no time", "TEST_TIME", "`now` takes a datetime with a time zone", lambda: sw.testing.Harness(built(purchases()), now="noon")),
    Bad("a watermark at no time", "TEST_TIME", "`to` takes", lambda: sw.testing.Harness(built(purchases())).advance_watermark("soon")),
    Bad("rows that are a number", "TEST_ROWS", "stream `purchases` takes a list of dictionaries, or a Polars frame; got 5", lambda: sw.testing.Harness(built(purchases())).send("purchases", 5)),
    Bad("rows that are numbers", "TEST_ROWS", "got 5", lambda: sw.testing.Harness(built(purchases())).send("purchases", [5])),
    Bad("rows of an unknown field", "TEST_ROW_TYPES", "got unknown columns 'amuont'; its columns are", lambda: sw.testing.Harness(built(purchases())).send("purchases", [{"amuont": 1.0}])),
    Bad("rows of a wrong type", "TEST_ROW_TYPES", "rows must match the schema of stream `purchases`", lambda: sw.testing.Harness(built(purchases())).send("purchases", [{"amount": "much"}])),
    Bad("a sink that is a path", "NOT_A_SINK", "got 'out/results'", lambda: purchases().to("out/results")),
    Bad("two steps of one name", "STEP_NAME_TWICE", 'got `purchases.window` twice; add name="…"', two_steps),
    Bad("retractions into files that only grow", "SINK_CANNOT_TAKE", "`purchases.window` emits retractions, but files", lambda: built(windowed(accumulation="retracting", allowed_lateness="1m").aggregate(n=sw.count()), sink=sw.sinks.files("out"))),
    Bad("discarded panes into a table with one row per key", "SINK_KEEPS_LAST_PANE", "keeps only the last pane of each user_id, window_start", lambda: built(windowed(accumulation="discarding", allowed_lateness="1m").aggregate(n=sw.count()), sink=TABLE)),
    Bad("sessions by their start alone", "SINK_SESSION_KEY", "use both `window_start` and `window_end`", lambda: built(windowed(sw.session("1m")).aggregate(n=sw.count()), sink=TABLE)),
    Bad("sessions that merge in a table with one row per key", "SINK_KEEPS_MERGED_SESSIONS", 'use accumulation="retracting"', lambda: built(windowed(sw.session("1m"), allowed_lateness="1m").aggregate(n=sw.count()), sink=TABLE)),
    Bad("sessions that merge in a merged Delta table", "SINK_KEEPS_MERGED_SESSIONS", "would keep the old rows", lambda: built(windowed(sw.session("1m"), allowed_lateness="1m").aggregate(n=sw.count()), sink=sw.sinks.delta("out", merge_on=["user_id", "window_start"]))),
    Bad("sessions that merge in Redis", "SINK_KEEPS_MERGED_SESSIONS", "would keep the old rows", lambda: built(windowed(sw.session("1m"), allowed_lateness="1m").aggregate(n=sw.count()), sink=sw.sinks.redis("redis://localhost", key=["user_id", "window_start"]))),
    Bad("sessions that merge in a compacted topic", "SINK_KEEPS_MERGED_SESSIONS", "would keep the old rows", lambda: built(windowed(sw.session("1m"), trigger=sw.after_count(2)).aggregate(n=sw.count()), sink=sw.sinks.kafka("localhost:1", topic="t", key=["user_id", "window_start"]))),
    Bad("a window on results that are shown twice", "CHAIN_UPDATES", 'or give `purchases.window` accumulation="discarding"', lambda: chained(windowed(allowed_lateness="1m").aggregate(n=sw.count()))),
    Bad("a window on the results of a global window", "CHAIN_GLOBAL", "use a window that ends", lambda: chained(windowed(sw.global_window(), trigger=sw.after_count(3), accumulation="discarding").aggregate(n=sw.count()))),
    Bad("an odd number of key groups", "KEY_GROUPS", "power of two from 1 to 4096; got 12", lambda: sw.Pipeline("p", purchases().to(sw.sinks.memory()), key_groups=12)),
    Bad("too many key groups", "KEY_GROUPS", "got 8192", lambda: sw.Pipeline("p", purchases().to(sw.sinks.memory()), key_groups=8192)),
    Bad("a log of an unknown format", "LOG_FORMAT", "got 'csv'", lambda: sw.sources.log("data", format="csv")),
    Bad("a log in the cloud", "FOLDER_REMOTE", "a log must be a folder shared by the driver and the executors; got `s3://bucket/orders`", lambda: sw.sources.log("s3://bucket/orders")),
    Bad("a Parquet log without a schema", "LOG_SCHEMA_UNKNOWN", "has no files yet; write, for example, schema=", lambda: sw.sources.log("nowhere", format="parquet")),
    Bad("a rate limit of zero", "RATE_LIMIT", "`max_bytes_per_batch` must be a positive integer; got 0", lambda: sw.sources.log("data", max_bytes_per_batch=0)),
    Bad("a source that is no streaming DataFrame", "DATAFRAME_NOT_STREAMING", "got DataFrame; create it with spark.readStream", lambda: sw.sources.dataframe(pl.DataFrame())),
    Bad("files of an unknown format", "FILES_FORMAT", "got 'csv'", lambda: sw.sinks.files("out", format="csv")),
    Bad("files in the cloud", "FOLDER_REMOTE", "got `s3://bucket/out`", lambda: sw.sinks.files("s3://bucket/out")),
    Bad("a console of no rows", "CONSOLE_LIMIT", "got 0", lambda: sw.sinks.console(limit=0)),
    Bad("a batch function that is none", "FOREACH_BATCH_FUNCTION", "got 'write'", lambda: sw.sinks.foreach_batch("write")),
    Bad("a union with nothing", "UNION_STREAMS", "got [] for stream `purchases`", lambda: purchases().union()),
    Bad("a union with a name", "UNION_STREAMS", "got [\"'refunds'\"]", lambda: purchases().union("refunds")),
    Bad("a union of unequal rows", "UNION_COLUMNS", "one has amount Float64, tags List(String) where the other has nothing", lambda: sw.Pipeline("p", purchases().union(purchases("refunds").select("user_id", "placed_at")).to(sw.sinks.memory()))),
    Bad("dead letters of a union", "UNION_DEAD_LETTERS", "use those of purchases, refunds", lambda: purchases().union(purchases("refunds")).dead_letters),
    Bad("a union of a stream with itself", "UNION_TWICE", "got the same rows of `purchases` twice in `purchases.union`; remove one", united),
    Bad("a union that has a stream already", "UNION_TWICE", "got the same rows of `purchases` twice in `all`", lambda: united("refunds", name="all")),
    Bad("two unions of one name", "STREAM_NAME_TWICE", "got `purchases.union`", lambda: sw.Pipeline("p", *(purchases().union(purchases("refunds")).to(sw.sinks.memory()) for _ in range(2)))),
    Bad("rows sent to a stream that is not there", "STREAM_UNKNOWN", "got `purchase` (did you mean `purchases`?)", lambda: sw.testing.run(built(windowed().aggregate(n=sw.count())), {"purchase": []})),
]  # fmt: skip

JOINS = [
    Bad("no bounds", "JOIN_BETWEEN", "`between` takes a lower and an upper bound on how much later the other row may be; got None", lambda: joined(between=None)),
    Bad("no word of bounds", "JOIN_BETWEEN", "got None; write, for example", lambda: purchases().key_by("user_id").join(refunds().key_by("user_id"))),
    *(Bad(f"{method} of a stream without a key", "KEY_MISSING", f"`{method}` works on the rows of each key; got stream `purchases`, which has no key; add .key_by(...) before it", partial(unkeyed, method)) for method in ("window", "match", "deduplicate", "join", "join_as_of", "process")),
    Bad("aggregates of a stream without a key", "KEY_MISSING", "add .key_by(...).window(...) before it", lambda: purchases().aggregate(n=sw.count())),
    Bad("aggregates of results without a key", "KEY_MISSING", "got stream `purchases.window`", lambda: windowed().aggregate(n=sw.count()).aggregate(n=sw.count())),
    Bad("aggregates without windows", "WINDOW_MISSING", "got the keyed stream `purchases`, which has no windows; add .window(...)", lambda: purchases().key_by("user_id").aggregate(n=sw.count())),
    Bad("one bound", "JOIN_BETWEEN", "got ('1h',)", lambda: joined(between=("1h",))),
    Bad("a bound left out", "JOIN_BETWEEN", "got ('0s', None); write, for example", lambda: joined(between=("0s", None))),
    Bad("a bound that is a word", "DURATION_UNREADABLE", "a bound of `between`", lambda: joined(between=("0s", "soon"))),
    Bad("bounds the wrong way round", "JOIN_BETWEEN_ORDER", "got 1h and -5m; write the earlier one first", lambda: joined(between=("1h", "-5m"))),
    Bad("an unknown kind of join", "JOIN_HOW", 'must be one of "inner", "left", "right", "full"; got \'outer\'', lambda: joined(how="outer")),
    Bad("another way with late rows", "JOIN_LATE", 'must be "output" or "process"; got \'keep\'', lambda: joined(late="keep")),
    Bad("one suffix", "JOIN_SUFFIXES", "got '_right'", lambda: joined(suffixes="_right")),
    Bad("a join with a stream that has no key", "JOIN_OTHER", "got refunds for stream `purchases`; add .key_by(...)", lambda: purchases().key_by("user_id").join(refunds(), between=("0s", "1d"))),
    Bad("keys of different number", "JOIN_KEYS_NUMBER", "has user_id on the left and user_id, refunded on the right", lambda: joined(refunds().key_by("user_id", "refunded"))),
    Bad("keys of different types", "JOIN_KEY_TYPES", "has user_id String on the left and refunded Float64 on the right", lambda: joined(refunds().key_by("refunded"))),
    Bad("columns of two sides that differ in case", "DUPLICATE_COLUMN", "got `Amount` after `amount` in the rows of step `purchases.join`", lambda: joined(refunds("user_id string, Amount double, at timestamp").key_by("user_id"))),
    Bad("names that are equal with their suffixes", "JOIN_NAMES_COLLIDE", "got amount twice in step `purchases.join`", lambda: joined(refunds("user_id string, amount double, at timestamp").key_by("user_id"), suffixes=("", ""))),
    Bad("a suffix that makes the name of another column", "JOIN_NAMES_COLLIDE", "got amount_right twice", lambda: joined(refunds("user_id string, amount double, amount_right long, at timestamp").key_by("user_id"))),
    Bad("late rows with one name for two columns", "JOIN_NAMES_COLLIDE", "got amount_right twice", lambda: joined(refunds("user_id string, amount long, amount_right long, at timestamp").key_by("user_id"), suffixes=("_left", "_right"))),
    Bad("a column with the name of the result's time", "JOIN_COLUMN_TAKEN", "`event_time` is added by the join; the right rows of step `purchases.join` already have a column of that name", lambda: joined(refunds("user_id string, event_time long, at timestamp").key_by("user_id"), late="process")),
    Bad("a column with the name of a late row's side", "LATE_COLUMN_TAKEN", "late rows get the additional columns event_time, late_by_ms, watermark, side and step; the rows of step `purchases.join` already have a column `side`", lambda: joined(refunds("user_id string, side string, at timestamp").key_by("user_id"))),
    Bad("a condition on a column that is not there", "JOIN_ON_MATCH", "got right.amuont < left.amount in step `purchases.join`, where the right rows have no column `amuont`; correct it", lambda: joined(on_match="right.amuont < left.amount")),
    Bad("a condition on a column with a slip", "JOIN_ON_MATCH", "where the right rows have no column `refundd` (did you mean `refunded`?); correct it", lambda: joined(on_match="cast(right.refundd as long) < left.amount")),
    Bad("a condition over an aggregate", "JOIN_ON_MATCH", "got sum(right.refunded) > 3 in step `purchases.join`, where the value may depend on other pairs; correct it", lambda: joined(on_match="sum(right.refunded) > 3")),
    Bad("a condition of types that do not compare", "JOIN_ON_MATCH", "got right.user_id > left.amount in step `purchases.join`, where the types do not fit: cannot compare string with numeric type (f64); correct it", lambda: joined(on_match="right.user_id > left.amount")),
    Bad("a condition that does not say of which side", "JOIN_ON_MATCH", "read columns as left.name and right.name; got amount > 1", lambda: joined(on_match="amount > 1")),
    Bad("a condition that is a number", "JOIN_ON_MATCH", "got right.refunded - left.amount", lambda: joined(on_match="right.refunded - left.amount")),
    Bad("a condition over all pairs", "JOIN_ON_MATCH", "for each pair", lambda: joined(on_match=pl.col("left").struct["amount"].max() > 1)),
    Bad("versions that last for no stated time", "JOIN_VERSIONS_TTL", 'write, for example, versions_ttl="30d"', lambda: as_of(versions_ttl=None)),
    Bad("versions that last for no time", "DURATION_TOO_SHORT", "`versions_ttl` must be longer than zero", lambda: as_of(versions_ttl="0s")),
    Bad("an as-of join that keeps versions without rows", "JOIN_HOW", 'must be one of "inner", "left"; got \'full\'', lambda: as_of(how="full")),
    Bad("a mark of deleted versions that is no truth value", "PREDICATE_TYPE", "in `purchases.join, deleted`", lambda: as_of(deleted="refunded")),
    Bad("a mark of deleted versions that is no column", "UNKNOWN_COLUMN", "in `purchases.join, deleted`; ", lambda: as_of(deleted="amount > 1")),
    Bad("a window join with a stream that has no windows", "JOIN_OTHER", "must be a windowed stream; got refunds", lambda: windowed().join(refunds())),
    Bad("a window join with a stream that is only keyed", "JOIN_OTHER", "got refunds.key_by(...) for stream `purchases`; add .window(...) to it too", lambda: windowed().join(refunds().key_by("user_id"))),
    Bad("an interval join with windows", "JOIN_OTHER", "must be a keyed stream; got purchases.key_by(...).window(...) for stream `refunds`; remove .window(...); a join of windows has it on both sides", lambda: refunds().key_by("user_id").join(windowed(), between=("0s", "1d"))),
    Bad("a window join of different windows", "JOIN_WINDOWS_DIFFER", "got tumbling 1m, allowed lateness 0s on the left and tumbling 2m, allowed lateness 0s on the right", lambda: windows_joined(other=sw.tumbling("2m"))),
    Bad("a window join of different lateness", "JOIN_WINDOWS_DIFFER", "and tumbling 1m, allowed lateness 5m on the right", lambda: windows_joined(theirs={"allowed_lateness": "5m"})),
    Bad("a window join of sessions", "JOIN_WINDOW_KIND", "got session gap 1m", lambda: windows_joined(sw.session("1m"))),
    Bad("a window join of sliding windows", "JOIN_WINDOW_KIND", "or .join(other, between=...) for rows near each other", lambda: windows_joined(sw.sliding("1m"))),
    Bad("an outer window join that is corrected", "JOIN_WINDOW_LATENESS", 'got how="left" with allowed lateness 5m; use how="inner"', lambda: windows_joined(how="left", allowed_lateness="5m")),
    Bad("a window join with a trigger", "JOIN_WINDOW_OPTIONS", "for the windows of `purchases`; remove them", lambda: windows_joined(trigger=sw.after_count(2))),
    Bad("an unknown kind of window join", "JOIN_HOW", "got 'outer'", lambda: windows_joined(how="outer")),
    Bad("late rows of a join that processes them", "LATE_NEVER", "got `.late`; remove it", lambda: joined(late="process")),
    Bad("a join with results that are shown twice", "CHAIN_UPDATES", "got step `purchases.join` on the results of `refunds.window`", lambda: joined(refunds().key_by("user_id").window(sw.tumbling("1m"), allowed_lateness="1m").aggregate(n=sw.count()).key_by("user_id"))),
]  # fmt: skip

KAFKA = [
    Bad("servers without a port", "KAFKA_SERVERS", 'got \'localhost\'; try "localhost:9092"', lambda: sw.sources.kafka("localhost", topic="t")),
    Bad("no topic", "KAFKA_TOPICS", "got none of them", lambda: sw.sources.kafka("h:1")),
    Bad("a topic and a pattern", "KAFKA_TOPICS", "got `topic` and `pattern`; give exactly one", lambda: sw.sources.kafka("h:1", topic="t", pattern="t.*")),
    Bad("a topic that is a pattern", "KAFKA_TOPIC_NAME", "got 'orders.*'; use `pattern`", lambda: sw.sources.kafka("h:1", topic="orders.*")),
    Bad("a start in words", "KAFKA_START", "got 'yesterday'", lambda: sw.sources.kafka("h:1", topic="t", start="yesterday")),
    Bad("a start without a zone", "KAFKA_START", "a datetime with a time zone", lambda: sw.sources.kafka("h:1", topic="t", start=datetime(2026, 1, 1))),  # noqa: DTZ001  the point
    Bad("a start that is a number", "KAFKA_START", "got 5", lambda: sw.sources.kafka("h:1", topic="t", start=5)),
    Bad("offsets without a topic", "KAFKA_OFFSETS", 'got 0: 1; write, for example, start={"orders": {0: 120, 1: 95}}', lambda: sw.sources.kafka("h:1", topic="t", start={0: 1})),
    Bad("offsets of nothing", "KAFKA_OFFSETS", "got {}", lambda: sw.sources.kafka("h:1", topic="t", start={})),
    Bad("an offset below zero", "KAFKA_OFFSETS", "non-negative integers, by topic and partition; got 't': {0: -5}", lambda: sw.sources.kafka("h:1", topic="t", start={"t": {0: -5}})),
    Bad("a partition in words", "KAFKA_OFFSETS", "got 't': {'0': 5}", lambda: sw.sources.kafka("h:1", topic="t", start={"t": {"0": 5}})),
    Bad("offsets of another topic", "KAFKA_OFFSETS_TOPIC", "got `order` (did you mean `orders`?)", lambda: sw.sources.kafka("h:1", topic="orders", start={"order": {0: 5}})),
    Bad("offsets beside the pattern", "KAFKA_OFFSETS_TOPIC", "got `clicks`", lambda: sw.sources.kafka("h:1", pattern="orders.*", start={"orders-eu": {0: 5}, "clicks": {0: 5}})),
    Bad("a pattern that is none", "KAFKA_PATTERN", "got '[': unterminated character set", lambda: sw.sources.kafka("h:1", pattern="[")),
    Bad("a pattern that only Java reads", "KAFKA_PATTERN", "bad escape \\p at position 0; correct it, with character classes written out", lambda: sw.sources.kafka("h:1", pattern=r"\p{Lower}+")),
    Bad("a pattern that only Python reads", "KAFKA_PATTERN", "Java has no (?P", lambda: sw.sources.kafka("h:1", pattern="(?P<a>x)")),
    Bad("a pattern that is a number", "KAFKA_PATTERN", "got 5", lambda: sw.sources.kafka("h:1", pattern=5)),
    Bad("unknown metadata", "KAFKA_METADATA", "got 'colour'", lambda: sw.sources.kafka("h:1", topic="t", metadata=["key", "colour"])),
    Bad("a third way with lost records", "KAFKA_ON_LOSS", "got 'weep'", lambda: sw.sources.kafka("h:1", topic="t", on_data_loss="weep")),
    Bad("no records a batch", "RATE_LIMIT", "`max_records_per_batch` must be", lambda: sw.sources.kafka("h:1", topic="t", max_records_per_batch=0)),
    Bad("metadata with a field's name", "METADATA_COLUMN_TAKEN", "got `kafka_key` in both", lambda: built(sw.stream("purchases", sw.sources.kafka("h:1", topic="t", metadata="key")).decode(sw.formats.json("kafka_key string")))),
]  # fmt: skip

BAD = [*TIME, *ROWS, *WINDOWS, *OUTPUTS, *JOINS, *KAFKA]


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.sentence)
def test_bad_definition_is_refused_with_its_code_and_words(bad: Bad) -> None:
    with pytest.raises(DefinitionError) as caught:
        bad.define()
    assert caught.value.code == bad.code
    assert bad.words in str(caught.value)


def test_every_code_for_bad_definitions_is_tried_here_or_beside_what_it_is_about() -> None:
    elsewhere = "\n".join(path.read_text() for path in TESTS.rglob("test_*.py"))
    refused = {use.code for use in uses() if use.is_refusal} - {bad.code for bad in BAD}
    assert sorted(code for code in refused if code not in elsewhere) == []


def test_the_same_definition_without_the_mistake_is_built() -> None:
    assert built(windowed(allowed_lateness="5m").aggregate(n=sw.count(), total=sw.sum("amount"))).name == "p"

"""Bad definitions of outputs, sinks, unions, logs and tests."""

# ruff: noqa: E501  one definition a line, with its code and words

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import polars as pl

from slackwater.connectors.sink import Sink, SinkWriter, Slot
from tests.plan.bad_definition import Bad, built, purchases, records, sw, windowed

TABLE = sw.sinks.postgres("postgresql://localhost/db", table="t", upsert_on=["user_id", "window_start"])


def one_folder() -> None:
    """Build a pipeline whose rows and dead letters go into one folder."""
    stream = purchases()
    sw.Pipeline("p", stream.to(sw.sinks.files("out")), stream.dead_letters.to(sw.sinks.files("./out")))


def default_folder() -> None:
    """Build a pipeline whose late rows and dead letters go into one folder by default."""
    results = windowed().aggregate(n=sw.count())
    sw.Pipeline("p", results.to(sw.sinks.memory()), late=sw.sinks.files("out"), dead_letters=sw.sinks.files("./out"))


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


def outputs_in_one(kind: type) -> None:
    """Build a pipeline with its outputs in one argument."""
    stream = purchases()
    sw.Pipeline("p", kind((stream.to(sw.sinks.memory()), stream.dead_letters.drop())))


@dataclass(frozen=True, kw_only=True, eq=False)
class OwnSink(Sink):
    """A sink of a user's, with a slip of the pen."""

    def open(self, slot: Slot) -> SinkWriter:
        """Never get here."""
        raise AssertionError(slot)

    def __str__(self) -> str:
        return "own"


class PlainSink(OwnSink):
    """The same as a plain class, with another slip in a class attribute."""

    delivery = "exactly once"  # type: ignore[assignment]


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


def united(*others: str, **options: Any) -> Any:  # noqa: ANN401  as union's
    """Return a union that has purchases twice."""
    one = purchases()
    between = one.union(*map(purchases, others)) if others else one
    return between.union(one, **options)


def sent(rows: Any) -> Any:  # noqa: ANN401  rows of any type
    """Send rows to a stream of typed columns."""
    stream = sw.stream("typed", sw.testing.rows_source("n long, t timestamp, l array<long>, x double"))
    return sw.testing.Harness(built(stream)).send("typed", rows)


def typed(**row: Any) -> Any:  # noqa: ANN401  values of any type
    """Send one row."""
    return sent([row])


OUTPUTS = [
    Bad("no output", "PIPELINE_EMPTY", "got none in `p`", lambda: sw.Pipeline("p")),
    Bad("an output that ends nowhere", "OUTPUT_NOT_ENDED", "got a WindowResults in `p`", lambda: sw.Pipeline("p", windowed().aggregate(n=sw.count()))),
    *(Bad(f"a {kind.__name__} of outputs", "OUTPUT_NOT_ENDED", f'got a {kind.__name__} in `p`; unpack it: sw.Pipeline("p", *outputs)', partial(outputs_in_one, kind)) for kind in (list, tuple)),
    Bad("a stream that ends nowhere", "OUTPUT_NOT_ENDED", "got a Stream in `p`; end it with .to(sink)", lambda: sw.Pipeline("p", purchases())),
    Bad("a source that is a table", "NOT_A_SOURCE", "got `polars.dataframe.frame.DataFrame` for stream `s`", lambda: sw.stream("s", pl.DataFrame({"a": [1]}))),
    Bad("results left unhandled", "RESULTS_UNHANDLED", "got none for step `purchases.window`; add .to(sink)", without_results),
    Bad("results of a chain left unhandled", "RESULTS_UNHANDLED", "step `hourly`", chain_without_results),
    Bad("results left unhandled beside a stream that is not", "RESULTS_UNHANDLED", "step `purchases.window`", beside_a_stream),
    Bad("rows left unhandled", "RESULTS_UNHANDLED", "got none for stream `purchases`", lambda: sw.Pipeline("p", purchases().dead_letters.to(sw.sinks.memory()))),
    Bad("late rows left unhandled", "LATE_UNHANDLED", "got none for step `purchases.window`; add results.late.to(sink)", without_late),
    Bad("a default for late rows that is a path", "NOT_A_SINK", "got 'out/late'", lambda: sw.Pipeline("p", purchases().to(sw.sinks.memory()), late="out/late")),
    Bad("defaults in one folder", "SINK_SHARED", "/out` for both `late` and `dead_letters`", default_folder),
    Bad("a step with the name of a default output", "OUTPUT_NAME_TAKEN", "got a step `late`; rename the step", lambda: sw.Pipeline("p", windowed(name="late").aggregate(n=sw.count()).to(sw.sinks.memory()), late=sw.sinks.memory(), dead_letters=sw.sinks.memory())),
    Bad("dead letters left unhandled beside a default for late rows", "DEAD_LETTERS_UNHANDLED", "got none for `purchases`", lambda: sw.Pipeline("p", windowed().aggregate(n=sw.count()).to(sw.sinks.memory()), late=sw.sinks.memory())),
    Bad("late rows left unhandled beside a default for dead letters", "LATE_UNHANDLED", "give the pipeline late=sink", lambda: sw.Pipeline("p", windowed().aggregate(n=sw.count()).to(sw.sinks.memory()), dead_letters=sw.sinks.memory())),
    Bad("dead letters left unhandled", "DEAD_LETTERS_UNHANDLED", "add its .dead_letters.to(sink)", lambda: sw.Pipeline("p", purchases().to(sw.sinks.memory()))),
    Bad("dead letters of results left unhandled", "DEAD_LETTERS_UNHANDLED", "got none for `purchases.window`", lambda: built(windowed().aggregate(n=sw.count()).where("n > 1"))),
    Bad("one output by two sinks into one topic", "SINK_TWICE", "`purchases.rows` has two sinks that are Kafka rows", one_topic),
    Bad("key of records that is no column", "KAFKA_SINK_COLUMN", "did you mean `user_id`", no_such_key),
    Bad("one output by two sinks into one folder", "SINK_SHARED", "/out` for both `purchases.rows` and `purchases.rows`", same_folder),
    Bad("promise that there is not", "SINK_PROMISE", "own of output `purchases.rows` has 'exacly_once' (did you mean `exactly_once`?); correct `delivery`", lambda: own_sink(delivery="exacly_once")),
    Bad("promise that there is not, of a plain class", "SINK_PROMISE", "own of output `purchases.rows` has 'exactly once' (did you mean `exactly_once`?); correct `delivery`", lambda: built(purchases(), sink=PlainSink())),
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
    Bad("a fraction as a whole number", "TEST_ROW_TYPES", "got 1.5 in column `n`, which is bigint; its columns are", lambda: typed(n=1.5)),
    Bad("a text as a number", "TEST_ROW_TYPES", "got '7' in column `n`, which is bigint; its columns are", lambda: typed(n="7")),
    Bad("a number that is too large", "TEST_ROW_TYPES", "got 9223372036854775808 in column `n`, which is bigint", lambda: typed(n=2**63)),
    Bad("a truth as a number", "TEST_ROW_TYPES", "got True in column `n`, which is bigint; its columns are", lambda: typed(n=True)),
    Bad("a number as a timestamp", "TEST_ROW_TYPES", "got 5 in column `t`, which is timestamp; its columns are", lambda: typed(t=5)),
    Bad("a text in a list of numbers", "TEST_ROW_TYPES", "got [1, '2'] in column `l`, which is array<bigint>; its columns are", lambda: typed(l=[1, "2"])),
    Bad("fractions in a frame as whole numbers", "TEST_ROW_TYPES", "got values of type Float64 in column `n`, which is bigint", lambda: sent(pl.DataFrame({"n": [1.5], "t": None, "l": None, "x": None}))),
    Bad("rows of a stream that there is not", "STREAM_UNKNOWN", "got `purchase` (did you mean `purchases`?); the pipeline has `purchases`", lambda: sw.testing.Harness(built(purchases())).send("purchase", [])),
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

"""A value that a sink cannot write makes its row a dead letter, for every sink; the job goes on with the others."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import polars as pl
import pytest

import slackwater as sw
from slackwater.base.errors import RowError, RunError
from slackwater.connectors.sink import Sink, Slot
from slackwater.formats.dead_letter_columns import DEAD_LETTER_SCHEMA
from slackwater.testing import Harness, rows_source
from slackwater.windows import Window

NEVER = 2**63 - 1
"""A time in microseconds that no calendar has a text for."""
SCHEMA = pl.Schema({"id": pl.String(), "text": pl.String(), "at": pl.Datetime("us", "UTC"), "ts": pl.Int64()})
AVRO = {
    "type": "record",
    "name": "row",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "text", "type": {"type": "enum", "name": "word", "symbols": ["good", "fine"]}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "ts", "type": "long"},
    ],
}


@dataclass(frozen=True)
class Case:
    """A sink, the row that it cannot write, and what it says."""

    sink: Sink
    bad: Mapping[str, Any]
    code: str


def kafka(**options: Any) -> Sink:  # noqa: ANN401  as the sink takes them
    return sw.sinks.kafka("localhost:9092", "out", **options)


CASES = {
    "postgres: NUL": Case(sw.sinks.postgres("postgresql://db/x", "t"), {"text": "a\0b"}, "POSTGRES_NUL"),
    "postgres: time": Case(sw.sinks.postgres("postgresql://db/x", "t"), {"at": NEVER}, "POSTGRES_TIME"),
    "postgres: key": Case(
        sw.sinks.postgres("postgresql://db/x", "t", upsert_on=["text"]), {"text": None}, "SINK_KEY_NULL"
    ),
    "kafka: JSON": Case(kafka(), {"at": NEVER}, "JSON_VALUE"),
    "kafka: Avro": Case(
        kafka(value=sw.formats.avro(AVRO), headers={"at": pl.col("ts").cast(pl.String)}), {"text": "bad"}, "AVRO_VALUE"
    ),
    "kafka: size": Case(
        kafka(options={"message.max.bytes": 2000}), {"text": "x" * 2000}, "KAFKA_SINK_TOO_LARGE.*2000 bytes"
    ),
    "kafka: key": Case(kafka(key="text", tombstones=True), {"text": None}, "SINK_KEY_NULL"),
    "redis: key": Case(sw.sinks.redis("redis://db/0", key="text"), {"text": None}, "SINK_KEY_NULL"),
    "redis: marks": Case(
        sw.sinks.redis("redis://db/0", key="text", prefix="p"), {"text": "marks:x"}, "REDIS_KEY_RESERVED"
    ),
    "redis: time": Case(sw.sinks.redis("redis://db/0", key="id"), {"at": NEVER}, "JSON_VALUE"),
    "http": Case(sw.sinks.http("http://localhost/x", rejected=sw.sinks.memory()), {"at": NEVER}, "JSON_VALUE"),
    "files: JSON": Case(sw.sinks.files("unused", format="json"), {"at": NEVER}, "JSON_VALUE"),
}


def rows(bad: Mapping[str, Any], many: int = 50) -> pl.DataFrame:
    """Return good rows, with a bad one in their middle."""
    good = {"id": "good", "text": "good", "at": 0, "ts": 1}
    listed = [{**good, "text": "fine"}, *[good] * many, {**good, **bad, "id": "bad"}, *[good] * many]
    return pl.DataFrame(listed, schema={**SCHEMA, "at": pl.Int64()}).cast(SCHEMA)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_row_is_a_dead_letter_of_its_output_and_all_others_are_delivered(case: Case) -> None:
    stream = sw.stream("events", rows_source(SCHEMA))
    ends = [stream.to(case.sink), stream.dead_letters.to(sw.sinks.memory())]
    harness = Harness(sw.Pipeline("p", *ends, key_groups=2)).send("events", rows(case.bad))
    harness.run_batch()
    assert harness.output("events.rows")["id"].to_list() == ["good"] * 101
    [letter] = harness.output("events.dead_letters").to_dicts()
    assert (letter["step"], letter["reason"], letter["offset"]) == ("events.rows", "unwritable", 51)
    assert re.search(rf"^\[{case.code}", letter["message"])
    assert json.loads(letter["payload"])["id"] == "bad"
    assert harness.last.streams["events"].dead == 1


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_rows_that_can_be_written_pass_the_trial(case: Case) -> None:
    good = rows({"text": "good"})
    trial = case.sink.trial(Slot(pipeline="p", output="o", schema=SCHEMA))
    assert trial is not None
    trial.check(good)


def test_result_of_a_window_that_cannot_be_written_is_a_dead_letter_of_the_stream_or_its_own() -> None:
    stream = sw.stream("events", rows_source("k string, ts long")).event_time("ts", out_of_orderness="0s")
    results = stream.key_by("k").window(sw.tumbling("10s")).aggregate(n=sw.count())
    sink = sw.sinks.postgres("postgresql://db/x", "t")
    for dead in (stream.dead_letters, results.dead_letters):
        ends = [results.to(sink), results.late.drop(), dead.to(sw.sinks.memory())]
        if dead.of is results:
            ends.append(stream.dead_letters.drop())
        harness = Harness(sw.Pipeline("p", *ends, key_groups=2))
        harness.send("events", [{"k": key, "ts": 1} for key in ("a", "b\0", "c")])
        harness.finish()
        assert sorted(harness.output(results)["k"]) == ["a", "c"]
        [letter] = harness.output(dead).to_dicts()
        assert (letter["step"], letter["reason"]) == (results.name, "unwritable")
        assert json.loads(letter["payload"])["k"] == "b\0"


@pytest.mark.parametrize("window", [sw.tumbling("10s"), sw.sliding("10s"), sw.session("10s")])
def test_late_row_that_cannot_be_written_is_a_dead_letter_and_not_counted_as_late(window: Window) -> None:
    stream = sw.stream("events", rows_source("k string, ts long")).event_time("ts", out_of_orderness="0s")
    results = stream.key_by("k").window(window).aggregate(n=sw.count())
    sink = sw.sinks.postgres("postgresql://db/x", "t")
    ends = [results.to(sw.sinks.memory()), results.late.to(sink), stream.dead_letters.to(sw.sinks.memory())]
    harness = Harness(sw.Pipeline("p", *ends, key_groups=2))
    harness.send("events", [{"k": "a", "ts": 100_000}]).run_batch()
    harness.send("events", [{"k": key, "ts": 1} for key in ("a", "b\0", "c")]).run_batch()
    assert sorted(harness.output(results.late)["k"]) == ["a", "c"]
    assert harness.output(results.late).schema == results_late_schema(harness, results.name)
    [letter] = harness.output(stream.dead_letters).to_dicts()
    assert (letter["step"], letter["reason"]) == (f"{results.name}.late", "unwritable")
    assert json.loads(letter["payload"])["k"] == "b\0"
    assert harness.last.counts[results.name]["late"] == 2


def results_late_schema(harness: Harness, step: str) -> pl.Schema:
    return harness.plan.output_by_name[f"{step}.late"].schema


def test_row_that_one_of_two_sinks_cannot_write_reaches_neither() -> None:
    stream = sw.stream("events", rows_source(SCHEMA))
    ends = [stream.to(sw.sinks.memory()), stream.to(kafka()), stream.dead_letters.to(sw.sinks.memory())]
    harness = Harness(sw.Pipeline("p", *ends, key_groups=2)).send("events", rows({"at": NEVER}))
    harness.run_batch()
    assert harness.output("events.rows").height == 101
    assert harness.output("events.dead_letters").height == 1


def test_what_decides_is_in_the_fingerprint() -> None:
    """A batch that is half delivered must not be finished by a sink that judges its rows otherwise."""
    stream = sw.stream("events", rows_source(SCHEMA))

    def fingerprint(sink: Sink) -> str:
        return sw.Pipeline("p", stream.to(sink), stream.dead_letters.drop()).plan().fingerprint

    postgres = sw.sinks.postgres("postgresql://db/x", "t")
    assert fingerprint(postgres) != fingerprint(sw.sinks.postgres("postgresql://db/x", "t", replace_nul="?"))
    assert fingerprint(postgres) == fingerprint(replace(postgres, retry_for_ms=1))


def test_dead_letters_themselves_are_never_tried_and_hold_any_text_in_postgres() -> None:
    sink = sw.sinks.postgres("postgresql://db/x", "t")
    slot = Slot(pipeline="p", output="o", schema=DEAD_LETTER_SCHEMA)
    letters = pl.DataFrame({"message": ["a\0b"]}).match_to_schema(DEAD_LETTER_SCHEMA, missing_columns="insert")
    assert b"a\xef\xbf\xbdb" in sink._rows(slot).encoded(letters)


def test_error_of_a_value_is_an_error_of_the_run_where_there_is_nowhere_to_put_the_row() -> None:
    assert issubclass(RowError, RunError)

"""Columns that nothing reads are not decoded; where rows leave as they came, they are there all the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, Literal

import polars as pl
import polars.selectors as cs
import pytest

import slackwater as sw
from slackwater.pipeline import Pipeline
from slackwater.plan.plan import RowNode
from slackwater.plan.streams import Results, Stream
from slackwater.testing import Harness
from slackwater.windows import Window

DDL: Final = "id long, user string, ts long, amount double, note string, tags map<string,string>"


def events(form: Any = None) -> Stream:  # noqa: ANN401  any format
    source = sw.sources.log("unused")
    return sw.stream("events", source).decode(form or sw.formats.json(DDL)).event_time("ts")


def totals(stream: Stream, window: Window | None = None, **options: Any) -> Results:  # noqa: ANN401  as `window` takes them
    return stream.key_by("user").window(window or sw.tumbling("1m"), **options).aggregate(total=sw.sum("amount"))


def built(stream: Stream, *results: Results) -> Pipeline:
    kept = [output.to(sw.sinks.memory()) for result in results for output in (result, result.late)]
    return sw.Pipeline("unread", *kept, stream.dead_letters.to(sw.sinks.memory()), key_groups=2)


def left_out(pipeline: Pipeline) -> set[str]:
    [source] = pipeline.plan().sources
    [decode] = source.rows.children
    return set(decode.undecoded.names) if decode.undecoded else set()


CASES: Final[dict[str, tuple[Callable[[Stream], Stream], set[str]]]] = {
    "what keys, time and aggregates name is read": (lambda stream: stream, {"id", "note"}),
    "a predicate reads": (lambda stream: stream.where("note <> 'x'"), {"id"}),
    "a rule reads": (lambda stream: stream.validate(small="id < 10"), {"note"}),
    "a new column reads": (lambda stream: stream.with_columns(twice="id * 2"), {"note"}),
    "a column that is replaced is not the record's": (lambda stream: stream.with_columns(note=pl.lit("y")), {"id"}),
    "what is selected is read, what is not is gone": (lambda stream: stream.select("user", "amount", "id"), {"note"}),
    "a selector may read anything": (lambda stream: stream.with_columns(most=pl.max_horizontal(cs.numeric())), set()),
    "a function may read anything": (lambda stream: stream.map(lambda frame: frame), set()),
}


@pytest.mark.parametrize("change, unread", CASES.values(), ids=CASES.keys())
def test_columns_that_nothing_reads_are_left_out(change: Callable[[Stream], Stream], unread: set[str]) -> None:
    stream = change(events())
    assert left_out(built(stream, totals(stream))) == unread


def test_top_rows_are_whole_rows() -> None:
    stream = events()
    best = stream.key_by("user").window(sw.tumbling("1m")).aggregate(best=sw.top(1, by="amount"))
    assert left_out(built(stream, best)) == set()


def test_two_steps_read_what_either_reads() -> None:
    stream = events()
    notes = stream.key_by("note").window(sw.session("1m"), name="notes").aggregate(n=sw.count())
    assert left_out(built(stream, totals(stream), notes)) == {"id"}


def test_rows_that_are_an_output_have_every_column() -> None:
    stream = events()
    results = totals(stream)
    pipeline = sw.Pipeline(
        "unread",
        results.to(sw.sinks.memory()),
        stream.to(sw.sinks.memory()),
        results.late.drop(),
        stream.dead_letters.drop(),
    )
    assert left_out(pipeline) == set()


def test_fields_that_are_not_declared_are_kept_with_all_that_are() -> None:
    stream = events(sw.formats.json(DDL, unknown="keep"))
    assert left_out(built(stream, totals(stream))) == set()


@pytest.mark.parametrize(
    "window", [sw.tumbling("10ms"), sw.hopping("10ms", every="4ms"), sw.sliding("10ms"), sw.session("10ms")], ids=str
)
@pytest.mark.parametrize("session_lateness", ["after_merge", "before_merge"])
def test_late_row_has_the_columns_that_nothing_reads(
    window: Window, session_lateness: Literal["after_merge", "before_merge"]
) -> None:
    stream = events().with_columns(twice="amount * 2")
    results = totals(stream, window, semantics=sw.Semantics(session_lateness=session_lateness))
    pipeline = built(stream, results)
    assert left_out(pipeline) == {"id", "note"}
    harness = Harness(pipeline)
    harness.advance_watermark(1_000)
    late = {"id": 7, "user": "ann", "ts": 5, "amount": 1.5, "note": "x", "tags": {"a": "b"}}
    odd = {"ts": 6, "note": None, "user": "bob", "amount": 2.0}  # read one by one, and without an id
    wrong = {**late, "id": "seven"}
    harness.send("events", [json.dumps(row) for row in (late, odd, wrong)])
    harness.run_batch()
    found = harness.output(results.late).sort("ts")
    assert found.select("id", "user", "ts", "amount", "note", "twice").rows() == [
        (7, "ann", 5, 1.5, "x", 3.0),
        (None, "bob", 6, 2.0, None, 4.0),
    ]
    [letter] = harness.output(stream.dead_letters).to_dicts()
    assert letter["message"] == 'field `id` is declared bigint; got string "seven"'


def test_every_node_below_the_decoding_knows_what_was_left_out() -> None:
    stream = events().where("amount > 0").with_columns(twice="amount * 2")
    [source] = built(stream, totals(stream)).plan().sources
    nodes: list[RowNode] = list(source.rows.children)
    for node in nodes:
        nodes += node.children
    assert len(nodes) == 4
    assert len({id(node.undecoded) for node in nodes}) == 1

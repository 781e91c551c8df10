"""Rows with equal event times: what a step makes of them does not depend on the batches they come in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any

import polars as pl
import pytest

import slackwater as sw
from slackwater.plan.streams import Ended, KeyedStream, Results, Stream
from slackwater.testing import Harness

CUTS = [["01"], ["10"], ["0", "1"], ["1", "0"]]
"""The batches that a row `0` and a row `1` of one time come in."""


def source(name: str) -> Stream:
    return sw.stream(name, sw.testing.rows_source("k string, id string, ts long")).event_time("ts")


def row(id_: str) -> dict[str, object]:
    return {"k": "x", "id": id_, "ts": 5}


def started(results: Results, streams: Sequence[Stream], *more: Ended) -> Harness:
    letters = [stream.dead_letters.drop() for stream in streams]
    return Harness(sw.Pipeline("p", results.to(sw.sinks.memory()), results.late.drop(), *more, *letters))


def ended(harness: Harness, cut: Sequence[str], results: Results, *, streams: bool = False) -> pl.DataFrame:
    """Send the two rows to two partitions of one stream, or to two streams, and return the results."""
    for batch in cut:
        for name in batch:
            if streams:
                harness.send(name, [row(name)])
            else:
                harness.send("rows", [row(name)], partition=name)
        harness.run_batch()
    harness.finish()
    return harness.output(results)


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("keep, last", [("first_by_time", "0"), ("last_by_time", "1")])
def test_deduplication_by_time_keeps_the_same_of_two_partitions(cut: list[str], keep: str, last: str) -> None:
    rows = source("rows")
    results = rows.key_by("k").deduplicate(within="1h", keep=keep)  # type: ignore[arg-type]  # a literal
    harness = started(results, [rows], results.duplicates.drop())
    assert ended(harness, cut, results)["id"].to_list()[-1] == last


@pytest.mark.parametrize("cut", CUTS)
def test_the_version_that_is_valid_is_that_of_the_last_partition(cut: list[str]) -> None:
    rows, asking = source("rows"), source("asking")
    results = asking.key_by("k").join_as_of(rows.key_by("k"), versions_ttl=sw.FOREVER)
    harness = started(results, [rows, asking]).send("asking", [row("asks")])
    assert ended(harness, cut, results)["id_right"].to_list() == ["1"]


@pytest.mark.parametrize("cut", CUTS)
def test_a_pattern_sees_the_rows_of_a_union_by_stream(cut: list[str]) -> None:
    streams = [source("0"), source("1")]
    results = streams[1].union(streams[0]).key_by("k").match(sw.sequence(a="id = '0'", b="id = '1'", within="1m"))
    assert ended(started(results, streams), cut, results, streams=True).height == 1


@pytest.mark.parametrize("cut", CUTS)
def test_first_and_last_of_a_union_are_by_stream(cut: list[str]) -> None:
    streams = [source("0"), source("1")]
    windowed = streams[1].union(streams[0]).key_by("k").window(sw.tumbling("1m"))
    results = windowed.aggregate(first=sw.first("id"), last=sw.last("id"))
    frame = ended(started(results, streams), cut, results, streams=True)
    assert frame.select("first", "last").rows() == [("0", "1")]


@pytest.mark.parametrize("cut", CUTS)
def test_results_of_a_step_are_tied_by_the_places_of_their_rows(cut: list[str]) -> None:
    rows = source("rows")
    unique = rows.key_by("id").deduplicate(within="1h", name="unique")
    results = unique.key_by("k").deduplicate(within="1h", keep="first_by_time", name="first")
    ends = (unique.late.drop(), unique.duplicates.drop(), results.duplicates.drop())
    assert ended(started(results, [rows], *ends), cut, results)["id"].to_list() == ["0"]


@pytest.mark.parametrize("cut", CUTS)
def test_matches_are_tied_by_the_places_of_their_last_rows(cut: list[str]) -> None:
    rows = source("rows")
    found = rows.key_by("id").match(sw.times(any="ts >= 0", n=1, within="1m"), name="found")
    results = found.select("id", k=pl.lit("x")).key_by("k").deduplicate(within="1h", keep="first_by_time", name="first")
    ends = (found.late.drop(), found.dead_letters.drop(), results.duplicates.drop())
    assert ended(started(results, [rows], *ends), cut, results)["id"].to_list() == ["0"]


LEFT = [{"k": "x", "id": "1", "ts": 100}, {"k": "x", "id": "2", "ts": 100}]
RIGHT = [{"k": "x", "id": "1", "ts": 90}, {"k": "x", "id": "2", "ts": 95}]
JOINS: dict[str, Callable[[KeyedStream, KeyedStream], Results]] = {
    "interval": lambda left, right: left.join(right, between=("-20ms", "20ms"), name="j"),
    "outer": lambda left, right: left.join(right, between=("-20ms", "20ms"), how="full", name="j"),
    "as of": lambda left, right: left.join_as_of(right, versions_ttl=sw.FOREVER, name="j"),
    "window": lambda left, right: left.window(sw.tumbling("1s")).join(right.window(sw.tumbling("1s")), name="j"),
}


@pytest.mark.parametrize("order", [[("l", 0), ("l", 1), ("r", 0), ("r", 1)], [("l", 0), ("r", 1), ("r", 0), ("l", 1)]])
@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("kind", JOINS)
def test_pairs_are_tied_by_the_places_of_their_rows(kind: str, order: list[tuple[str, int]], *, together: bool) -> None:
    left, right = (
        sw.stream(name, sw.testing.rows_source("k string, id string, ts long")).event_time("ts", out_of_orderness="1s")
        for name in "lr"
    )
    pairs = JOINS[kind](left.key_by("k"), right.key_by("k"))
    results = pairs.key_by("k").deduplicate(within="1h", keep="first_by_time", name="first")
    ends = [pairs.late.drop(), results.duplicates.drop()]
    harness = started(results, [left, right], *ends)
    for name, number in order:
        rows = {"l": LEFT, "r": RIGHT}[name]
        # The first row of a stream comes from the first of its partitions, whatever arrives first.
        harness.send(name, [rows[number]], partition=str(number))
        if not together:
            harness.run_batch()
    harness.finish()
    shown = harness.output(results).select("id", "id_right").rows()
    assert shown == [("1", "2")] if kind == "as of" else [("1", "1")]


class Both(sw.Process):
    """Emits each event, and the same again under the id of a timer at its time."""

    def on_event(self, event: dict[str, Any], ctx: sw.Context) -> Iterator[dict[str, Any]]:
        yield {"id": event["id"]}
        yield {"id": event["id"] + "'"}
        ctx.set_timer(ctx.event_time)

    def on_timer(self, when: datetime, ctx: sw.Context) -> Iterator[dict[str, Any]]:
        yield {"id": "timer"}


@pytest.mark.parametrize("order", ["arrival", "event_time"])
@pytest.mark.parametrize("cut", CUTS)
def test_results_of_a_process_are_tied_by_the_places_of_their_events(cut: list[str], order: Any) -> None:  # noqa: ANN401  a literal
    rows = source("rows")
    each = rows.key_by("id").process(Both(), output="id string", order=order, name="each")
    results = (
        each.with_columns(k=pl.lit("x"))
        .key_by("k")
        .match(sw.sequence(a="id = '0'", b="id = '0'''", c="id = '1'", within="1m", contiguity="strict"), name="m")
    )
    late = [each.late.drop()] if order == "event_time" else []
    frame = ended(started(results, [rows], each.dead_letters.drop(), *late), cut, results)
    assert frame.height == 1

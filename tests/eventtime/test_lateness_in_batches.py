"""Lateness as a running job measures it: batch by batch, against the newest row of the batches before."""

from __future__ import annotations

from dataclasses import replace

import slackwater as sw
from slackwater.eventtime.measured_lateness import LatenessSketch
from slackwater.testing import Harness

START = 1_767_225_600_000


def harness(*, clock: str = "event") -> Harness:
    rows = sw.stream("rows", sw.testing.rows_source("t long"))
    timed = rows.event_time("t", out_of_orderness="2s") if clock == "event" else rows.processing_time()
    return Harness(sw.Pipeline("p", timed.to(sw.sinks.memory()), timed.dead_letters.drop()))


def batch(rows: Harness, *seconds: int, partition: str = "0") -> LatenessSketch:
    rows.send("rows", [{"t": START + 1_000 * second} for second in seconds], partition=partition)
    rows.run_batch()
    return rows.last.lateness["rows"][partition]


def test_row_is_measured_against_the_newest_of_its_own_batch_and_of_those_before() -> None:
    rows = harness()
    assert batch(rows, 10, 7).max_ms == 3_000
    assert batch(rows, 9).max_ms == 1_000
    rows.restart()
    assert batch(rows, 4, 20).max_ms == 6_000


def test_partitions_have_their_own_newest() -> None:
    rows = harness()
    batch(rows, 100)
    assert batch(rows, 5, partition="1").max_ms == 0
    assert batch(rows, 4, partition="1").max_ms == 1_000


def test_two_chunks_of_a_partition_in_one_batch_are_one() -> None:
    rows = harness()
    rows.send("rows", [{"t": START + 9_000}])
    sketch = batch(rows, 5, 6)
    assert (sketch.count, sketch.max_ms) == (3, 4_000)


def test_stream_without_an_event_time_is_not_measured() -> None:
    rows = harness(clock="processing")
    rows.send("rows", [{"t": START}])
    rows.run_batch()
    assert rows.last.lateness == {}


def test_where_partitions_are_too_many_the_slowest_one_stands_for_all() -> None:
    rows = harness()
    batch(rows, 100)
    [stream] = rows.clock.streams.values()
    rows.clock = replace(rows.clock, streams={"rows": replace(stream, partitions={})})
    assert batch(rows, 97, partition="1").max_ms == 3_000

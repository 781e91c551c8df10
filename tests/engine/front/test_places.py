"""(time, partition, place) names one row of a stream, and ties of time are decided by it, whatever the source."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

import slackwater as sw
from slackwater.connectors.chunk import Chunk
from slackwater.connectors.dataframe.rows import frame_chunks
from slackwater.connectors.log.chunks import log_chunks
from slackwater.connectors.log.listing import ListedFile
from slackwater.connectors.source import TaskFacts
from slackwater.engine.batch_stats import BatchStats, StreamStats
from slackwater.engine.front.front import Front
from slackwater.engine.keyed.stage import Stage
from slackwater.engine.next_clock import first_clock, next_clock
from slackwater.eventtime.clock import Clock
from slackwater.operators.state.packets import Packet
from slackwater.operators.state.packing import unpack
from slackwater.operators.state.store import DictStore
from slackwater.plan.plan import Plan
from slackwater.testing import Harness
from slackwater.testing.harness import rows_source


def pipeline(source: Any, *, decode: bool = False) -> sw.Pipeline:  # noqa: ANN401  any source
    """Take the first, the last, all and the sum of each second, with every row shown at once."""
    rows = sw.stream("s", source)
    rows = (rows.decode(sw.formats.json("k long, ts long, v string, f double")) if decode else rows).event_time("ts")
    aggregates = {"first": sw.first("v"), "last": sw.last("v"), "all": sw.collect_list("v"), "sum": sw.sum("f")}
    results = rows.key_by("k").window(sw.tumbling("1s"), trigger=sw.after_count(1), name="a").aggregate(**aggregates)
    return sw.Pipeline("p", results.to(sw.sinks.memory()), results.late.drop(), rows.dead_letters.drop(), key_groups=1)


def frames_as_chunks(plan: Plan, clock: Clock, task: int, *tables: list[dict[str, Any]]) -> list[Chunk]:
    """Return what a task makes of the rows of a DataFrame."""
    [source] = plan.sources
    assert source.source.schema is not None
    batches = [pa.RecordBatch.from_pylist(rows) for rows in tables]
    facts = TaskFacts(stream=source.name, number=task, rows_before=clock.streams[source.name].rows, now_ms=clock.now)
    return list(frame_chunks(source.source.schema, facts, iter(batches)))


def test_rows_of_dataframes_have_places_of_their_own_over_tasks_and_batches() -> None:
    plan = pipeline(rows_source("k long, ts long, v string, f double")).plan()
    clock, places = replace(first_clock(plan), now_ms=0), list[int]()
    for _ in range(3):
        found = list[int]()
        for task in range(3):
            rows = [{"k": 0, "ts": 0, "v": "x", "f": 0.0}] * (2 + task)
            found += [at for chunk in frames_as_chunks(plan, clock, task, rows, rows) for at in chunk.placed()["__off"]]
        assert not places or min(found) > max(places), "behind those of the batch before"
        places += found
        stats = BatchStats(now_ms=0, streams={"s": StreamStats(rows=len(found))})
        clock = replace(next_clock(plan, clock, stats, backlog={}), now_ms=0)
        clock = Clock.from_property(Clock.from_json(clock.to_json()).to_property())
    assert len(set(places)) == len(places) == 3 * 2 * (2 + 3 + 4)


def test_row_of_a_later_batch_of_a_dataframe_is_the_last_of_its_time() -> None:
    harness = Harness(pipeline(rows_source("k long, ts long, v string, f double")))
    for rows in ([(5, "noise"), (100, "old")], [(100, "new")]):
        clock = replace(harness.clock, now_ms=0)
        chunks = frames_as_chunks(harness.plan, clock, 0, [{"k": 0, "ts": ts, "v": v, "f": 0.0} for ts, v in rows])
        batch = harness.engine.run({"s": chunks}, clock)
        harness.clock = next_clock(harness.plan, harness.clock, batch.stats, backlog={})
    assert batch.outputs["a"].select("first", "last", "all").tail(1).rows() == [
        ("noise", "new", ["noise", "old", "new"])
    ]


def results(plan: Plan, tasks: Iterator[list[Packet]] | tuple[list[Packet], ...]) -> list[Any]:
    """Return what the packets of some tasks give, in the order in which a shuffle delivers them."""
    clock = replace(first_clock(plan), now_ms=0)
    made = Stage(plan, 0).run(0, [packet for task in tasks for packet in task], DictStore(), clock)
    return [
        unpack(packet.payload or b"", "a").select("first", "last", "all", "sum").rows()
        for packet in made
        if packet.kind == "output"
    ]


def test_files_of_one_time_give_the_same_results_to_the_bit_however_they_are_shuffled(tmp_path: Path) -> None:
    source = sw.sources.log(tmp_path)
    plan = pipeline(source, decode=True).plan()
    tasks = []
    for number, name in enumerate(("part-a.jsonl", "part-b.jsonl", "1.jsonl", "01.jsonl")):
        path = tmp_path / name
        path.write_text(json.dumps({"k": 0, "ts": 100, "v": name, "f": 0.1 * (number + 1)}) + "\n")
        facts = {"path": str(path), "length": path.stat().st_size, "modified_ms": path.stat().st_mtime_ns // 1_000_000}
        file = ListedFile(partition="", number=number, listing=0, **facts)  # type: ignore[arg-type]
        line = pa.RecordBatch.from_pydict({"value": [json.dumps(vars(file))]})
        clock = replace(first_clock(plan), now_ms=0)
        front = Front(plan, plan.sources[0], clock)
        chunks = list(log_chunks(source, iter([line])))
        tasks.append([packet for chunk in chunks for packet in front.process(chunk)] + front.finish(name))
    found = [results(plan, order) for order in itertools.permutations(tasks)]
    assert all(each == found[0] for each in found)
    assert found[0][0][0][2] == ["part-a.jsonl", "part-b.jsonl", "1.jsonl", "01.jsonl"]


def test_dead_letters_are_named_by_the_offset_in_the_name_of_their_file(tmp_path: Path) -> None:
    source = sw.sources.log(tmp_path)
    plan = pipeline(source, decode=True).plan()
    front = Front(plan, plan.sources[0], replace(first_clock(plan), now_ms=0))
    frame = pl.DataFrame({"__payload": [b"no JSON"]})
    chunk = Chunk(
        frame=frame, partition="0", file="f", first_offset=7 << 32, shown_offset=40, source="f", ingestion_ms=0
    )
    packets = [*front.process(chunk), *front.finish("f")]
    [letters] = [packet for packet in packets if packet.kind == "output"]
    assert unpack(letters.payload or b"", letters.target)["offset"].to_list() == [40]

"""A dead letter of a keyed step shows the place that one of FRONT shows: the file, and the line or the offset in it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.connectors.log.chunks import log_chunks
from slackwater.connectors.log.source import LogSource
from slackwater.engine.front.front import Front
from slackwater.engine.keyed.stage import Stage
from slackwater.engine.next_clock import first_clock
from slackwater.operators.state.packing import unpack
from slackwater.operators.state.store import DictStore
from slackwater.plan.skipping import skipping
from slackwater.plan.streams import Stream
from tests.engine.log_jobs import Job, write

FIRST, SECOND = "0/00000000000000000100.jsonl", "0/00000000000000000200.jsonl"


class Fails(sw.Process):
    """Fails on events with an odd `id`."""

    def on_event(self, event: dict[str, Any], ctx: sw.Context) -> None:
        if event["id"] % 2:
            raise ValueError("odd")


def events(home: Path, name: str = "events") -> Stream:
    source = sw.sources.log(home / "log")
    return sw.stream(name, source).decode(sw.formats.json("id long")).with_columns(ts="0").event_time("ts")


def fails(stream: Stream, *, union: bool = False, home: Path | None = None) -> sw.Pipeline:
    of, ends = stream, [stream.dead_letters.to(sw.sinks.memory())]
    if union:
        assert home is not None
        other = sw.stream("b", sw.testing.rows_source("id long, ts integer")).event_time("ts")
        of, ends = stream.union(other), [*ends, other.dead_letters.drop()]
    results = of.key_by("id").process(Fails(), output="n long", name="works")
    return sw.Pipeline("p", results.to(sw.sinks.memory()), *ends, key_groups=1)


def letters(job: Job, pipeline: sw.Pipeline, *, skipped: str | None = None, forget: bool = False) -> pl.DataFrame:
    """Return the dead letters of a batch with all files of the log."""
    plan = pipeline.plan()
    if skipped is not None:
        plan = skipping(plan, [skipped])
    [source] = [each for each in plan.sources if isinstance(each.source, LogSource)]
    clock = replace(first_clock(plan), now_ms=0)
    lines = [line for share in job.offer() for line in share.read_text().splitlines()]
    batches = iter([pa.RecordBatch.from_pydict({"value": lines})])
    front = Front(plan, source, clock)
    packets = [packet for chunk in log_chunks(source.source, batches) for packet in front.process(chunk)]  # type: ignore[arg-type]  # a log
    packets += front.finish("0")
    if forget:
        job.intake._record.path.unlink()
    made = list(Stage(plan, 0, None, job.checkpoint.files).run(0, packets, DictStore(), clock))
    dead = [packet for packet in made if packet.kind == "output" and packet.target == "events.dead_letters"]
    return pl.concat([unpack(packet.payload or b"", packet.target) for packet in dead]).sort("partition", "offset")


class Refuses(sw.Accumulator):
    """A sum that cannot be shown if it is odd."""

    output: ClassVar[Any] = "long"

    def create(self) -> int:
        return 0

    def add(self, acc: int, value: int) -> int:
        return acc + value

    def merge(self, a: int, b: int) -> int:
        return a + b

    def result(self, acc: int) -> int:
        if acc % 2:
            raise ValueError("odd")
        return acc


@pytest.fixture
def job(tmp_path: Path) -> Job:
    job = Job(tmp_path)
    write(tmp_path, FIRST, text="".join(json.dumps({"id": number}) + "\n" for number in range(4)))
    write(tmp_path, SECOND, text="".join(json.dumps({"id": number}) + "\n" for number in range(4, 8)))
    job.intake.publish()
    return job


@pytest.mark.parametrize("union", [False, True])
def test_dead_letter_of_a_keyed_step_shows_the_offset_in_the_file_s_name(
    job: Job, tmp_path: Path, *, union: bool
) -> None:
    found = letters(job, fails(events(tmp_path), union=union, home=tmp_path))
    assert found.select("partition", "offset").rows() == [("0", 101), ("0", 103), ("0", 201), ("0", 203)]
    assert found["source"].to_list() == [str(tmp_path / "log" / name) for name in (FIRST, FIRST, SECOND, SECOND)]
    assert found["step"].unique().to_list() == ["works"]


def test_the_place_that_is_shown_is_the_one_to_skip(job: Job, tmp_path: Path) -> None:
    [_, _, place, _] = letters(job, fails(events(tmp_path))).select("partition", "offset").rows()
    found = letters(job, fails(events(tmp_path)), skipped=f"events/{place[0]}:{place[1]}")
    assert found.select("offset", "reason").rows() == [
        (101, "failed"),
        (103, "failed"),
        (201, "skipped"),
        (203, "failed"),
    ]
    assert found.filter(reason="skipped")["payload"].to_list() == [b'{"id": 5}']


def test_file_without_offsets_in_its_name_is_the_source_of_its_letters(tmp_path: Path) -> None:
    job = Job(tmp_path)
    for name in ("0/a.jsonl", "0/b.jsonl"):
        write(tmp_path, name, text='{"id": 0}\n{"id": 1}\n')
    job.intake.publish()
    found = letters(job, fails(events(tmp_path)))
    assert found.select("source", "offset").rows() == [
        (str(tmp_path / "log/0/a.jsonl"), 1),
        (str(tmp_path / "log/0/b.jsonl"), 1),
    ]


def test_rows_that_a_window_has_combined_have_no_file(job: Job, tmp_path: Path) -> None:
    stream = events(tmp_path)
    window = stream.key_by("id").window(sw.tumbling("1s"), trigger=sw.after_count(1), name="w")
    totals = window.aggregate(total=sw.accumulator(Refuses, "id"))
    ends = [totals.to(sw.sinks.memory()), totals.late.drop(), stream.dead_letters.to(sw.sinks.memory())]
    found = letters(job, sw.Pipeline("p", *ends, key_groups=1))
    assert found.select("source", "step", "offset").unique().sort("offset").rows() == [
        ("events", "w", 0),
        ("events", "w", 1),
    ]


def test_row_of_a_file_that_is_forgotten_keeps_its_stream_as_its_source(job: Job, tmp_path: Path) -> None:
    found = letters(job, fails(events(tmp_path)), forget=True)
    assert found["source"].unique().to_list() == ["events"]
    assert found["offset"].to_list() == [1, 3, (1 << 32) + 1, (1 << 32) + 3]

"""Measuring what logs hold: by the stream's own functions, in the order in which its writer wrote."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import polars as pl
import pytest

import slackwater as sw
from slackwater.base.errors import DefinitionError, RunError
from slackwater.connectors.chunk import Chunk
from slackwater.connectors.log.source import LogSource
from slackwater.connectors.log.writing import LogWriter
from slackwater.plan.plan import Plan
from slackwater.plan.streams import Stream
from slackwater.tools.lateness import MeasuredStream, StreamToRead, chunks_of, measure_log, measure_plan, measure_stream

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


def at(second: float) -> str:
    return (START + timedelta(seconds=second)).isoformat()


def epoch_ms(second: float) -> int:
    return int((START + timedelta(seconds=second)).timestamp() * 1_000)


def write(folder: Path, files: Sequence[Sequence[Any]], *, partition: str = "0") -> None:
    """Write one file after the other; a number is an event of that second, anything else a record as it is."""
    with LogWriter(folder, roll_after=None) as log:
        for records in files:
            for record in records:
                log.append({"id": 1, "t": at(record)} if isinstance(record, int | float) else record, partition)
            log.flush()


def plan_of(*streams: Stream) -> Plan:
    ended = [end for stream in streams for end in (stream.to(sw.sinks.memory()), stream.dead_letters.drop())]
    return sw.Pipeline("p", *ended).plan()


def decoded(folder: Path) -> Stream:
    return sw.stream("events", sw.sources.log(folder)).decode(sw.formats.json("id long, t timestamp"))


def measure(stream: Stream) -> MeasuredStream:
    [source] = plan_of(stream).sources
    return measure_stream(source, chunks_of(source).chunks)


def test_rows_are_late_by_how_far_they_lie_behind_the_newest_before_them(tmp_path: Path) -> None:
    write(tmp_path, [[0, 10, 4], [9.9, 20, 18]])
    found = measure(decoded(tmp_path).event_time("t", out_of_orderness="3s"))
    sketch = found.sketches["0"]
    assert (found.records, sketch.count, sketch.zeros, sketch.max_ms) == (6, 6, 3, 6_000)
    assert [sketch.share_later_than(ms) for ms in (99, 100, 1_999)] == [0.5, 2 / 6, 2 / 6]
    assert found.out_of_orderness_ms == 3_000
    assert (found.first_ms, found.last_ms) == (epoch_ms(0), epoch_ms(20))


def test_files_that_came_out_of_order_are_named(tmp_path: Path) -> None:
    """Days of one partition in the order in which a copy wrote them, not in the order of their events."""
    write(tmp_path, [[20, 21], [0, 1], [22, 30], [10, 11], [21.5, 31]])
    found = measure(decoded(tmp_path).event_time("t"))
    assert found.overtaken == [str(tmp_path / "0" / f"{offset:020d}.jsonl") for offset in (2, 6)]
    [stream] = measure_plan(plan_of(decoded(tmp_path).event_time("t"))).streams
    assert stream.remarks[0].startswith("2 files are out of order: all their events are older than those of a file ")
    assert f"for example {found.overtaken[0]}. A job reads files by modification time" in stream.remarks[0]


def test_files_of_one_time_are_measured_in_the_order_of_their_names(tmp_path: Path) -> None:
    for day in (10, 9, 2):
        path = tmp_path / "0" / f"day-{day}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'{{"id": 1, "t": "{at(day)}"}}\n')
        os.utime(path, (1_000, 1_000))
    found = measure(decoded(tmp_path).event_time("t"))
    assert (found.overtaken, found.sketches["0"].zeros) == ([], 3)


def test_files_in_order_are_not_remarked_on_and_neither_are_other_partitions(tmp_path: Path) -> None:
    write(tmp_path, [[20, 5], [21, 10]], partition="a")
    write(tmp_path, [[0, 1], [1, 2]], partition="b")
    assert measure(decoded(tmp_path).event_time("t")).overtaken == []


def test_each_partition_has_its_own_newest(tmp_path: Path) -> None:
    write(tmp_path, [[100, 99]], partition="a")
    write(tmp_path, [[0, 1, 2]], partition="b")
    found = measure(decoded(tmp_path).event_time("t"))
    assert {name: sketch.max_ms for name, sketch in found.sketches.items()} == {"a": 1_000, "b": 0}


def test_files_are_read_in_order_of_offset_across_a_change_of_length(tmp_path: Path) -> None:
    for offset, second in ((9, 1), (10, 2), (100, 3)):
        (tmp_path / f"{offset}.jsonl").write_text(f'{{"id": 1, "t": "{at(second)}"}}\n')
    assert measure(decoded(tmp_path).event_time("t")).sketches[""].max_ms == 0


def test_files_whose_names_are_no_offsets_are_read_in_order_of_modification(tmp_path: Path) -> None:
    for place, (name, second) in enumerate((("z", 1), ("a", 2), ("m", 3))):
        path = tmp_path / f"{name}.jsonl"
        path.write_text(f'{{"id": 1, "t": "{at(second)}"}}\n')
        os.utime(path, (1_000 + place, 1_000 + place))
    assert measure(decoded(tmp_path).event_time("t")).sketches[""].max_ms == 0


def test_records_without_a_time_are_counted_by_reason_with_an_example(tmp_path: Path) -> None:
    write(tmp_path, [[5, "{", '{"id": 1}', '{"id": "x"}', 3]])
    found = measure(decoded(tmp_path).event_time("t"))
    assert found.left_out == {"malformed": 1, "no_event_time": 1, "wrong_type": 1}
    assert set(found.examples) == set(found.left_out)
    assert "`id`" in found.examples["wrong_type"]
    assert (found.records, found.sketches["0"].count) == (5, 2)


def test_functions_before_the_time_count_and_functions_behind_it_do_not(tmp_path: Path) -> None:
    early = '{"id": 7, "t": "' + at(90) + '"}'
    write(tmp_path, [[10, early, 8]])
    timed = decoded(tmp_path).where("id < 5").event_time("t").where("id > 100").validate(never="id < 0")
    found = measure(timed)
    assert (found.filtered, found.sketches["0"].count, found.sketches["0"].max_ms) == (1, 2, 2_000)
    assert found.left_out == {}


def test_function_that_changes_the_order_does_not_change_the_order_of_arrival(tmp_path: Path) -> None:
    write(tmp_path, [[1, 2, 3, 4]])
    found = measure(decoded(tmp_path).map(lambda frame: frame.reverse()).event_time("t"))
    assert found.sketches["0"].max_ms == 0


def test_event_ahead_of_the_time_it_was_received_is_left_out(tmp_path: Path) -> None:
    write(tmp_path, [[0, 86_400 * 365 * 100, 1]])
    found = measure(decoded(tmp_path).event_time("t", max_ahead="1m"))
    assert found.left_out == {"ahead_of_clock": 1}
    assert found.sketches["0"].max_ms == 0


def test_clock_that_runs_ahead_is_seen_without_max_ahead_and_does_not_decide(tmp_path: Path) -> None:
    write(tmp_path, [[0, 1, 2]])
    write(tmp_path, [[0, 1, 86_400 * 36_525, *range(2, 400), 395]], partition="1")
    [report] = measure_plan(plan_of(decoded(tmp_path).event_time("t"))).streams
    assert report.left_out == {"ahead_of_clock": 1}
    assert report.max_ms == 4_000
    assert report.recommended.out_of_orderness_ms == 0
    assert report.last_ms == epoch_ms(399)
    [remark, *_] = report.remarks
    assert remark.startswith("A clock runs ahead: 1 event, in partition 1, was up to 36")
    assert "max_ahead" in remark
    assert not any("is far later" in words for words in report.remarks)


def test_log_that_is_ahead_as_a_whole_is_measured_as_it_is(tmp_path: Path) -> None:
    """Its files have another time than its events, as a simulation's have; no clock runs ahead of the others."""
    century = 86_400 * 36_525
    write(tmp_path, [[1, century, century + 10, century + 5]])
    found = measure(decoded(tmp_path).event_time("t"))
    assert not found.left_out
    assert found.sketches["0"].count == 4
    assert found.sketches["0"].max_ms == 5_000
    assert (found.first_ms, found.last_ms) == (epoch_ms(1), epoch_ms(century + 10))


def test_guard_of_the_pipeline_takes_the_place_of_the_reports_own(tmp_path: Path) -> None:
    write(tmp_path, [[0, 86_400 * 20_000, *range(1, 100)]])
    found = measure(decoded(tmp_path).event_time("t", max_ahead="36500d"))
    assert not found.left_out
    assert found.sketches["0"].count == 101


def test_log_whose_files_are_older_than_its_events_is_not_judged_by_max_ahead(tmp_path: Path) -> None:
    write(tmp_path, [[0, 10, 5], [20]])
    first, second = sorted((tmp_path / "0").iterdir())
    os.utime(first, (0, 0))
    os.utime(second, (epoch_ms(20) / 1_000, epoch_ms(20) / 1_000))
    words = (
        r"LATENESS_FILE_TIMES.*stream `log` has 3 of 4 events more than max_ahead \(10m\) ahead of the modification "
        r"time of their file; its files were probably copied without their .*times: .*`cp -p`.*without max_ahead"
    )
    with pytest.raises(RunError, match=words):
        measure_log(tmp_path, time="t", max_ahead="10m")
    [report] = measure_log(tmp_path, time="t").streams
    assert report.recommended.out_of_orderness_ms == 5_000


def test_stream_whose_files_are_older_than_its_events_is_left_out_of_the_report(tmp_path: Path) -> None:
    write(tmp_path / "copied", [[0, 10, 5]])
    write(tmp_path / "good", [[0, 10, 5]])
    for file in (tmp_path / "copied" / "0").iterdir():
        os.utime(file, (0, 0))
    copied = sw.stream("copied", sw.sources.log(tmp_path / "copied")).decode(sw.formats.json("t timestamp"))
    plan = plan_of(copied.event_time("t", max_ahead="1m"), decoded(tmp_path / "good").event_time("t"))
    report = measure_plan(plan)
    assert [stream.name for stream in report.streams] == ["events"]
    assert "copied without their modification times" in report.unmeasured["copied"]


class Stamped(LogSource):
    """A log in a folder whose records keep the time they were received at."""

    arrives_in_files = False


def test_source_says_itself_whether_its_times_of_receipt_are_those_of_files(tmp_path: Path) -> None:
    write(tmp_path, [[0, 10, 5]])
    for file in (tmp_path / "0").iterdir():
        os.utime(file, (0, 0))
    log = sw.sources.log(tmp_path)
    for source, is_doubted in ((log, True), (Stamped(**vars(log)), False)):
        stream = sw.stream("s", source).decode(sw.formats.json("t timestamp")).event_time("t", max_ahead="1m")
        assert bool(measure(stream).doubtful) is is_doubted


def test_chunks_of_several_partitions_may_alternate(tmp_path: Path) -> None:
    write(tmp_path, [[1]])
    [source] = plan_of(decoded(tmp_path).event_time("t")).sources

    def chunk(partition: str, offset: int, second: int) -> Chunk:
        payload = f'{{"id": 1, "t": "{at(second)}"}}'.encode()
        received = pl.Series([10**13])
        return Chunk(
            frame=pl.DataFrame({"__payload": [payload]}),
            partition=partition,
            file=partition,
            first_offset=offset,
            source=partition,
            ingestion_ms=received if offset else 10**13,
        )

    found = measure_stream(source, [chunk("a", 0, 100), chunk("b", 0, 5), chunk("a", 1, 97), chunk("b", 1, 6)])
    assert {name: sketch.max_ms for name, sketch in found.sketches.items()} == {"a": 3_000, "b": 0}


@pytest.mark.parametrize("limit, seconds", [(1, [6]), (2, [5, 6]), (3, [4, 5, 6]), (4, [3, 4, 5, 6]), (99, range(7))])
@pytest.mark.parametrize("kind", ["json", "parquet"])
def test_limit_reads_the_newest_records(
    limit: int, seconds: Iterable[int], kind: Literal["json", "parquet"], tmp_path: Path
) -> None:
    files = [[0, 1], [2, 3, 4], [5, 6]]
    with LogWriter(tmp_path, format=kind, roll_after=None) as log:
        for records in files:
            log.append_frame(pl.DataFrame({"t": [START + timedelta(seconds=second) for second in records]}))
            log.flush()
    [stream] = measure_log(tmp_path, time="t", limit=limit).streams
    assert (stream.records, stream.first_ms) == (len(list(seconds)), epoch_ms(min(seconds)))


def test_limit_is_shared_by_the_partitions(tmp_path: Path) -> None:
    for partition in "ab":
        write(tmp_path, [range(10)], partition=partition)
    [stream] = measure_log(tmp_path, time="t", limit=6).streams
    assert {part.name: part.events for part in stream.partitions} == {"a": 3, "b": 3}


def test_only_streams_of_logs_with_an_event_time_are_measured(tmp_path: Path) -> None:
    write(tmp_path, [[1, 2]])
    streams = [
        decoded(tmp_path).event_time("t"),
        sw.stream("by_hand", sw.testing.rows_source("t timestamp")).event_time("t"),
        sw.stream("untimed", sw.sources.log(tmp_path)).decode(sw.formats.json("id long")),
        sw.stream("ticking", sw.sources.log(tmp_path)).decode(sw.formats.json("id long")).processing_time(),
    ]
    report = measure_plan(plan_of(*streams))
    assert [stream.name for stream in report.streams] == ["events"]
    assert report.unmeasured == {
        "by_hand": "is read from rows of a test, which cannot be measured",
        "untimed": "has no time",
        "ticking": "uses processing time, in which nothing is out of order",
    }


def test_watch_sees_every_chunk(tmp_path: Path) -> None:
    write(tmp_path, [[1], [2, 3]])
    seen: list[int] = []

    def watch(reading: StreamToRead) -> Iterable[Chunk]:
        assert (reading.stream, reading.files) == ("events", 2)
        for chunk in reading.chunks:
            seen.append(chunk.frame.height)
            yield chunk

    measure_plan(plan_of(decoded(tmp_path).event_time("t")), watch=watch)
    assert seen == [1, 2]


def test_source_that_cannot_be_read_here_is_a_mistake_of_the_caller() -> None:
    [source] = plan_of(sw.stream("s", sw.testing.rows_source("t timestamp")).event_time("t")).sources
    with pytest.raises(TypeError, match="rows of a test cannot be read without Spark"):
        chunks_of(source)


def test_parquet_log_is_measured_by_its_declared_columns(tmp_path: Path) -> None:
    times = [START + timedelta(seconds=second) for second in (5, 2)]
    with LogWriter(tmp_path, format="parquet") as log:
        log.append_frame(pl.DataFrame({"t": times, "other": [1, 2]}))
        log.flush()
        log.append_frame(pl.DataFrame({"other": [3]}))
    source = sw.sources.log(tmp_path, format="parquet", schema="t timestamp, missing string")
    found = measure(sw.stream("events", source).event_time("t"))
    assert found.sketches["0"].max_ms == 3_000
    assert found.left_out == {"no_event_time": 1}


def test_parquet_file_that_does_not_fit_its_schema_is_named(tmp_path: Path) -> None:
    with LogWriter(tmp_path, format="parquet") as log:
        log.append_frame(pl.DataFrame({"t": ["noon"]}))
    source = sw.sources.log(tmp_path, format="parquet", schema="t long")
    with pytest.raises(RunError, match=r"\[SOURCE_COLUMN_TYPE\].*`t` of .*00000000000000000000\.parquet is String"):
        measure(sw.stream("events", source).event_time("t"))


@pytest.mark.parametrize(
    "values, time",
    [
        ([at(5), at(2)], "t"),
        ([1_767_225_605_000, 1_767_225_602_000], "t"),
        ([1_767_225_605, 1_767_225_602], "t * 1000"),
    ],
)
def test_type_of_the_time_is_seen_from_the_log(values: list[object], time: str, tmp_path: Path) -> None:
    write(tmp_path, [["no JSON", "[1]", '{"t": null}', *({"t": value} for value in values)]])
    [stream] = measure_log(tmp_path, time=time).streams
    assert (stream.events, stream.max_ms, stream.configured) == (2, 3_000, None)
    assert stream.left_out == {"malformed": 1, "no_event_time": 1, "not_an_object": 1}


def test_parquet_log_without_a_schema_is_read_as_it_is(tmp_path: Path) -> None:
    frame = pl.DataFrame({"t": [5_000, 2_000], "took": [timedelta(1), timedelta(2)]})  # no type that Spark has
    with LogWriter(tmp_path, format="parquet") as log:
        log.append_frame(frame)
    assert measure_log(tmp_path, time="t").streams[0].max_ms == 3_000


def test_column_that_a_parquet_log_lacks_is_refused_with_those_it_has(tmp_path: Path) -> None:
    with LogWriter(tmp_path, format="parquet") as log:
        log.append_frame(pl.DataFrame({"placed_at": [5_000]}))
    with pytest.raises(DefinitionError, match=r"\[UNKNOWN_COLUMN\].*did you mean `placed_at`"):
        measure_log(tmp_path, time="placed")


def test_column_that_no_record_has_is_reported_with_those_there_are(tmp_path: Path) -> None:
    write(tmp_path, [[1, 2]])
    words = r"\[LATENESS_TIME_UNKNOWN\].*first 2 records of .* value for `when`, they have id, t; .*'when timestamp'"
    with pytest.raises(RunError, match=words):
        measure_log(tmp_path, time="when")


def test_time_that_is_no_time_is_refused(tmp_path: Path) -> None:
    write(tmp_path, [['{"t": 1.5}']])
    with pytest.raises(DefinitionError, match=r"\[EVENT_TIME_TYPE\]"):
        measure_log(tmp_path, time="t")


def test_file_that_is_no_parquet_is_named(tmp_path: Path) -> None:
    (tmp_path / "0.parquet").write_text("hello")
    with pytest.raises(RunError, match=r"\[LOG_FILE_UNREADABLE\].*0\.parquet"):
        measure_log(tmp_path, time="t")


def test_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"\[LOG_FOLDER_MISSING\].*nowhere"):
        measure_log(tmp_path / "nowhere", time="t")
    with pytest.raises(RunError, match=r"\[LOG_FOLDER_MISSING\].*nowhere"):
        measure(decoded(tmp_path / "nowhere").event_time("t"))


def test_folder_without_files_has_no_events(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"\[LATENESS_NO_EVENTS\].*holds no file"):
        measure_log(tmp_path, time="t")
    [source] = plan_of(decoded(tmp_path).event_time("t")).sources
    assert measure_stream(source, []).records == 0


def test_a_stream_whose_time_is_looked_up_is_not_measured(tmp_path: Path) -> None:
    async def fetch(key: int) -> dict[str, object]:
        raise AssertionError(key)

    write(tmp_path, [[0, 1]])
    timed = decoded(tmp_path).lookup(sw.lookups.function(fetch), key="id", output="placed timestamp")
    with pytest.raises(RunError, match=r"ENRICHED_BEFORE_TIME.*`events.lookup` before the event time"):
        measure(timed.event_time("placed"))
    table = tmp_path.with_suffix(".parquet")
    pl.DataFrame({"id": [1], "placed": [START]}).write_parquet(table)
    with pytest.raises(RunError, match=r"ENRICHED_BEFORE_TIME.*`events.join_table` before the event time"):
        measure(decoded(tmp_path).join_table(sw.table(table), on="id").event_time("placed"))

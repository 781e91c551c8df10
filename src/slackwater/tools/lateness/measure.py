"""Measuring the content of a source: its records go through the stream's own row functions, up to its event time.

A measurement is a function of a stream and its chunks: `measure_stream(source, chunks)`. The source provides the
chunks (`Source.held`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from slackwater.base.durations import render_ms
from slackwater.base.errors import counted, fault
from slackwater.base.times import MAX_MS, MIN_MS
from slackwater.connectors.chunk import Chunk
from slackwater.engine.front.rows import RowFunctions
from slackwater.engine.row_context import RowContext
from slackwater.plan.plan import Plan, RowNode, SourcePlan
from slackwater.plan.row_functions import TakeTime
from slackwater.tools.lateness.report import DEFAULT_TARGET, LatenessReport, MeasuredStream, check_target, make_report
from slackwater.tools.lateness.times import StreamTimes


@dataclass(frozen=True, kw_only=True)
class StreamToRead:
    """A stream about to be read."""

    stream: str
    chunks: Iterator[Chunk]
    """Within a partition, chunks are in order of arrival; chunks of several partitions may alternate."""
    files: int = 0
    """The number of files that hold the chunks, where known."""


Watch = Callable[[StreamToRead], Iterable[Chunk]]
"""Passes on a reading's chunks one by one, and may report progress."""


def measure_plan(
    plan: Plan, *, target: float = DEFAULT_TARGET, limit: int | None = None, watch: Watch | None = None
) -> LatenessReport:
    """Measure the current content of a plan's sources, and report on it.

    `limit` is the number of records to read from each stream: the newest of every partition, in equal shares.
    """
    check_target(target)
    measurable = [source for source in plan.sources if not _unmeasurable(source)]
    unmeasured = {source.name: why for source in plan.sources if (why := _unmeasurable(source))}
    measured = [measure_source(source, limit=limit, watch=watch) for source in measurable]
    return make_report(measured, target=target, unmeasured=unmeasured)


def measure_source(source: SourcePlan, *, limit: int | None = None, watch: Watch | None = None) -> MeasuredStream:
    """Measure the current content of one source."""
    reading = chunks_of(source, limit=limit)
    return measure_stream(source, reading.chunks if watch is None else watch(reading))


def measure_stream(source: SourcePlan, chunks: Iterable[Chunk]) -> MeasuredStream:
    """Measure the lateness of every record in `chunks` that has a usable time, and count the others.

    `max_ahead` is compared with the time at which the log received a record, as in a live job. A stream without
    `max_ahead` is guarded too: one clock that runs ahead would make all other events look late.
    """
    path = _until_time(source.rows)
    assert path is not None, f"stream {source.name} has no time"
    assert source.time is not None
    functions = RowFunctions(path, source.source)
    measured = MeasuredStream(name=source.name, out_of_orderness_ms=source.time.out_of_orderness_ms)
    times = StreamTimes(guarded=source.time.max_ahead_ms is None)
    spans: dict[str, dict[str, tuple[int, int]]] = {}
    for chunk in chunks:
        context = RowContext(source=chunk.source, partition=chunk.partition, now_ms=_received_ms(chunk))
        timed: list[pl.DataFrame] = []
        functions.run(chunk.placed(), context, lambda _, rows, __, timed=timed: timed.append(rows))  # type: ignore[misc]  # bound as a default
        measured.records += chunk.frame.height
        _note_losses(measured, context)
        for rows in timed:
            times.note(rows, chunk.partition)
            _note_span(spans.setdefault(chunk.partition, {}), chunk.file, rows["__ts"])
    times.tell(measured)
    if source.time.max_ahead_ms is not None and source.source.arrives_in_files:
        measured.doubtful = _doubts(measured, source.time.max_ahead_ms)
    for files in spans.values():
        measured.overtaken += _overtaken(files)
    return measured


def chunks_of(source: SourcePlan, *, limit: int | None = None) -> StreamToRead:
    """Return a reading of the current content of a source."""
    if (folder := source.source.folder) is not None and not Path(folder).is_dir():
        raise fault("LOG_FOLDER_MISSING", path=folder, stream=source.name)
    held = source.source.held(limit=limit)
    return StreamToRead(stream=source.name, chunks=held.chunks, files=held.files)


def _unmeasurable(source: SourcePlan) -> str:
    """Return why a stream cannot be measured; empty if it can."""
    if source.time is None:
        return "has no time"
    if source.time.clock != "event":
        return f"uses {source.time.clock} time, in which nothing is out of order"
    if not source.source.is_measurable:
        return f"is read from {source.source}, which cannot be measured"
    return ""


def _until_time(node: RowNode) -> RowNode | None:
    """Return the path from `node` to the step that takes the event time, without other branches."""
    if isinstance(node.op, TakeTime):
        return replace(node, children=(), feeds=(), outputs=("times",))
    for child in node.children:
        below = _until_time(child)
        if below is not None:
            return replace(node, children=(below,), feeds=(), outputs=())
    return None


def _received_ms(chunk: Chunk) -> int:
    """Return when the last record of a chunk was received."""
    received = chunk.ingestion_ms
    return int(received.max()) if isinstance(received, pl.Series) else received  # type: ignore[arg-type]  # integers, which Polars does not narrow


def _note_losses(measured: MeasuredStream, context: RowContext) -> None:
    measured.filtered += context.filtered
    for dead in context.dead:
        for reason, number in dead["reason"].value_counts().iter_rows():
            measured.left_out[reason] += number
        for reason, message in dead.unique("reason", keep="first").select("reason", "message").iter_rows():
            measured.examples.setdefault(reason, message)


def _doubts(measured: MeasuredStream, max_ahead_ms: int) -> str:
    """Return why the modification times of a log's files are doubtful: more events are ahead of them than not."""
    ahead, in_time = measured.left_out["ahead_of_clock"], sum(sketch.count for sketch in measured.sketches.values())
    if ahead <= in_time:
        return ""
    return (
        f"has {ahead:,} of {counted(ahead + in_time, 'event')} more than max_ahead ({render_ms(max_ahead_ms)}) ahead "
        "of the modification time of their file"
    )


def _note_span(spans: dict[str, tuple[int, int]], file: str, times: pl.Series) -> None:
    """Extend the known range of times in a file."""
    if len(times):
        first, last = spans.get(file, (MAX_MS, MIN_MS))
        spans[file] = min(first, int(times.min())), max(last, int(times.max()))  # type: ignore[arg-type]  # integers, which Polars does not narrow


def _overtaken(spans: Mapping[str, tuple[int, int]]) -> Iterator[str]:
    """Yield the files of one partition, in reading order, whose events are all older than an earlier file's."""
    begun = MIN_MS
    for file, (first, last) in spans.items():
        if last < begun:
            yield file
        begun = max(begun, first)

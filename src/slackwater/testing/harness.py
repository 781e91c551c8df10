"""The test harness: runs a pipeline in memory, under the control of a test."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import polars as pl

from slackwater.base.durations import Duration, duration_ms
from slackwater.base.errors import counted, fault, listed, near_miss, refuse
from slackwater.base.html import facts_table
from slackwater.base.times import EPOCH
from slackwater.connectors.chunk import Chunk
from slackwater.connectors.intake import Intake, StreamPlace
from slackwater.connectors.source import Source
from slackwater.engine.batch_stats import BatchStats
from slackwater.engine.enrichment.table_versions import TableUnavailable, due_tables, with_tables
from slackwater.engine.memory import MemoryEngine
from slackwater.engine.next_clock import final_clock, first_clock, next_clock
from slackwater.formats.dead_letter_columns import HEADERS
from slackwater.formats.schemas import SchemaSpec, as_schema
from slackwater.observe.state_reading.groups import MemoryGroups, StoredStep
from slackwater.observe.state_reading.keys import key_given
from slackwater.observe.state_reading.rows import all_rows, rows_of_key
from slackwater.pipeline import Pipeline
from slackwater.plan.streams import Output, Step, Stream
from slackwater.testing.typed_rows import typed_frame

Row = Mapping[str, Any] | str | bytes


@dataclass(frozen=True, kw_only=True, eq=False)
class RowsSource(Source):
    """A typed source for tests; it cannot run on Spark."""

    read_limit = "rows"

    typed: pl.Schema

    @property
    def schema(self) -> pl.Schema:
        """The declared columns."""
        return self.typed

    def intake(self, place: StreamPlace) -> Intake:
        """Raise an error: this source cannot run on Spark."""
        raise fault("TEST_SOURCE_ON_SPARK", stream=place.stream)

    def __str__(self) -> str:
        return "rows of a test"


def rows_source(schema: SchemaSpec) -> RowsSource:
    """Return a source of typed rows for tests: `rows_source("user string, ts long")`."""
    return RowsSource(typed=as_schema(schema))


class Harness:
    """Runs a pipeline in memory: send rows, run batches, advance the clocks, restart, read every output.

    Nothing advances on its own: processing time starts at the epoch, or at `now`, and the watermark advances only with
    the rows of a batch or by `advance_watermark`.
    """

    def __init__(self, pipeline: Pipeline, *, now: datetime | int = 0) -> None:
        if not isinstance(pipeline, Pipeline):
            raise refuse("NOT_A_PIPELINE", got=repr(pipeline))
        self.pipeline = pipeline
        self.plan = pipeline.plan()
        self.engine = MemoryEngine(plan=self.plan)
        self.clock = first_clock(self.plan)
        self.now_ms = _milliseconds(now, "`now`")
        self.last = BatchStats()
        self._is_finished = False
        self._is_starting = True
        self._sent: dict[str, list[Chunk]] = {}
        self._offsets: dict[tuple[str, str], int] = {}
        self._outputs = {output.name: [pl.DataFrame(schema=output.schema)] for output in self.plan.outputs}

    def send(self, stream: str, rows: Iterable[Row] | pl.DataFrame, *, partition: str = "0") -> Harness:
        """Send rows to a source stream, for the next batch.

        Rows are dictionaries or a frame, with values of the declared types: only whole numbers become floats. For a
        stream of bytes, rows may also be `str` or `bytes` as a producer would write them.
        """
        names = [source.name for source in self.plan.sources]
        if stream not in names:
            raise refuse(
                "STREAM_UNKNOWN",
                name=stream,
                known=_named(names),
                hint=near_miss(str(stream), names),
            )
        if self._is_finished:
            raise refuse("TEST_FINISHED", stream=stream)
        [source] = [source.source for source in self.plan.sources if source.name == stream]
        frame = _payloads(rows, stream) if source.schema is None else _typed(rows, source.schema, stream)
        first = self._offsets.get((stream, partition), 0)
        self._offsets[stream, partition] = first + frame.height
        self._sent.setdefault(stream, []).append(
            Chunk(
                frame=frame,
                partition=partition,
                file=f"{partition}/{first}",
                first_offset=first,
                source=stream,
                ingestion_ms=self.now_ms,
            )
        )
        return self

    def run_batch(self) -> dict[str, pl.DataFrame]:
        """Run one micro-batch over the pending rows; return its output rows by output name."""
        self._read_tables()
        batch = self.engine.run(self._sent, replace(self.clock, now_ms=self.now_ms))
        self._sent = {}
        self.last = batch.stats
        self.clock = next_clock(self.plan, self.clock, batch.stats, backlog={})
        for name, rows in batch.outputs.items():
            self._outputs[name].append(rows)
        return batch.outputs

    def _read_tables(self) -> None:
        """Complete the batch's clock with the tables that are due, as the driver does; a replay reads nothing."""
        clock = replace(self.clock, now_ms=self.now_ms)
        due = due_tables(self.plan, clock, all_of_them=self._is_starting)
        try:
            self.clock = replace(with_tables(self.plan, clock, self.engine.snapshots, due), now_ms=None)
        except TableUnavailable as failure:
            raise fault("TABLE_UNREADABLE", **failure.facts) from failure
        self._is_starting = False

    def advance_watermark(self, to: datetime | int, *, stream: str | None = None) -> dict[str, pl.DataFrame]:
        """Advance the watermark (of one stream, or all) to `to` and run a batch, so that windows fire.

        Pending rows are in that batch, under the new watermark: call run_batch() first if they should be on time.
        """
        target = _milliseconds(to, "`to`")
        if stream is not None and stream not in self.clock.streams:
            names = list(self.clock.streams)
            raise refuse("TEST_WATERMARK_STREAM", name=stream, known=_named(names), hint=near_miss(str(stream), names))
        streams = {
            name: replace(time, watermark_ms=max(time.watermark_ms, target)) if stream in (None, name) else time
            for name, time in self.clock.streams.items()
        }
        self.clock = replace(self.clock, streams=streams)
        return self.run_batch()

    def advance_processing_time(self, by: Duration) -> dict[str, pl.DataFrame]:
        """Advance processing time and run a batch."""
        self.now_ms += duration_ms(by, what="`by`", least_ms=0)
        return self.run_batch()

    def finish(self) -> dict[str, pl.DataFrame]:
        """End the input as a bounded run does: a batch for the pending rows, then one with the final watermark.

        No more rows can be sent.
        """
        first = self.run_batch()
        self._is_finished = True
        self.clock = final_clock(self.clock)
        last = self.run_batch()
        return {name: pl.concat([first[name], last[name]]) for name in first}

    def restart(self) -> Harness:
        """Stop and recover: only the clock, the packed state, lookup answers and table versions survive."""
        state = {place: dict(blobs) for place, blobs in self.engine.state.items()}
        answers, snapshots = self.engine.answers, self.engine.snapshots
        self.plan = self.pipeline.plan()
        self.engine = MemoryEngine(plan=self.plan, state=state, answers=answers, snapshots=snapshots)
        self._is_starting = True
        self.clock = type(self.clock).from_json(self.clock.to_json())
        return self

    def output(self, of: str | Stream | Output) -> pl.DataFrame:
        """Return all rows so far of an output, given by name or as `results`, `results.late`, `stream.dead_letters`."""
        name = of if isinstance(of, str) else _output_name(of)
        if name not in self._outputs:
            known = listed(self._outputs, near=name)
            raise refuse("OUTPUT_UNKNOWN", name=name, hint=near_miss(name, self._outputs), known=known)
        return pl.concat(self._outputs[name])

    def state(self, of: str | Stream, key: str | None = None) -> pl.DataFrame:
        """Return the state of a keyed step, given by name or by its results, as `slackwater state` shows it.

        With `key`, as text such as "ada" or "user=ada,shop=3", return only the state of that key.
        """
        name = of if isinstance(of, str) else of.name
        if name not in self.plan.by_name:
            known = listed(self.plan.by_name, near=name)
            raise refuse("STEP_UNKNOWN", name=name, hint=near_miss(name, self.plan.by_name), known=known)
        planned = self.plan.by_name[name]
        step = StoredStep(name=name, stage=planned.stage, spec=planned.spec)
        groups = MemoryGroups(self.engine.state)
        if key is None:
            return all_rows(groups, step)
        keys = {name: key_given(key, planned.spec)}
        return rows_of_key(groups, [step], keys, self.plan.key_groups).get(name, all_rows(MemoryGroups({}), step))

    @property
    def watermark(self) -> dict[str, int]:
        """The watermark of each source stream, in epoch milliseconds."""
        return {name: time.watermark_ms for name, time in self.clock.streams.items()}

    @property
    def pieces(self) -> int:
        """The number of pieces of state, across all steps and key groups."""
        return sum(name != "index" for blobs in self.engine.state.values() for name in blobs)


@dataclass(frozen=True, kw_only=True, repr=False)
class Outcome:
    """The outputs of a complete run in memory."""

    harness: Harness

    def __repr__(self) -> str:
        rows = [f"{name} {counted(each, 'row')}" for name, each in self._rows.items()]
        return f"<Outcome {self.harness.pipeline.name}: {', '.join(rows)}>"

    def _repr_html_(self) -> str:
        """Return the number of rows of each output, for display in a notebook."""
        rows = {name: counted(each, "row") for name, each in self._rows.items()}
        return facts_table(f"Outcome of {self.harness.pipeline.name}", rows)

    @property
    def _rows(self) -> dict[str, int]:
        return {output.name: self.harness.output(output.name).height for output in self.harness.plan.outputs}

    def __getitem__(self, of: str | Stream | Output) -> pl.DataFrame:
        """Return all rows of an output."""
        return self.harness.output(of)


def run(pipeline: Pipeline, inputs: Mapping[str, Iterable[Row] | pl.DataFrame], *, now: datetime | int = 0) -> Outcome:
    """Run `pipeline` in memory to the end of `inputs`: `run(pipeline, {"orders": [...]})[results]`."""
    harness = Harness(pipeline, now=now)
    if not isinstance(inputs, Mapping):
        raise refuse("TEST_INPUTS", got=f"{inputs!r:.80}")
    for stream, rows in inputs.items():
        harness.send(stream, rows)
    harness.finish()
    return Outcome(harness=harness)


def _named(streams: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in streams)


def _output_name(of: Stream | Output) -> str:
    if isinstance(of, Stream):
        return of.name if isinstance(of.origin, Step) and not of.ops else f"{of.name}.rows"
    return of.name


def _payloads(rows: Iterable[Row] | pl.DataFrame, stream: str) -> pl.DataFrame:
    if isinstance(rows, pl.DataFrame):
        rows = rows.to_dicts()
    encoded = []
    for row in _listed(rows, stream, (Mapping, str, bytes), "dictionaries, str or bytes"):
        if isinstance(row, Mapping):
            row = json.dumps(row, default=_jsonable)  # noqa: PLW2901  the row as its producer would write it
        encoded.append(row.encode() if isinstance(row, str) else row)
    schema = {"__payload": pl.Binary(), "__key": pl.Binary(), "__headers": HEADERS}
    return pl.DataFrame({"__payload": encoded, "__key": None, "__headers": None}, schema=schema)


def _typed(rows: Iterable[Row] | pl.DataFrame, schema: pl.Schema, stream: str) -> pl.DataFrame:
    given = rows if isinstance(rows, pl.DataFrame) else _listed(rows, stream, (Mapping,), "dictionaries")
    return typed_frame(given, schema, stream)


def _listed(rows: object, stream: str, kinds: tuple[type, ...], takes: str) -> list[Any]:
    listed = [rows] if isinstance(rows, str | bytes | Mapping) or not isinstance(rows, Iterable) else list(rows)
    for row in listed:
        if row is rows or not isinstance(row, kinds):
            raise refuse("TEST_ROWS", stream=stream, takes=takes, got=f"{row!r:.80}")
    return listed


def _jsonable(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value)


def _milliseconds(moment: datetime | int, what: str) -> int:
    if isinstance(moment, int) and not isinstance(moment, bool):
        return moment
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        raise refuse("TEST_TIME", what=what, got=repr(moment))
    return round((moment - EPOCH).total_seconds() * 1000)

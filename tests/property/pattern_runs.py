"""Patterns run in memory: any batches, files, restarts and late rows, with what the slow matcher says of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

import polars as pl

import slackwater as sw
from slackwater.base.times import EPOCH, MIN_MS
from slackwater.operators.patterns.definitions import Pattern
from slackwater.plan.streams import Output, Results, Stream
from slackwater.testing import Harness, rows_source
from tests.property.pattern_model import Row, Sought, Taken

OUT_OF_ORDERNESS_MS: Final = 3
Ids = tuple[tuple[str, tuple[int, ...]], ...]
"""A match: the ids of the rows of each step."""


@dataclass(frozen=True)
class Batch:
    """Rows that come together; whether the job restarted before."""

    rows: tuple[Row, ...]
    restart: bool = False


def defined(wanted: Sought) -> Pattern:
    """Return a pattern as users write it."""
    within = f"{wanted.within_ms}ms"
    if wanted.is_absence:
        return sw.absent(after=wanted.steps[0].sql, expect=wanted.steps[1].sql, within=within)
    steps: dict[str, Any] = {}
    for step in wanted.steps:
        is_once = step.least == 1 and step.most == 1
        at_least, at_most = (None, None) if is_once else (step.least, step.most)
        steps[step.name] = sw.step(step.sql, at_least=at_least, at_most=at_most, optional=step.is_optional)
    return sw.sequence(
        steps,
        within=within,
        contiguity="strict" if wanted.is_strict else "relaxed",
        skip="past_last" if wanted.is_past_last else "next_row",
    )


def pipeline_of(wanted: Sought, *, key_groups: int = 2) -> tuple[sw.Pipeline, Stream, Results]:
    """Return the pipeline that looks for a pattern, its stream and its results."""
    source = rows_source("key string, ts long, v long, w long, id long")
    events = sw.stream("events", source).event_time("ts", out_of_orderness=f"{OUT_OF_ORDERNESS_MS}ms")
    results = events.key_by("key").match(defined(wanted))
    ended: list[Stream | Output] = [results, results.late, events.dead_letters]
    return sw.Pipeline("p", *(out.to(sw.sinks.memory()) for out in ended), key_groups=key_groups), events, results


def send(harness: Harness, batch: Batch) -> None:
    """Put a batch's rows into the log."""
    for partition in ("0", "1"):
        mine = [vars(row) for row in batch.rows if row.partition == partition]
        if mine:
            harness.send("events", mine, partition=partition)


@dataclass
class Run:
    """What came out, batch by batch, and what the slow matcher says."""

    shown: list[tuple[Ids, int, int]] = field(default_factory=list)
    """Matches with their event time and the watermark of the batch before."""
    accepted: list[Row] = field(default_factory=list)
    late: list[int] = field(default_factory=list)
    judged_late: list[int] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    delay_ms: int = 0
    pieces_left: int = 0


def run(wanted: Sought, stream: list[Batch]) -> Run:
    """Run a pattern over a stream."""
    pipeline, _, results = pipeline_of(wanted)
    harness, done = Harness(pipeline), Run()
    before = MIN_MS
    for batch in stream:
        if batch.restart:
            harness.restart()
        watermark = harness.watermark["events"]
        done.accepted += [row for row in batch.rows if row.ts >= watermark]
        done.judged_late += [row.id for row in batch.rows if row.ts < watermark]
        send(harness, batch)
        _note(done, wanted, harness.run_batch()[results.name], before)
        done.counts.update(harness.last.counts.get(results.name, {}))
        before = watermark
    _note(done, wanted, harness.finish()[results.name], before)
    done.late = harness.output(results.late)["id"].to_list()
    done.delay_ms = harness.plan.by_name[results.name].spec.emission_delay_ms
    done.pieces_left = sum(map(len, harness.engine.state.values()))
    return done


def _note(done: Run, wanted: Sought, rows: pl.DataFrame, before_ms: int) -> None:
    for row in rows.iter_rows(named=True):
        at = round((row["event_time"] - EPOCH).total_seconds() * 1000)
        done.shown.append((_ids(wanted, row), at, before_ms))


def _ids(wanted: Sought, row: dict[str, Any]) -> Ids:
    found = []
    for step in wanted.steps[: 1 if wanted.is_absence else None]:
        ids = row[f"{step.name}_id"]
        found.append((step.name, tuple(ids) if isinstance(ids, list) else () if ids is None else (ids,)))
    return tuple(found)


def ids_of(wanted: Sought, match: Taken) -> Ids:
    """Return a match of the slow matcher in the same form."""
    steps = wanted.steps[: 1 if wanted.is_absence else None]
    return tuple((step.name, tuple(row.id for at, row in match if at == number)) for number, step in enumerate(steps))

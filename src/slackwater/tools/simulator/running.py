"""Running a simulation: the in-memory engine processes events, batch by batch, as they arrive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import polars as pl

import slackwater as sw
from slackwater.base.durations import render_ms
from slackwater.eventtime.measured_lateness import LatenessSketch
from slackwater.observe.metrics.job_facts import Facts, job_facts, lateness_facts
from slackwater.observe.metrics.record import BatchRecord
from slackwater.observe.metrics.recording import Circumstances, record_of
from slackwater.observe.metrics.report import BatchReport
from slackwater.operators.windows.triggers import Trigger
from slackwater.testing.harness import Harness, RowsSource
from slackwater.tools.simulator.account import SimulationAccount
from slackwater.tools.simulator.events import SCHEMA, START_MS, made_events
from slackwater.tools.simulator.settings import OWN, Limits, Settings, check_limits
from slackwater.windows import Window

STREAM: Final = "events"
STEP: Final = "per_window"


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """The result of a simulation."""

    settings: Settings
    account: SimulationAccount
    records: list[BatchRecord]
    """The record of each batch, as a job would write it."""
    job: Facts
    """The description of the pipeline for the page."""
    lateness: Facts


def simulate(settings: Settings, *, limits: Limits = OWN) -> Simulation:
    """Run the engine on the events of `settings` for their duration; events that have not arrived are counted, too."""
    check_limits(settings, limits)
    harness = Harness(pipeline_of(settings), now=START_MS)
    totals: Counter[str] = Counter()
    panes: list[pl.DataFrame] = []
    records: list[BatchRecord] = []
    lateness: dict[str, dict[str, LatenessSketch]] = {}
    for chunks in arriving(settings):
        harness.now_ms += settings.batch_every_ms
        for rows in chunks:
            harness.send(STREAM, rows.select(SCHEMA.names()), partition=rows["partition"][0])
        clock = harness.clock
        out = harness.run_batch()
        panes.append(out[STEP].with_columns(pl.lit(harness.now_ms).alias("shown")))
        report = BatchReport(
            batch=clock.batch,
            seconds=settings.batch_every_ms / 1_000,
            stats=harness.last,
            clock=clock,
            next_clock=harness.clock,
            rows_out={name: rows.height for name, rows in out.items()},
        )
        records.append(_recorded(harness, report))
        totals.update(harness.last.counts.get(STEP, {}))
        harness.last.move_lateness(lateness)
    account = SimulationAccount.of(
        settings.events, totals, records, panes=pl.concat(panes), state=harness.state(STEP), now_ms=harness.now_ms
    )
    job = {**job_facts(harness.plan), "state": "simulated", "starts": 1}
    return Simulation(settings=settings, account=account, records=records, job=job, lateness=lateness_facts(lateness))


def pipeline_of(settings: Settings) -> sw.Pipeline:
    """Return the pipeline of a simulation, which counts events by device and window."""
    events = sw.stream(STREAM, RowsSource(typed=SCHEMA)).event_time(
        "ts",
        out_of_orderness=render_ms(settings.out_of_orderness_ms),
        idle_after=None if settings.idle_after_ms is None else render_ms(settings.idle_after_ms),
        max_ahead=None if settings.max_ahead_ms is None else render_ms(settings.max_ahead_ms),
    )
    counts = (
        events.key_by("device")
        .window(
            _window(settings),
            allowed_lateness=render_ms(settings.allowed_lateness_ms),
            trigger=_trigger(settings),
            accumulation=settings.accumulation,
            name=STEP,
        )
        .aggregate(n=sw.count())
    )
    ends = (each.to(sw.sinks.memory()) for each in (counts, counts.late, events.dead_letters))
    # Nothing runs in parallel here, and every key group adds time to a batch.
    return sw.Pipeline("simulation", *ends, key_groups=1)


def arriving(settings: Settings) -> Iterator[list[pl.DataFrame]]:
    """Yield the input of each batch: one frame for each partition in which events arrived."""
    events = made_events(settings)
    ends = [START_MS + (number + 1) * settings.batch_every_ms for number in range(settings.batches)]
    places = [int(place) for place in events["arrived"].search_sorted(pl.Series(ends), side="right")]
    for first, last in zip([0, *places], places, strict=False):
        rows = events[first:last]
        yield rows.partition_by("partition", maintain_order=True) if rows.height else []


def _window(settings: Settings) -> Window:
    size = render_ms(settings.window_size_ms)
    match settings.window:
        case "tumbling":
            return sw.tumbling(size)
        case "hopping":
            return sw.hopping(size, every=render_ms(settings.hop_ms))
        case "session":
            longest = None if settings.max_length_ms is None else render_ms(settings.max_length_ms)
            return sw.session(size, max_length=longest)


def _trigger(settings: Settings) -> Trigger:
    match settings.trigger:
        case "on_time":
            return sw.after_watermark()
        case "early":
            return sw.after_watermark(early=sw.every(render_ms(settings.early_every_ms)))
        case "late_at_close":
            return sw.after_watermark(late=sw.never())
        case "final":
            return sw.after_watermark(late=None)


def _recorded(harness: Harness, report: BatchReport) -> BatchRecord:
    # Simulated batches take no time: the engine's own duration says nothing about a job.
    now_ms = harness.now_ms
    known = Circumstances(run=1, delivered_at_ms=now_ms, at_ms=now_ms, sinks={}, spark_s={})
    return record_of(harness.plan, report, known)

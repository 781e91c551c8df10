"""The monitor of a running job: creates the record of each batch, writes the history, and passes records on."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TextIO

from slackwater.base.errors import cause_of, fault
from slackwater.connectors.delivery_stats import SinkStats
from slackwater.engine.front.samples import Sample
from slackwater.observe.metrics.failing import FailingBatch, failing_batch
from slackwater.observe.metrics.history import History, history_folder, warn_unwritten
from slackwater.observe.metrics.job_facts import Lateness, job_facts, lateness_facts, write_facts
from slackwater.observe.metrics.merging import merged
from slackwater.observe.metrics.record import BatchRecord
from slackwater.observe.metrics.recording import Circumstances, nothing_yet, record_of
from slackwater.observe.metrics.report import BatchReport
from slackwater.observe.metrics.runs import Run, begin_run
from slackwater.observe.metrics.samples import KeptSamples, chosen
from slackwater.plan.plan import Plan

JOB: Final = "job.json"
LATENESS: Final = "lateness.json"
"""The file in the history's folder with the measured lateness of the last run."""
_LATENESS_MS: Final = 30_000
"""How often that file is written, for jobs that are watched from another process, or killed."""


@dataclass(frozen=True, kw_only=True)
class Live:
    """The state of a running job after a batch."""

    pipeline: str
    run: Run
    last: BatchRecord
    total: BatchRecord
    """The merged record of all batches of this run."""
    lateness: Lateness = field(default_factory=dict)
    samples: Sequence[Sample] = ()
    """Samples of the last batch's late rows and dead letters."""
    failing: FailingBatch | None = None
    """At the start of a run, the batch that it begins with, if that failed in the run before."""
    export_failures: int | None = None
    """Exports to an OTLP endpoint that failed in this run; None if nothing is exported."""

    @property
    def has_batch(self) -> bool:
        """Whether a batch of this run was delivered; until then all counts are 0, and there are no other figures."""
        return self.total.batches > 0


OnRecord = Callable[[Live], None]


@dataclass(kw_only=True)
class Monitor:
    """Records the batches of one run; created by the driver, which holds the checkpoint's lock."""

    plan: Plan
    checkpoint: Path
    on_record: OnRecord | None = None
    on_run: OnRecord | None = None
    """Called once, before the first batch, so that a job whose first batch keeps failing shows its starts."""
    lateness: Lateness = field(default_factory=dict)
    """The measured lateness of this run's rows, updated by the job."""
    clock_s: Callable[[], float] = time.time
    run: Run = field(init=False)
    history: History = field(init=False)
    samples: KeptSamples = field(init=False)
    _total: BatchRecord | None = None
    _lateness_at_ms: int = 0
    _keys: dict[str, dict[int, int]] = field(default_factory=dict)
    """By step and position of a key group, its number of keys when it last counted."""

    def __post_init__(self) -> None:
        folder = history_folder(self.checkpoint)
        self.run = begin_run(folder, self.now_ms())
        self.history = History(folder=folder)
        self.samples = KeptSamples(folder=folder, shows_data=self.plan.shows_data)
        write_facts(folder / JOB, job_facts(self.plan))
        if self.on_run is not None:
            nothing = nothing_yet(self.plan, run=self.run.starts, now_ms=self.now_ms())
            failing = failing_batch(self.checkpoint)
            self.on_run(Live(pipeline=self.plan.name, run=self.run, last=nothing, total=nothing, failing=failing))

    def now_ms(self) -> int:
        """Return the time of the driver's clock."""
        return round(self.clock_s() * 1_000)

    def note(
        self,
        report: BatchReport,
        *,
        delivered_at_ms: int,
        sinks: Mapping[str, SinkStats],
        spark_s: Mapping[str, float],
    ) -> BatchRecord:
        """Record a delivered batch, whose statistics must still have their sketches."""
        for step, counted in report.stats.keys.items():
            earlier = {place: keys for place, keys in self._keys.get(step, {}).items() if place not in counted}
            self._keys[step] = earlier | counted  # the newest count last
        known = Circumstances(
            run=self.run.starts,
            delivered_at_ms=delivered_at_ms,
            at_ms=self.now_ms(),
            sinks=sinks,
            spark_s=spark_s,
            keys=self._keys,
        )
        record = record_of(self.plan, report, known)
        self._total = merged([record] if self._total is None else [self._total, record])
        self.history.append(record)
        samples = chosen(report.stats.samples, batch=record.batch, at=record.at_ms)
        self.samples.add(samples)
        if record.at_ms >= self._lateness_at_ms + _LATENESS_MS:
            self._lateness_at_ms = record.at_ms
            self._write_lateness()
        if self.on_record is not None:
            live = Live(
                pipeline=self.plan.name,
                run=self.run,
                last=record,
                total=self._total,
                lateness=self.lateness,
                samples=samples,
            )
            self.on_record(live)
        return record

    def close(self) -> None:
        """Close the history, and write the final lateness."""
        self.history.close()
        self._write_lateness()

    def _write_lateness(self) -> None:
        write_facts(self.history.folder / LATENESS, lateness_facts(self.lateness))


@dataclass(kw_only=True)
class MetricsFile:
    """`--metrics-file`: appends a line of JSON for each batch."""

    path: Path
    _file: TextIO = field(init=False)
    _is_warned: bool = False

    def __post_init__(self) -> None:
        try:
            self._file = self.path.open("a", encoding="utf-8")
        except OSError as error:
            raise fault("METRICS_FILE", path=self.path, cause=cause_of(error)) from error

    def note(self, live: Live) -> None:
        """Write the record of a batch."""
        line = {"pipeline": live.pipeline, "starts": live.run.starts, **live.last.to_json()}
        try:
            self._file.write(json.dumps(line, ensure_ascii=False) + "\n")
            self._file.flush()
        except OSError as error:
            if not self._is_warned:
                self._is_warned = True
                warn_unwritten(self.path, error)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

"""A job that runs in the background, for notebooks, services and tests."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Final, Self

from slackwater.base.durations import roughly
from slackwater.base.errors import counted
from slackwater.base.html import facts_table
from slackwater.base.times import LAST_USABLE_MS, MIN_MS
from slackwater.observe.metrics.monitor import Live
from slackwater.observe.metrics.report import BatchReport
from slackwater.observe.page.recording import Takers
from slackwater.plan.plan import Plan
from slackwater.spark.job import Job
from slackwater.spark.options import RunOptions
from slackwater.spark.start import make_job

_EPOCH: Final = datetime.fromtimestamp(0, UTC)


def start_job(plan: Plan, options: RunOptions) -> RunningJob:
    """Create a job for a plan, with the receivers of its figures, and start it."""
    with ExitStack() as opened:
        takers = opened.enter_context(options.recording(plan, say=lambda _text: None))
        job = make_job(plan, options, on_run=takers.on_run, on_record=takers.on_record, on_phase=takers.on_phase)
        return RunningJob(job, takers=takers, opened=opened.pop_all())  # the job closes them


class RunningJob:
    """A job that runs in its own thread; returned by `pipeline.start`.

    Used in a `with` block, it is stopped at the end of the block. An error that ends the job is raised by `wait`,
    `stop`, and the end of the block. Notebooks display its figures.
    """

    def __init__(self, job: Job, *, takers: Takers | None = None, opened: ExitStack | None = None) -> None:
        self._job = job
        self._takers = takers or Takers()
        self._opened = opened or ExitStack()
        self._live: Live | None = None
        self._error: BaseException | None = None
        self._noted = job.on_record
        job.on_record = self._note
        self._thread = threading.Thread(target=self._run, name=f"slackwater-{job.plan.name}", daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Whether the job is still running."""
        return self._thread.is_alive()

    @property
    def page(self) -> str | None:
        """The address of the job's page while the job runs; None if it has no page."""
        return None if self._takers.page is None else self._takers.page.address

    @property
    def latest(self) -> BatchReport | None:
        """The report of the last batch; None before the first."""
        return self._job.reports[-1] if self._job.reports else None

    @property
    def watermark(self) -> datetime | None:
        """The watermark of the slowest stream; None before there is one, and after the end of a bounded run."""
        latest = self.latest
        if latest is None or not MIN_MS < latest.watermark_ms <= LAST_USABLE_MS:
            return None
        return _EPOCH + timedelta(milliseconds=latest.watermark_ms)

    def status(self) -> dict[str, Any]:
        """Return the status of the job: its state, its last batch, and the totals of this run."""
        live, error, watermark = self._live, self._error, self.watermark
        state = "running" if self.is_running else "failed" if error is not None else "finished"
        if state == "finished" and not self._job.is_finished:
            state = "stopped"
        until = datetime.now(UTC) if live is None or state == "running" else _EPOCH + _ms(live.last.at_ms)
        return {
            "pipeline": self._job.plan.name,
            "checkpoint": str(self._job.checkpoint.path),
            "state": state,
            "error": None if error is None else str(error),
            "page": self.page,
            "batch": None if live is None else live.last.batch,
            "batches": 0 if live is None else live.total.batches,
            "watermark": watermark,
            "watermark_lag": None if watermark is None else until - watermark,
            "rows": 0 if live is None else live.total.rows,
            "rows_out": 0 if live is None else live.total.rows_out,
            "late": 0 if live is None else sum(step.counts.get("late", 0) for step in live.total.steps.values()),
            "dead_letters": 0 if live is None else live.total.dead.total(),
        }

    def stop(self) -> None:
        """Stop after the current batch and wait until it is delivered; the checkpoint can be continued."""
        self._job.stop()
        self.wait()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the job to end; return whether it has. Raise the error that ended it, if any."""
        self._thread.join(timeout_s)
        if self._error is not None:
            raise self._error
        return not self.is_running

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._job.stop()
        self._thread.join()
        if error is None and self._error is not None:
            raise self._error

    def __repr__(self) -> str:
        known = self.status()
        batch = "no batch yet" if known["batch"] is None else f"batch {known['batch']}, watermark {_shown(known)}"
        return f"<{self._job.plan.name}: {known['state']}, {batch}>"

    def _repr_html_(self) -> str:
        """Return the current figures for display in a notebook; they are not updated."""
        return figures(self.status())

    def _note(self, live: Live) -> None:
        self._live = live
        if self._noted is not None:
            self._noted(live)

    def _run(self) -> None:
        try:
            with self._opened:
                self._job.run()
                self._takers.end(is_finished=self._job.is_finished)
        except BaseException as error:  # noqa: BLE001  raised again by `wait` and `stop`
            self._error = error


def figures(known: dict[str, Any]) -> str:
    """Return the result of `RunningJob.status` as an HTML table."""
    lag = known["watermark_lag"]
    behind = "" if lag is None else f", {roughly(max(0, round(lag.total_seconds() * 1_000)))} behind"
    rows = {
        "state": known["state"] if known["error"] is None else f"{known['state']}: {known['error']}",
        "batches": f"{known['batches']:,}" + ("" if known["batch"] is None else f", last {known['batch']:,}"),
        "rows": f"{known['rows']:,} in, {known['rows_out']:,} out",
        "watermark": f"{_shown(known)}{behind}",
        "late": counted(known["late"], "row"),
        "dead letters": f"{known['dead_letters']:,}",
        "checkpoint": known["checkpoint"],
    }
    has_page = known["page"] is not None and known["state"] == "running"
    return facts_table(known["pipeline"], rows, links={"page": known["page"]} if has_page else {})


def _shown(known: dict[str, Any]) -> str:
    """Return the watermark of a status; a finished job has the final one."""
    if known["watermark"] is None:
        return "end of time" if known["state"] == "finished" else "none yet"
    return f"{known['watermark']:%Y-%m-%d %H:%M:%S} UTC"


def _ms(milliseconds: int) -> timedelta:
    return timedelta(milliseconds=milliseconds)

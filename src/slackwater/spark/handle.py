"""A job that runs beside the caller's code: in a notebook, a service, a test."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Self

from slackwater.ground.times import LAST_USABLE_MS, MIN_MS
from slackwater.spark.job import Job
from slackwater.metrics.report import BatchReport

_EPOCH = datetime.fromtimestamp(0, UTC)


class RunningJob:
    """What `pipeline.start` returns: a job in a thread of its own.

    Used in a `with` block, it is stopped at the end of the block. An error that ends the job is raised by `wait`,
    `stop`, and the end of the block.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"slackwater-{job.plan.name}", daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Whether the job still runs."""
        return self._thread.is_alive()

    @property
    def latest(self) -> BatchReport | None:
        """The report of the last batch; None before there is one."""
        return self._job.reports[-1] if self._job.reports else None

    @property
    def watermark(self) -> datetime | None:
        """The watermark of the slowest stream; None before there is one, and after the end of a bounded run."""
        latest = self.latest
        if latest is None or not MIN_MS < latest.watermark_ms <= LAST_USABLE_MS:
            return None
        return _EPOCH + timedelta(milliseconds=latest.watermark_ms)

    def status(self) -> dict[str, Any]:
        """Return what the job is doing: its state, its last batch, and what this run has done so far."""
        reports, error = list(self._job.reports), self._error
        state = "running" if self.is_running else "failed" if error is not None else "finished"
        if state == "finished" and not self._job.is_finished:
            state = "stopped"
        return {
            "pipeline": self._job.plan.name,
            "checkpoint": str(self._job.checkpoint.path),
            "state": state,
            "error": None if error is None else str(error),
            "batch": reports[-1].batch if reports else None,
            "watermark": self.watermark,
            "rows": sum(report.rows for report in reports),
            "late": sum(report.total("late") for report in reports),
            "dead_letters": sum(report.dead_letters for report in reports),
        }

    def stop(self) -> None:
        """Stop after the batch at hand, and wait until that is delivered; the checkpoint can be continued."""
        self._job.stop()
        self.wait()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until the job has ended; returns whether it has. Raises the error that ended it."""
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
        batch = "no batch yet" if known["batch"] is None else f"batch {known['batch']}, watermark {known['watermark']}"
        return f"<{self._job.plan.name}: {known['state']}, {batch}>"

    def _run(self) -> None:
        try:
            self._job.run()
        except BaseException as error:  # noqa: BLE001  raised again where the job is waited for
            self._error = error

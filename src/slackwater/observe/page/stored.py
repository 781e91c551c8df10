"""The page of jobs from their checkpoints alone: jobs that have ended or that another process runs."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from slackwater.base.errors import SlackwaterError
from slackwater.observe.metrics.history import history_folder, read_history
from slackwater.observe.metrics.job_facts import read_facts
from slackwater.observe.metrics.monitor import JOB, LATENESS
from slackwater.observe.metrics.record import BatchRecord
from slackwater.observe.metrics.samples import read_samples
from slackwater.observe.metrics.status import read_status
from slackwater.observe.page.job_feed import JobFeed
from slackwater.observe.page.view import shown_record

LOOK_S: Final = 2.0
"""How often a checkpoint is polled."""
_LAST: Final = 200


def stored_feed(checkpoint: Path, *, show_data: bool = False) -> JobFeed:
    """Return the feed of a job from its checkpoint, as of now; with the data of rows only if `show_data`."""
    folder = history_folder(checkpoint)
    records = read_history(folder)
    job = {"streams": [], "steps": [], "outputs": {}, "svg": None, "svg_upright": None, **read_facts(folder / JOB)}
    if records and not job["streams"]:
        job["streams"] = [
            {"name": name, "slack_ms": each.out_of_orderness_ms or 0} for name, each in records[-1].streams.items()
        ]
    samples = read_samples(folder, show_data=show_data)
    return JobFeed(job | _state(checkpoint), map(shown_record, records), read_facts(folder / LATENESS), samples)


def _state(checkpoint: Path) -> dict[str, Any]:
    status = read_status(checkpoint)
    return {
        "pipeline": status.pipeline,
        "state": status.state,
        "starts": status.starts,
        "started": status.run_since_ms,
        "since": status.since_ms,
        "failing": None if status.failing is None else asdict(status.failing),
        "notice": "; ".join(filter(None, (status.history_loss, str(status.failing or "")))),
    }


class StoredJob:
    """A job that is followed by polling its checkpoint."""

    def __init__(self, checkpoint: Path, *, show_data: bool = False) -> None:
        self.checkpoint = checkpoint
        self.feed = stored_feed(checkpoint, show_data=show_data)
        self._show_data = show_data
        records = self.feed.records
        self._last = (records[-1]["at"], records[-1]["batch"]) if records else (-1, -1)
        self._sampled = max((sample.get("at", -1) for sample in self.feed.samples), default=-1)

    def look(self) -> None:
        """Publish everything new in the checkpoint."""
        known, state = self.feed.job, _state(self.checkpoint)
        folder = history_folder(self.checkpoint)
        if any(known.get(name) != value for name, value in state.items()):
            described = read_facts(folder / JOB) if known["starts"] != state["starts"] else {}
            self.feed.change(**{**described, **state})
        records = [each for each in read_history(folder, last=_LAST) if (each.at_ms, each.batch) > self._last]
        if records:
            self._publish(records, folder)

    def _publish(self, records: Sequence[BatchRecord], folder: Path) -> None:
        samples = [
            sample for sample in read_samples(folder, show_data=self._show_data) if sample.get("at", -1) > self._sampled
        ]
        for record in records:
            fresh = [sample for sample in samples if sample.get("batch") == record.batch]
            self.feed.publish(shown_record(record), read_facts(folder / LATENESS) or None, fresh)
        self._sampled = max((sample.get("at", -1) for sample in samples), default=self._sampled)
        self._last = (records[-1].at_ms, records[-1].batch)


class Following:
    """Polls jobs every two seconds in its own thread, until it is closed."""

    def __init__(self, jobs: Sequence[StoredJob], *, every_s: float = LOOK_S) -> None:
        self._jobs, self._every_s = jobs, every_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="slackwater-following", daemon=True)

    def _follow(self) -> None:
        while not self._ended.wait(self._every_s):
            for job in self._jobs:
                with suppress(SlackwaterError, OSError, ValueError):  # the checkpoint is being written or removed
                    job.look()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

"""The page of a job that runs in this process."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from types import TracebackType
from typing import Final, Self

from slackwater.base.errors import SlackwaterWarning, cause_of, render
from slackwater.observe.metrics.job_facts import job_facts, lateness_facts
from slackwater.observe.metrics.monitor import Live
from slackwater.observe.metrics.prometheus import Collector, exposition
from slackwater.observe.page.job_feed import JobFeed
from slackwater.observe.page.server import PageServer
from slackwater.observe.page.view import shown_record
from slackwater.plan.plan import Plan

_ENDED: Final = ("finished", "stopped")


class PageWarning(SlackwaterWarning):
    """The page cannot show a batch."""


class LivePage:
    """The page of a running job, from before its first batch until it is closed; `note` adds each batch."""

    def __init__(
        self,
        plan: Plan,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        metrics: Callable[[], bytes] | None = None,
    ) -> None:
        self._feed = JobFeed({**job_facts(plan), "state": "starting", "starts": 1, "phases": []})
        self._collector = Collector()
        scraped = metrics or partial(exposition, self._collector)
        self._server = PageServer([self._feed], host=host, port=port, metrics=scraped)

    @property
    def address(self) -> str:
        """The address of the page."""
        return self._server.address

    @property
    def printed(self) -> str:
        """The address for the terminal and logs, without a token that the user keeps."""
        return self._server.printed

    def phase(self, name: str) -> None:
        """Show a phase of the start, which ends the one before; after the first batch, there are none."""
        job = self._feed.job
        if name and job["state"] == "starting":
            self._feed.change("starting", phases=[*job["phases"], [name, round(1_000 * time.time())]])

    def begin(self, live: Live) -> None:
        """Record the start of a run, so that metrics are available before its first batch."""
        self._collector.note(live)
        if live.failing is not None:
            self._feed.change("starting", failing=asdict(live.failing), notice=str(live.failing))

    def note(self, live: Live) -> None:
        """Show a batch. If that fails, it is a warning and does not affect the job."""
        self._collector.note(live)
        try:
            shown, lateness = shown_record(live.last), lateness_facts(live.lateness)
        except Exception as error:  # noqa: BLE001  whatever it is, it must not affect the job
            text = render("PAGE_RECORD", batch=live.last.batch, cause=cause_of(error))
            warnings.warn(f"[PAGE_RECORD] {text}", PageWarning, stacklevel=2)
            return
        if self._feed.job["state"] != "running":
            facts = {"starts": live.run.starts, "started": live.run.since_ms, "failing": None, "notice": ""}
            self._feed.change("running", **facts)
        self._feed.publish(shown, lateness, live.samples)

    def end(self, *, is_finished: bool) -> None:
        """Show that the job has ended without an error: it was stopped, or its input ended."""
        self._feed.change("finished" if is_finished else "stopped")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._feed.change("failed")
        elif self._feed.job["state"] not in _ENDED:
            self.end(is_finished=False)
        self._server.close()

"""The page of a job that runs in this process."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self

from slackwater.metrics.monitor import Live
from slackwater.page.feed import Feed
from slackwater.page.server import PageServer
from slackwater.page.view import shown_job, shown_lateness, shown_record
from slackwater.planning.plan import Plan


class LivePage:
    """Shows a job from before its first batch until it is closed; `note` takes each batch."""

    def __init__(
        self,
        plan: Plan,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        svg: str | None = None,
        metrics: Callable[[], bytes] | None = None,
    ) -> None:
        self._feed = Feed(shown_job(plan, state="starting", svg=svg))
        self._server = PageServer([self._feed], host=host, port=port, metrics=metrics)

    @property
    def address(self) -> str:
        """Where the page is."""
        return self._server.address

    def note(self, live: Live) -> None:
        """Show a batch."""
        if self._feed.job["state"] != "running":
            self._feed.change("running", starts=live.run.starts)
        self._feed.publish(shown_record(live.last), shown_lateness(live.lateness))

    def end(self, state: str) -> None:
        """Show that the job has ended."""
        self._feed.change(state)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._feed.change("failed" if error is not None else "stopped")
        self._server.close()

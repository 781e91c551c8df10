"""The server of the simulator's page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from slackwater.observe.page.job_feed import JobFeed
from slackwater.observe.page.server import PageServer

if TYPE_CHECKING:
    from slackwater.observe.page.app import Page


class SimulatorServer(PageServer):
    """Serves simulations until it is closed; `address` includes the initial settings."""

    def __init__(self, asked: Mapping[str, str], *, host: str = "127.0.0.1", port: int = 0) -> None:
        super().__init__([], host=host, port=port)
        if asked:
            self.address += ("&" if "?" in self.address else "?") + urlencode(asked)

    def _page(self, feeds: Sequence[JobFeed], token: str | None, metrics: Callable[[], bytes] | None) -> Page:  # noqa: ARG002  a simulation has neither
        from slackwater.tools.simulator.app import SimulatorPage  # noqa: PLC0415  only a page needs its packages

        return SimulatorPage(token=token)

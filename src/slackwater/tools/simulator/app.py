"""The simulator's page as a web application: the live page's server, with a simulation instead of a job.

| path | what |
|---|---|
| `/` | the page |
| `/api/controls` | the settings and presets |
| `/api/simulation` | a simulation with the settings in the query, as JSON |
| `/export` | the same as one file, which works without a server |

Only the last simulations are kept; the same query always gives the same answer.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from slackwater.base.errors import SlackwaterError, fault
from slackwater.observe.page.app import Page, in_json, static
from slackwater.tools.simulator.controls import read
from slackwater.tools.simulator.presets import DEFAULT, preset_named
from slackwater.tools.simulator.running import Simulation, simulate
from slackwater.tools.simulator.settings import SERVED, Settings
from slackwater.tools.simulator.view import feed_of, shown_controls, shown_settings, shown_simulation

_MOST_KEPT: Final = 8
_MOST_WAITING: Final = 8


class SimulatorPage(Page):
    """The handlers of the simulator's server."""

    def __init__(self, *, token: str | None) -> None:
        super().__init__([], token=token)
        self._kept: OrderedDict[Settings, Simulation] = OrderedDict()
        self._turn = asyncio.Semaphore(1)
        self._waiting = 0

    def routes(self) -> list[Route]:
        """Return the routes of the application."""
        return [
            Route("/", self._page),
            Route("/static/{name}", self._static),
            Route("/api/controls", self._controls),
            Route("/api/simulation", self._simulation),
            Route("/export", self._export),
        ]

    async def _page(self, request: Request) -> Response:
        self._check(request)
        return static("simulate.html")

    async def _controls(self, request: Request) -> Response:
        self._check(request)
        return in_json(shown_controls())

    async def _simulation(self, request: Request) -> Response:
        self._check(request)
        try:
            simulation = await self._simulated(request)
        except SlackwaterError as error:
            return _refused(error)
        shown = await run_in_threadpool(shown_simulation, simulation)
        return in_json({**shown, "settings": shown_settings(simulation.settings)})

    async def _export(self, request: Request) -> Response:
        self._check(request)
        try:
            simulation = await self._simulated(request)
        except SlackwaterError as error:
            return _refused(error)
        return self._exported(feed_of(simulation), "simulation")

    async def _simulated(self, request: Request) -> Simulation:
        """Return the simulation of a query: a kept one, or a new one when its turn comes."""
        asked = {name: text for name, text in request.query_params.items() if name != "token"}
        settings = read(asked, preset_named(asked.pop("preset", DEFAULT)).settings)
        if self._waiting >= _MOST_WAITING:
            raise fault("SIMULATE_BUSY", most=_MOST_WAITING)
        self._waiting += 1
        try:
            async with self._turn:
                if settings not in self._kept:
                    if await request.is_disconnected():
                        # The browser has moved on: nobody would see this simulation, and others wait.
                        raise fault("SIMULATE_BUSY", most=_MOST_WAITING)
                    self._kept[settings] = await run_in_threadpool(simulate, settings, limits=SERVED)
        finally:
            self._waiting -= 1
        self._kept.move_to_end(settings)
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        return self._kept[settings]


def _refused(error: SlackwaterError) -> Response:
    return in_json({"error": str(error)}, status=503 if error.code == "SIMULATE_BUSY" else 400)

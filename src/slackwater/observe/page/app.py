"""The page as a web application: it shows the data of feeds, and cannot act on a job.

| path | what |
|---|---|
| `/` | the page |
| `/api/jobs`, `/api/job`, `/api/history`, `/api/lateness`, `/api/samples` | the data of the page, as JSON |
| `/api/events` | new records, as server-sent events |
| `/api/status` | the last record of each job |
| `/export` | the page with its data in one file, which works without a server |
| `/metrics` | metrics for Prometheus |
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from slackwater.observe.metrics.prometheus import TEXT
from slackwater.observe.page.event_streams import EventStreams
from slackwater.observe.page.export import one_file
from slackwater.observe.page.job_feed import JobFeed
from slackwater.observe.page.long_responses import LongResponses, joined, sliced

STATIC: Final = Path(__file__).parent / "static"
_KINDS: Final = {".css": "text/css", ".html": "text/html", ".js": "text/javascript"}
_FILES: Final = {path.name: path.read_bytes() for path in STATIC.iterdir() if path.suffix in _KINDS}
"""The files of the page. In memory, because each one that is opened for a client takes a descriptor from the job."""
_MOST_EXPORTS: Final = 2
"""The most exports that are sent at a time: each one takes as much memory as the whole history."""
_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class Page:
    """The handlers of one server."""

    def __init__(
        self, feeds: Sequence[JobFeed], *, token: str | None = None, metrics: Callable[[], bytes] | None = None
    ) -> None:
        self._feeds = feeds
        self._token = token
        self._metrics = metrics
        self._streams = EventStreams()
        self._exports = LongResponses()

    def application(self, hosts: Sequence[str]) -> Starlette:
        """Return the application; it rejects requests for hosts other than `hosts`."""
        guards = [Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts)), Middleware(_Headers)]
        return Starlette(routes=self.routes(), middleware=guards)

    def routes(self) -> list[Route]:
        """Return the routes of the application."""
        return [
            Route("/", self._page),
            Route("/static/{name}", self._static),
            Route("/api/jobs", self._jobs),
            Route("/api/job", self._job),
            Route("/api/history", self._history),
            Route("/api/lateness", self._lateness),
            Route("/api/samples", self._samples),
            Route("/api/events", self._events),
            Route("/api/status", self._status),
            Route("/export", self._export),
            Route("/metrics", self._exposition),
        ]

    async def _page(self, request: Request) -> Response:
        self._check(request)
        return static("index.html")

    async def _static(self, request: Request) -> Response:
        return static(request.path_params["name"])

    async def _jobs(self, request: Request) -> Response:
        self._check(request)
        return in_json([{"name": feed.name, "state": feed.job["state"]} for feed in self._feeds])

    async def _job(self, request: Request) -> Response:
        return in_json(self._feed(request).job)

    async def _history(self, request: Request) -> Response:
        return StreamingResponse(joined(self._feed(request).texts), media_type="application/json")

    async def _lateness(self, request: Request) -> Response:
        return in_json(self._feed(request).lateness)

    async def _samples(self, request: Request) -> Response:
        return in_json(self._feed(request).samples)

    async def _status(self, request: Request) -> Response:
        self._check(request)
        jobs = [
            {**feed.job, "svg": None, "svg_upright": None, "latest": records[-1] if (records := feed.records) else None}
            for feed in self._feeds
        ]
        return in_json(jobs)

    async def _events(self, request: Request) -> Response:
        return self._streams.answer(self._feed(request), request)

    async def _export(self, request: Request) -> Response:
        feed = self._feed(request)
        name = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in feed.name)
        return self._exported(feed, name)

    def _exported(self, feed: JobFeed, name: str) -> Response:
        """Return the page of a feed as one file to save."""
        self._exports.check(_MOST_EXPORTS, f"{_MOST_EXPORTS} exports are being sent, the most at a time; retry later")
        headers = {"Content-Disposition": f'attachment; filename="{name}.html"'}
        return self._exports.response(sliced(one_file(feed).encode()), media_type="text/html", headers=headers)

    async def _exposition(self, request: Request) -> Response:
        self._check(request)
        if self._metrics is None:
            raise HTTPException(404, "this page shows a job that has ended")
        return Response(self._metrics(), media_type=TEXT)

    def _feed(self, request: Request) -> JobFeed:
        self._check(request)
        wanted = request.query_params.get("job")
        for feed in self._feeds:
            if wanted in (None, feed.name):
                return feed
        raise HTTPException(404, "no such job")

    def _check(self, request: Request) -> None:
        given = request.query_params.get("token", "") or request.headers.get("authorization", "").removeprefix(
            "Bearer "
        )
        if self._token is not None and not hmac.compare_digest(given.encode(), self._token.encode()):
            raise HTTPException(403, "the token is missing or wrong; use the address that the job has printed")


def in_json(content: object, status: int = 200) -> Response:
    """Return a response in ASCII, which holds any text: bytes in a file's name that are no text as well."""
    return Response(json.dumps(content), status, media_type="application/json")


def static(name: str) -> Response:
    """Return a file of the page; there is no other one."""
    if name not in _FILES:
        raise HTTPException(404)
    return Response(_FILES[name], media_type=_KINDS[Path(name).suffix])


class _Headers:
    """Adds the headers common to all responses."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] += [(name.lower().encode(), text.encode()) for name, text in _HEADERS.items()]
            await send(message)

        await self._app(scope, receive, sending)

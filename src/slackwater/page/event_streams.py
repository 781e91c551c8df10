"""Event streams: new records, sent to a limited number of listening browsers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from slackwater.page.feed import END, Feed

MOST_STREAMS: Final = 64
"""The most streams a server keeps open: each uses a connection and a queue for as long as its page is open."""
_BEAT_S: Final = 15.0
"""How often a quiet connection is written to, so that both sides notice when it is broken."""


class EventStreams:
    """The open streams of one server."""

    def __init__(self) -> None:
        self.open = 0

    def answer(self, feed: Feed, request: Request) -> Response:
        """Return a stream of a feed's events, or an error response if too many streams are open."""
        if self.open >= MOST_STREAMS:
            message = f"this page has {MOST_STREAMS} listeners, the most it takes; close one, or reload later"
            raise HTTPException(503, message, headers={"Retry-After": str(round(_BEAT_S))})
        return _EventStream(self, feed, request)


class _EventStream(StreamingResponse):
    """One stream; it counts as open until its connection is closed, even before its first event."""

    def __init__(self, streams: EventStreams, feed: Feed, request: Request) -> None:
        super().__init__(_events(feed, request), media_type="text/event-stream")
        self._streams = streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._streams.open += 1
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._streams.open -= 1


async def _events(feed: Feed, request: Request) -> AsyncIterator[str]:
    with feed.listening() as queue:
        # Anything published earlier is in the history; a page that lacks it requests the history again.
        yield f"data: {json.dumps({'state': feed.job['state'], 'last': feed.last})}\n\n"
        while not await request.is_disconnected():
            try:
                news = await asyncio.wait_for(queue.get(), _BEAT_S)
            except TimeoutError:
                yield ": still here\n\n"
                continue
            if news == END:
                return
            yield f"data: {news}\n\n"

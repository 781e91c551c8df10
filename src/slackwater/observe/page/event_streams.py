"""Event streams: new records, sent to a limited number of listening browsers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from slackwater.observe.metrics.http_connections import most_connections
from slackwater.observe.page.job_feed import END, JobFeed
from slackwater.observe.page.long_responses import LongResponses

MOST_STREAMS: Final = 64
"""The most streams a server keeps open: each uses a connection and a queue for as long as its page is open."""
_BEAT_S: Final = 15.0
"""How often a quiet connection is written to, so that both sides notice when it is broken."""


class EventStreams:
    """The open streams of one server."""

    def __init__(self) -> None:
        self._streams = LongResponses()

    def answer(self, feed: JobFeed, request: Request) -> Response:
        """Return a stream of a feed's events, or an error response if too many streams are open."""
        most = min(MOST_STREAMS, most_connections() // 2)  # the other half is for everything else
        self._streams.check(most, f"this page has {most} listeners, the most it takes; close one, or reload later")
        return self._streams.response(_events(feed, request), media_type="text/event-stream")


async def _events(feed: JobFeed, request: Request) -> AsyncIterator[str]:
    with feed.listening() as queue:
        # Anything published earlier is in the history; a page that lacks it requests the history again.
        known = {name: feed.job[name] for name in ("state", "phases") if name in feed.job}
        yield f"data: {json.dumps({**known, 'last': feed.last})}\n\n"
        while not await request.is_disconnected():
            try:
                news = await asyncio.wait_for(queue.get(), _BEAT_S)
            except TimeoutError:
                yield ": still here\n\n"
                continue
            if news == END:
                return
            yield f"data: {news}\n\n"

"""The HTTP server of the page and of the metrics: a thread next to the job, which clients cannot exhaust."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import uvicorn

from slackwater.observe.metrics.http_connections import (
    REQUEST_S,
    Connections,
    LimitedConnection,
    logger,
    most_connections,
)

_MOST_HEADER_BYTES: Final = 32_768
"""More than the cookies that other applications on the same host add."""
_JOIN_S: Final = 10.0
_QUEUED: Final = 512
"""The most connections that wait in the kernel, where they take no descriptor of the process."""
_ACCEPTED: Final = 4
"""One in so many of the connections that a server may have is accepted at once, before the first is looked at."""


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens; raises OSError or OverflowError if it cannot."""
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
        made.listen()
    except (OSError, OverflowError):
        made.close()
        raise
    return made


class HttpServer:
    """Serves an ASGI application on a socket until it is closed."""

    def __init__(self, app: Callable[..., Any], listener: socket.socket, *, name: str) -> None:
        connections = Connections(most_connections())
        conf: dict[str, Any] = {
            "http": partial(LimitedConnection, connections),
            "ws": "none",
            "lifespan": "off",
            "log_config": None,
            "log_level": "critical",  # uvicorn's own logger; connections have another
            "access_log": False,
            "backlog": max(1, connections.most // _ACCEPTED),
            "h11_max_incomplete_event_size": _MOST_HEADER_BYTES,
            "timeout_keep_alive": REQUEST_S,
            # A browser that does not read must not keep the job from ending.
            "timeout_graceful_shutdown": 1,
        }
        self._server = _Server(uvicorn.Config(app, **conf))
        self._listener = listener
        self._thread = threading.Thread(target=self._server.run, args=([listener],), name=name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        self._server.should_exit = True
        self._thread.join(_JOIN_S)
        self._listener.close()


class _Server(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().set_exception_handler(_note)
        await super().startup(sockets)
        for listener in sockets or []:
            listener.listen(_QUEUED)  # the backlog above is also how many asyncio accepts at once


def _note(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:  # noqa: ARG001  as asyncio calls it
    """Log an error of the event loop, such as descriptors that ran out."""
    logger().error("%s", context["message"], exc_info=context.get("exception"))

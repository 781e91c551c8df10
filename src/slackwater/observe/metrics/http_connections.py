"""The connections of a server next to a job: few enough, and none for longer than it is used.

1. A server has at most `most` connections.
2. A connection that has not sent a whole request within 10 seconds is closed: its first, or the next one.
3. A connection that takes nothing of its response for 30 seconds is closed.
4. If the server is full, a new connection replaces the one that has waited longest without a request, or else one that
   does not read its response. If there is neither, the new connection is closed.

So clients that open connections and send nothing cannot keep out those that ask for something.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import time
from collections.abc import Callable
from typing import Any, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS: Final = 128
_SHARE: Final = 8
"""A server's connections take at most this fraction of the descriptors that its process may open."""
_LEAST: Final = 8
REQUEST_S: Final = 10
RESPONSE_S: Final = 30
_QUIET_S: Final = 60.0


def most_connections() -> int:
    """Return how many connections a server in this process may have."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = soft == resource.RLIM_INFINITY
    return MOST_CONNECTIONS if unlimited else max(_LEAST, min(MOST_CONNECTIONS, soft // _SHARE))


class Connections:
    """The open connections of one server, in the order in which they last began to wait."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._open: dict[LimitedConnection, None] = {}

    def admit(self, new: LimitedConnection) -> bool:
        """Add a connection, in place of another one if the server is full; return whether there was room."""
        if len(self._open) >= self.most:  # 1
            replaced = self._replaceable()
            if replaced is None:
                return False
            self.leave(replaced)
            replaced.drop()
        self._open[new] = None
        return True

    def waits(self, connection: LimitedConnection) -> None:
        """Note that a connection begins to wait for its next request."""
        if connection in self._open:
            del self._open[connection]
            self._open[connection] = None

    def leave(self, connection: LimitedConnection) -> None:
        """Remove a connection, unless it has left."""
        self._open.pop(connection, None)

    def _replaceable(self) -> LimitedConnection | None:
        """Return the connection that a new one replaces; None if all are in use."""  # 4
        waiting = (each for each in self._open if not each.is_busy)
        stuck = (each for each in self._open if each.flow.write_paused)
        return next(waiting, None) or next(stuck, None)


class LimitedConnection(H11Protocol):
    """One connection, with its deadlines."""

    def __init__(self, connections: Connections, **known: Any) -> None:  # noqa: ANN401  as uvicorn passes them
        super().__init__(**known)
        self.logger = logger()
        self._connections = connections
        self._deadline: asyncio.TimerHandle | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def drop(self) -> None:
        """Close the connection at once; what was not sent yet is lost."""
        self._expect(None)
        self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Admit the connection, or close it."""
        super().connection_made(transport)
        self._expect(REQUEST_S)  # 2
        if not self._connections.admit(self):
            self.drop()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._expect(None)
        self._connections.leave(self)
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Read what has arrived; a whole request has no deadline until its response is stuck."""
        super().handle_events()
        if self.is_busy and not self.flow.write_paused:
            self._expect(None)

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the rest of the response to be taken."""
        super().on_response_complete()
        if not self.is_busy:
            self._connections.waits(self)
            self._expect(RESPONSE_S if self.transport.get_write_buffer_size() else REQUEST_S)

    def pause_writing(self) -> None:
        """Wait until the client reads."""
        super().pause_writing()
        self._expect(RESPONSE_S)  # 3

    def resume_writing(self) -> None:
        """Write again."""
        super().resume_writing()
        self._expect(None if self.is_busy else REQUEST_S)

    def _expect(self, seconds: float | None) -> None:
        """Close the connection unless this is called again within `seconds`; None for no deadline."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self.drop)


class ScarceErrors(logging.Filter):
    """Lets an error pass at most once a minute, with the number of those that were left out."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._since: float | None = None
        self._left_out = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether an error is logged; a response that is cut off because the server ends is none."""
        if record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError):
            return False
        now = self._clock()
        if self._since is not None and now - self._since < _QUIET_S:
            self._left_out += 1
            return False
        if self._left_out:
            record.msg, record.args = f"{record.getMessage().rstrip()} ({self._left_out} more since the last one)", ()
        self._since, self._left_out = now, 0
        return True


def logger() -> logging.Logger:
    """Return the logger of all servers; clients cannot make it write much."""
    found = logging.getLogger("slackwater.http")
    if not found.filters:
        found.addFilter(ScarceErrors())
        found.setLevel(logging.ERROR)
    return found

"""A receiver of rows over HTTP: a real server that honours Idempotency-Key, and misbehaves as told.

What it has taken survives a kill, as a receiver's database would.
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from slackwater.connectors.kafka.broker import free_port


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What happens to a request in place of the usual answer."""

    status: int | None = None
    """None: the connection is cut without an answer."""
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    takes_row: bool = False
    """Whether the rows are taken all the same."""
    wait_s: float = 0.0
    """How long the answer takes."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A request as it came in."""

    method: str
    path: str
    key: str
    body: Any
    headers: dict[str, str]


@dataclass(kw_only=True)
class Receiver:
    """What was sent, what was taken of it, and what is to go wrong."""

    port: int = field(default_factory=free_port)
    context: ssl.SSLContext | None = None
    seen: list[Seen] = field(default_factory=list)
    taken: dict[str, Any] = field(default_factory=dict)
    """Bodies by their idempotency keys, each once, in the order they came."""
    faults: deque[Fault] = field(default_factory=deque)
    """What happens to the next requests."""
    judge: Callable[[Seen], Fault | None] = lambda _: None
    most_at_once: int = 0
    _at_once: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _server: _Server | None = None

    @property
    def url(self) -> str:
        return f"{'https' if self.context else 'http'}://localhost:{self.port}/results"

    @property
    def rows(self) -> list[Any]:
        """All rows taken, in the order they came."""
        return [row for body in self.taken.values() for row in (body if isinstance(body, list) else [body])]

    def start(self) -> None:
        handler = type("Handler", (_Handler,), {"receiver": self})
        self._server = _Server(("127.0.0.1", self.port), handler)
        if self.context:
            self._server.socket = self.context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def kill(self) -> None:
        """Stop listening, and cut every connection that is open."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()
            server.cut()

    def cut(self) -> None:
        """Cut every connection that is open, and go on listening."""
        assert self._server is not None
        self._server.cut()

    def answer(self, seen: Seen) -> Fault:
        """Return the answer to a request, after taking its rows if they are new."""
        with self._lock:
            self.seen.append(seen)
            fault = self.faults.popleft() if self.faults else self.judge(seen)
            if fault is None or fault.takes_row:
                self.taken.setdefault(seen.key, seen.body)
        return fault or Fault(status=200, body=b'{"ok":true}')

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        with self._lock:
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            yield
        finally:
            with self._lock:
                self._at_once -= 1


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, *given: Any) -> None:  # noqa: ANN401  the library's own
        self.connections: list[socket.socket] = []
        super().__init__(*given)

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401  as above
        self.connections.append(request)
        super().process_request(request, client_address)

    def cut(self) -> None:
        """Cut every connection that is open."""
        for connection in self.connections:
            with contextlib.suppress(OSError):  # most have long been closed
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401  as above
        """Say nothing: connections are cut on purpose here."""


class _Handler(BaseHTTPRequestHandler):
    receiver: Receiver
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        with self.receiver.counted():
            body = self.rfile.read(int(self.headers["Content-Length"]))
            seen = Seen(
                method=self.command,
                path=self.path,
                key=self.headers["Idempotency-Key"],
                body=json.loads(body),
                headers=dict(self.headers),
            )
            answer = self.receiver.answer(seen)
            time.sleep(answer.wait_s)
        if answer.status is None:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.send_response(answer.status)
        for name, value in (("Content-Length", str(len(answer.body))), *answer.headers):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body)

    do_PUT = do_POST  # noqa: N815  the library's names

    def log_message(self, *_: object) -> None:
        """Say nothing."""

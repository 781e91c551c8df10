"""A real HTTP service that answers lookups from a dictionary, and misbehaves as told."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

Reply = tuple[int, bytes]


@dataclass(kw_only=True)
class Service:
    """Answers GET /users/<key> with an object or 404, and POST /users with an object of objects by key."""

    rows: dict[str, Any] = field(default_factory=dict)
    delay_s: float = 0.0
    reply: Callable[[str, str, bytes], Reply | None] = lambda *_: None
    """Given method, path and body: what to answer in place of the usual."""
    requests: list[tuple[str, str]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    _server: ThreadingHTTPServer | None = None

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(self._server.server_address[1])

    def start(self) -> Service:
        handler = type("Handler", (_Handler,), {"service": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def stop(self) -> None:
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()

    def answer(self, method: str, path: str, body: bytes) -> Reply:
        if (told := self.reply(method, path, body)) is not None:
            return told
        if method == "GET":
            row = self.rows.get(unquote(path.rpartition("/")[2]))
            return (404, b"nobody") if row is None else (200, json.dumps(row).encode())
        asked = map(str, json.loads(body))
        return 200, json.dumps({key: self.rows[key] for key in asked if key in self.rows}).encode()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401  the library's own
        """Say nothing: connections are cut on purpose here."""


class _Handler(BaseHTTPRequestHandler):
    service: Service
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.service.requests.append((self.command, self.path))
        self.service.headers.append(dict(self.headers))
        status, answer = self.service.answer(self.command, self.path, body)
        time.sleep(self.service.delay_s)
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        if 300 <= status < 400:
            self.send_header("Location", "https://elsewhere.example/users?token=abcdefgh")
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST = _handle  # noqa: N815  the library's names

    def log_message(self, *_: object) -> None:
        """Say nothing."""

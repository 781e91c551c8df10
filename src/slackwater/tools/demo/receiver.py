"""An HTTP receiver of results, as a user might write one that accepts each Idempotency-Key once."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@dataclass(kw_only=True)
class Receiver:
    """A local server: POST accepts rows, as an object or an array; GET returns all rows, one per line."""

    file: Path
    """The file where rows are stored as received."""
    _taken: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _server: ThreadingHTTPServer | None = None

    def start(self) -> str:
        """Listen on a free port; return the address."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.touch()
        handler = type("Handler", (_Handler,), {"receiver": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, name="demo-receiver", daemon=True).start()
        return f"http://localhost:{self._server.server_port}"

    def stop(self) -> None:
        """Stop listening; the received rows stay in the file."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def take(self, key: str, body: bytes) -> None:
        """Store the rows of a request, unless its key was seen before and they are already stored."""
        rows = json.loads(body)
        lines = "".join(f"{json.dumps(row)}\n" for row in (rows if isinstance(rows, list) else [rows]))
        with self._lock:
            if key in self._taken:
                return
            with self.file.open("a", encoding="utf-8") as out:
                out.write(lines)
            self._taken.add(key)

    def content(self) -> bytes:
        """Return all rows, never only part of a request's."""
        with self._lock:
            return self.file.read_bytes()


class _Handler(BaseHTTPRequestHandler):
    receiver: Receiver
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        """Accept rows, or respond with what is wrong with the request."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        key = self.headers.get("Idempotency-Key")
        if key is None:
            self._answer(HTTPStatus.BAD_REQUEST, b"the header Idempotency-Key is missing\n")
            return
        try:
            self.receiver.take(key, body)
        except ValueError as error:
            self._answer(HTTPStatus.BAD_REQUEST, f"the body is not JSON: {error}\n".encode())
            return
        self._answer(HTTPStatus.OK, b"{}\n")

    def do_GET(self) -> None:
        """Respond with all received rows."""
        self._answer(HTTPStatus.OK, self.receiver.content())

    def _answer(self, status: HTTPStatus, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/x-ndjson" if self.command == "GET" else "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing, because the demo uses the screen."""

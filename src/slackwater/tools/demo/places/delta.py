"""A Delta table in the demo's folder."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from slackwater.connectors.delta.jars import delta_jars, delta_session
from slackwater.connectors.delta.sink import delta
from slackwater.connectors.sink import Sink
from slackwater.tools.demo.comparison import ROWS
from slackwater.tools.demo.definition import PURCHASES
from slackwater.tools.demo.places.base import WINDOW, Place, command


@dataclass(kw_only=True)
class Delta(Place):
    """A Delta table in a folder, which needs no server."""

    kind = "delta"
    title = f"Delta table {PURCHASES}"

    def start(self) -> None:
        """Fetch the jars, if this is the first time."""
        delta_jars()

    def sink(self) -> Sink:
        """Return the sink: a table with a row for each user and minute."""
        return delta(self._path, merge_on=WINDOW)

    @property
    def _path(self) -> Path:
        return self.folder / PURCHASES

    @property
    def look(self) -> str:
        """The folder of the table."""
        return f'spark.read.format("delta").load("{self._path}")'

    @property
    def left(self) -> tuple[str, str]:
        """The table and its folder."""
        return "the Delta table", str(self._path)

    @property
    def again(self) -> list[str]:
        """A command that reads the table with Polars, without Spark."""
        read = f"import polars; print(polars.read_delta({json.dumps(str(self._path))}))"
        return [f"{command('python')} -m pip install deltalake", f"{command('python')} -c {shlex.quote(read)}"]

    def rows(self) -> pl.DataFrame:
        """Return the table as Spark reads it."""
        found = delta_session().read.format("delta").load(str(self._path)).select(*ROWS)
        return pl.DataFrame(found.toArrow()).cast(ROWS)

    def stop(self) -> None:
        """Do nothing: there is no server."""

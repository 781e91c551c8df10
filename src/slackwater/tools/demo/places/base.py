"""The interface of a place: it is started, written to, read back, and stopped."""

from __future__ import annotations

import importlib.util
import shlex
import shutil
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

import polars as pl

from slackwater.base.errors import SlackwaterError, fault
from slackwater.connectors.sink import Sink
from slackwater.tools.demo.comparison import ROWS, ReadBack

WINDOW: Final = ["user_id", "window_start"]
PATIENCE_S: Final = 20.0
LOOK_EVERY_S: Final = 0.05


@dataclass(kw_only=True)
class Place(ABC):
    """A place where purchases per user and minute go in addition to files; everything it needs is in `folder`."""

    folder: Path
    kind: ClassVar[str]
    title: ClassVar[str]
    keeps_panes: ClassVar[bool] = False
    packages: ClassVar[dict[str, str]] = {}
    """Optional packages that the place needs, by import name."""

    def check_packages(self) -> None:
        """Raise an error that says what to install, before anything is started or removed."""
        missing = [package for name, package in self.packages.items() if importlib.util.find_spec(name) is None]
        if missing:
            raise fault("DEMO_PACKAGES", sink=self.kind, missing=", ".join(missing))

    @abstractmethod
    def start(self) -> None:
        """Start the place; if something is missing, an error says what to install."""

    @abstractmethod
    def sink(self) -> Sink:
        """Return the sink as a user would write it."""

    @property
    @abstractmethod
    def look(self) -> str:
        """A command that shows the rows while the demo runs."""

    @property
    @abstractmethod
    def left(self) -> tuple[str, str]:
        """What remains after the demo, and where."""

    @property
    @abstractmethod
    def again(self) -> list[str]:
        """Commands that show what remains, with its server restarted; none if nothing remains."""

    @abstractmethod
    def rows(self) -> pl.DataFrame:
        """Return all rows in the place."""

    def read(self) -> ReadBack:
        """Return the rows for the comparison."""
        with self.translated():
            return ReadBack(title=self.title, rows=self.rows(), keeps_panes=self.keeps_panes)

    @abstractmethod
    def stop(self) -> None:
        """Stop the place, even if it was only partly started."""

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Name the place in errors of programs and client libraries."""
        try:
            yield
        except SlackwaterError:
            raise
        except Exception as error:
            cause = " ".join(f"{type(error).__name__}: {error}".split())
            raise fault("DEMO_SINK", place=self.title, cause=cause, folder=self.folder) from error


def command(name: str) -> str:
    """Return how to call a program in this Python's folder: by its name alone if that finds it."""
    beside = Path(sys.executable).with_name(name)
    return shlex.quote(str(beside)) if beside.exists() and shutil.which(name) != str(beside) else name


def give_up_after(until: float, why: str) -> None:
    """Wait a moment; after `until`, raise an error."""
    if time.monotonic() > until:
        raise TimeoutError(why)
    time.sleep(LOOK_EVERY_S)


def from_json_lines(lines: bytes) -> pl.DataFrame:
    """Return rows from lines of JSON objects, as in HTTP and Kafka."""
    if not lines:
        return pl.DataFrame(schema=ROWS)
    types = {name: pl.String() if isinstance(dtype, pl.Datetime) else dtype for name, dtype in ROWS.items()}
    return from_texts(pl.read_ndjson(lines, schema_overrides=types))


def from_texts(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows of JSON or Redis, where times are text, with their proper types."""
    times = [name for name, dtype in ROWS.items() if isinstance(dtype, pl.Datetime)]
    moments = pl.col(times).str.to_datetime("%Y-%m-%dT%H:%M:%S%.f%:z", time_unit="us", time_zone="UTC")
    return rows.with_columns(moments).select(ROWS.names()).cast(ROWS)

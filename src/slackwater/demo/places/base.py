"""What the demo asks of a place: to start, to be written to, to be read back, and to stop."""

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

from slackwater.demo.comparison import ROWS, ReadBack
from slackwater.errors import SlackwaterError, fault
from slackwater.sinks.base import Sink

WINDOW: Final = ["user_id", "window_start"]
PATIENCE_S: Final = 20.0
LOOK_EVERY_S: Final = 0.05


@dataclass(kw_only=True)
class Place(ABC):
    """Where purchases per user and minute go, besides the files; everything it needs is in `folder`."""

    folder: Path
    kind: ClassVar[str]
    title: ClassVar[str]
    keeps_panes: ClassVar[bool] = False
    packages: ClassVar[dict[str, str]] = {}
    """Optional packages that the place needs, by the names they are imported with."""

    def check_packages(self) -> None:
        """Say what to install, before anything is started or removed."""
        missing = [package for name, package in self.packages.items() if importlib.util.find_spec(name) is None]
        if missing:
            raise fault("DEMO_PACKAGES", sink=self.kind, missing=", ".join(missing))

    @abstractmethod
    def start(self) -> None:
        """Start what is needed; an error says what to install if it is missing."""

    @abstractmethod
    def sink(self) -> Sink:
        """Return the sink as a user would write it."""

    @property
    @abstractmethod
    def look(self) -> str:
        """How to look at it while the demo runs."""

    @property
    @abstractmethod
    def left(self) -> tuple[str, str]:
        """What is left when the demo is over, and where."""

    @property
    @abstractmethod
    def again(self) -> list[str]:
        """Commands that show what is left, with its server started again; none if nothing is left."""

    @abstractmethod
    def rows(self) -> pl.DataFrame:
        """Return all rows that are there."""

    def read(self) -> ReadBack:
        """Return what is to be compared."""
        with self.troubles():
            return ReadBack(title=self.title, rows=self.rows(), keeps_panes=self.keeps_panes)

    @abstractmethod
    def stop(self) -> None:
        """Stop what was started, even if that was only half of it."""

    @contextmanager
    def troubles(self) -> Iterator[None]:
        """Say of which place it is what a program or a client's library raises."""
        try:
            yield
        except SlackwaterError:
            raise
        except Exception as error:
            cause = " ".join(f"{type(error).__name__}: {error}".split())
            raise fault("DEMO_SINK", place=self.title, cause=cause, folder=self.folder) from error


def command(name: str) -> str:
    """Return how to call a program that stands beside this Python: by its name, if that leads to it."""
    beside = Path(sys.executable).with_name(name)
    return shlex.quote(str(beside)) if beside.exists() and shutil.which(name) != str(beside) else name


def give_up_after(until: float, why: str) -> None:
    """Wait a moment; past `until` it is an error."""
    if time.monotonic() > until:
        raise TimeoutError(why)
    time.sleep(LOOK_EVERY_S)


def from_json_lines(lines: bytes) -> pl.DataFrame:
    """Return rows that are a JSON object each, as HTTP and Kafka carry them."""
    if not lines:
        return pl.DataFrame(schema=ROWS)
    types = {name: pl.String() if isinstance(dtype, pl.Datetime) else dtype for name, dtype in ROWS.items()}
    return from_texts(pl.read_ndjson(lines, schema_overrides=types))


def from_texts(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows of JSON or of Redis, where times are texts, by their types."""
    times = [name for name, dtype in ROWS.items() if isinstance(dtype, pl.Datetime)]
    moments = pl.col(times).str.to_datetime("%Y-%m-%dT%H:%M:%S%.f%:z", time_unit="us", time_zone="UTC")
    return rows.with_columns(moments).select(ROWS.names()).cast(ROWS)

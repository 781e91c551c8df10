"""A writer that is frozen in the middle of a batch, and wakes when another has long taken its place."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import polars as pl
import pytest

from slackwater.connectors.sink import Sink
from slackwater.testing import SinkHarness

SCHEMA: Final = pl.Schema({"k": pl.String(), "batch": pl.Int64()})
FROZEN_IN: Final = 4
"""The batch in which the zombie is frozen."""
PATIENCE_S: Final = 120.0


def rows(batch: int, *, of: str = "") -> pl.DataFrame:
    """Return a batch's rows: two of its own, and one that each batch has, for sinks that keep the newest."""
    return pl.DataFrame({"k": [f"{of}{batch}-a", f"{of}{batch}-b", "newest"], "batch": batch}, schema=SCHEMA)


def job(sink: Sink, noted: int = -1) -> SinkHarness:
    """Return a driver whose checkpoint has noted the batches up to one."""
    return SinkHarness(sink=sink, schema=SCHEMA, marked=list(range(noted + 1)))


@dataclass(kw_only=True)
class Freezer:
    """Stops the first thread that comes to a point, until it is woken."""

    frozen: threading.Event = field(default_factory=threading.Event)
    woken: threading.Event = field(default_factory=threading.Event)

    def stop(self) -> None:
        """Stand still."""
        self.frozen.set()
        assert self.woken.wait(PATIENCE_S), "nobody has woken it"

    @contextmanager
    def at(self, point: str, batch: int, folder: Path) -> Iterator[None]:
        """Stop at a crash point, where the kill test would kill; whoever comes there next passes."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SLACKWATER_CRASH", f"{point}@{batch}")
            patch.setenv("SLACKWATER_CRASH_ONCE", str(folder / f"struck-{id(self)}"))
            patch.setattr(os, "kill", lambda *_: self.stop())
            yield


@dataclass(kw_only=True)
class Zombie:
    """A driver in a thread of its own."""

    act: Callable[[], None]
    error: Exception | None = None
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Let it run."""

        def run() -> None:
            try:
                self.act()
            except Exception as error:  # noqa: BLE001  looked at by the test
                self.error = error

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether it has not come to its end."""
        return self._thread is not None and self._thread.is_alive()

    def join(self) -> None:
        """Wait for its end."""
        assert self._thread is not None
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), "it does not end"

"""A bridge at work in a thread of the test, and what has come out of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import polars as pl

from slackwater.connectors.log.reading import list_log, read_file
from slackwater.connectors.mqtt.definition import MqttBridge
from slackwater.connectors.mqtt.running import RunningBridge, Tally

PATIENCE_S: Final = 30.0


class AtWork:
    """A running bridge; `end` stops it, and raises what it raised."""

    def __init__(self, definition: MqttBridge) -> None:
        self.notices: list[str] = []
        self._error: BaseException | None = None
        self._bridge = RunningBridge(definition, on_notice=self.notices.append)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def tally(self) -> Tally:
        return self._bridge.tally

    def stop(self) -> None:
        self._bridge.stop()

    def end(self) -> Tally:
        self.stop()
        return self.ended()

    def ended(self) -> Tally:
        """Wait for the end that comes by itself."""
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()
        error, self._error = self._error, None
        if error is not None:
            raise error
        return self.tally

    def is_connected(self) -> bool:
        return any(notice.startswith("connected") for notice in self.notices)

    def _run(self) -> None:
        try:
            self._bridge.run()
        except BaseException as error:  # noqa: BLE001  raised where the test waits
            self._error = error


@contextmanager
def at_work(definition: MqttBridge) -> Iterator[AtWork]:
    """Run a bridge; it is ended at the end, if it has not ended before."""
    work = AtWork(definition)
    try:
        yield work
    finally:
        work.end()


def until(done: Callable[[], Any], *, what: str) -> None:
    """Wait for something that another process or thread brings about."""
    patience = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < patience, f"never happened: {what}"
        time.sleep(0.01)


def lines(folder: Path, partition: str | None = None) -> list[bytes]:
    """Return what a log holds, in the order of its offsets."""
    found: list[bytes] = []
    for file in sorted(list_log(folder), key=lambda each: each.path):
        if partition in {None, file.partition}:
            for chunk in read_file(file.path, length=file.length, modified_ms=file.modified_ms, kind="json"):
                found += chunk.frame["__payload"].cast(pl.Binary).to_list()
    return found

"""The producer: writes the phones' records to the log, in real time, in its own thread."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from slackwater.connectors.log.writing import LogWriter
from slackwater.tools.demo.phones import Phones

SPEED: Final = 10
"""Seconds of the customers' time per second of real time: a minute shows ten minutes of events."""
_TICK_S: Final = 0.1
_ROLL_AFTER: Final = "500ms"


@dataclass(kw_only=True)
class Producer:
    """A producer that writes to a log of four partitions for `seconds`, at `rate` purchases per second.

    The customers' time starts in the past and reaches the present at the end: it runs ten times as fast, and no event
    of a correct clock is ahead of real time.
    """

    folder: Path
    seconds: float
    rate: int
    seed: int
    phones: Phones = field(init=False)
    written: int = 0
    started_ms: int = 0
    """The customers' time at the start."""
    _began: float = 0.0
    _ended: float = 0.0
    _stop: threading.Event = field(default_factory=threading.Event)
    _done: threading.Event = field(default_factory=threading.Event)
    _failure: list[BaseException] = field(default_factory=list)
    _thread: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self.phones = Phones(seed=self.seed, now_ms=0)
        self._thread = threading.Thread(target=self._run, name="demo-feed", daemon=True)

    def start(self) -> None:
        """Start writing."""
        now_ms = time.time_ns() // 1_000_000
        self.started_ms = self.phones.now_ms = now_ms - round((SPEED - 1) * self.seconds * 1_000)
        self._began = time.monotonic()
        self._thread.start()

    def stop(self) -> None:
        """End early; all phones still send their queued purchases."""
        self._stop.set()

    @property
    def has_begun(self) -> bool:
        """Whether the producer was started."""
        return self._began > 0

    @property
    def is_done(self) -> bool:
        """Whether everything is written; raises the producer's error, if there was one."""
        if self._failure:
            raise self._failure[0]
        return self._done.is_set()

    @property
    def elapsed_s(self) -> float:
        """The seconds since the start while it writes, at most `seconds`."""
        if not self.has_begun:
            return 0.0
        return min(self.seconds, (self._ended or time.monotonic()) - self._began)

    def _run(self) -> None:
        try:
            self._write_all()
        except BaseException as error:  # noqa: BLE001  raised again in the demo's own thread
            self._failure.append(error)
        finally:
            self._done.set()

    def _write_all(self) -> None:
        start_ms = self.phones.now_ms
        ticks = round(self.seconds / _TICK_S)
        with LogWriter(self.folder, roll_after=_ROLL_AFTER) as log:
            for tick in range(1, ticks + 1):
                if self._stop.wait(max(0.0, self._began + tick * _TICK_S - time.monotonic())):
                    break
                purchases = round(self.rate * tick * _TICK_S) - round(self.rate * (tick - 1) * _TICK_S)
                until_ms = start_ms + round(tick * _TICK_S * SPEED * 1_000)
                self._append(log, self.phones.tick(until_ms, purchases))
            self._append(log, self.phones.all_back())
        self._ended = time.monotonic()

    def _append(self, log: LogWriter, records: list[tuple[int, bytes]]) -> None:
        for partition, record in records:
            log.append(record, partition=str(partition))
        self.written += len(records)

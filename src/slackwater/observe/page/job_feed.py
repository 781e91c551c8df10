"""The feed of a job on the page: its description, its last records, and the listeners for new ones.

A job publishes from its own thread and never waits: a listener that does not keep up loses its oldest records, and
requests the history again when it reconnects.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

Shown = dict[str, Any]
"""An object that is sent to the browser as JSON."""
MOST_RECORDS: Final = 5_000
MOST_SAMPLES: Final = 100
_MOST_WAITING: Final = 50
END: Final = ""
"""The last event that listeners receive."""


class JobFeed:
    """One job on the page."""

    def __init__(
        self,
        job: Shown,
        records: Iterable[Shown] = (),
        lateness: Shown | None = None,
        samples: Iterable[Shown] = (),
    ) -> None:
        self._lock = threading.Lock()
        self._job = job
        self._records = deque(records, maxlen=MOST_RECORDS)
        self._texts = deque(map(json.dumps, self._records), maxlen=MOST_RECORDS)
        self._lateness = lateness or {}
        self._samples = deque(samples, maxlen=MOST_SAMPLES)
        self._listeners: dict[asyncio.Queue[str], asyncio.AbstractEventLoop] = {}

    @property
    def name(self) -> str:
        """The name of the pipeline."""
        return str(self._job["pipeline"])

    @property
    def job(self) -> Shown:
        """The description of the job: its streams, steps and outputs, and its state."""
        with self._lock:
            return dict(self._job)

    @property
    def records(self) -> list[Shown]:
        """The records of the last batches."""
        with self._lock:
            return list(self._records)

    @property
    def texts(self) -> list[str]:
        """The records of the last batches, each as JSON."""
        with self._lock:
            return list(self._texts)

    @property
    def last(self) -> list[int] | None:
        """The delivery time and the number of the last batch; None before the first."""
        with self._lock:
            return [self._records[-1]["at"], self._records[-1]["batch"]] if self._records else None

    @property
    def lateness(self) -> Shown:
        """The measured lateness of each stream."""
        with self._lock:
            return self._lateness

    @property
    def samples(self) -> list[Shown]:
        """Samples of the newest late rows and dead letters."""
        with self._lock:
            return list(self._samples)

    def publish(self, record: Shown, lateness: Shown | None = None, samples: Sequence[Shown] = ()) -> None:
        """Add the record of a batch, and send it to all listeners."""
        text = json.dumps(record)  # once, for all who request it
        with self._lock:
            self._records.append(record)
            self._texts.append(text)
            self._samples.extend(samples)
            if lateness is not None:
                self._lateness = lateness
                record = {**record, "lateness": lateness}
            if samples:
                record = {**record, "samples": list(samples)}
            self._notify(record)

    def change(self, state: str, **facts: Any) -> None:  # noqa: ANN401  parts of the job's description
        """Change the state of the job, and notify all listeners."""
        with self._lock:
            self._job = {**self._job, "state": state, **facts}
            self._notify({"state": state, **facts})

    def dismiss(self) -> None:
        """Send all listeners the last event, because their server is about to stop."""
        with self._lock:
            self._send(END)

    @contextmanager
    def listening(self) -> Iterator[asyncio.Queue[str]]:
        """Yield a queue of all new events as JSON, to be read in the running event loop."""
        queue: asyncio.Queue[str] = asyncio.Queue(maxsize=_MOST_WAITING)
        with self._lock:
            self._listeners[queue] = asyncio.get_running_loop()
        try:
            yield queue
        finally:
            with self._lock:
                del self._listeners[queue]

    def _notify(self, news: Shown) -> None:
        if self._listeners:
            self._send(json.dumps(news))  # once for all of them

    def _send(self, text: str) -> None:
        for queue, loop in self._listeners.items():
            if not loop.is_closed():
                loop.call_soon_threadsafe(_put, queue, text)


def _put(queue: asyncio.Queue[str], text: str) -> None:
    """Add to a queue; if it is full, drop its oldest entry."""
    if queue.full():
        queue.get_nowait()
    queue.put_nowait(text)

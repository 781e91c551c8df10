"""Listing new data in the sources of a live job while it waits for its next batch."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Final, Self

from slackwater.connectors.intake import Intake

_PAUSE_S: Final = 0.1
_SHARE: Final = 20
"""Sources that take long to list are listed less often, so that listing takes at most a twentieth of the time."""


class SourceLister:
    """A context manager whose thread lists new data between batches."""

    def __init__(
        self, intakes: Iterable[Intake], *, is_between: Callable[[], bool], on_error: Callable[[Exception], None]
    ) -> None:
        self._intakes = list(intakes)
        self._is_between = is_between
        self._on_error = on_error
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._run, name="slackwater-feed", daemon=True)

    def __enter__(self) -> Self:
        if self._intakes:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._left.set()
        if self._intakes:
            self._thread.join()

    def _run(self) -> None:
        pause_s = _PAUSE_S
        while not self._left.wait(pause_s):
            if not self._is_between():
                continue  # the batch itself lists new data when it ends
            began = time.monotonic()
            try:
                for intake in self._intakes:
                    intake.publish()
            except Exception as error:  # noqa: BLE001  it ends the job, which raises it again
                self._on_error(error)
                return
            pause_s = max(_PAUSE_S, _SHARE * (time.monotonic() - began))

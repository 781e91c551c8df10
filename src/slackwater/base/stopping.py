"""Ctrl-C and SIGTERM: requests for an orderly stop, not interruptions."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Make SIGINT and SIGTERM call `stop`; in threads other than the main one, which gets all signals, do nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(_signal: int, _frame: FrameType | None) -> None:
        stop()

    with kept_handlers():
        for number in _SIGNALS:
            signal.signal(number, handle)
        yield


@contextmanager
def kept_handlers() -> Iterator[None]:
    """Restore the handlers of SIGINT and SIGTERM at the end, whatever is set inside.

    Spark installs its own handler when it starts: that handler calls Java in the middle of any call to Java that is in
    progress, and both calls fail with printed stack traces.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

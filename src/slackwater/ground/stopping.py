"""Ctrl-C and SIGTERM: a request to stop in order, not an interruption."""

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
    """Let SIGINT and SIGTERM call `stop` inside; signals reach only the main thread, elsewhere nothing changes."""
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
    """Let SIGINT and SIGTERM be handled afterwards as before, whatever is set inside.

    Spark sets a handler of its own when it starts: it calls Java from inside whatever Java is just called for, and
    both calls fail with their stacks printed.
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

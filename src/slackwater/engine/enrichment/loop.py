"""The event loop of a process: one thread, in which all of its lookups wait for their stores concurrently.

It has its own thread because the caller may already be inside a loop, as in a notebook. A forked process creates a new
one: threads do not survive a fork.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, Final, TypeVar

T = TypeVar("T")
_END_S: Final = 1.0
"""How long the end of a process waits for unfinished work."""
_LOCK: Final = threading.Lock()
_LOOPS: Final[dict[int, asyncio.AbstractEventLoop]] = {}
"""The loop of each process; after a fork also the parent's, which must not be used."""


def submitted(work: Coroutine[Any, Any, T]) -> Future[T]:
    """Run `work` on the loop of this process, without waiting."""
    return asyncio.run_coroutine_threadsafe(work, _loop())


def completed(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` on the loop of this process, and return its result."""
    future = submitted(work)
    try:
        return future.result()
    except BaseException:
        future.cancel()  # the caller was interrupted, so nobody waits for it
        raise


def _loop() -> asyncio.AbstractEventLoop:
    with _LOCK:
        if os.getpid() not in _LOOPS:
            loop = asyncio.new_event_loop()
            _LOOPS[os.getpid()] = loop
            thread = threading.Thread(target=_run, args=(loop,), daemon=True, name="slackwater-lookups")
            thread.start()
            atexit.register(_stop, loop, thread, os.getpid())
        return _LOOPS[os.getpid()]


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        # Clients that were released just before are still closing.
        if begun := asyncio.all_tasks(loop):
            loop.run_until_complete(_ended(begun))
    finally:
        loop.close()


async def _ended(tasks: set[asyncio.Task[Any]]) -> None:
    """Wait briefly for unfinished tasks, then cancel them."""
    _, late = await asyncio.wait(tasks, timeout=_END_S)
    for task in late:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _stop(loop: asyncio.AbstractEventLoop, thread: threading.Thread, pid: int) -> None:
    if os.getpid() == pid:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(2 * _END_S)

"""Clients that wait in threads: their libraries know no other way, or are several times slower with one."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from slackwater.lookups.base import Answer, LookupClient

CONNECT_S: Final = 5.0
"""How long a connection may take, if a request may not take longer."""


class ThreadedClient(LookupClient):
    """Asks in threads of its own. A request whose time is over is left to its thread, which ends by its own timeout."""

    def __init__(self, at_once: int) -> None:
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix="slackwater-lookup")

    async def fetch(self, keys: Sequence[Any]) -> Mapping[Any, Answer]:
        """Return what `ask` gives."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self.ask, keys)

    @abstractmethod
    def ask(self, keys: Sequence[Any]) -> Mapping[Any, Answer]:
        """Return what the store has for some keys, as `LookupClient.fetch` does."""

    async def close(self) -> None:
        """End the threads, after the requests that are under way."""
        self._threads.shutdown(wait=False, cancel_futures=True)

"""Clients that block in threads: their libraries have no asynchronous API, or one that is several times slower."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from slackwater.connectors.lookup import Answer, LookupClient

CONNECT_S: Final = 5.0
"""How long connecting may take, if a request may not take longer."""


class ThreadedClient(LookupClient):
    """Asks in its own threads. A request that times out is left to its thread, which ends by its own timeout."""

    def __init__(self, at_once: int) -> None:
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix="slackwater-lookup")

    async def fetch(self, keys: Sequence[Any]) -> Mapping[Any, Answer]:
        """Return the result of `ask`."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self.ask, keys)

    @abstractmethod
    def ask(self, keys: Sequence[Any]) -> Mapping[Any, Answer]:
        """Return the store's answers for some keys, as `LookupClient.fetch` does."""

    async def close(self) -> None:
        """End the threads once their current requests are done."""
        self._threads.shutdown(wait=False, cancel_futures=True)

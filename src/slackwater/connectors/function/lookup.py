"""A user's function as a store: any client, any protocol."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from slackwater.base.errors import refuse
from slackwater.connectors.lookup import Answer, Lookup, LookupClient, Question, Refused, bad_option, excerpt

AsyncFunction = Callable[..., Awaitable[Any]]
_MOST_KEYS: Final = 100_000


@dataclass(frozen=True, kw_only=True, eq=False)
class FunctionLookup(Lookup):
    """An asynchronous function, called with one key or with a list of keys."""

    function: AsyncFunction
    batch: int | None = None

    def open(self, question: Question) -> LookupClient:  # noqa: ARG002  the function decides what it returns
        """Return a client that calls the function."""
        return _FunctionClient(self)

    def __str__(self) -> str:
        keys = "" if self.batch is None else f", {self.batch} keys a call"
        return f"{getattr(self.function, '__name__', 'function')}(){keys}"


class _FunctionClient(LookupClient):
    def __init__(self, lookup: FunctionLookup) -> None:
        self._function = lookup.function
        self._takes_many = lookup.batch is not None
        self.keys_per_request = lookup.batch or 1

    async def fetch(self, keys: Sequence[Any]) -> Mapping[Any, Answer]:
        try:
            if not self._takes_many:
                return {keys[0]: _answer(await self._function(keys[0]))}
            found = await self._function(list(keys))
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise  # cancelled by the timeout
            raise RuntimeError("the function was cancelled from within") from error
        except SystemExit as error:
            raise RuntimeError("the function called exit()") from error
        if not isinstance(found, Mapping):
            why = f"a function of many keys returns a dictionary by key; got a {type(found).__name__}"
            return dict.fromkeys(keys, Refused(why))
        return {key: _answer(value) for key, value in found.items()}


def _answer(found: object) -> Answer:
    if isinstance(found, Mapping):
        return dict(found)
    return found if found is None else Refused(f"an answer is a dictionary of columns, or None; got {excerpt(found)}")


def function(async_function: AsyncFunction, *, batch: int | None = None) -> FunctionLookup:
    """Look up with a function: `function(fetch_user)` with `async def fetch_user(key) -> dict | None`.

    It returns the values of the output columns, or None if there is nothing for the key. With `batch=500` it receives a
    list of up to 500 distinct keys, and returns a dictionary of such values by key. Up to `concurrency` calls run
    concurrently, on one event loop per worker process; a call that blocks the loop blocks all of them. An exception is
    a failed request.
    """
    if not inspect.iscoroutinefunction(async_function) and not inspect.iscoroutinefunction(
        getattr(async_function, "__call__", None)  # noqa: B004  an object may have an async one
    ):
        raise refuse("LOOKUP_FUNCTION", got=repr(async_function))
    if batch is not None and (type(batch) is not int or not 1 <= batch <= _MOST_KEYS):
        rule = f"a whole number from 1 to {_MOST_KEYS:,}"
        remedy = "omit it to be called with one key at a time"
        raise bad_option("a function lookup", "batch", rule=rule, got=repr(batch), remedy=remedy)
    return FunctionLookup(function=async_function, batch=batch)

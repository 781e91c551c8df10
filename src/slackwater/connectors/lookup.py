"""The contract between the engine and a store in which rows are looked up.

A `Lookup` is what users define: frozen, sent to the executors, without connections. `open` returns a client, which a
worker process keeps. The client fetches some keys at a time, on the process's event loop. Concurrency, timeouts,
retries, the circuit breaker, the cache and the persisting of answers are the same for all stores, and not part of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import polars as pl

from slackwater.base.errors import DefinitionError, refuse
from slackwater.connectors.sink import Unavailable
from slackwater.formats.base import Format
from slackwater.formats.json import json

KEY_TYPES: Final = (pl.String, pl.Date)
"""The types of keys, besides integers, by which every store can be queried."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """What a step asks a store: the key column, the wanted columns, and the limits."""

    step: str
    key: str
    output: pl.Schema
    timeout_ms: int
    concurrency: int


@dataclass(frozen=True)
class Refused:
    """The answer for a key that the store will never accept: its row becomes a dead letter."""

    message: str


Answer = Mapping[str, Any] | bytes | Refused | None
"""A store's answer for a key: values by column, or bytes in the lookup's format; None if it has nothing."""


class RefusedKeysError(Exception):
    """Raised by a client if the store refused a request because of its keys; they are then asked for separately."""


class LookupClient(ABC):
    """An open store, in one worker process. Its methods run on the process's event loop."""

    keys_per_request: int = 1
    """The maximum number of keys passed to `fetch`."""

    @abstractmethod
    async def fetch(self, keys: Sequence[Any]) -> Mapping[Any, Answer]:
        """Return the store's answers for some keys; a key left out is missing.

        Raises `Unavailable`, or anything else, if this request failed but may succeed later; `RefusedKeysError` if one
        of the keys is at fault; a `RunError` if no request can ever succeed, which ends the job. It is cancelled after
        the timeout.
        """

    async def close(self) -> None:  # noqa: B027  not every client has resources
        """Release connections."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Lookup(ABC):
    """A store as users define it; it is sent to the executors, so it holds no connections."""

    most_at_once: ClassVar[int] = 10_000
    """The maximum number of concurrent requests of one client."""

    def check(self, question: Question) -> None:  # noqa: B027  most stores accept any question
        """Reject a question that this store cannot answer, when the pipeline is built."""

    def format(self, output: pl.Schema) -> Format:
        """Return the format in which answers given as bytes are decoded."""
        return json(output)

    @abstractmethod
    def open(self, question: Question) -> LookupClient:
        """Return a client, which connects when first used and reconnects if the connection is lost."""

    @abstractmethod
    def __str__(self) -> str:
        """Return the store as shown by `explain`."""


def bad_option(lookup: str, what: str, *, rule: str, got: str, remedy: str) -> DefinitionError:
    """Return the error for an invalid option of a lookup, for the caller to raise."""
    return refuse("LOOKUP_OPTION", lookup=lookup, what=what, rule=rule, got=got, remedy=remedy)


__all__ = [
    "KEY_TYPES",
    "Answer",
    "Lookup",
    "LookupClient",
    "Question",
    "Refused",
    "RefusedKeysError",
    "Unavailable",
    "bad_option",
]


def excerpt(value: object) -> str:
    """Return the beginning of any value as text."""
    try:
        return f"{value!r:.60}"
    except Exception:  # noqa: BLE001  a user's class may raise anything
        return f"a {type(value).__name__}"

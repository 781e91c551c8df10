"""The contract between the engine and a store that rows are looked up in.

A `Lookup` is what users write: frozen, sent to the executors, without connections. `open` gives a client, which a
worker process keeps. The client fetches some keys at a time, on the process's event loop. Concurrency, timeouts,
retries, the circuit breaker, the cache, and the writing down of answers are the same for all stores, and not here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import polars as pl

from slackwater.errors import DefinitionError, refuse
from slackwater.formats.base import Format
from slackwater.formats.json import json
from slackwater.sinks.base import Unavailable

KEY_TYPES: Final = (pl.String, pl.Date)
"""Types of keys besides whole numbers: what every store can be asked by."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """What a step asks of a store: by which column, for which columns, and how."""

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
"""What a store has for a key: values by column, or bytes in the lookup's format; None if it has nothing."""


class RefusedKeysError(Exception):
    """Raised by a client when the store refused a request because of its keys; each is then asked by itself."""


class LookupClient(ABC):
    """An open store, in one worker process. Its methods run on the process's event loop."""

    keys_per_request: int = 1
    """How many keys `fetch` is given at most."""

    @abstractmethod
    async def fetch(self, keys: Sequence[Any]) -> Mapping[Any, Answer]:
        """Return what the store has for some keys; one that is left out is missing.

        Raises `Unavailable`, or anything else, if this request failed and may succeed later; `RefusedKeysError` if one
        of the keys is at fault; a `RunError` if no request can ever succeed, which ends the job. It is cancelled after
        the timeout.
        """

    async def close(self) -> None:  # noqa: B027  not every client holds something
        """Release connections."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Lookup(ABC):
    """A store as users define it; it is sent to the executors, so it holds no connections."""

    most_at_once: ClassVar[int] = 10_000
    """Requests that one client can have under way at a time."""

    def check(self, question: Question) -> None:  # noqa: B027  most stores take any question
        """Refuse a question that this store cannot answer, when the pipeline is built."""

    def format(self, output: pl.Schema) -> Format:
        """Return how answers that are bytes are read."""
        return json(output)

    @abstractmethod
    def open(self, question: Question) -> LookupClient:
        """Return a client; it connects when it is first used, and again when its connection is lost."""

    @abstractmethod
    def __str__(self) -> str:
        """Return the store as `explain` shows it."""


def bad_option(lookup: str, what: str, *, rule: str, got: str, remedy: str) -> DefinitionError:
    """Return the error for an option of a lookup, to be raised by the caller."""
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

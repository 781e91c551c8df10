"""State of a key with several values: a list, a set, a map."""

# ruff: noqa: D102  the base class says what the methods do

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import polars as pl

from slackwater.process.failures import MisfitError
from slackwater.process.state import NEVER_MS, State

_GONE: Final = object()


class ListState(State):
    """Values in the order they were added; each is forgotten individually."""

    kind = "list"
    _is_nested: bool
    _values: list[Any]
    _ats: list[int]
    _oldest: int
    """A lower bound of the write times."""

    def add(self, value: Any) -> None:  # noqa: ANN401  the user's own value
        """Add a value at the end."""
        value, at = self._checks["value"](value), self.moment.ms
        self.journal.append((self,))
        self._values.append(value)
        self._ats.append(at)
        self._oldest = min(self._oldest, at)

    def set(self, values: Iterable[Any]) -> None:
        """Replace all values."""
        taken = [self._checks["value"](value) for value in values]
        self.journal.append((self, self._values, self._ats))
        at = max(self.moment.ms, max(self._ats, default=-NEVER_MS))  # never earlier than what is replaced
        self._restore(taken, [at] * len(taken))

    def get(self) -> list[Any]:
        """Return the values."""
        return copy.deepcopy(self._live()) if self._is_nested else [*self._live()]

    def clear(self) -> None:
        """Forget all values."""
        self.set(())

    def __iter__(self) -> Iterator[Any]:
        return iter(self.get())

    def __len__(self) -> int:
        return len(self._live())

    def _live(self) -> list[Any]:
        """Return the values that are not forgotten; the others stay, because an earlier event may still need them."""
        dead_ms = self.dead_ms
        if self._oldest >= dead_ms:
            return self._values
        return [value for value, at in zip(self._values, self._ats, strict=True) if at >= dead_ms]

    def undo(self, *before: Any) -> None:  # noqa: ANN401  the user's own values
        if before:
            self._restore(*before)
        else:
            self._values.pop()
            self._ats.pop()

    def _restore(self, values: list[Any], ats: list[int]) -> None:
        self._values, self._ats = values, ats
        self._oldest = min(ats, default=NEVER_MS)

    def _parts(self) -> dict[str, pl.DataType]:
        return {"values": pl.List(self.types["value"]), "at": pl.List(pl.Int64())}

    def load(self, *parts: Any) -> None:  # noqa: ANN401  the user's own values
        values, ats = parts
        self._restore(values or [], ats or [])

    def dump(self) -> tuple[Any, ...]:
        self._restore(self._live(), [at for at in self._ats if at >= self.dead_ms])
        return (self._values, self._ats) if self._values else (None, None)

    def clear_unseen(self) -> None:
        self._is_nested = self.types["value"].is_nested()
        self._restore([], [])

    @property
    def oldest_ms(self) -> int | None:
        return self._oldest if self._values else None


class _Entries(State):
    """Entries by key; each is forgotten individually."""

    _is_float: bool
    _held: dict[Any, tuple[Any, int]]
    _oldest: int
    """A lower bound of the write times."""

    def remove(self, key: Any) -> None:  # noqa: ANN401  the user's own value
        """Forget one entry, if it exists."""
        key = self._same(self._checks["key"](key))
        if key in self._held:
            self._put(key, _GONE)

    def clear(self) -> None:
        """Forget all entries."""
        self.journal.append((self, self._held))
        self._restore({})

    def __contains__(self, key: object) -> bool:
        held = self._held.get(self._same(key))
        return held is not None and held[1] >= self.dead_ms

    def __len__(self) -> int:
        return len(self._live())

    def __iter__(self) -> Iterator[Any]:
        return iter([*self._live()])

    def _live(self) -> dict[Any, tuple[Any, int]]:
        """Return the entries that are not forgotten; the others stay, because an earlier event may still need them."""
        dead_ms = self.dead_ms
        if self._oldest >= dead_ms:
            return self._held
        return {key: held for key, held in self._held.items() if held[1] >= dead_ms}

    def _kept(self) -> dict[Any, tuple[Any, int]]:
        """Remove the forgotten entries, and return the others."""
        self._restore(self._live())
        return self._held

    def _write(self, key: Any, value: Any) -> None:  # noqa: ANN401  the user's own values
        before, at = self._held.get(key), self.moment.ms
        self._put(key, (value, at if before is None or before[1] < at else before[1]))

    def _put(self, key: Any, held: Any) -> None:  # noqa: ANN401  the user's own values
        self.journal.append((self, key, self._held.get(key, _GONE)))
        self._set(key, held)

    def undo(self, *before: Any) -> None:  # noqa: ANN401  the user's own values
        if len(before) == 1:
            self._restore(*before)
        else:
            self._set(*before)

    def _set(self, key: Any, held: Any) -> None:  # noqa: ANN401  the user's own values
        if held is _GONE:
            self._held.pop(key, None)
        else:
            self._held[key] = held
            self._oldest = min(self._oldest, held[1])

    def _restore(self, held: dict[Any, tuple[Any, int]]) -> None:
        self._held = held
        self._oldest = min((at for _, at in held.values()), default=NEVER_MS)

    def _key(self, key: Any) -> Any:  # noqa: ANN401  the user's own value
        if key is None:
            raise MisfitError("the elements of a set and the keys of a map are not null")
        return self._same(self._checks["key"](key))

    def _same(self, key: Any) -> Any:  # noqa: ANN401  the user's own value
        """Return the canonical form of `key`: one NaN object for all, which a dictionary finds by identity."""
        is_nan = self._is_float and isinstance(key, float | np.floating) and math.isnan(key)
        return math.nan if is_nan else key

    def clear_unseen(self) -> None:
        self._is_float = self.types["key"].is_float()
        self._restore({})

    @property
    def oldest_ms(self) -> int | None:
        return self._oldest if self._held else None


class SetState(_Entries):
    """Distinct values; each is forgotten individually, `ttl` after it was last added."""

    kind = "set"

    def add(self, value: Any) -> None:  # noqa: ANN401  the user's own value
        """Add a value."""
        self._write(self._key(value), None)

    def get(self) -> set[Any]:
        """Return the values."""
        return {*self._live()}

    def _parts(self) -> dict[str, pl.DataType]:
        return {"values": pl.List(self.types["key"]), "at": pl.List(pl.Int64())}

    def load(self, *parts: Any) -> None:  # noqa: ANN401  the user's own values
        values, ats = parts
        if values and self._is_float:
            values = [self._same(value) for value in values]
        self._restore({value: (None, at) for value, at in zip(values, ats, strict=True)} if values else {})

    def dump(self) -> tuple[Any, ...]:
        held = self._kept()
        return ([*held], [at for _, at in held.values()]) if held else (None, None)


class MapState(_Entries):
    """Values by key; each is forgotten individually, `ttl` after it was last set."""

    kind = "map"
    _is_nested: bool

    def get(self, key: Any, default: Any = None) -> Any:  # noqa: ANN401  the user's own values
        """Return the value of `key`, or `default`."""
        held = self._held.get(self._same(key))
        if held is None or held[1] < self.dead_ms:
            return default
        return copy.deepcopy(held[0]) if self._is_nested else held[0]

    def set(self, key: Any, value: Any) -> None:  # noqa: ANN401  the user's own values
        """Set the value of `key`."""
        self._write(self._key(key), self._checks["value"](value))

    def keys(self) -> list[Any]:
        """Return the keys."""
        return [*self._live()]

    def values(self) -> list[Any]:
        """Return the values."""
        return [value for _, value in self.items()]

    def items(self) -> list[tuple[Any, Any]]:
        """Return keys and values."""
        held = [(key, value) for key, (value, _) in self._live().items()]
        return copy.deepcopy(held) if self._is_nested else held

    def _parts(self) -> dict[str, pl.DataType]:
        values = pl.List(self.types["value"])
        return {"keys": pl.List(self.types["key"]), "values": values, "at": pl.List(pl.Int64())}

    def load(self, *parts: Any) -> None:  # noqa: ANN401  the user's own values
        keys, values, ats = parts
        if keys and self._is_float:
            keys = [self._same(key) for key in keys]
        self._restore(dict(zip(keys, zip(values, ats, strict=True), strict=True)) if keys else {})

    def dump(self) -> tuple[Any, ...]:
        held = self._kept()
        if not held:
            return (None, None, None)
        return ([*held], [value for value, _ in held.values()], [at for _, at in held.values()])

    def clear_unseen(self) -> None:
        self._is_nested = self.types["value"].is_nested()
        super().clear_unseen()

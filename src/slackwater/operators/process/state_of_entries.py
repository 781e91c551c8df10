"""State of a key with entries by a key of their own: a set, a map."""

# ruff: noqa: D102  the base class says what the methods do

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import polars as pl

from slackwater.operators.process.chunks import EntryChunk, Row, Tree, place_of
from slackwater.operators.process.failures import MisfitError
from slackwater.operators.process.state import NEVER_MS
from slackwater.operators.process.state_of_several import StateOfSeveral

_GONE: Final = object()


class _Entries(StateOfSeveral):
    """Entries by key; each is forgotten individually."""

    _is_float: bool
    _held: dict[Any, tuple[Any, int, int]]
    """The entries at hand: a value, when it was written, and its number in the order of entries."""
    _next: int
    """The number of the next entry."""
    _is_sorted: bool
    """Whether the entries at hand are in order."""

    def remove(self, key: Any) -> None:  # noqa: ANN401  the user's own value
        """Forget one entry, if it exists."""
        key = self._same(self._checks["key"](key))
        if self._found(key) is not None:
            self._put(key, _GONE)

    def clear(self) -> None:
        """Forget all entries."""
        self.journal.append((self, self._held, self.tree, self._next))
        self._restore({})

    def __contains__(self, key: object) -> bool:
        held = self._found(self._same(key))
        return held is not None and held[1] >= self.dead_ms

    def __len__(self) -> int:
        if self.tree is None:
            return len(self._live())
        self._take(self.tree.read_mixed(self.dead_ms))
        return self.tree.count_unread(self.dead_ms) + sum(held[1] >= self.dead_ms for held in self._held.values())

    def __iter__(self) -> Iterator[Any]:
        return iter([*self._live()])

    def _found(self, key: Any) -> tuple[Any, int, int] | None:  # noqa: ANN401  the user's own value
        if self.tree is not None:
            self._take(self.tree.read_at(place_of(key)))
        return self._held.get(key)

    def _live(self) -> dict[Any, tuple[Any, int, int]]:
        """Return the entries that are not forgotten; the others stay, because an earlier event may still need them."""
        if self.tree is not None:
            self._take(self.tree.read_all())
        if not self._is_sorted:
            self._held = dict(sorted(self._held.items(), key=lambda each: each[1][2]))
            self._is_sorted = True
        dead_ms = self.dead_ms
        if self._oldest >= dead_ms:
            return self._held
        return {key: held for key, held in self._held.items() if held[1] >= dead_ms}

    def _write(self, key: Any, value: Any) -> None:  # noqa: ANN401  the user's own values
        before, at = self._found(key), self.moment.ms
        if before is None:
            number, self._next = self._next, self._next + 1
        else:
            at, number = max(at, before[1]), before[2]
        self._put(key, (value, at, number))

    def _put(self, key: Any, held: Any) -> None:  # noqa: ANN401  the user's own values
        self.journal.append((self, key, self._held.get(key, _GONE)))
        if self.tree is not None:
            self.tree.change(place_of(key))
        self._set(key, held)

    def undo(self, *before: Any) -> None:  # noqa: ANN401  the user's own values
        if len(before) == 2:  # noqa: PLR2004  a key and its entry
            self._is_sorted = False
            self._set(*before)
        else:
            self._restore(*before)

    def _set(self, key: Any, held: Any) -> None:  # noqa: ANN401  the user's own values
        if held is _GONE:
            self._held.pop(key, None)
        else:
            self._held[key] = held
            self._oldest = min(self._oldest, held[1])

    def _take(self, rows: list[Row]) -> None:
        """Add the entries of chunks to those at hand."""
        if not rows:
            return
        self._held.update((self._same(row[0]), self._entry(row)) for row in rows)
        self._oldest = min(self._oldest, *(row[-2] for row in rows))
        self._is_sorted = False

    def _restore(
        self, held: dict[Any, tuple[Any, int, int]], tree: Tree | None = None, number: int | None = None
    ) -> None:
        self._held, self.tree, self._is_sorted = held, tree, tree is None and number is None
        self._next = len(held) if number is None else number
        self._oldest = min((at for _, at, _ in held.values()), default=NEVER_MS)

    @abstractmethod
    def _entry(self, row: Row) -> tuple[Any, int, int]:
        """Return the entry of a chunk's row: its value, when it was written, its number."""

    def attach(self, directory: list[EntryChunk]) -> None:
        super().attach(directory)
        self._next = max(chunk.last for chunk in directory) + 1

    def _place(self, row: Row) -> int:
        return place_of(self._same(row[0]))

    def _take_over(self, rows: list[Row]) -> None:
        ordered = sorted(rows, key=lambda row: row[-1])
        self._restore({self._same(row[0]): self._entry(row) for row in ordered}, self.tree)
        self._is_sorted = True

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

    @property
    def apart_types(self) -> dict[str, pl.DataType]:
        return {"key": self.types["key"], "at": pl.Int64(), "seq": pl.Int64()}

    def _entry(self, row: Row) -> tuple[Any, int, int]:
        return (None, row[1], row[2])

    def _at_hand(self) -> Iterator[Row]:
        dead_ms = self.dead_ms
        return ((key, at, number) for key, (_, at, number) in self._held.items() if at >= dead_ms)

    def load(self, *parts: Any) -> None:  # noqa: ANN401  the user's own values
        values, ats = parts
        if values and self._is_float:
            values = [self._same(value) for value in values]
        self._restore(
            {value: (None, at, number) for number, (value, at) in enumerate(zip(values, ats, strict=True))}
            if values
            else {}
        )

    def _dump_inline(self) -> tuple[Any, ...]:
        self._restore(held := self._live())
        return ([*held], [at for _, at, _ in held.values()]) if held else (None, None)


class MapState(_Entries):
    """Values by key; each is forgotten individually, `ttl` after it was last set."""

    kind = "map"
    _is_nested: bool

    def get(self, key: Any, default: Any = None) -> Any:  # noqa: ANN401  the user's own values
        """Return the value of `key`, or `default`."""
        held = self._found(self._same(key))
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
        held = [(key, value) for key, (value, _, _) in self._live().items()]
        return copy.deepcopy(held) if self._is_nested else held

    def _parts(self) -> dict[str, pl.DataType]:
        values = pl.List(self.types["value"])
        return {"keys": pl.List(self.types["key"]), "values": values, "at": pl.List(pl.Int64())}

    @property
    def apart_types(self) -> dict[str, pl.DataType]:
        return {"key": self.types["key"], "value": self.types["value"], "at": pl.Int64(), "seq": pl.Int64()}

    def _entry(self, row: Row) -> tuple[Any, int, int]:
        return row[1:]

    def _at_hand(self) -> Iterator[Row]:
        dead_ms = self.dead_ms
        return ((key, *held) for key, held in self._held.items() if held[1] >= dead_ms)

    def load(self, *parts: Any) -> None:  # noqa: ANN401  the user's own values
        keys, values, ats = parts
        if keys and self._is_float:
            keys = [self._same(key) for key in keys]
        self._restore(dict(zip(keys, zip(values, ats, range(len(keys)), strict=True), strict=True)) if keys else {})

    def _dump_inline(self) -> tuple[Any, ...]:
        self._restore(held := self._live())
        if not held:
            return (None, None, None)
        return ([*held], [value for value, _, _ in held.values()], [at for _, at, _ in held.values()])

    def clear_unseen(self) -> None:
        self._is_nested = self.types["value"].is_nested()
        super().clear_unseen()

"""State of a key with several values, and the list; `state_of_entries` has the set and the map.

Few values are in the state row of the key; many are in chunks, which are read when they are reached for.
"""

# ruff: noqa: D102  the base class says what the methods do

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from itertools import compress
from typing import Any

import polars as pl

from slackwater.operators.process import chunks
from slackwater.operators.process.chunks import EntryChunk, Row, Tree
from slackwater.operators.process.state import NEVER_MS, State


class StateOfSeveral(State):
    """Entries of one key, each of which is forgotten individually."""

    _stored: Tree | None = None
    """The chunks as they were loaded."""
    _oldest: int
    """A lower bound of the write times of the entries at hand."""

    def attach(self, directory: list[EntryChunk]) -> None:
        """Let the key, whose row was just loaded, have the entries of some chunks as well."""
        self.tree = self._stored = self._new_tree(directory)

    def _new_tree(self, directory: Iterable[EntryChunk] = ()) -> Tree:
        return Tree(self._home, self._label, self.apart_types, self._place, directory, gone_ms=self.gone_ms)

    @property
    @abstractmethod
    def apart_types(self) -> dict[str, pl.DataType]:
        """The columns of a chunk: an entry's values, when it was written, and its number in their order."""

    @abstractmethod
    def _place(self, row: Row) -> int:
        """Return the place of an entry."""

    @abstractmethod
    def _at_hand(self) -> Iterator[Row]:
        """Yield the entries that were read or added, without those that are forgotten."""

    @abstractmethod
    def _take_over(self, rows: list[Row]) -> None:
        """Replace all entries by those of chunks, in order."""

    @abstractmethod
    def _dump_inline(self) -> tuple[Any, ...]:
        """Return the values for the state row of the key."""

    def dump(self) -> tuple[Any, ...]:
        if self.tree is None:
            parts = self._dump_inline()
            if parts[0] is None or len(parts[0]) <= chunks.INLINE_ROWS:
                self._drop_stored()
                return parts
            self.tree = self._new_tree()
            self.tree.store(self._at_hand())
        else:
            self.tree.store(self._at_hand(), self.dead_ms)
        self._drop_stored()
        if self.tree.rows > chunks.INLINE_ROWS // 4:
            return (None,) * len(self._parts())
        self._take_over([row for row in self.tree.all_rows() if row[-2] >= self.dead_ms])
        self.tree.drop_all()
        self.tree = None
        return self._dump_inline()

    def _drop_stored(self) -> None:
        """Remove the chunks that were loaded, if they have been replaced."""
        if self._stored is not None and self._stored is not self.tree:
            self._stored.drop_all()
        self._stored = None

    @property
    def oldest_ms(self) -> int | None:
        if self.tree is not None:
            return self.tree.first_over_ms
        return self._oldest if self._oldest < NEVER_MS else None


class ListState(StateOfSeveral):
    """Values in the order they were added; each is forgotten individually."""

    kind = "list"
    _is_nested: bool
    _values: list[Any]
    """The values at hand: all of them, or those added behind the chunks."""
    _ats: list[int]
    _numbers: list[int]
    """The numbers of the first of these, which were read from chunks."""

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
        at = max(self.moment.ms, max(self._ats, default=-NEVER_MS))  # never earlier than what is replaced
        if self.tree is not None:
            at = max(at, self.tree.newest_ms)
        self.journal.append((self, self._values, self._ats, self._numbers, self.tree))
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
        if self.tree is None or self._numbers or self.tree.is_mixed(self.dead_ms):
            return len(self._live())
        return self.tree.count_unread(self.dead_ms) + sum(at >= self.dead_ms for at in self._ats)

    def _live(self) -> list[Any]:
        """Return the values that are not forgotten; the others stay, because an earlier event may still need them."""
        if self.tree is not None:
            self._prepend(self.tree.read_all())
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

    def _restore(
        self, values: list[Any], ats: list[int], numbers: list[int] | None = None, tree: Tree | None = None
    ) -> None:
        self._values, self._ats, self._numbers, self.tree = values, ats, numbers or [], tree
        self._oldest = min(ats, default=NEVER_MS)

    def _prepend(self, rows: list[Row]) -> None:
        """Put the entries of chunks before those at hand."""
        if not rows:
            return
        values, ats, numbers = zip(*rows, strict=True)
        self._values[:0], self._ats[:0], self._numbers[:0] = values, ats, numbers
        self._oldest = min(self._oldest, *ats)

    def _parts(self) -> dict[str, pl.DataType]:
        return {"values": pl.List(self.types["value"]), "at": pl.List(pl.Int64())}

    @property
    def apart_types(self) -> dict[str, pl.DataType]:
        return {"value": self.types["value"], "at": pl.Int64(), "seq": pl.Int64()}

    def _place(self, row: Row) -> int:
        number: int = row[2]
        return number

    def _at_hand(self) -> Iterator[Row]:
        tree = self.tree
        if tree is not None and len(self._values) > len(self._numbers):
            number = tree.next_number
            if tree.chunks:
                self._prepend(tree.read_at(number))  # the last chunk, which the new values join
                tree.change(number)
            self._numbers += range(number, number + len(self._values) - len(self._numbers))
        rows = zip(self._values, self._ats, self._numbers, strict=True)
        return compress(rows, [at >= self.dead_ms for at in self._ats])

    def _take_over(self, rows: list[Row]) -> None:
        self._restore([row[0] for row in rows], [row[1] for row in rows], tree=self.tree)

    def load(self, *parts: Any) -> None:  # noqa: ANN401  the user's own values
        values, ats = parts
        self._restore(values or [], ats or [])

    def _dump_inline(self) -> tuple[Any, ...]:
        self._restore(self._live(), [at for at in self._ats if at >= self.dead_ms])
        return (self._values, self._ats) if self._values else (None, None)

    def clear_unseen(self) -> None:
        self._is_nested = self.types["value"].is_nested()
        self._restore([], [])

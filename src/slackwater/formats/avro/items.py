"""Skips Avro values in many records at once, and finds where the items of arrays begin."""

from __future__ import annotations

from typing import Final

import numpy as np

from slackwater.formats.avro import schema as tree
from slackwater.formats.avro.cursor import I64, Cursor
from slackwater.formats.avro.walk import NoValueError, walk_items

FEW: Final = 64
"""Up to this many records are walked one by one; a round over them would take as long as one over hundreds."""

_EMPTY: Final = np.empty(0, np.int64)


def skip_values(kind: tree.AvroType, cursor: Cursor, path: str) -> None:
    """Move past a value of a type at each place."""
    match kind:
        case tree.Primitive():
            _skip_primitive(kind.kind, cursor, path)
        case tree.Fixed(size=size):
            cursor.take(size, path)
        case tree.Enum(symbols=symbols):
            cursor.choices(len(symbols), path, "symbols")
        case tree.AvroUnion(branches=branches):
            choice = cursor.choices(len(branches), path, "branches")
            for place, branch in enumerate(branches):
                rows = np.flatnonzero(choice == place)
                part = cursor.subset(rows)
                skip_values(branch, part, path)
                cursor.rejoin(rows, part)
        case tree.AvroRecord(fields=fields):
            for field in fields:
                skip_values(field.type, cursor, path)
        case tree.Array(items=item):
            find_items(item, cursor, path)
        case tree.AvroMap():
            find_items(kind.entry, cursor, path)


def find_items(item: tree.AvroType, cursor: Cursor, path: str) -> tuple[I64, I64]:
    """Move past an array at each place; return the number of items at each place, and where they begin.

    Items are found in rounds, one item per place in each; their positions in the buffer ascend from place to place and
    from item to item, so sorting puts them in order.
    """
    finder = _Finder(item, cursor, path)
    finder.run()
    return finder.found()


def _skip_primitive(kind: str, cursor: Cursor, path: str) -> None:
    match kind:
        case "null":
            return
        case "boolean":
            cursor.booleans(path)
        case "int":
            cursor.ints(path)
        case "long":
            cursor.longs(path)
        case "float":
            cursor.take(4, path)
        case "double":
            cursor.take(8, path)
        case _:
            cursor.slices(path)


class _Finder:
    """Finds the items of one array at each of many places."""

    def __init__(self, item: tree.AvroType, cursor: Cursor, path: str) -> None:
        self._item = item
        self._cursor = cursor
        self._path = path
        self._least = tree.least_bytes(item)
        self._width = tree.fixed_width(item)
        self._left = np.zeros(len(cursor), np.int64)
        self._starts: list[I64] = []
        self._owners: list[I64] = []

    def run(self) -> None:
        """Find all items of all arrays."""
        rows = np.flatnonzero(self._cursor.alive)
        while len(rows) > FEW:
            rows = self._blocks(rows)
            if self._least == 0:
                self._left[rows] = 0
            elif self._width is not None:
                self._whole_blocks(rows, self._width)
            else:
                rows = self._one_each(rows)
        for row in rows.tolist():
            self._walk(row)

    def found(self) -> tuple[I64, I64]:
        """Return the number of items at each place, and where all items begin."""
        owners = np.concatenate(self._owners) if self._owners else _EMPTY
        starts = np.concatenate(self._starts) if self._starts else _EMPTY
        alive = self._cursor.alive
        if not alive.all():
            sound = alive[owners]
            owners, starts = owners[sound], starts[sound]
        counts = np.bincount(owners, minlength=len(self._cursor))
        return counts.astype(np.int64), np.sort(starts)

    def _blocks(self, rows: I64) -> I64:
        """Start a new block where the previous one is used up; return the rows where items follow."""
        new = rows[self._left[rows] == 0]
        if not len(new):
            return rows
        part = self._cursor.subset(new)
        start = part.position
        count = part.longs(self._path)
        sized = np.flatnonzero(count < 0)
        if len(sized):
            inner = part.subset(sized)
            size = inner.longs(self._path)
            inner.fail(size < 0, start[sized], "malformed", self._path, "a block of negative size")
            inner.fail(size > inner.end - inner.position, start[sized], "truncated", self._path, "it is truncated")
            part.rejoin(sized, inner)
            # The most negative number has no positive counterpart; it is too large either way.
            count[sized] = -np.maximum(count[sized], -(2**62))
        if self._least:
            over = count > (part.end - part.position) // self._least
            part.fail(over, start, "truncated", self._path, "it is truncated")
        self._cursor.rejoin(new, part)
        self._left[new] = count
        return rows[(self._left[rows] > 0) & self._cursor.alive[rows]]

    def _whole_blocks(self, rows: I64, width: int) -> None:
        """Take all items of a block in one step: they have the same size, and the block is known to fit."""
        count = self._left[rows]
        first = np.repeat(self._cursor.position[rows], count)
        within = np.arange(len(first)) - np.repeat(np.cumsum(count) - count, count)
        self._starts.append(first + within * width)
        self._owners.append(np.repeat(rows, count))
        self._cursor.position[rows] += count * width
        self._left[rows] = 0

    def _one_each(self, rows: I64) -> I64:
        """Take one item at each place; return the rows that are still valid."""
        part = self._cursor.subset(rows)
        self._starts.append(part.position.copy())  # nested arrays modify it in place
        self._owners.append(rows)
        skip_values(self._item, part, self._path)
        self._cursor.rejoin(rows, part)
        self._left[rows] -= 1
        return rows[part.alive]

    def _walk(self, row: int) -> None:
        """Find the remaining items of one array."""
        here = np.array([row])
        part = self._cursor.subset(here)
        at, end = int(part.position[0]), int(part.end[0])
        data, left = part.buffer.view(), int(self._left[row])
        try:
            starts, stop = walk_items(self._item, data, at, end, left=left)
        except NoValueError as error:
            part.fail(np.array([True]), np.array([error.at]), error.reason, self._path, error.why)
        else:
            self._starts.append(np.array(starts, np.int64))
            self._owners.append(np.full(len(starts), row, np.int64))
            part.position[0] = stop
        self._cursor.rejoin(here, part)

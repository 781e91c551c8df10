"""Collects the values of one field while many messages are scanned: numbers and slices, with their rows.

`take` is called repeatedly, with the rows that have the field next and the positions after its tag, until no message
has any fields left; it returns the positions after the values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from slackwater.formats.protobuf.plan import FIXED32, FIXED64, VARINT, FieldPlan
from slackwater.formats.protobuf.wire import NOWHERE, Flags, Messages, Numbers, Places, Wire

Rows = NDArray[np.intp] | slice
"""Indexes of messages, or a slice for all of them."""

ReadNumbers = Callable[[Places], tuple[Numbers, Places]]
_MORE: Final = 0x80  # the continuation bit of a varint's byte
_SIZES: Final = {FIXED64: 8, FIXED32: 4}


def number_reader(wire: Wire, wire_type: int) -> ReadNumbers:
    """Return the function that reads numbers of a wire type."""
    return {VARINT: wire.varints, FIXED64: wire.fixed64, FIXED32: wire.fixed32}[wire_type]


class OneNumber:
    """A field with at most one number per message; the last one wins."""

    def __init__(self, plan: FieldPlan, messages: Messages) -> None:
        self.raw: Numbers = np.zeros(len(messages), dtype=np.uint64)
        self.seen: Flags = np.zeros(len(messages), dtype=bool)
        self._read = number_reader(messages.wire, plan.wire)

    def take(self, rows: Rows, at: Places) -> Places:
        """Take one number from each of `rows`."""
        self.raw[rows], ends = self._read(at)
        self.seen[rows] = True
        return ends


class OneSlice:
    """A field with at most one slice per message: text, bytes, or another message.

    A second occurrence makes its message doubtful: a nested message must be merged with the first, and a text must be
    valid even if another replaces it.
    """

    def __init__(self, messages: Messages) -> None:
        self.starts = messages.starts.copy()
        self.stops = messages.starts.copy()
        self.seen: Flags = np.zeros(len(messages), dtype=bool)
        self._wire = messages.wire
        self._doubtful = messages.doubtful

    def take(self, rows: Rows, at: Places) -> Places:
        """Take one slice from each of `rows`."""
        self._doubtful[rows] |= self.seen[rows]
        starts, stops = self._wire.slices(at)
        self.starts[rows], self.stops[rows] = starts, stops
        self.seen[rows] = True
        return stops


class ManySlices:
    """A field with any number of slices per message, in order."""

    def __init__(self, messages: Messages) -> None:
        self._messages = messages
        self._all = np.arange(len(messages))
        self._found: list[tuple[NDArray[np.intp], Places, Places]] = []

    def take(self, rows: Rows, at: Places) -> Places:
        """Take one slice from each of `rows`."""
        starts, stops = self._messages.wire.slices(at)
        self._found.append((self._all[rows], starts, stops))
        return stops

    def items(self) -> tuple[NDArray[np.intp], Places, Places]:
        """Return the rows, starts and stops of all slices in order, without those of doubtful messages."""
        if not self._found:
            return self._all[:0], np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        rows, starts, stops = (np.concatenate(part) for part in zip(*self._found, strict=True))
        keep = ~self._messages.doubtful[rows]
        rows, starts, stops = rows[keep], starts[keep], stops[keep]
        # Positions ascend from message to message, so sorting by position orders both messages and items.
        order = np.argsort(starts, kind="stable") if len(self._found) > 1 else slice(None)
        return rows[order], starts[order], stops[order]


class ManyNumbers:
    """A field with any number of numbers per message: one by one, packed, or both."""

    def __init__(self, plan: FieldPlan, messages: Messages) -> None:
        self.packed = ManySlices(messages)
        self._data = messages.wire.data
        self._doubtful = messages.doubtful
        self._read = number_reader(messages.wire, plan.wire)
        self._size = _SIZES.get(plan.wire)
        self._all = np.arange(len(messages))
        self._found: list[tuple[NDArray[np.intp], Places, Numbers]] = []

    def take(self, rows: Rows, at: Places) -> Places:
        """Take one number from each of `rows`."""
        values, ends = self._read(at)
        self._found.append((self._all[rows], at, values))
        return ends

    def items(self) -> tuple[NDArray[np.intp], Numbers]:
        """Return the rows and values of all numbers in order; mark messages with broken packed numbers as doubtful."""
        packed = self._unpacked(*self.packed.items())
        parts = [*self._found, packed] if len(packed[0]) else self._found
        if not parts:
            return self._all[:0], np.empty(0, dtype=np.uint64)
        rows, at, values = (np.concatenate(part) for part in zip(*parts, strict=True))
        keep = ~self._doubtful[rows]
        rows, at, values = rows[keep], at[keep], values[keep]
        order = np.argsort(at, kind="stable") if len(parts) > 1 else slice(None)
        return rows[order], values[order]

    def _unpacked(
        self, rows: NDArray[np.intp], starts: Places, stops: Places
    ) -> tuple[NDArray[np.intp], Places, Numbers]:
        """Return the rows, positions and values of the numbers in packed slices."""
        step = self._size or 1
        filled = stops > starts
        whole = (stops - starts) % step == 0 if self._size else self._data[stops - 1] < _MORE
        self._doubtful[rows[filled & ~whole]] = True
        rows, starts, stops = (part[filled & whole] for part in (rows, starts, stops))
        at = _every(starts, stops, step)
        owners = np.repeat(rows, (stops - starts) // step)
        if not self._size and len(at):
            # A number begins at the start of a slice or after the last byte of the previous number.
            begins = np.concatenate(([True], self._data[at[:-1]] < _MORE))
            at, owners = at[begins], owners[begins]
        values, ends = self._read(at)
        self._doubtful[owners[ends == NOWHERE]] = True
        return owners, at, values


def _every(starts: Places, stops: Places, step: int) -> Places:
    """Return every `step`th position from `starts` to `stops`, one slice after the other."""
    counts = (stops - starts) // step
    before = np.cumsum(counts) - counts
    return np.repeat(starts - step * before, counts) + step * np.arange(int(counts.sum()))

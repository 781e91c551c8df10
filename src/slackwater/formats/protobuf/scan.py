"""Scans many messages at once, field by field: each step takes one field of all messages that have it next.

Writers write fields in the order of their numbers, so the field with the lowest number is taken first. Once it is
done, all messages that contain the next field have it next, whatever fields they lack, so a field takes one step for
any number of messages. Messages with fields in another order only take more steps.

Anything unusual makes a message doubtful: it is read afterwards on its own, exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Final

import numpy as np
from numpy.typing import NDArray

from slackwater.formats.protobuf.gather import ManyNumbers, ManySlices, OneNumber, OneSlice, Rows
from slackwater.formats.protobuf.plan import FIXED32, FIXED64, GROUP, LENGTH, VARINT, FieldPlan, MessagePlan
from slackwater.formats.protobuf.wire import NOWHERE, Flags, Messages, Places, Wire

Gatherer = OneNumber | OneSlice | ManyNumbers | ManySlices

FEWEST: Final = 16
"""After the usual number of steps, reading fewer messages than this one by one is faster than scanning them."""

_SPARE_STEPS: Final = 16
_WIRE_TYPES: Final = 8
_DOUBT: Final = 6  # a wire type that no field has
_DONE: Final = 1 << 30
_LONGEST_TAG: Final = 5
_LARGEST_TAG: Final = (1 << 32) - 1

_Take = Callable[[Rows, Places], Places]


class Tags:
    """Maps the tags of a message's fields to codes that say how to take them.

    The first eight codes are the wire types, for undeclared fields; then come two for each declared field, in the order
    of field numbers: as declared, and packed. A declared field with a wire type that it cannot have is doubtful, and so
    is field 0.
    """

    def __init__(self, plan: MessagePlan) -> None:
        numbers = sorted(plan.by_number)
        self.first = {number: _WIRE_TYPES + 2 * rank for rank, number in enumerate(numbers)}
        self.count = _WIRE_TYPES + 2 * len(numbers)
        codes = dict.fromkeys(range(_WIRE_TYPES), _DOUBT)
        for field in plan.fields:
            codes |= {field.number * _WIRE_TYPES + wire: _DOUBT for wire in range(_WIRE_TYPES)}
            if field.wire != GROUP:
                codes[field.number * _WIRE_TYPES + field.wire] = self.first[field.number]
            if field.is_list and is_number(field):
                codes[field.number * _WIRE_TYPES + LENGTH] = self.first[field.number] + 1
        self._by_tag = codes
        self._known = np.array(sorted(codes), dtype=np.uint64)
        self._codes = np.array([codes[tag] for tag in sorted(codes)], dtype=np.int32)

    def read(self, wire: Wire, at: Places) -> tuple[NDArray[np.int32] | int, Places]:
        """Return the codes of the tags at the given positions (one number if they are all equal), and their ends."""
        tags, ends = wire.varints(at)
        unfit = (ends - at > _LONGEST_TAG) | (tags > _LARGEST_TAG)
        if (tags == tags[0]).all() and not unfit.any():
            return self._by_tag.get(int(tags[0]), int(tags[0]) % _WIRE_TYPES), ends
        near = np.minimum(np.searchsorted(self._known, tags), len(self._known) - 1)
        wire_types = (tags & np.uint64(_WIRE_TYPES - 1)).astype(np.int32)
        codes = np.where(self._known[near] == tags, self._codes[near], wire_types)
        codes[unfit] = _DOUBT
        return codes, ends


def is_number(field: FieldPlan) -> bool:
    """Return whether one value of a field is a number on the wire."""
    return field.wire in (VARINT, FIXED32, FIXED64)


def scan(plan: MessagePlan, tags: Tags, messages: Messages) -> list[Gatherer]:
    """Collect the values of each field of `plan` in `messages`."""
    found = [_gatherer(field, messages) for field in plan.fields]
    takers = _takers(plan, found, messages.wire, tags)
    cursors = _Cursors(tags, messages)
    for step in count():
        is_usual = step < tags.count + _SPARE_STEPS
        code = cursors.lowest() if is_usual else cursors.most_common()
        if code == _DONE:
            break
        rows, at = cursors.at_code(code)
        if not is_usual and len(at) < FEWEST:
            messages.doubtful[cursors.left()] = True
            break
        cursors.move(rows, takers[code](rows, at))
    return found


class _Cursors:
    """The position of each message, after the tag of its next field, and the code of that tag."""

    def __init__(self, tags: Tags, messages: Messages) -> None:
        self._tags = tags
        self._messages = messages
        self._at = messages.starts.copy()
        self._codes = np.full(len(messages), _DONE, dtype=np.int32)
        self.move(slice(None), messages.starts)

    def lowest(self) -> int:
        """Return the lowest next code of any message."""
        return int(self._codes.min(initial=_DONE))

    def most_common(self) -> int:
        """Return the next code of most messages."""
        left = self._codes[self._codes != _DONE]
        return int(np.bincount(left).argmax()) if len(left) else _DONE

    def left(self) -> Flags:
        """Return which messages have fields left."""
        left: Flags = self._codes != _DONE
        return left

    def at_code(self, code: int) -> tuple[Rows, Places]:
        """Return the messages whose next code is `code`, and their positions."""
        if self._codes.max() == self._codes.min():
            return slice(None), self._at.copy()
        rows = np.flatnonzero(self._codes == code)
        return rows, self._at[rows]

    def move(self, rows: Rows, ends: Places) -> None:
        """Move `rows` to their next field, after the value that ended at `ends`."""
        stops = self._messages.stops[rows]
        going = ends < stops
        if not going.all():
            numbers = np.arange(len(stops)) if isinstance(rows, slice) else rows
            self._codes[numbers] = _DONE
            self._messages.doubtful[numbers[ends > stops]] = True
            rows, ends = numbers[going], ends[going]
        if len(ends):
            self._codes[rows], self._at[rows] = self._tags.read(self._messages.wire, ends)


def _takers(plan: MessagePlan, found: list[Gatherer], wire: Wire, tags: Tags) -> list[_Take]:
    """Return the function that takes a field, for each code."""
    takers: list[_Take] = [_nowhere] * tags.count
    takers[VARINT] = lambda _, at: wire.varints(at)[1]
    takers[FIXED64] = lambda _, at: at + 8
    takers[LENGTH] = lambda _, at: wire.slices(at)[1]
    takers[FIXED32] = lambda _, at: at + 4
    for field, gatherer in zip(plan.fields, found, strict=True):
        takers[tags.first[field.number]] = gatherer.take
        if isinstance(gatherer, ManyNumbers):
            takers[tags.first[field.number] + 1] = gatherer.packed.take
    return takers


def _nowhere(_: Rows, at: Places) -> Places:
    return np.full_like(at, NOWHERE)


def _gatherer(field: FieldPlan, messages: Messages) -> Gatherer:
    if field.is_list or field.is_map:
        return ManyNumbers(field, messages) if is_number(field) else ManySlices(messages)
    return OneNumber(field, messages) if is_number(field) else OneSlice(messages)

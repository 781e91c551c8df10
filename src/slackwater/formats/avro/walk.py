"""Skips Avro values one by one: for long arrays in a few records, where rounds over all records do not pay off."""

from __future__ import annotations

from typing import Final

from slackwater.formats.avro import schema as tree

_MORE: Final = 0x80
_LONGEST: Final = 10
_WIDTHS: Final = {"null": 0, "boolean": 1, "float": 4, "double": 8}


class NoValueError(Exception):
    """Bytes that are not a valid value; a cursor fails with the same message. It never leaves the decoder."""

    def __init__(self, reason: str, why: str, at: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.why = why
        self.at = at


def walk_long(data: memoryview, at: int, end: int) -> tuple[int, int]:
    """Return the long that begins at `at`, and where it ends."""
    number, stop = 0, at
    while True:
        if stop >= end:
            raise NoValueError("truncated", "it is truncated", at)
        byte = data[stop]
        number |= (byte & ~_MORE) << (7 * (stop - at))
        stop += 1
        if byte < _MORE:
            break
        if stop - at == _LONGEST:
            raise NoValueError("malformed", "a number of more than 64 bits", at)
    if number >> 64:
        raise NoValueError("malformed", "a number of more than 64 bits", at)
    return (number >> 1) ^ -(number & 1), stop


def walk(kind: tree.AvroType, data: memoryview, at: int, end: int) -> int:
    """Return where the value that begins at `at` ends; raise `NoValueError` where a cursor would fail."""
    match kind:
        case tree.Primitive(kind="int" | "long" | "bytes" | "string"):
            return _walk_counted(kind.kind, data, at, end)
        case tree.Primitive() | tree.Fixed():
            width = kind.size if isinstance(kind, tree.Fixed) else _WIDTHS[kind.kind]
            if at + width > end:
                raise NoValueError("truncated", "it is truncated", at)
            if isinstance(kind, tree.Primitive) and kind.kind == "boolean" and data[at] > 1:
                raise NoValueError("malformed", "neither true (1) nor false (0)", at)
            return at + width
        case tree.Enum(symbols=symbols):
            return _walk_choice(len(symbols), data, at, end, "symbols")[1]
        case tree.AvroUnion(branches=branches):
            choice, at = _walk_choice(len(branches), data, at, end, "branches")
            return walk(branches[choice], data, at, end)
        case tree.AvroRecord(fields=fields):
            for field in fields:
                at = walk(field.type, data, at, end)
            return at
        case tree.Array() | tree.AvroMap():
            item = kind.items if isinstance(kind, tree.Array) else kind.entry
            return walk_items(item, data, at, end, left=0)[1]


def walk_items(item: tree.AvroType, data: memoryview, at: int, end: int, *, left: int) -> tuple[list[int], int]:
    """Return where the items of an array begin, and where it ends; `left` items remain in the current block."""
    starts: list[int] = []
    least = tree.least_bytes(item)
    while True:
        if not left:
            left, at = walk_block(least, data, at, end)
            if not left:
                return starts, at
        if not least:
            left = 0
            continue
        starts.append(at)
        at = walk(item, data, at, end)
        left -= 1


def walk_block(least: int, data: memoryview, at: int, end: int) -> tuple[int, int]:
    """Return the number of items, of at least `least` bytes each, in the next block, and where they begin."""
    count, stop = walk_long(data, at, end)
    if count < 0:
        size, stop = walk_long(data, stop, end)
        count = -count
        if size < 0:
            raise NoValueError("malformed", "a block of negative size", at)
        if size > end - stop:
            raise NoValueError("truncated", "it is truncated", at)
    if least and count > (end - stop) // least:
        raise NoValueError("truncated", "it is truncated", at)
    return count, stop


def _walk_counted(kind: str, data: memoryview, at: int, end: int) -> int:
    number, stop = walk_long(data, at, end)
    if kind == "long":
        return stop
    if kind == "int":
        if not -(2**31) <= number < 2**31:
            raise NoValueError("malformed", "an int of more than 32 bits", at)
        return stop
    if number < 0:
        raise NoValueError("malformed", "a negative length", at)
    if number > end - stop:
        raise NoValueError("truncated", "it is truncated", stop)
    return stop + number


def _walk_choice(count: int, data: memoryview, at: int, end: int, kind: str) -> tuple[int, int]:
    choice, stop = walk_long(data, at, end)
    if not 0 <= choice < count:
        raise NoValueError("malformed", f"its type has {count} {kind}, and this is not one of them", at)
    return choice, stop

"""Reads one Protobuf record at a time: its values, or its exact flaw.

This module defines what decoding means. It is exact and slow, so it reads only the records that were marked doubtful
when all were read at once (see `scan`).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from slackwater.formats.base import Flaw
from slackwater.formats.protobuf.bytes import (
    FIXED_SIZES,
    Broken,
    pass_over,
    read_number,
    read_slice,
    read_tag,
)
from slackwater.formats.protobuf.plan import (
    FIXED32,
    FIXED64,
    GROUP,
    GROUP_END,
    LENGTH,
    MAX_DURATION_SECONDS,
    MAX_NANOS,
    MAX_SECONDS,
    MIN_SECONDS,
    VARINT,
    FieldPlan,
    MessagePlan,
)

_WIRE_NAMES: Final = {
    VARINT: "varint",
    FIXED64: "64 bits",
    LENGTH: "length-delimited",
    GROUP: "group",
    FIXED32: "32 bits",
}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_Fields = dict[int, Any]
"""The values of a message, by field number."""


def read_message(plan: MessagePlan, data: bytes, start: int) -> tuple[Any, ...] | Flaw:
    """Return the values of the message that begins at `start`, or the record's flaw."""
    found: _Fields = {}
    try:
        _Reading(data).merge(plan, start, len(data), found)
        return tuple(_column(field, found, len(data)) for field in plan.fields)
    except Broken as broken:
        return Flaw(reason=broken.reason, message=broken.words())


class _Reading:
    """A record being read; values are collected in dictionaries, by field number."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def merge(self, plan: MessagePlan, at: int, stop: int, into: _Fields, *, group: int = 0) -> int:
        """Merge the fields up to `stop`, or to the end of `group`, into those already found; return the end."""
        while at < stop:
            number, wire, after = read_tag(self._data, at, stop)
            if wire == GROUP_END and number == group:
                return after
            field = plan.by_number.get(number)
            try:
                if field is None or wire == GROUP_END:
                    at = pass_over(self._data, after, stop, number=number, wire=wire)
                else:
                    at = self._take(field, wire, after, stop, into)
            except Broken as broken:
                raise broken.within(field.name if field is not None else str(number)) from None
        if group:
            raise Broken("truncated", at, f"a group is truncated (field {group})")
        return at

    def _take(self, field: FieldPlan, wire: int, at: int, stop: int, into: _Fields) -> int:
        """Add a field's value to `into`; return where it ends."""
        for rival in field.rivals:
            into.pop(rival, None)
        if wire == LENGTH and field.is_list and field.wire in (VARINT, FIXED32, FIXED64):
            return self._take_packed(field, at, stop, into.setdefault(field.number, []))
        if wire != field.wire:
            got = _WIRE_NAMES.get(wire, f"wire type {wire}")
            words = f"declared {field.kind} ({_WIRE_NAMES[field.wire]}); got {got}"
            raise Broken("wrong_type" if wire in _WIRE_NAMES else "malformed", at, words)
        if field.message is not None:
            return self._take_message(field, field.message, at, stop, into)
        if wire == LENGTH:
            start, end = read_slice(self._data, at, stop)
            value: Any = self._data[start:end] if field.kind == "bytes" else _text(self._data, start, end)
        else:
            number, end = read_number(self._data, at, stop, wire)
            value = _SCALARS[field.kind](number)
        if field.is_list:
            into.setdefault(field.number, []).append(value)
        else:
            into[field.number] = value
        return end

    def _take_packed(self, field: FieldPlan, at: int, stop: int, items: list[Any]) -> int:
        start, end = read_slice(self._data, at, stop)
        size = FIXED_SIZES.get(field.wire)
        if size is not None and (end - start) % size:
            raise Broken("malformed", start, f"{end - start} bytes of packed numbers of {size} bytes each")
        while start < end:
            number, start = read_number(self._data, start, end, field.wire)
            items.append(_SCALARS[field.kind](number))
        return end

    def _take_message(self, field: FieldPlan, plan: MessagePlan, at: int, stop: int, into: _Fields) -> int:
        """Add a message to a list or map field, or merge it with the one already found."""
        found: _Fields = {} if field.is_list or field.is_map else into.setdefault(field.number, {})
        if field.wire == GROUP:
            end = self.merge(plan, at, stop, found, group=field.number)
        else:
            start, end = read_slice(self._data, at, stop)
            self.merge(plan, start, end, found)
        if field.is_list:
            into.setdefault(field.number, []).append(found)
        elif field.is_map:
            key_field, value_field = plan.fields
            entries = into.setdefault(field.number, {})
            key = found.get(key_field.number, "")
            entries.pop(key, None)
            entries[key] = _column(value_field, found, end)
        return end


def _text(data: bytes, start: int, end: int) -> str:
    try:
        return data[start:end].decode()
    except UnicodeDecodeError as error:
        place = start + error.start
        raise Broken("invalid_utf8", place, f"{error.reason}: byte 0x{data[place]:02x}") from None


def _column(field: FieldPlan, found: _Fields, end: int) -> Any:  # noqa: ANN401  a value of any declared type
    """Return the column value of a field for a message with the fields `found`."""
    value = found.get(field.number)
    try:
        if value is None:
            return _absent(field, end)
        if field.is_map:
            return [{"key": key, "value": item} for key, item in value.items()]
        return [_shaped(field, item, end) for item in value] if field.is_list else _shaped(field, value, end)
    except Broken as broken:
        raise broken.within(field.name) from None


def _absent(field: FieldPlan, end: int) -> Any:  # noqa: ANN401  a value of any declared type
    if field.is_required:
        raise Broken("malformed", end, "required, but missing")
    if field.is_list or field.is_map:
        return []
    if field.has_presence:
        return None
    if field.message is not None:
        return _shaped(field, {}, end)
    return _DEFAULTS[field.kind] if field.wire == LENGTH else _shaped(field, _SCALARS[field.kind](0), end)


def _shaped(field: FieldPlan, value: Any, end: int) -> Any:  # noqa: ANN401  a value of any declared type
    plan = field.message
    if plan is None:
        return field.labels.get(value, str(value)) if field.kind == "enum" else value
    if plan.shape == "struct":
        return {each.name: _column(each, value, end) for each in plan.fields}
    if plan.shape == "wrapper":
        return _column(plan.fields[0], value, end)
    if plan.shape == "empty":
        return True
    seconds, nanos = value.get(1, 0), value.get(2, 0)
    got = f"{seconds} seconds, {nanos} nanoseconds"
    if plan.shape == "timestamp":
        if not (MIN_SECONDS <= seconds <= MAX_SECONDS and 0 <= nanos <= MAX_NANOS):
            raise Broken("out_of_range", end, f"a time is in the years 1 to 9999; got {got}")
        return _EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)
    if abs(seconds) > MAX_DURATION_SECONDS or abs(nanos) > MAX_NANOS or seconds * nanos < 0:
        raise Broken("out_of_range", end, f"a duration is below 10 000 years, its parts of one sign; got {got}")
    millis = abs(seconds) * 1000 + abs(nanos) // 1_000_000
    return -millis if seconds < 0 or nanos < 0 else millis


def _signed(bits: int) -> Callable[[int], int]:
    return lambda number: (number & (1 << bits) - 1) - ((number >> bits - 1 & 1) << bits)


def _zigzag(bits: int) -> Callable[[int], int]:
    return lambda number: (number & (1 << bits) - 1) >> 1 ^ -(number & 1)


_SCALARS: Final[dict[str, Callable[[int], Any]]] = {
    "bool": bool,
    "double": lambda number: struct.unpack("<d", number.to_bytes(8, "little"))[0],
    "enum": _signed(32),
    "float": lambda number: struct.unpack("<f", number.to_bytes(4, "little"))[0],
    "int32": _signed(32),
    "int64": _signed(64),
    "sint32": _zigzag(32),
    "sint64": _zigzag(64),
    "uint32": lambda number: number & (1 << 32) - 1,
    "uint64": lambda number: number,
}
_DEFAULTS: Final[dict[str, Any]] = {"bytes": b"", "string": ""}

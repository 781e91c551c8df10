"""Reads Protobuf's wire format at one position: tags, varints, lengths, and fields to skip.

Every function takes a record's bytes, a position and the end of the message, and raises `Broken` with the position of
the part that cannot be read.
"""

from __future__ import annotations

from typing import Final

from slackwater.formats.protobuf.plan import FIXED32, FIXED64, GROUP, GROUP_END, LENGTH, VARINT

_LONGEST_VARINT: Final = 10
_LONGEST_SIZE: Final = 5
_MOST_BYTES: Final = (1 << 31) - 1
_LARGEST_TAG: Final = (1 << 32) - 1
_MORE: Final = 0x80
_64_BITS: Final = (1 << 64) - 1
_MOST_GROUPS: Final = 100

FIXED_SIZES: Final = {FIXED64: 8, FIXED32: 4}


class Broken(Exception):  # noqa: N818  not an error of the program: it never leaves the decoder
    """A record that cannot be read: why, where, and in which field."""

    def __init__(self, reason: str, at: int, why: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.at = at
        self.why = why
        self.path = ""

    def within(self, field: str) -> Broken:
        """Prepend an outer field to the path, and return this exception."""
        self.path = f"{field}.{self.path}" if self.path else field
        return self

    def words(self) -> str:
        """Return the message for the dead letter."""
        where = f"field `{self.path}`, byte {self.at}" if self.path else f"byte {self.at}"
        return f"{where}: {self.why}"


def read_varint(data: bytes, at: int, stop: int, *, most: int = _LONGEST_VARINT) -> tuple[int, int]:
    """Return the lower 64 bits of the varint at a position, and where it ends."""
    value = 0
    for place in range(at, at + most):
        if place >= stop:
            raise Broken("truncated", at, "a number is truncated")
        byte = data[place]
        value |= (byte & ~_MORE) << 7 * (place - at)
        if byte < _MORE:
            return value & _64_BITS, place + 1
    raise Broken("malformed", at, f"a number of more than {most} bytes")


def read_tag(data: bytes, at: int, stop: int) -> tuple[int, int, int]:
    """Return the number and wire type of the field at a position, and where its tag ends."""
    tag, after = read_varint(data, at, stop, most=_LONGEST_SIZE)
    if tag > _LARGEST_TAG or tag >> 3 == 0:
        raise Broken("malformed", at, f"no field has the tag {tag}")
    return tag >> 3, tag & 7, after


def read_slice(data: bytes, at: int, stop: int) -> tuple[int, int]:
    """Return the start and end of the length-prefixed value at a position."""
    size, start = read_varint(data, at, stop, most=_LONGEST_SIZE)
    if size > _MOST_BYTES:
        raise Broken("malformed", at, f"no value has a length of {size}")
    if start + size > stop:
        raise Broken("truncated", at, f"a value of {size} bytes, of which {stop - start} are present")
    return start, start + size


def read_number(data: bytes, at: int, stop: int, wire: int) -> tuple[int, int]:
    """Return the number of a numeric wire type at a position, and where it ends."""
    if wire == VARINT:
        return read_varint(data, at, stop)
    end = at + FIXED_SIZES[wire]
    if end > stop:
        raise Broken("truncated", at, f"a number of {end - at} bytes, of which {stop - at} are present")
    return int.from_bytes(data[at:end], "little"), end


def pass_over(data: bytes, at: int, stop: int, *, number: int, wire: int) -> int:
    """Skip the field whose tag ended at a position, including nested groups; return where it ends."""
    groups: list[int] = []
    while True:
        if wire == GROUP:
            groups.append(number)
            if len(groups) > _MOST_GROUPS:
                raise Broken("too_deep", at, f"more than {_MOST_GROUPS} levels of nested groups")
        elif wire == GROUP_END:
            if not groups or groups.pop() != number:
                raise Broken("malformed", at, f"a group ends that did not start (field {number})")
        else:
            at = _value_end(data, at, stop, wire)
        if not groups:
            return at
        if at >= stop:
            raise Broken("truncated", at, f"a group is truncated (field {groups[-1]})")
        number, wire, at = read_tag(data, at, stop)


def _value_end(data: bytes, at: int, stop: int, wire: int) -> int:
    if wire == LENGTH:
        return read_slice(data, at, stop)[1]
    if wire in (VARINT, FIXED64, FIXED32):
        return read_number(data, at, stop, wire)[1]
    raise Broken("malformed", at, f"no value has wire type {wire}")

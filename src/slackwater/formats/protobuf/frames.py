"""Confluent's wire format around a Protobuf message: a zero byte, the schema id, and the message's path.

The path consists of the indexes of the enclosing messages and of the message itself: their count, then the indexes, as
zig-zag varints. A single zero byte means the first message of the file.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from slackwater.formats.base import Flaw
from slackwater.formats.protobuf.bytes import Broken, read_varint
from slackwater.formats.protobuf.wire import Messages, Places

_ID_END: Final = 5
_MOST_INDEXES: Final = 100


class Frames:
    """The frames of records of one message type, with any schema id."""

    def __init__(self, path: tuple[int, ...]) -> None:
        self._path = path
        zigzag = [2 * len(path), *(2 * index for index in path)] if path != (0,) else [0]
        self._usual = np.frombuffer(b"".join(map(_varint, zigzag)), dtype=np.uint8)

    def skip(self, records: Messages) -> Places:
        """Return where the messages begin; mark records whose frame is not written in the usual way as doubtful."""
        data, starts, stops = records.wire.data, records.starts, records.stops
        bodies = starts + _ID_END + len(self._usual)
        fits = (bodies <= stops) & (data[starts] == 0)
        for offset, byte in enumerate(self._usual):
            fits &= data[np.minimum(starts + _ID_END + offset, stops)] == byte
        records.doubtful[~fits] = True
        return np.where(fits, bodies, stops)

    def skip_one(self, record: bytes) -> int | Flaw:
        """Return where a record's message begins, or the record's flaw."""
        if not record:
            return Flaw(reason="empty_record", message="the record is empty")
        if record[0] != 0:
            words = f"byte 0: a record in Confluent's wire format begins with 0; got {record[0]}"
            return Flaw(reason="malformed", message=words)
        if len(record) < _ID_END:
            return Flaw(reason="truncated", message=f"byte 1: a schema id has 4 bytes; got {len(record) - 1}")
        try:
            path, at = _read_path(record)
        except Broken as broken:
            return Flaw(reason=broken.reason, message=broken.words())
        if path != self._path:
            schema_id = int.from_bytes(record[1:_ID_END], "big")
            words = f"schema {schema_id} holds message {list(path)} of its file; this reads {list(self._path)}"
            return Flaw(reason="incompatible_schema", message=words)
        return at


def _read_path(record: bytes) -> tuple[tuple[int, ...], int]:
    count, at = _read_zigzag(record, _ID_END)
    if count == 0:
        return (0,), at
    if not 0 < count <= _MOST_INDEXES:
        raise Broken("malformed", _ID_END, f"a path of {count} message indexes")
    path = []
    for _ in range(count):
        index, at = _read_zigzag(record, at)
        path.append(index)
    return tuple(path), at


def _read_zigzag(record: bytes, at: int) -> tuple[int, int]:
    number, end = read_varint(record, at, len(record))
    return number >> 1 ^ -(number & 1), end


def _varint(number: int) -> bytes:
    head = b""
    while number >= 0x80:  # noqa: PLR2004  seven bits per byte
        head += bytes([number & 0x7F | 0x80])
        number >>= 7
    return head + bytes([number])

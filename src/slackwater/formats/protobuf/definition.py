"""Protobuf records: the definition that users write, and the decoder that turns bytes into columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import polars as pl

from slackwater.formats.base import Decoded, Decoder, Flaw, Format, check_limit, too_long
from slackwater.formats.exact_rows import Row, with_rows
from slackwater.formats.protobuf.columns import ColumnReader
from slackwater.formats.protobuf.descriptors import Described, DescriptorSet, describe_message
from slackwater.formats.protobuf.frames import Frames
from slackwater.formats.protobuf.plan import plan_message
from slackwater.formats.protobuf.records import read_message
from slackwater.formats.protobuf.wire import Flags, Messages, Wire
from slackwater.formats.schemas import as_schema

MAX_BYTES: Final = 1 << 20

_LONGEST: Final = 64 << 20
_BLOCK_ROWS: Final = 1 << 14
_BLOCK_BYTES: Final = 1 << 24
"""The size of a block of records, whose arrays then fit in the processor's cache."""


@dataclass(frozen=True, kw_only=True)
class ProtobufFormat(Format):
    """Protobuf messages, one per record, with a column for each field.

    Protobuf evolves by field numbers, so one descriptor reads the records of every writer: fields unknown to it are
    skipped, fields unknown to the writer are absent.
    """

    schema: pl.Schema = field(hash=False)
    described: Described
    confluent: bool = False
    max_bytes: int = MAX_BYTES

    def decoder(self) -> ProtobufDecoder:
        """Return a decoder for this format."""
        return ProtobufDecoder(self)

    def __str__(self) -> str:
        return f"Protobuf {self.described.name}" + (" in Confluent's wire format" if self.confluent else "")


def protobuf(
    message: object = None,
    *,
    descriptor_set: DescriptorSet | None = None,
    name: str | None = None,
    registry: object = None,
    confluent: bool = False,
    max_bytes: int = MAX_BYTES,
) -> ProtobufFormat:
    """Read records as Protobuf messages: `protobuf(orders_pb2.Order)`.

    `message` is a generated class or a descriptor. Without generated code, pass the output of `protoc
    --include_imports --descriptor_set_out` and the message's full name:
    `protobuf(descriptor_set="orders.desc", name="shop.Order")`.

    A field that is absent from a record is null if the field tracks presence (`optional`, a member of a oneof, a
    message, everything in proto2), otherwise its default value; a list or a map is empty. An enum is the name of
    its value, or the number as a string if it has no name. A `google.protobuf.Timestamp` is a timestamp, a
    `Duration` whole milliseconds, a wrapper a nullable value, a message without fields true; any other message is a
    struct. Map keys must be strings. A record that is truncated, has a field of another wire type than declared, or
    lacks a required field is a dead letter.

    With `confluent=True`, or a `registry`, records start with the header of Confluent's serializers, which is
    checked and skipped: no schema is fetched, because field numbers identify everything. A record with another
    message of its file is a dead letter (`incompatible_schema`).
    """
    check_limit("max_bytes", max_bytes, most=_LONGEST, default=MAX_BYTES)
    described = describe_message(message, descriptor_set=descriptor_set, name=name)
    plan = plan_message(described.descriptor())
    return ProtobufFormat(
        schema=as_schema({each.name: each.dtype for each in plan.fields}),
        described=described,
        confluent=bool(confluent) or registry is not None,
        max_bytes=max_bytes,
    )


class ProtobufDecoder(Decoder):
    """Decodes records of one message type; never raises, whatever the bytes.

    1. Records that are null or too long are set aside.
    2. The fields of all records are read at once, tag by tag; records with anything unusual are marked doubtful.
    3. Doubtful records are read one by one, exactly.

    The path a record takes affects only the speed, never the result.
    """

    def __init__(self, form: ProtobufFormat) -> None:
        self._format = form
        self._plan = plan_message(form.described.descriptor())
        self._reader = ColumnReader(self._plan)
        self._frames = Frames(form.described.path()) if form.confluent else None

    def __reduce__(self) -> tuple[type[ProtobufDecoder], tuple[ProtobufFormat]]:
        return (type(self), (self._format,))

    def decode(self, payload: pl.Series) -> Decoded:
        """Decode a column of bytes into rows, and flaws for the records that could not be decoded."""
        flaws = self._unreadable(payload)
        doubtful: Flags = np.zeros(len(payload), dtype=bool)
        frames = [pl.DataFrame(schema=self._format.schema)]
        for records in _blocks(payload, list(flaws), doubtful):
            messages = records if self._frames is None else replace(records, starts=self._frames.skip(records))
            frames.append(pl.DataFrame(self._reader.read(messages)))
        frame = pl.concat(frames, rechunk=True)
        exact: dict[int, Row | None] = dict.fromkeys(flaws)
        places = np.setdiff1d(np.flatnonzero(doubtful), list(flaws))
        for at, record in zip(places.tolist(), payload.gather(places).to_list(), strict=True):
            found = self._read_one(record)
            exact[at] = None if isinstance(found, Flaw) else found
            if isinstance(found, Flaw):
                flaws[at] = found
        return Decoded.of(with_rows(frame, exact), flaws)

    def _unreadable(self, payload: pl.Series) -> dict[int, Flaw]:
        """Return the flaws of the records that are null or too long, by row index."""
        most, sizes = self._format.max_bytes, payload.bin.size()
        absent = Flaw(reason="empty_record", message="the record has no payload")
        flaws = dict.fromkeys(sizes.is_null().arg_true(), absent)
        for at in (sizes > most).arg_true():
            flaws[at] = too_long(sizes[at], most=most)
        return flaws

    def _read_one(self, record: bytes) -> Row | Flaw:
        start = 0 if self._frames is None else self._frames.skip_one(record)
        return start if isinstance(start, Flaw) else read_message(self._plan, record, start)


def _blocks(payload: pl.Series, without: list[int], doubtful: Flags) -> Iterator[Messages]:
    """Yield the records of a column in blocks, each with its part of `doubtful`; the records of `without` are empty."""
    if not len(payload):
        return
    whole = payload.rechunk().to_arrow()
    _, places, values = whole.buffers()
    assert places is not None
    offsets = np.frombuffer(memoryview(places), dtype=np.int64)[whole.offset : whole.offset + len(whole) + 1]
    data = np.frombuffer(b"" if values is None else memoryview(values), dtype=np.uint8)
    stops = offsets[1:].copy()
    stops[without] = offsets[without]
    first = 0
    while first < len(payload):
        within = int(np.searchsorted(offsets, offsets[first] + _BLOCK_BYTES, side="right")) - 1
        last = min(len(payload), first + _BLOCK_ROWS, max(within, first + 1))
        base = offsets[first]
        yield Messages(
            wire=Wire(data[base : offsets[last]]),
            starts=offsets[first:last] - base,
            stops=stops[first:last] - base,
            doubtful=doubtful[first:last],
        )
        first = last

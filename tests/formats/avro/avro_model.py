"""Avro, written and read value by value: slow and obvious, and strict about every byte.

Schemas are plain JSON without references between types. Values are raw: a time is its number, a decimal
its bytes, a value of a union a pair of branch and value.
"""

from __future__ import annotations

import random
import struct
import uuid
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any

Schema = Any
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PER_SECOND = {"millis": 10**3, "micros": 10**6, "nanos": 10**9}
PROMOTIONS = {
    ("int", "long"),
    ("int", "float"),
    ("int", "double"),
    ("long", "float"),
    ("long", "double"),
    ("float", "double"),
    ("string", "bytes"),
    ("bytes", "string"),
}


class BadError(Exception):
    """A record that must be a dead letter."""


class UnreadableError(BadError):
    """A record with a value that the reader's schema cannot take."""


def kind_of(schema: Schema) -> str:
    """Return the word for a type."""
    if isinstance(schema, list):
        return "union"
    return str(schema["type"]) if isinstance(schema, dict) else str(schema)


def logical_of(schema: Schema) -> str | None:
    return schema.get("logicalType") if isinstance(schema, dict) else None


def zigzag(number: int) -> bytes:
    rest = (number << 1) ^ (number >> 63)
    written = bytearray()
    while rest > 0x7F:
        written.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*written, rest])


def encode(schema: Schema, value: Any, dice: random.Random) -> bytes:  # noqa: ANN401, C901, PLR0911, PLR0912  any value
    """Write a value; `dice` cut arrays and maps into blocks, with and without their sizes."""
    match kind_of(schema):
        case "null":
            return b""
        case "boolean":
            return bytes([value])
        case "int" | "long":
            return zigzag(value)
        case "float":
            return struct.pack("<f", value)
        case "double":
            return struct.pack("<d", value)
        case "bytes":
            return zigzag(len(value)) + bytes(value)
        case "string":
            return zigzag(len(value.encode())) + str(value).encode()
        case "fixed":
            return bytes(value)
        case "enum":
            return zigzag(schema["symbols"].index(value))
        case "array":
            return blocks([encode(schema["items"], each, dice) for each in value], dice)
        case "map":
            entries = [
                encode("string", key, dice) + encode(schema["values"], each, dice) for key, each in value.items()
            ]
            return blocks(entries, dice)
        case "union":
            branch, inner = value
            return zigzag(branch) + encode(schema[branch], inner, dice)
        case _:
            return b"".join(encode(field["type"], value[field["name"]], dice) for field in schema["fields"])


def blocks(items: list[bytes], dice: random.Random) -> bytes:
    written = b""
    while items:
        count = dice.randint(1, len(items))
        block = b"".join(items[:count])
        written += zigzag(count) if dice.random() < 0.7 else zigzag(-count) + zigzag(len(block))
        written += block
        items = items[count:]
    return written + b"\x00"


def decode(writer: Schema, reader: Schema, record: bytes) -> dict[str, Any]:
    """Return a record's row, or raise `BadError`."""
    source = Source(record)
    row = source.read(writer, reader)
    if source.at != len(record):
        raise BadError("bytes left over")
    return dict(row)


class Source:
    """One record, read from its first byte on."""

    def __init__(self, record: bytes) -> None:
        self.record = record
        self.at = 0

    def take(self, size: int) -> bytes:
        if size < 0 or self.at + size > len(self.record):
            raise BadError("breaks off")
        self.at += size
        return self.record[self.at - size : self.at]

    def long(self) -> int:
        number = 0
        for place in range(10):
            byte = self.take(1)[0]
            number |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:
                break
        else:
            raise BadError("more than ten bytes")
        if number >= 2**64:
            raise BadError("more than 64 bits")
        return (number >> 1) ^ -(number & 1)

    def choice(self, options: list[Any]) -> Any:  # noqa: ANN401
        number = self.long()
        if not 0 <= number < len(options):
            raise BadError("no such branch or symbol")
        return options[number]

    def items(self) -> Iterator[None]:
        while count := self.long():
            if count < 0:
                size = self.long()
                if size < 0 or self.at + size > len(self.record):
                    raise BadError("a block that is too large")
            for _ in range(abs(count)):
                yield

    def raw(self, schema: Schema) -> Any:  # noqa: ANN401, C901, PLR0911, PLR0912  any value
        """Read a value as it was written."""
        match kind_of(schema):
            case "null":
                return None
            case "boolean":
                return self.choice_of_byte()
            case "int":
                number = self.long()
                if not -(2**31) <= number < 2**31:
                    raise BadError("more than 32 bits")
                return number
            case "long":
                return self.long()
            case "float":
                return struct.unpack("<f", self.take(4))[0]
            case "double":
                return struct.unpack("<d", self.take(8))[0]
            case "bytes" | "string":
                return self.take(self.long())
            case "fixed":
                return self.take(schema["size"])
            case "enum":
                return self.choice(schema["symbols"])
            case "array":
                return [self.raw(schema["items"]) for _ in self.items()]
            case "map":
                return [(self.raw("bytes"), self.raw(schema["values"])) for _ in self.items()]
            case "union":
                return self.raw(self.choice(schema))
            case _:
                return {field["name"]: self.raw(field["type"]) for field in schema["fields"]}

    def choice_of_byte(self) -> bool:
        byte = self.take(1)[0]
        if byte > 1:
            raise BadError("neither true nor false")
        return bool(byte)

    def read(self, writer: Schema, reader: Schema) -> Any:  # noqa: ANN401, C901, PLR0911  any value
        """Read a value of the writer's type as one of the reader's."""
        if isinstance(writer, list):
            return self.read(self.choice(writer), reader)
        if isinstance(reader, list):
            if kind_of(writer) == "null" and "null" in reader:
                return None
            [reader] = [branch for branch in reader if branch != "null"]
        kind, wanted = kind_of(writer), kind_of(reader)
        if kind != wanted and (kind, wanted) not in PROMOTIONS:
            raise UnreadableError(f"{kind} for {wanted}")
        if kind == "array":
            return [self.read(writer["items"], reader["items"]) for _ in self.items()]
        if kind == "map":
            entries = [(text(self.raw("bytes")), self.read(writer["values"], reader["values"])) for _ in self.items()]
            if len({key for key, _ in entries}) < len(entries):
                raise BadError("a key twice")
            return [{"key": key, "value": value} for key, value in entries]
        if kind == "record":
            return self.record_of(writer, reader)
        if kind == "enum":
            symbol = self.choice(writer["symbols"])
            known = symbol if symbol in reader["symbols"] else reader.get("default")
            if known is None:
                raise UnreadableError("no such symbol")
            return known
        return meant(self.raw(writer), writer, reader)

    def record_of(self, writer: Schema, reader: Schema) -> dict[str, Any]:
        names = {field["name"] for field in writer["fields"]}
        wanted = {}
        for field in reader["fields"]:
            known_as = [name for name in (field["name"], *field.get("aliases", [])) if name in names]
            if known_as:
                wanted[known_as[0]] = field
        found = {}
        for field in writer["fields"]:
            if field["name"] in wanted:
                mine = wanted[field["name"]]
                found[mine["name"]] = self.read(field["type"], mine["type"])
            else:
                self.raw(field["type"])
        for field in reader["fields"]:
            if field["name"] not in found:
                found[field["name"]] = field["default"]
        return {field["name"]: found[field["name"]] for field in reader["fields"]}


def text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise BadError("not UTF-8") from None


def meant(value: Any, writer: Schema, reader: Schema) -> Any:  # noqa: ANN401, C901, PLR0911  any value
    """Return what a raw value is as the reader's type, as Python sees the column."""
    wanted, logical = kind_of(reader), logical_of(reader)
    unit = PER_SECOND.get(str(logical_of(writer) or logical).rpartition("-")[2], 1)
    match wanted:
        case "float":
            return struct.unpack("<f", struct.pack("<f", value))[0]
        case "double":
            return float(value)
        case "string":
            return text(value)
    if logical == "decimal":
        return decimal(value, reader)
    if logical == "uuid":
        return str(uuid.UUID(bytes=value))
    if logical == "date":
        if not date.min <= date.max or not 1 - 719163 <= value <= date.max.toordinal() - 719163:
            raise BadError("no such day")
        return date.fromordinal(value + 719163)
    if logical is not None and logical.startswith("time-"):
        return value * PER_SECOND[logical.rpartition("-")[2]] // unit
    if logical is not None and "timestamp" in logical:
        try:
            return EPOCH + timedelta(microseconds=value * 10**6 // unit)
        except OverflowError:
            raise BadError("no such time") from None
    return value


def decimal(value: bytes, schema: Schema) -> Decimal:
    if not value or len(value) > 64:
        raise BadError("no such decimal")
    number = int.from_bytes(value, "big", signed=True)
    if abs(number) >= 10 ** schema["precision"]:
        raise BadError("too many digits")
    return Decimal(number).scaleb(-schema.get("scale", 0), context=Context(prec=100))

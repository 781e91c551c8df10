"""What becomes of Avro records: good ones in their places, bad ones with reason, field and byte."""

from __future__ import annotations

import json as stdlib_json
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from slackwater.formats import AvroFormat, avro
from slackwater.formats.base import Decoded
from slackwater.formats.ddl import TIMESTAMP, map_type
from tests.formats.avro.avro_model import zigzag

TICK = {
    "type": "record",
    "name": "Tick",
    "fields": [{"name": "id", "type": "long"}, {"name": "key", "type": "string"}, {"name": "value", "type": "double"}],
}


def of(*types: Any) -> AvroFormat:  # noqa: ANN401
    """Return the format of a record with fields a, b, c … of these types."""
    fields = [{"name": name, "type": kind} for name, kind in zip("abcdefgh", types, strict=False)]
    return avro({"type": "record", "name": "R", "fields": fields})


def tick(number: int, key: bytes = b"user") -> bytes:
    return zigzag(number) + zigzag(len(key)) + key + struct.pack("<d", number / 4)


def decode(form: AvroFormat, *records: bytes | None) -> Decoded:
    return form.decoder().decode(pl.Series(records, dtype=pl.Binary))


def outcome(form: AvroFormat, record: bytes | None) -> object:
    """Return the value of field `a`, or reason and message."""
    decoded = decode(form, record)
    if decoded.bad.is_empty():
        return (
            decoded.frame["a"][0]
            if not isinstance(decoded.frame["a"][0], pl.Series)
            else decoded.frame["a"].to_list()[0]
        )
    assert set(decoded.frame.row(0)) == {None}
    return decoded.bad.row(0)[1:]


LONG, STRING, MAP = of("long"), of("string"), of({"type": "map", "values": "int"})
ENUM = of({"type": "enum", "name": "E", "symbols": ["X", "Y"]})
LONGS = of({"type": "array", "items": "long"})
DAY = {"type": "int", "logicalType": "date"}
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
NANOS = {"type": "long", "logicalType": "timestamp-nanos"}
MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}


@pytest.mark.parametrize(
    "form, record, reason, message",
    [
        (LONG, None, "empty_record", "the record has no payload"),
        (LONG, b"", "empty_record", "the record has no bytes"),
        (LONG, b"\x80", "truncated", "field `a`, byte 0: it is truncated"),
        (LONG, b"\xff" * 10, "malformed", "field `a`, byte 0: a number of more than 64 bits"),
        (LONG, b"\xff" * 9 + b"\x02", "malformed", "field `a`, byte 0: a number of more than 64 bits"),
        (LONG, b"\x02\x00", "malformed", "byte 1: extra bytes after the last field"),
        (of("int"), zigzag(2**31), "malformed", "field `a`, byte 0: an int of more than 32 bits"),
        (of("boolean"), b"\x02", "malformed", "field `a`, byte 0: neither true (1) nor false (0)"),
        (of("double"), b"\x00" * 7, "truncated", "field `a`, byte 0: it is truncated"),
        (STRING, b"\x06ab", "truncated", "field `a`, byte 1: it is truncated"),
        (STRING, b"\x01", "malformed", "field `a`, byte 0: a negative length"),
        (STRING, zigzag(2**62) + b"ab", "truncated", "field `a`, byte 10: it is truncated"),
        (STRING, b"\x04\xc3\x28", "invalid_utf8", "field `a`, byte 1: text that is not UTF-8"),
        (of("long", "string"), b"\x00\x02\xff", "invalid_utf8", "field `b`, byte 2: text that is not UTF-8"),
        (ENUM, b"\x04", "malformed", "field `a`, byte 0: its type has 2 symbols, and this is not one of them"),
        (ENUM, b"\x01", "malformed", "field `a`, byte 0: its type has 2 symbols, and this is not one of them"),
        (
            of(["null", "long"]),
            b"\x04\x00",
            "malformed",
            "field `a`, byte 0: its type has 2 branches, and this is not one of them",
        ),
        (LONGS, b"\x04\x02", "truncated", "field `a`, byte 0: it is truncated"),
        (LONGS, zigzag(2**40) + b"\x02\x00", "truncated", "field `a`, byte 0: it is truncated"),
        (LONGS, zigzag(-(2**63)) + b"\x02\x02\x00", "truncated", "field `a`, byte 0: it is truncated"),
        (LONGS, b"\x01\x01\x02\x00", "malformed", "field `a`, byte 0: a block of negative size"),
        (LONGS, b"\x01\x40\x02\x00", "truncated", "field `a`, byte 0: it is truncated"),
        (LONGS, b"\x02\x02", "truncated", "field `a`, byte 2: it is truncated"),
        (MAP, b"\x04\x02k\x02\x02k\x04\x00", "malformed", "field `a`, byte 1: a duplicate key"),
        (MAP, b"\x02\x02\xff\x02\x00", "invalid_utf8", "field `a`, byte 2: text that is not UTF-8"),
        (of(DAY), zigzag(2**31 - 1), "out_of_range", "field `a`, byte 0: a day outside the years 1 to 9999"),
        (of(MILLIS), zigzag(2**63 - 1), "out_of_range", "field `a`, byte 0: a time outside the years 1 to 9999"),
        (of(MILLIS), zigzag(-62_135_596_800_001), "out_of_range", "field `a`, byte 0: a time outside the years"),
        (of(MILLIS), zigzag(253_402_300_800_000), "out_of_range", "field `a`, byte 0: a time outside the years"),
        (of(MONEY), b"\x04\x27\x10", "out_of_range", "field `a`, byte 1: more digits than decimal(4,2) has"),
        (of(MONEY), zigzag(65) + b"\0" * 65, "out_of_range", "field `a`, byte 2: more digits than decimal(4,2) has"),
        (of(MONEY), zigzag(17) + b"\x01" + b"\0" * 16, "out_of_range", "field `a`, byte 1: more digits"),
        (of(MONEY), b"\x00", "malformed", "field `a`, byte 1: an empty decimal"),
    ],
)
def test_bad_bytes_of_every_kind_have_their_reason_their_field_and_their_byte(
    form: AvroFormat, record: bytes | None, reason: str, message: str
) -> None:
    found = outcome(form, record)
    assert isinstance(found, tuple)
    assert found[0] == reason
    assert found[1].startswith(message)


@pytest.mark.parametrize(
    "form, record, value",
    [
        (LONG, b"\x80\x00", 0),
        (LONG, zigzag(2**63 - 1), 2**63 - 1),
        (LONG, zigzag(-(2**63)), -(2**63)),
        (of("float"), struct.pack("<f", 1.5), 1.5),
        (STRING, b"\x00", ""),
        (ENUM, b"\x02", "Y"),
        (LONGS, b"\x00", []),
        (LONGS, b"\x02\x06\x03\x04\x08\x09\x00", [3, 4, -5]),
        (MAP, b"\x04\x02k\x02\x02l\x04\x00", [{"key": "k", "value": 1}, {"key": "l", "value": 2}]),
        (of(DAY), zigzag(-719_162), date(1, 1, 1)),
        (of(MILLIS), zigzag(253_402_300_799_999), datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)),
        (of(NANOS), zigzag(-1), datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)),
        (of(NANOS), zigzag(2**63 - 1), datetime(2262, 4, 11, 23, 47, 16, 854_775, tzinfo=UTC)),
        (of(MONEY), b"\x04\xd8\xf1", Decimal("-99.99")),
        (of(MONEY), zigzag(20) + b"\xff" * 20, Decimal("-0.01")),
        (of(["long"]), b"\x00\x02", 1),
        (of({"type": "long", "logicalType": "made-up"}), b"\x02", 1),
        (of({"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 3}), b"\x02x", b"x"),
        (
            of({"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}),
            bytes(range(16)),
            "00010203-0405-0607-0809-0a0b0c0d0e0f",
        ),
    ],
)
def test_values_are_read_to_the_ends_of_their_range(form: AvroFormat, record: bytes, value: object) -> None:
    assert outcome(form, record) == value


def test_every_type_becomes_its_column() -> None:
    point = {"type": "record", "name": "Point", "fields": [{"name": "x", "type": "int"}]}
    types = {
        "boolean": pl.Boolean(),
        "int": pl.Int32(),
        "long": pl.Int64(),
        "float": pl.Float32(),
        "double": pl.Float64(),
        "bytes": pl.Binary(),
        "string": pl.String(),
    }
    for kind, dtype in types.items():
        assert of(kind).schema == {"a": dtype}
        assert of(["null", kind]).schema == {"a": dtype}
        assert of({"type": "array", "items": kind}).schema == {"a": pl.List(dtype)}
        assert of({"type": "map", "values": [kind, "null"]}).schema == {"a": map_type(dtype)}
    assert of(point).schema == {"a": pl.Struct({"x": pl.Int32})}
    assert of({"type": "long", "logicalType": "local-timestamp-millis"}).schema == {"a": TIMESTAMP}
    assert of({"type": "int", "logicalType": "time-millis"}).schema == {"a": pl.Int64()}
    assert of(DAY).schema == {"a": pl.Date()}
    assert of(MONEY).schema == {"a": pl.Decimal(4, 2)}
    assert of({"type": "fixed", "name": "F", "size": 3}).schema == {"a": pl.Binary()}
    assert of({"type": "fixed", "name": "F", "size": 12, "logicalType": "duration"}).schema == {"a": pl.Binary()}


def test_bytes_of_neighbours_are_never_read() -> None:
    cut = tick(1)[:-1]
    decoded = decode(avro(TICK), cut, tick(2), cut, tick(3))
    assert decoded.frame["id"].to_list() == [None, 2, None, 3]
    assert set(decoded.bad["reason"]) == {"truncated"}


def test_a_null_record_within_a_list_stays_null() -> None:
    point = {
        "type": "record",
        "name": "P",
        "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": ["null", "int"]}],
    }
    form = of({"type": "array", "items": ["null", point]})
    assert outcome(form, b"\x06\x02\x02\x00\x00\x02\x04\x02\x06\x00") == [{"x": 1, "y": None}, None, {"x": 2, "y": 3}]


def test_named_types_are_referred_to_by_name() -> None:
    form = avro(
        {
            "type": "record",
            "name": "shop.Order",
            "fields": [
                {"name": "a", "type": {"type": "fixed", "name": "Id", "size": 2}},
                {"name": "b", "type": "Id"},
                {"name": "c", "type": ["null", "shop.Id"]},
            ],
        }
    )
    assert decode(form, b"aabb\x02cc").frame.rows() == [(b"aa", b"bb", b"cc")]


def test_schema_is_json_text_a_dict_or_a_file(tmp_path: Path) -> None:
    text = stdlib_json.dumps(TICK)
    (tmp_path / "tick.avsc").write_text(text)
    assert avro(text) == avro(TICK) == avro(tmp_path / "tick.avsc")
    assert decode(avro(text), tick(5, b"k")).frame.rows() == [(5, "k", 1.25)]

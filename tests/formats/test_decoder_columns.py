"""What every decoder does with whole columns of records: order, schema, slices, limits, threads and pickles."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import polars as pl
import pytest

from slackwater.base.errors import DefinitionError
from slackwater.formats import Format, avro, csv, json, protobuf
from slackwater.formats.base import Decoded
from tests.formats.avro.avro_model import zigzag
from tests.formats.protobuf.protobuf_model import message_class
from tests.formats.protobuf.protobuf_outcomes import MIXED

COMPANY = 150
"""Enough records for JSON to learn patterns, and for Protobuf to be read together."""
NUMBERED = message_class("message M {\n int64 n = 1\n string s = 2\n}")


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A format of records with a number and a text, and records of many types."""

    form: Callable[..., Format]
    """Returns the format; takes its options."""
    record: Callable[[int], bytes]
    """Returns the record of a number, with a text as long as the rest of a division by 300."""
    bad: bytes
    rich: Format
    good: tuple[bytes, ...]
    """Records of `rich`."""


def record_schema(**fields: Any) -> dict[str, Any]:  # noqa: ANN401  types of Avro
    """Return the schema of an Avro record."""
    listed = [{"name": name, "type": kind} for name, kind in fields.items()]
    return {"type": "record", "name": "R", "fields": listed}


MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
WITHIN = {
    "type": "record",
    "name": "S",
    "fields": [{"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["X"]}}],
}
BYTES = {"type": "record", "name": "N", "fields": [{"name": "b", "type": "bytes"}]}
SAMPLES: Final = {
    "json": Sample(
        form=lambda **options: json("n bigint, s string", **options),
        record=lambda n: b'{"n":%d,"s":"%s"}' % (n, b"x" * (n % 300)),
        bad=b"?",
        rich=json("a array<struct<t:timestamp>>, b map<string,double>, c decimal(9,3), d binary, e tinyint, f string"),
        good=(b'{"a":[{"t":"2024-01-31T12:00:00Z"}],"b":{"x":1},"c":1.5,"d":"AQI=","e":1,"f":"x"}',),
    ),
    "csv": Sample(
        form=lambda **options: csv("n bigint, s string", **options),
        record=lambda n: b'%d,"%s"' % (n, b"x" * (n % 300)),
        bad=b"?",
        rich=csv("a timestamp, b date, c decimal(9,3), d binary, e tinyint, f string, g boolean, h float"),
        good=(b"2024-01-31T12:00:00Z,2024-01-31,1.5,AQI=,1,x,true,1.5", b",,,,,,,"),
    ),
    "avro": Sample(
        form=lambda **options: avro(record_schema(n="long", s="string", d="double"), **options),
        record=lambda n: zigzag(n) + zigzag(n % 300) + b"x" * (n % 300) + struct.pack("<d", n),
        bad=b"\x80",
        rich=avro(
            record_schema(
                a={"type": "array", "items": ["null", MILLIS]},
                b={"type": "map", "values": {"type": "array", "items": MONEY}},
                c=WITHIN,
                d=["null", BYTES],
            )
        ),
        good=(b"\x02\x02\x02\x00" + b"\x02\x02k\x02\x02\x05\x00\x00" + b"\x00" + b"\x02\x02x", b"\x00\x00\x00\x00"),
    ),
    "protobuf": Sample(
        form=lambda **options: protobuf(NUMBERED, **options),
        record=lambda n: NUMBERED(n=n, s="x" * (n % 300)).SerializeToString(),
        bad=b"\xff",
        rich=protobuf(MIXED),
        good=(
            MIXED(
                s="x", i={"n": 1, "more": {"s": "y"}}, f=[1], p=[2], m={"k": 3}, t={"seconds": 1}
            ).SerializeToString(),
            b"",
        ),
    ),
}
each = pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)


def decode(form: Format, records: list[bytes | None]) -> Decoded:
    return form.decoder().decode(pl.Series(records, dtype=pl.Binary))


@each
def test_the_frame_has_the_declared_schema_whether_all_some_or_no_records_are_bad(sample: Sample) -> None:
    good, bad = sample.good, sample.bad
    columns: list[list[bytes | None]] = [[], [None], [bad], [bad] * COMPANY, [None, good[0]] * COMPANY]
    for one in good:
        columns += [[one], [one] * COMPANY, [one, bad] * COMPANY, [*good, bad]]
    for records in columns:
        decoded = decode(sample.rich, records)
        assert decoded.frame.schema == sample.rich.schema
        assert decoded.frame.height == len(records)
        assert decoded.bad.height == sum(record not in good for record in records)
        assert decoded.bad.schema == {"index": pl.UInt32, "reason": pl.String, "message": pl.String}


@each
def test_rows_keep_their_order_among_bad_ones_over_more_than_a_block(sample: Sample) -> None:
    count = 70_000
    records = [sample.bad if number % 1000 == 7 else sample.record(number) for number in range(count)]
    decoded = decode(sample.form(), [*records])
    assert decoded.bad["index"].to_list() == list(range(7, count, 1000))
    assert decoded.frame["n"].to_list() == [None if number % 1000 == 7 else number for number in range(count)]
    lengths = [None if number % 1000 == 7 else number % 300 for number in range(count)]
    assert decoded.frame["s"].str.len_bytes().to_list() == lengths


@each
def test_a_slice_of_a_column_and_one_in_chunks_are_read_like_any_other(sample: Sample) -> None:
    column = pl.Series([sample.bad, *map(sample.record, range(100)), sample.bad])
    pieces = pl.concat([column[41:51], column[91:101]], rechunk=False)
    decoded = sample.form().decoder().decode(pieces)
    assert decoded.bad.is_empty()
    assert decoded.frame["n"].to_list() == [*range(40, 50), *range(90, 100)]


@each
def test_a_record_without_payload_is_empty(sample: Sample) -> None:
    decoded = decode(sample.form(), [None, sample.record(1)])
    assert decoded.bad.rows() == [(0, "empty_record", "the record has no payload")]


@each
def test_a_record_longer_than_allowed_is_not_looked_into(sample: Sample) -> None:
    fits, longer = sample.record(10), sample.record(11)
    decoded = decode(sample.form(max_bytes=len(fits)), [fits, longer])
    words = f"a record may have at most {len(fits)} bytes; got {len(longer)}"
    assert decoded.frame["n"].to_list() == [10, None]
    assert decoded.bad.rows() == [(1, "too_long", words)]


@each
@pytest.mark.parametrize("limit", [0, -1, True, 1 << 27, "1"])
def test_an_unusable_limit_is_refused(sample: Sample, limit: Any) -> None:  # noqa: ANN401
    with pytest.raises(DefinitionError, match="format option `max_bytes` must be a whole number from 1") as caught:
        sample.form(max_bytes=limit)
    assert caught.value.code == "FORMAT_LIMIT"


@each
def test_a_format_and_a_decoder_that_has_learned_survive_pickling(sample: Sample) -> None:
    form = sample.form(max_bytes=999)
    assert pickle.loads(pickle.dumps(form)) == form  # noqa: S301  our own bytes
    assert hash(form) == hash(sample.form(max_bytes=999))
    decoder = form.decoder()
    decoder.decode(pl.Series([sample.record(1)] * COMPANY))
    copy = pickle.loads(pickle.dumps(decoder))  # noqa: S301  our own bytes
    assert copy.decode(pl.Series([sample.record(2)] * COMPANY)).frame["n"].to_list() == [2] * COMPANY


@each
def test_threads_decode_side_by_side(sample: Sample) -> None:
    decoder = sample.form().decoder()
    chunks = [pl.Series([sample.record(number + start) for number in range(500)]) for start in range(8)]
    with ThreadPoolExecutor(4) as pool:
        decoded = list(pool.map(lambda chunk: decoder.decode(chunk).frame["n"].to_list(), chunks))
    assert decoded == [list(range(start, start + 500)) for start in range(8)]

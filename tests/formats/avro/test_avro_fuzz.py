"""Avro as the model and fastavro read it; and whatever the bytes: no exception, and good neighbours unharmed."""

from __future__ import annotations

import io
import math
import random
import struct
from collections.abc import Callable
from datetime import UTC, datetime, time
from typing import Any
from unittest import mock
from uuid import UUID

import fastavro
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.formats.avro import AvroDecoder, avro
from slackwater.formats.avro import items as avro_items
from slackwater.formats.avro.parser import AvroParser
from slackwater.formats.avro.resolution import AsStruct, resolve_schemas
from slackwater.formats.base import Decoded
from tests.formats.avro.avro_model import BadError, Schema, decode, kind_of, logical_of
from tests.formats.avro.avro_schemas import Written, evolved, written
from tests.formats.spoiling import cut, drop, flip

WAYS = pytest.mark.parametrize("few", [0, 3, 10_000], ids=["in rounds", "both ways", "one by one"])


def decoded(case: Written) -> Decoded:
    """Decode records of a writer's schema as the reader's, without a registry between them."""
    form = avro(case.reader)
    decoder = AvroDecoder(form)
    action = resolve_schemas(AvroParser().parse(case.writer), form.reader)
    assert isinstance(action, AsStruct)
    decoder._own = action
    return decoder.decode(pl.Series(case.records, dtype=pl.Binary))


def same(ours: object, theirs: object) -> bool:
    """Return whether two values are equal, to the bit if they are floats."""
    if isinstance(ours, float) and isinstance(theirs, float):
        return (math.isnan(ours) and math.isnan(theirs)) or struct.pack("<d", ours) == struct.pack("<d", theirs)
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(same(ours[key], theirs[key]) for key in ours)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    return type(ours) is type(theirs) and ours == theirs


def modelled(case: Written, record: bytes) -> dict[str, Any] | None:
    """Return the row that the model reads, or None if it reads none."""
    try:
        return decode(case.writer, case.reader, record)
    except BadError:
        return None


def check(case: Written) -> set[int]:
    """Compare with the model, and return which records are bad."""
    found = decoded(case)
    form = avro(case.reader)
    bad = set(found.bad["index"])
    assert found.frame.schema == form.schema
    assert found.bad["index"].is_sorted()
    assert len(bad) == found.bad.height
    for at, (record, row) in enumerate(zip(case.records, found.frame.iter_rows(named=True), strict=True)):
        wanted = modelled(case, record)
        assert (at in bad) == (wanted is None), (record, found.bad.filter(pl.col("index") == at).to_dicts())
        if wanted is None:
            assert set(map(str, row.values())) == {"None"}
        else:
            assert same(row, wanted), (record, row, wanted)
    return bad


@WAYS
@given(case=written())
def test_records_are_read_as_the_model_reads_them(few: int, case: Written) -> None:
    with mock.patch.object(avro_items, "FEW", few):
        assert check(case) == set()


@WAYS
@given(case=evolved())
def test_records_of_other_writers_are_read_as_the_model_reads_them(few: int, case: Written) -> None:
    with mock.patch.object(avro_items, "FEW", few):
        check(case)


def as_ours(value: Any, schema: Schema) -> Any:  # noqa: ANN401, PLR0911  any value
    """Return what fastavro gives as Python sees our columns."""
    if value is None:
        return None
    if isinstance(schema, list):
        [schema] = [branch for branch in schema if branch != "null"]
    kind, logical = kind_of(schema), logical_of(schema)
    if kind == "record":
        return {field["name"]: as_ours(value[field["name"]], field["type"]) for field in schema["fields"]}
    if kind == "array":
        return [as_ours(each, schema["items"]) for each in value]
    if kind == "map":
        return [{"key": key, "value": as_ours(each, schema["values"])} for key, each in value.items()]
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC)
    if isinstance(value, time):
        micros = ((value.hour * 60 + value.minute) * 60 + value.second) * 10**6 + value.microsecond
        return micros // 1000 if logical == "time-millis" else micros
    if isinstance(value, UUID):
        return str(value)
    if kind == "float":
        return struct.unpack("<f", struct.pack("<f", value))[0]
    return value


@given(case=written())
def test_records_are_read_as_fastavro_reads_them(case: Written) -> None:
    found = decoded(case)
    assert found.bad.is_empty()
    for record, row in zip(case.records, found.frame.iter_rows(named=True), strict=True):
        theirs = fastavro.schemaless_reader(io.BytesIO(record), case.writer, None)
        assert same(row, as_ours(theirs, case.reader))


def without_meanings(schema: Schema) -> Schema:
    """Return a schema of plain types: fastavro knows what the writer's stand for, and not what the reader's do."""
    if isinstance(schema, list):
        return [without_meanings(each) for each in schema]
    if isinstance(schema, dict):
        return {key: without_meanings(value) for key, value in schema.items() if key != "logicalType"}
    return schema


@given(drawn=evolved())
def test_records_of_other_writers_are_read_as_fastavro_reads_them(drawn: Written) -> None:
    plain = without_meanings([drawn.writer, drawn.reader])
    case = Written(writer=plain[0], reader=plain[1], records=drawn.records)
    found = decoded(case)
    bad = set(found.bad["index"])
    for at, (record, row) in enumerate(zip(case.records, found.frame.iter_rows(named=True), strict=True)):
        try:
            theirs = fastavro.schemaless_reader(io.BytesIO(record), case.writer, case.reader)
        except (fastavro.read.SchemaResolutionError, UnicodeDecodeError):
            assert at in bad
        else:
            assert at not in bad
            assert same(row, as_ours(theirs, case.reader)), (row, theirs)


def insert(dice: random.Random, record: bytes) -> bytes:
    at = dice.randrange(len(record) + 1)
    evil = [b"\x00", b"\x01", b"\xff", b"\x80" * 9, b"\xff" * 9 + b"\x01", b"\xff" * 10, b"\xff" * 11, b"\x02", b"\xc3"]
    return record[:at] + dice.choice(evil) + record[at:]


@st.composite
def spoiled(draw: st.DrawFn) -> Written:
    """Draw records, some of them spoiled."""
    case = draw(written(most=6) | evolved(most=6))
    dice = draw(st.randoms(use_true_random=False))
    spoil: list[Callable[[random.Random, bytes], bytes]] = [cut, flip, flip, insert, drop]
    records = list(case.records)
    for _ in range(dice.randrange(1, 20)):
        record = dice.choice(case.records)
        for _ in range(dice.choice([1, 1, 3])):
            record = dice.choice(spoil)(dice, record) if record else record
        records.append(record)
    records += [dice.randbytes(dice.randrange(30)) for _ in range(dice.randrange(4))]
    dice.shuffle(records)
    return Written(writer=case.writer, reader=case.reader, records=records)


@WAYS
@given(case=spoiled())
def test_any_bytes_are_read_as_the_model_reads_them_or_reported(few: int, case: Written) -> None:
    with mock.patch.object(avro_items, "FEW", few):
        check(case)


@given(case=spoiled())
def test_the_way_a_record_takes_changes_neither_reason_nor_message(case: Written) -> None:
    with mock.patch.object(avro_items, "FEW", 0):
        in_rounds = decoded(case)
    with mock.patch.object(avro_items, "FEW", 10_000):
        one_by_one = decoded(case)
    assert in_rounds.bad.equals(one_by_one.bad)
    assert in_rounds.frame.equals(one_by_one.frame)

"""Any frame is written as fastavro writes it, and read back as it was."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.formats.avro import avro
from slackwater.formats.avro.pieces import AssembledRecords, varints
from tests.formats.avro.avro_frames import frames, plain_rows
from tests.formats.avro.avro_model import decode, zigzag
from tests.formats.avro.avro_schemas import LONGS, Written, written


def theirs(schema: Any, row: dict[str, Any]) -> bytes:  # noqa: ANN401
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, row)
    return out.getvalue()


@given(frame=frames())
def test_any_frame_is_written_byte_for_byte_as_fastavro_writes_it(frame: pl.DataFrame) -> None:
    encoder = avro().encoder(frame.schema, subject="orders-value")
    schema = fastavro.parse_schema(json.loads(encoder.text))
    assert encoder.encode(frame).to_list() == [theirs(schema, row) for row in plain_rows(frame)]


@given(frame=frames())
def test_any_frame_is_read_back_as_it_was(frame: pl.DataFrame) -> None:
    encoder = avro().encoder(frame.schema, subject="orders-value")
    form = avro(encoder.text)
    decoded = form.decoder().decode(encoder.encode(frame))
    assert decoded.bad.is_empty()
    assert decoded.frame.to_dicts() == frame.cast(form.schema).to_dicts()


@given(frame=frames(), data=st.data())
def test_a_row_is_written_the_same_alone_as_among_others(frame: pl.DataFrame, data: st.DataObject) -> None:
    if frame.is_empty():
        return
    encoder = avro().encoder(frame.schema, subject="orders-value")
    at = data.draw(st.integers(0, frame.height - 1))
    assert encoder.encode(frame[at : at + 1]).to_list() == encoder.encode(frame).to_list()[at : at + 1]


@given(case=written())
def test_records_of_any_schema_are_the_same_after_reading_and_writing(case: Written) -> None:
    form = avro(case.writer)
    decoded = form.decoder().decode(pl.Series(case.records, dtype=pl.Binary))
    assert decoded.bad.is_empty()
    again = form.encoder(form.schema, subject="orders-value").encode(decoded.frame)
    for before, after in zip(case.records, again, strict=True):
        assert repr(decode(case.writer, case.reader, after)) == repr(decode(case.writer, case.reader, before))


@given(numbers=st.lists(LONGS, max_size=20))
def test_numbers_are_written_as_the_model_writes_them(numbers: list[int]) -> None:
    column = pl.Series(numbers, dtype=pl.Int64).to_numpy()
    data, places = AssembledRecords.of(varints(column), len(numbers)).packed()
    assert data.tobytes() == b"".join(map(zigzag, numbers))
    assert places[-1] == len(data)


@pytest.mark.parametrize("bits", range(64))
def test_numbers_at_every_border_are_written_as_the_model_writes_them(bits: int) -> None:
    numbers = [sign * 2**bits + off for sign in (1, -1) for off in (-1, 0, 1)]
    kept = [number for number in numbers if -(2**63) <= number < 2**63]
    data, _ = AssembledRecords.of(varints(pl.Series(kept, dtype=pl.Int64).to_numpy()), len(kept)).packed()
    assert data.tobytes() == b"".join(map(zigzag, kept))

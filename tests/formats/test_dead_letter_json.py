"""Dead letters as JSON, there and back."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.base.errors import RunError
from slackwater.formats.dead_letter_columns import DEAD_LETTER_SCHEMA
from slackwater.formats.dead_letter_json import decode_letters, encode_letters
from slackwater.formats.row_json import bytes_as_base64
from tests.tools.dead_letters.letters import headers, letters

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
blobs = st.binary(max_size=12)
moments = st.datetimes(min_value=datetime(1, 1, 1), max_value=datetime(9999, 12, 31), timezones=st.just(UTC))  # noqa: DTZ001  hypothesis wants it so
any_letter = st.fixed_dictionaries(
    {
        "payload": st.none() | blobs,
        "key": st.none() | blobs,
        "headers": st.none() | st.lists(st.fixed_dictionaries({"name": texts, "value": st.none() | blobs}), max_size=3),
        "source": texts,
        "partition": texts,
        "offset": st.integers(-(2**63), 2**63 - 1),
        "ingestion_time": st.none() | moments,
        "step": texts,
        "reason": texts,
        "message": st.none() | texts,
        "processed_at": moments,
    }
)


GOOD = (
    b'{"payload": "/w==", "processed_at": "2026-03-01T12:00:00Z", "source": "s", "partition": "p", "offset": 3, '
    b'"step": "x", "reason": "r"}'
)


@given(st.lists(any_letter, max_size=5))
def test_letters_come_back_as_they_were(rows: list[dict[str, object]]) -> None:
    frame = pl.DataFrame(rows, schema=DEAD_LETTER_SCHEMA)
    assert decode_letters(encode_letters(frame), name=str).equals(frame)
    assert decode_letters(encode_letters(frame).cast(pl.Binary), name=str).equals(frame)


def test_form_is_an_object_with_bytes_in_base64() -> None:
    frame = letters([b"\xff"], key=pl.Series([b"k"]), headers=headers([("h", b"1"), ("h", None)]))
    assert json.loads(encode_letters(frame)[0]) == {
        "payload": "/w==",
        "key": "aw==",
        "headers": [{"name": "h", "value": "MQ=="}, {"name": "h", "value": None}],
        "source": "/data/orders/phones/0.jsonl",
        "partition": "phones",
        "offset": 0,
        "ingestion_time": "2026-03-01T11:59:55+00:00",
        "step": "orders.decode",
        "reason": "malformed",
        "message": "broken off",
        "processed_at": "2026-03-01T12:00:00+00:00",
    }


def test_letter_of_another_writer_may_use_z_and_fields_of_its_own() -> None:
    given = {"source": "s", "partition": "p", "offset": 3, "step": "x", "reason": "r", "more": 1}
    text = json.dumps({**given, "processed_at": "2026-03-01T12:00:00.5Z"}, indent=1)
    [row] = decode_letters(pl.Series([text]), name=str).rows(named=True)
    assert row["processed_at"] == datetime(2026, 3, 1, 12, 0, 0, 500_000, tzinfo=UTC)
    assert (row["payload"], row["headers"], row["offset"]) == (None, None, 3)


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"id": 5}',
        b"\xff",
        b'{"offset": "x"}',
        GOOD.replace(b"2026-03-01T12:00:00Z", b"noon"),
        GOOD.replace(b"/w==", b"!"),
        b"{},{}",
    ],
)
def test_what_is_no_dead_letter_is_named_by_its_place(value: bytes) -> None:
    values = pl.Series([GOOD, value], dtype=pl.Binary)
    assert decode_letters(values[:1], name=str)["payload"][0] == b"\xff"
    with pytest.raises(RunError, match=r"\[DEAD_LETTER_JSON\].*; record 8 of a topic is .*; give the folder or topic"):
        decode_letters(values, name=lambda number: f"record {number + 7} of a topic")


def test_bytes_deep_in_a_column_become_base64_and_nulls_stay() -> None:
    frame = pl.DataFrame(
        {"a": [[{"b": b"\x00", "c": 1}, None], None, []], "d": [{"e": None}, None, {"e": b"x"}], "f": [1, 2, 3]},
        schema={
            "a": pl.List(pl.Struct({"b": pl.Binary, "c": pl.Int64})),
            "d": pl.Struct({"e": pl.Binary}),
            "f": pl.Int64,
        },
    )
    assert bytes_as_base64(frame).to_dict(as_series=False) == {
        "a": [[{"b": "AA==", "c": 1}, None], None, []],
        "d": [{"e": None}, None, {"e": "eA=="}],
        "f": [1, 2, 3],
    }

"""Whatever the bytes: no exception, good neighbours unharmed, every bad record reported with its place."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from slackwater.formats import debezium
from tests.unit.formats.debezium_samples import ANNE, CHANGES, MYSQL, change, decode, wrapped, written

FORM = debezium(
    "id int, email string, at timestamp, on date, price decimal(10,2), photo binary, tags array<string>",
    key="id",
    times="auto",
)
FULL = {**ANNE, "at": 1559033904863, "on": 17000, "price": "BNI=", "photo": "AQI=", "tags": ["x"]}
GOOD = [
    *(written(payload) for payload in CHANGES.values()),
    *(written(wrapped(payload)) for payload in CHANGES.values()),
    written(change("u", None, {**FULL, "at": "2026-03-01T12:00:00Z"}, MYSQL)),
    written(change("c", None, FULL, {**MYSQL, "snapshot": True})),
    written(wrapped(change("c", None, FULL))),
]
VALUES = [
    b"null", b"true", b"-1", b"1e400", b"9" * 30, b"NaN", b'""', b'"\\ud800"', b"[]", b"{}", b'{"scale":1}', b'"BNI="',
    b'"2026-02-30"', b"[" * 70, b'{"op":"c"}', b'"payload"', b"9223372036854775807", b"-9223372036854775808", b"1.5",
]  # fmt: skip
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["c", "d", "struct", "int64"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "schema",
                    "payload",
                    "before",
                    "after",
                    "source",
                    "op",
                    "ts_ms",
                    "id",
                    "at",
                    "fields",
                    "field",
                    "type",
                    "lsn",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


def damaged(record: bytes, dice: random.Random) -> bytes:
    """Return a record with a value replaced, a byte changed, or a piece missing or doubled."""
    at = dice.randrange(len(record))
    until = min(len(record), at + dice.randrange(1, 20))
    match dice.randrange(5):
        case 0:
            return record[:at]
        case 1:
            return record[:at] + bytes([dice.randrange(256)]) + record[at + 1 :]
        case 2:
            return record[:at] + record[until:]
        case 3:
            return record[:until] + record[at:]
        case _:
            places = [place for place, byte in enumerate(record) if byte == ord(":")]
            at = dice.choice(places) + 1
            ends = [place for place in range(at, len(record)) if record[place] in b",}"]
            return record[:at] + dice.choice(VALUES) + record[ends[0] :]


@cache
def good_rows() -> list[tuple[Any, ...]]:
    return decode(FORM, *GOOD).frame.rows()


def check(records: list[bytes]) -> None:
    """Records among good ones: each is a row or has a reason, and the good ones are as if they were alone."""
    company = [*records, *GOOD]
    decoded = decode(FORM, *company)
    bad = decoded.bad["index"].to_list()
    assert decoded.frame.schema == FORM.schema
    assert decoded.frame.height == len(company)
    assert bad == sorted(set(bad))
    assert set(bad) <= set(range(len(records)))
    assert decoded.frame["op"].is_null().arg_true().to_list() == bad
    assert decoded.frame[len(records) :].rows() == good_rows()


@settings(max_examples=25)
@given(st.lists(st.sampled_from(GOOD), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_damaged_records_are_rows_or_dead_letters_and_harm_no_other(records: list[bytes], dice: random.Random) -> None:
    check([damaged(record, dice) for record in records])


@settings(max_examples=20)
@given(st.lists(JSON.map(written) | st.binary(max_size=30), min_size=1, max_size=8))
def test_any_json_and_any_bytes_are_rows_or_dead_letters(records: list[bytes]) -> None:
    check(records)


def test_undamaged_records_are_all_good() -> None:
    assert decode(FORM, *GOOD).bad.is_empty()

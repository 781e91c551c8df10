"""Hostile answers: whatever a store gives, each key has its columns or its own error."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.connectors.http.lookup import members
from slackwater.connectors.lookup import Refused
from slackwater.engine.enrichment.fitting import FOUND, KEY, MESSAGE, MISSING, STATUS, UNFIT, fitted
from slackwater.formats.schemas import as_schema
from tests.cases import cases

TYPES = (
    "a long, b double, c string, d boolean, e timestamp, f date, g decimal(10,2), h array<long>, "
    "i struct<x: long>, j binary, k tinyint"
)


def fit(answers: dict[str, Any], ddl: str = TYPES) -> dict[str, dict[str, Any]]:
    schema = as_schema(ddl)
    frame = fitted(list(answers), answers, sw.formats.json(schema), key_type=pl.String(), output=schema)
    assert frame.schema == pl.Schema({KEY: pl.String(), STATUS: pl.UInt8(), MESSAGE: pl.String(), **schema})
    assert frame[KEY].to_list() == list(answers)
    return {row[KEY]: row for row in frame.rows(named=True)}


@pytest.mark.parametrize(
    "column, value, kept",
    cases(
        {
            "a": [(5, 5), (None, None)],
            "b": [(5, 5.0), (float("inf"), float("inf"))],
            "c": [("", ""), ("\ud7ff\x00", "\ud7ff\x00")],
            "d": [(True, True)],
            "e": [(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC))],
            "f": [(date(2026, 1, 1), date(2026, 1, 1))],
            "g": [(Decimal("1.25"), Decimal("1.25")), (3, Decimal("3.00"))],
            "h": [([1, None, 3], [1, None, 3])],
            "i": [({"x": 1}, {"x": 1})],
            "j": [(b"\x00", b"\x00")],
            "k": [(-128, -128)],
        }
    ),
)
def test_a_value_of_its_type_is_taken_as_it_is(column: str, value: object, kept: object) -> None:
    got = fit({"one": {column: value}, "other": {}})
    assert (got["one"][STATUS], got["one"][column]) == (FOUND, kept)
    assert (got["other"][STATUS], got["other"][column]) == (FOUND, None)


@pytest.mark.parametrize(
    "column, value",
    cases(
        {
            "a": ["5", 5.0, True, 1 << 63],
            "b": ["5", False],
            "c": [5, b"x", ["x"]],
            "d": [1, "true"],
            "e": [5, "tomorrow"],
            "f": [datetime(2026, 1, 1, 5, tzinfo=UTC), 5],
            "g": [1.5, Decimal("1.234"), Decimal("NaN"), Decimal(123456789012)],
            "h": ["abc", ["a"], [True], 5],
            "i": [{"x": "a"}, 5, {"x": True}],
            "j": ["text"],
            "k": [128],
        }
    ),
)
def test_a_value_of_another_type_is_the_error_of_its_key(column: str, value: object) -> None:
    got = fit({"before": {column: None}, "bad": {column: value}, "after": {"c" if column != "c" else "a": None}})
    assert got["bad"][STATUS] == UNFIT
    assert f"column `{column}` is declared" in got["bad"][MESSAGE]
    assert (got["before"][STATUS], got["after"][STATUS]) == (FOUND, FOUND)


def test_answers_of_all_kinds_stand_beside_one_another() -> None:
    got = fit(
        {"text": b'{"a": 1}', "map": {"a": 2}, "none": None, "refused": Refused("no"), "broken": b"{", "odd": 5},
        "a long",
    )
    assert {key: (row[STATUS], row["a"]) for key, row in got.items()} == {
        "text": (FOUND, 1),
        "map": (FOUND, 2),
        "none": (MISSING, None),
        "refused": (UNFIT, None),
        "broken": (UNFIT, None),
        "odd": (UNFIT, None),
    }
    assert got["refused"][MESSAGE] == "no"


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"null",
        b"[]",
        b"5",
        b'"x"',
        b"{",
        b'{"a": 1} {"a": 2}',
        b"\xff\xfe",
        b'{"a": 1e400}',
        b'{"a": "1"}',
        b"[" * 100_000,
        b'{"a": ' + b"[" * 5_000,
        b"<html>",
        b'{"c": "' + b"x" * (2 << 20) + b'"}',
    ],
)
def test_bytes_that_are_no_such_object_are_the_error_of_their_key(text: bytes) -> None:
    got = fit({"good": b'{"a": 1}', "bad": text, "last": b'{"a": 2}'}, "a long, c string")
    assert [row[STATUS] for row in got.values()] == [FOUND, UNFIT, FOUND]
    assert got["bad"][MESSAGE]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 70), 1 << 70) | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.lists(
        st.one_of(st.none(), st.binary(max_size=20), st.dictionaries(st.sampled_from("abcdefghijk"), _JSON)), max_size=6
    )
)
def test_any_answers_give_one_row_for_each_key_and_never_an_error(answers: list[Any]) -> None:
    got = fit({str(at): answer for at, answer in enumerate(answers)})
    for at, answer in enumerate(answers):
        assert (got[str(at)][STATUS] == MISSING) is (answer is None)


@pytest.mark.parametrize(
    "text, found",
    [
        ("{}", {}),
        (' {"a" : 1 , "b":null} ', {"a": b"1", "b": None}),
        ('{"a": 1.10000000000000000001}', {"a": b"1.10000000000000000001"}),
        ('{"\\u0061\\n": {"x": [1, {"y": "}"}]}}', {"a\n": b'{"x": [1, {"y": "}"}]}'}),
        ('{"a": 1, "a": 2}', {"a": b"2"}),
    ],
)
def test_members_of_an_object_are_kept_as_they_are_written(text: str, found: dict[str, bytes | None]) -> None:
    assert members(text) == found


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"a"}', '{"a":}', '{"a": 1,}', '{"a": 1} x', "{a: 1}", '{"a": 1 "b": 2}', "null", '{"a: 1}'],
)
def test_what_is_no_object_has_no_members(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  whichever it is
        members(text)

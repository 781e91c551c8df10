"""JSON with its options: fields that are not declared kept as they stand, numbers that came as strings."""

from __future__ import annotations

import json as stdlib_json
from decimal import Decimal
from typing import Any
from unittest import mock

import polars as pl
import pytest
from hypothesis import given

from slackwater.base.errors import DefinitionError
from slackwater.formats.ddl import map_type
from slackwater.formats.json import JsonDecoder, json
from slackwater.formats.json import proof as json_proof
from tests.cases import cases
from tests.formats.json.json_model import BadError, expected
from tests.formats.json.json_outcomes import COMPANY, outcome, value
from tests.formats.json.test_json_fuzz import SCHEMAS, check, chunks, columns_of

STRINGS = [
    '"12"', '"-0"', '"1.5"', '"1e2"', '"1e400"', '"128"', '"9223372036854775808"', '"007"', '" 12"', '"12 "', '""',
    '"NaN"', '"Infinity"', '"0x10"', '"+1"', '"1_0"', '"1."', '".5"', '"\\u0031"', '"1\\u0030"', '"true"', '"null"',
    '"1e99999999999999999999"', '"0.1e-500"', '"99999999.99"', '"100000000.00"', '"1.555"', '"1e-9"', "12", "1.5",
    "null",
]  # fmt: skip


def kept(ddl: str, record: str) -> object:
    """Return what column `unknown` holds, or the reason why there is none."""
    found = outcome(ddl, record, unknown="keep")
    return found if isinstance(found, str) else found["unknown"]


@pytest.mark.parametrize(
    "record, unknown",
    [
        ('{"a":1}', None),
        ("{}", None),
        ('{"a":1,"b":2}', [("b", "2")]),
        ('{"b":2,"a":1}', [("b", "2")]),
        (
            '{"x":null,"a":1,"y":{ "deep" : [1, {"z": "}"}] } ,"z": 1.50 }',
            [("x", "null"), ("y", '{ "deep" : [1, {"z": "}"}] }'), ("z", "1.50")],
        ),
        (' {\t"b" :\r\n"x, \\"a\\": 7" , "a" : 1 } ', [("b", '"x, \\"a\\": 7"')]),
        ('{"a":1,"b":1,"b":2}', [("b", "1"), ("b", "2")]),
        ('{"A":1,"a":2}', [("A", "1")]),
        ('{"\\u0061":1,"\\u0062":2}', [("b", "2")]),
        ('{"unknown":1,"a":1}', [("unknown", "1")]),
        ('{"":0,"a":1}', [("", "0")]),
        ('{"k\\u00e9":"\\ud800","é":"é","a":1}', [("ké", '"\\ud800"'), ("é", '"é"')]),
        ('{"b":[[[[[[1]]]]]],"a":1}', [("b", "[[[[[[1]]]]]]")]),
        ('{"b":1e400,"a":1}', [("b", "1e400")]),
        ('{"a":{"b":1}}', "wrong_type"),
        ('{"a":1,"b":}', "malformed"),
        ('{"a":1,"\\ud800":2}', "malformed"),
    ],
)
def test_fields_that_are_not_declared_are_kept_as_they_stand(record: str, unknown: Any) -> None:  # noqa: ANN401
    wanted = [{"key": key, "value": text} for key, text in unknown] if isinstance(unknown, list) else unknown
    assert kept("a bigint", record) == wanted


def test_a_name_that_cannot_be_written_says_so() -> None:
    decoded = JsonDecoder(json("a bigint", unknown="keep")).decode(pl.Series([b'{"\\ud800":0,"a":1}']))
    assert decoded.bad["message"][0] == (
        'a field that is not declared has half of a surrogate pair in its name, "\\ud800"'
    )


def test_what_is_kept_is_a_column_of_its_own_after_the_declared_ones() -> None:
    form = json("a bigint, s struct<x:int>", unknown="keep")
    assert form.schema == {"a": pl.Int64, "s": pl.Struct({"x": pl.Int32}), "unknown": map_type(pl.String())}
    for records in ([], [b'{"a":1}'] * COMPANY, [b"?"], [None], [b'{"b":1}', b"?"] * COMPANY):
        decoded = JsonDecoder(form).decode(pl.Series(records, dtype=pl.Binary))
        assert decoded.frame.schema == form.schema
        assert decoded.frame.height == len(records)


def test_fields_inside_of_a_declared_one_are_passed_over_also_when_others_are_kept() -> None:
    assert outcome("s struct<x:int>", '{"s":{"x":1,"y":2},"z":3}', unknown="keep") == {
        "s": {"x": 1},
        "unknown": [{"key": "z", "value": "3"}],
    }


def test_records_of_several_shapes_keep_their_own_fields() -> None:
    records, wanted = [], []
    for number in range(900):
        extras: list[dict[str, Any]] = [{}, {"b": number}, {"c": [number], "d": "x"}, {"b": None, "c": {"n": number}}]
        extra = extras[number % 4]
        fields = {"a": number, **extra} if number % 3 else {**extra, "a": number}
        records.append(stdlib_json.dumps(fields).encode())
        wanted.append([{"key": key, "value": stdlib_json.dumps(held)} for key, held in extra.items()] or None)
    records[17], wanted[17] = b'{"a":1,"b"', None
    decoded = JsonDecoder(json("a bigint", unknown="keep")).decode(pl.Series(records))
    assert decoded.bad["index"].to_list() == [17]
    assert decoded.frame["unknown"].to_list() == wanted


def test_a_map_with_a_key_given_twice_is_malformed_and_keeps_nothing() -> None:
    record = '{"m":{"k":1,"k":2},"b":1}'
    assert outcome("m map<string,int>", record, unknown="keep") == "malformed"


@pytest.mark.parametrize("fewest", [1, 64], ids=["patterns even for a single record", "patterns as usual"])
@given(chunk=chunks())
def test_any_bytes_keep_what_the_model_finds_undeclared(fewest: int, chunk: tuple[str, list[bytes]]) -> None:
    ddl, records = chunk
    form = json(ddl, unknown="keep", numbers_as_strings=True)
    with mock.patch.object(json_proof, "_FEWEST", fewest):
        decoded = JsonDecoder(form).decode(pl.Series(records, dtype=pl.Binary))
    bad = set(decoded.bad["index"])
    for at, (record, row) in enumerate(zip(records, decoded.frame.iter_rows(named=True), strict=True)):
        unknown = row.pop("unknown")
        try:
            wanted = expected(form.declared, record, lenient=True)
            pairs = undeclared(form.declared, record)
        except BadError:
            assert at in bad, record
            assert unknown is None
            assert set(row.values()) == {None}
        else:
            assert at not in bad, (record, decoded.bad.filter(pl.col("index") == at).to_dicts())
            assert row == wanted, record
            assert [entry["key"] for entry in unknown or []] == [key for key, _ in pairs]
            for entry, (_, parsed) in zip(unknown or [], pairs, strict=True):
                assert entry["value"] == entry["value"].strip()
                assert entry["value"].encode() in record
                again = stdlib_json.loads(entry["value"], object_pairs_hook=Pairs, parse_float=str, parse_int=str)
                assert again == parsed


def undeclared(schema: pl.Schema, record: bytes) -> list[tuple[str, Any]]:
    """Return the fields of a record that are not declared, as Python's own `json` reads them."""
    pairs = stdlib_json.loads(record, object_pairs_hook=Pairs, parse_float=str, parse_int=str)
    for key, _ in pairs:
        try:
            key.encode()
        except UnicodeEncodeError:
            raise BadError from None
    return [(key, inner) for key, inner in pairs if key not in schema]


class Pairs(list[tuple[str, Any]]):
    """An object's pairs, in order."""


@pytest.mark.parametrize(
    "ddl_type, text, expected_value",
    cases(
        {
            "bigint": {
                '"12"': 12,
                '"-9223372036854775808"': -(2**63),
                '"\\u0031"': 1,
                "12": 12,
                '"1.5"': "wrong_type",
                '"1.0"': "wrong_type",
                '""': "wrong_type",
                '" 1"': "wrong_type",
                '"one"': "wrong_type",
                '"007"': "wrong_type",
                '"9223372036854775808"': "out_of_range",
                '"1e400"': "out_of_range",
            },
            "tinyint": {'"-128"': -128},
            "double": {
                '"1.5"': 1.5,
                '"1E5"': 100000.0,
                '"9007199254740993"': 9007199254740992.0,
                '"NaN"': "wrong_type",
                '"Infinity"': "wrong_type",
                '"1e400"': "out_of_range",
            },
            "float": {'"1.5"': 1.5},
            "decimal(10,2)": {'"12.34"': Decimal("12.34"), '"1.555"': "out_of_range"},
            "decimal(38,18)": {'"12345678901234567890.1234567890123"': Decimal("12345678901234567890.1234567890123")},
            "array<int>": {'["1",2,null]': [1, 2, None]},
            "struct<x:int>": {'{"x":"1"}': {"x": 1}},
            "map<string,int>": {'{"k":"1"}': [{"key": "k", "value": 1}]},
            "string": {'"12"': "12"},
            "boolean": {'"true"': "wrong_type"},
            "array<tinyint>": {'["128"]': "out_of_range"},
        }
    ),
)
def test_a_number_may_be_a_string_if_declared(ddl_type: str, text: str, expected_value: object) -> None:
    assert value(ddl_type, text, numbers_as_strings=True) == expected_value


def test_a_string_that_is_no_number_is_shown_as_the_string_it_is() -> None:
    decoded = JsonDecoder(json("a tinyint", numbers_as_strings=True)).decode(pl.Series([b'{"a":"x"}', b'{"a":"300"}']))
    assert decoded.bad["message"].to_list() == [
        'field `a` is declared tinyint; got string "x"',
        'field `a` is declared tinyint; got string "300"',
    ]


@pytest.mark.parametrize("fewest", [1, 64], ids=["patterns even for a single record", "patterns as usual"])
@pytest.mark.parametrize("ddl", SCHEMAS)
def test_every_string_in_every_field_decodes_as_the_model_says(ddl: str, fewest: int) -> None:
    names = [stdlib_json.dumps(name, ensure_ascii=False) for name in columns_of(ddl)]
    records = [f"{{{name}:{text}}}".encode() for name in names for text in STRINGS for _ in range(3)]
    with mock.patch.object(json_proof, "_FEWEST", fewest):
        check(ddl, records, lenient=True)


@pytest.mark.parametrize(
    "options, code, words",
    [
        (
            {"unknown": "drop"},
            "JSON_OPTION",
            "JSON option `unknown` must be 'ignore' or 'keep'; got 'drop'; omit it to use 'ig",
        ),
        ({"numbers_as_strings": "yes"}, "JSON_OPTION", "must be False or True; got 'yes'; omit it to use False"),
        ({"unknown": "keep", "schema": "id int, Unknown int"}, "JSON_UNKNOWN_TAKEN", "got a declared column `Unknown`"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], code: str, words: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        json(**{"schema": "a int", **options})
    assert caught.value.code == code
    assert words in caught.value.message

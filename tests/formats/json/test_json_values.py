"""What each declared type takes, and what it does not."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import polars as pl
import pytest

from slackwater.formats.json import JsonDecoder, json
from tests.cases import cases
from tests.formats.json.json_outcomes import value


@pytest.mark.parametrize(
    "ddl_type, text, expected",
    cases(
        {
            "bigint": [
                ("12", 12),
                ("-9223372036854775808", -(2**63)),
                ("9223372036854775807", 2**63 - 1),
                ("-0", 0),
                ("null", None),
            ],
            "int": [("2147483647", 2147483647)],
            "tinyint": [("-128", -128)],
            "double": [
                ("1", 1.0),
                ("9007199254740993", 9007199254740992.0),
                ("18446744073709551616", 18446744073709551616.0),
                ("0.1", 0.1),
                ("-1.5e-3", -0.0015),
                ("1E5", 100000.0),
                ("1e-400", 0.0),
                ("1.7976931348623157e308", 1.7976931348623157e308),
                ("0." + "3" * 60, 1 / 3),
            ],
            "float": [("1.5", 1.5)],
            "string": [
                ('"x"', "x"),
                ('""', ""),
                (r'"\"\\\/\b\f\n\r\t"', '"\\/\b\f\n\r\t'),
                (r'"\u0000"', "\x00"),
                (r'"\ud83d\ude00é😀"', "😀é😀"),
                ('"12"', "12"),
            ],
            "boolean": [("true", True), ("false", False)],
            "date": [('"2024-02-29"', date(2024, 2, 29))],
            "binary": [('"AQI="', b"\x01\x02"), ('""', b"")],
            "decimal(10,2)": [
                ("12.34", Decimal("12.34")),
                ("12.340", Decimal("12.34")),
                ("-1e3", Decimal("-1000.00")),
                ("0e99999999999999999999", Decimal("0.00")),
            ],
            "decimal(38,18)": [("12345678901234567890.1234567890123", Decimal("12345678901234567890.1234567890123"))],
            "decimal(3,3)": [("0.125", Decimal("0.125"))],
            "decimal(3,0)": [("999", Decimal(999))],
            "array<int>": [("[1,null,3]", [1, None, 3]), ("[]", []), ("null", None)],
            "array<array<string>>": [('[["a"],[],null]', [["a"], [], None])],
            "struct<x:int,y:string>": [
                ('{"y":"b","x":1}', {"x": 1, "y": "b"}),
                ('{"z":[1,{}]}', {"x": None, "y": None}),
            ],
            "array<struct<x:int>>": [('[{"x":1},{},{"x":null,"u":"v"}]', [{"x": 1}, {"x": None}, {"x": None}])],
            "map<string,int>": [
                ('{"k":1,"":2}', [{"key": "k", "value": 1}, {"key": "", "value": 2}]),
                ("{}", []),
                ('[{"key":"k","value":1}]', [{"key": "k", "value": 1}]),
                ("null", None),
            ],
            "array<map<string,int>>": [('[{"k":1},null]', [[{"key": "k", "value": 1}], None])],
            "map<string,map<string,int>>": [('{"a":{"b":1}}', [{"key": "a", "value": [{"key": "b", "value": 1}]}])],
            "array<binary>": [('["AQI=",null]', [b"\x01\x02", None])],
            "struct<x:int>": [("null", None)],
        }
    ),
)
def test_a_value_of_the_declared_type_is_read_exactly(ddl_type: str, text: str, expected: object) -> None:
    assert value(ddl_type, text) == expected


@pytest.mark.parametrize(
    "ddl_type, text",
    cases(
        {
            "bigint": [
                '"12"',
                "1.5",
                "1.0",
                "1e2",
                "1e-400",
                "1e-99999999999999999999",
                "0e99999999999999999999",
                "9223372036854775808.5",
                "true",
                "[1]",
                "{}",
                '""',
            ],
            "tinyint": ["1.27e2"],
            "double": ['"1.5"', "true", '"NaN"', "[]"],
            "string": ["12", "true", '["a"]', '{"b":1}'],
            "boolean": ["1", '"true"'],
            "timestamp": [
                "1700000000",
                '"yesterday"',
                '"infinity"',
                '"epoch"',
                '"2024-01-31"',
                '"2024-02-30T00:00:00Z"',
                '"2023-02-29T00:00:00Z"',
                '"1900-02-29T00:00:00Z"',
                '"2024-1-1T0:0:0Z"',
                '"2024-01-31T24:00:00Z"',
                '"2024-01-31T12:00:60Z"',
                '" 2024-01-31T12:00:00Z"',
                '"2024-01-31T12:00:00 Europe/Paris"',
                '"2024-01-31T12:00:00+24:00"',
                '"0000-01-31T12:00:00Z"',
                '"٢٠٢٤-01-31T12:00:00Z"',
            ],
            "date": ['"2024-01-31T00:00:00Z"', '"2024-02-30"', "20240131"],
            "binary": ['"not base64!"', '"AQI"', "1"],
            "decimal(10,2)": ['"12.34"', "true"],
            "array<int>": ["1", '["1"]', "[1.5]", '{"0":1}'],
            "array<struct<x:int>>": ['[{"x":1},{"x":"1"}]'],
            "struct<x:int>": ["[1]", '{"x":"1"}'],
            "struct<x:struct<y:int>>": ['{"x":{"y":false}}'],
            "map<string,int>": ['{"k":"1"}', "[1]"],
            "map<string,array<int>>": ['{"k":[1.5]}'],
        }
    ),
)
def test_a_value_of_another_type_is_never_coerced(ddl_type: str, text: str) -> None:
    assert value(ddl_type, text) == "wrong_type"


@pytest.mark.parametrize(
    "ddl_type, text",
    cases(
        {
            "bigint": [
                "9223372036854775808",
                "-9223372036854775809",
                "1" * 5000,
                "1e400",
                "-1e19",
                "9223372036854775808.0",
                "1.5e300",
                "1e99999999999999999999",
            ],
            "tinyint": ["1.28e2", "128"],
            "int": ["2147483648"],
            "smallint": ["40000"],
            "double": ["1e400", "-1e400", "1" * 400, "1" * 5000],
            "float": ["1e39"],
            "decimal(10,2)": [
                "123456789",
                "1.555",
                "1e-9",
                "1e999999999",
                "1e99999999999999999999",
                "-1e-99999999999999999999",
            ],
            "decimal(3,3)": ["1"],
            "timestamp": ['"0001-01-01T00:00:00+02:00"', '"9999-12-31T23:59:59-02:00"'],
            "array<tinyint>": ["[127,128]"],
        }
    ),
)
def test_a_number_beyond_its_type_is_out_of_range(ddl_type: str, text: str) -> None:
    assert value(ddl_type, text) == "out_of_range"


@pytest.mark.parametrize("ddl_type", ["tinyint", "smallint", "int", "bigint"])
def test_integers_on_either_side_of_every_bound_differ(ddl_type: str) -> None:
    bits = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}[ddl_type]
    for number in (-(2**bits), 2**bits - 1):
        assert value(ddl_type, str(number)) == number
    for number in (-(2**bits) - 1, 2**bits):
        assert value(ddl_type, str(number)) == "out_of_range"


@pytest.mark.parametrize("dtype, bits", [(pl.UInt8(), 8), (pl.UInt16(), 16), (pl.UInt32(), 32), (pl.UInt64(), 64)])
def test_unsigned_types_have_their_own_bounds(dtype: pl.DataType, bits: int) -> None:
    records = [f'{{"a":{number}}}'.encode() for number in (0, 2**bits - 1, 2**bits, -1)] * 50
    decoded = JsonDecoder(json({"a": dtype})).decode(pl.Series(records))
    assert decoded.frame["a"].to_list() == [0, 2**bits - 1, None, None] * 50
    assert set(decoded.bad["reason"]) == {"out_of_range"}


@pytest.mark.parametrize(
    "text, expected",
    [
        ("2024-01-31T12:00:00Z", datetime(2024, 1, 31, 12, tzinfo=UTC)),
        ("2024-01-31 12:00:00", datetime(2024, 1, 31, 12, tzinfo=UTC)),
        ("2024-01-31T12:00", datetime(2024, 1, 31, 12, tzinfo=UTC)),
        ("2024-01-31T12:00:00.5+02:00", datetime(2024, 1, 31, 10, 0, 0, 500_000, tzinfo=UTC)),
        ("2024-01-31T12:00:00-0530", datetime(2024, 1, 31, 17, 30, tzinfo=UTC)),
        ("2024-01-31T12:00:00+14", datetime(2024, 1, 30, 22, tzinfo=UTC)),
        ("2024-01-31T12:00:00.123456789Z", datetime(2024, 1, 31, 12, 0, 0, 123_456, tzinfo=UTC)),
        ("2024-02-29T23:59:59.999999+00:00", datetime(2024, 2, 29, 23, 59, 59, 999_999, tzinfo=UTC)),
        ("2000-02-29T00:00:00Z", datetime(2000, 2, 29, tzinfo=UTC)),
        ("1969-12-31T23:59:59.999Z", datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)),
        ("0001-01-01T00:00:00Z", datetime(1, 1, 1, tzinfo=UTC)),
        ("9999-12-31T23:59:59.999999Z", datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)),
    ],
)
def test_iso_times_with_and_without_offset_are_read_in_utc(text: str, expected: datetime) -> None:
    assert value("timestamp", f'"{text}"') == expected


def test_zero_keeps_its_sign_as_a_double() -> None:
    found = value("double", "-0.0")
    assert isinstance(found, float)
    assert math.copysign(1, found) == -1

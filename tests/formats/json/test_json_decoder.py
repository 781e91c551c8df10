"""What becomes of records: good ones in their places, bad ones with their reasons."""

from __future__ import annotations

import json as stdlib_json
from typing import Any

import polars as pl
import pytest

from slackwater.base.errors import DefinitionError
from slackwater.formats.json import JsonDecoder, json
from tests.cases import cases
from tests.formats.json.json_outcomes import COMPANY, outcome, value


@pytest.mark.parametrize(
    "reason, record",
    cases(
        {
            "empty_record": [b"", b" \t\r\n"],
            "invalid_utf8": [b"\xff\xfe", b'{"a":"\xc3"}'],
            "malformed": [
                b'{"a":1',
                b'{"a":1}x',
                b'{"a":1}{"a":2}',
                b'{"a":1,}',
                b'{,"a":1}',
                b'{"a":1 "b":2}',
                b'{"b":[1,]}',
                b'{"b":[,1]}',
                b'{"b":[1 2]}',
                b'{"b":[1,,2]}',
                b'{"b":{"c":1,}}',
                b"{a:1}",
                b"{'a':1}",
                b'{"a":01}',
                b'{"a":+1}',
                b'{"a":.5}',
                b'{"a":1.}',
                b'{"a":NaN}',
                b'{"b":NaN}',
                b'{"b":-Infinity}',
                b'{"a":nan}',
                b'{"a":tru}',
                b'{"b":"\n"}',
                b'{"b":"\\x41"}',
                b'{"a":1}\x00',
                b'\x00{"a":1}',
                b'\xef\xbb\xbf{"a":1}',
                b'{"a":1}//c',
                b'{"a":1,"a":2}',
                b'{"a":1,"\\u0061":2}',
                b'{"a":1,"b":3,"a":null}',
            ],
            "not_an_object": [b"[]", b'[{"a":1}]', b"1", b'"x"', b"null"],
            "too_deep": [b"[" * 65, b"[" * 1_000_000, b'{"b":' * 200_000, b'{"b":' + b"[" * 64 + b"]" * 64 + b"}"],
            "too_long": [b'{"b":"' + b"x" * (1 << 20) + b'"}'],
        }
    ),
)
def test_bad_bytes_of_every_kind_have_their_reason(record: bytes, reason: str) -> None:
    assert outcome("a bigint", record) == reason


@pytest.mark.parametrize("text", [r'"\ud800"', r'"\ude00\ud83d"', r'"x\ud83d"', r'"\ud800é"'])
def test_half_of_a_surrogate_pair_is_malformed(text: str) -> None:
    assert value("string", text) == "malformed"


@pytest.mark.parametrize(
    "record",
    [
        b'{"a":1,"b":[[[[[[1]]]]]]}',
        b'{"b":{"a":"no number"},"a":1}',
        b'{"b":"{\\"a\\":2}","a":1}',
        b'{"b":"' + b"[" * 500 + b'","a":1}',
        b'{"b":' + b"[" * 63 + b"]" * 63 + b',"a":1}',
        b' {\t"a" :\r\n1 , "b" : [ 1 , 2 ] } ',
        b'{"b":"\\ud800","a":1}',
        b'{"\\ud800":0,"a":1}',
        b'{"b":1,"b":2,"a":1}',
        b'{"A":2,"a":1}',
        b'{"a\\u0000":2,"a":1}',
        b'{"\\u0061":1}',
        b'{"":0,"a":1}',
        b'{"x":"a","y":"\\"a\\":7","a":1}',
        b'{"b":1e400,"c":' + b"9" * 5000 + b',"a":1}',
    ],
)
def test_what_is_not_declared_is_passed_over(record: bytes) -> None:
    assert outcome("a bigint", record) == {"a": 1}


def test_a_key_of_a_map_given_twice_is_malformed_and_its_row_empty() -> None:
    assert outcome("n int, a map<string,int>", b'{"n":1,"a":{"k":1,"k":2}}') == "malformed"


def test_a_field_of_a_struct_given_twice_is_malformed() -> None:
    assert value("struct<x:int,y:int>", '{"x":1,"y":2,"x":3}') == "malformed"


def test_names_of_every_kind_are_found() -> None:
    schema = dict.fromkeys(("a b", "x'y", 'q"q', "é", "back\\slash", "tab\t", "[.*]", "new\nline"), pl.Int64)
    record = stdlib_json.dumps(dict.fromkeys(schema, 7)).encode()
    plain = stdlib_json.dumps(dict.fromkeys(schema, 8), ensure_ascii=False).encode()
    decoded = JsonDecoder(json(schema)).decode(pl.Series([record, plain] * COMPANY))
    assert decoded.bad.is_empty()
    assert set(decoded.frame.rows()) == {(7,) * 8, (8,) * 8}


def test_a_name_within_another_is_a_name_of_its_own() -> None:
    assert outcome("a int, ab int, abc string", b'{"abc":"x","ab":2,"abcd":true,"a":1,"b":"y"}') == {
        "a": 1,
        "ab": 2,
        "abc": "x",
    }


@pytest.mark.parametrize(
    "record, words",
    [
        (b'{"s":{"zip":"X"}}', 'field `s.zip` is declared int; got string "X"'),
        (b'{"l":[1,true]}', "field `l[1]` is declared double; got boolean true"),
        (b'{"m":{"k":300}}', "field `m.k` is declared tinyint; got number 300"),
        (b'{"s":[1,2]}', "field `s` is declared struct<`zip`:int>; got an array of 2 items"),
        (b'{"l":{"x":1}}', "field `l` is declared array<double>; got an object of 1 fields"),
        (b'{"t":"noon"}', 'field `t` is declared timestamp; got string "noon" (not an ISO 8601 time'),
        (b'{"t":"' + b"n" * 200 + b'"}', 'got string "' + "n" * 60 + "…"),
        (b'{"t":', "Expecting value at character 5"),
        (b"[1]", 'a record must be a JSON object; got "[1]"'),
        (b"ab\xffc", "byte 0xff at position 2"),
        (b"[" * 99, "nested deeper than 64 levels"),
        (b" " * 2_000_000, "a record may have at most 1048576 bytes; got 2000000"),
    ],
)
def test_messages_name_the_field_its_type_and_what_was_got(record: bytes, words: str) -> None:
    form = json("s struct<zip:int>, l array<double>, m map<string,tinyint>, t timestamp")
    decoded = JsonDecoder(form).decode(pl.Series([record]))
    assert words in decoded.bad["message"][0]


def test_records_cut_in_the_middle_of_a_character_are_no_text_although_together_they_are() -> None:
    records = [b'{"a":"xxxxxxxxxxxxxxxxxxxx\xc3', b'\xa9yyyyyyyyyyyyyyyyyyyyyy"}'] * COMPANY
    decoded = JsonDecoder(json("a string")).decode(pl.Series(records))
    assert set(decoded.bad["reason"]) == {"invalid_utf8"}


def test_keys_in_every_order_and_missing_ones_are_read_alike() -> None:
    rows = [{"a": number, "b": str(number), "c": number / 4} for number in range(600)]
    orders = ["abc", "acb", "bac", "bca", "cab", "cba", "ab", "c"]
    records = [
        stdlib_json.dumps({name: row[name] for name in orders[at % len(orders)]}).encode()
        for at, row in enumerate(rows)
    ]
    decoded = JsonDecoder(json("a bigint, b string, c double")).decode(pl.Series(records))
    assert decoded.bad.is_empty()
    expected = [
        {name: row[name] if name in orders[at % len(orders)] else None for name in "abc"} for at, row in enumerate(rows)
    ]
    assert decoded.frame.to_dicts() == expected


def test_a_schema_of_very_many_columns_is_read_all_the_same() -> None:
    names = [f"c{number}" for number in range(200)]
    records = [stdlib_json.dumps(dict.fromkeys(names, number)).encode() for number in range(COMPANY)]
    decoded = JsonDecoder(json(", ".join(f"{name} int" for name in names))).decode(pl.Series(records))
    assert decoded.bad.is_empty()
    assert decoded.frame["c199"].to_list() == list(range(COMPANY))


def test_what_was_learned_from_one_chunk_changes_no_result_of_the_next() -> None:
    form = json("a bigint, b string")
    first = pl.Series([b'{"a":1,"b":"x"}'] * COMPANY)
    other = pl.Series([b'{"b":"y","z":{"deep":[{}]},"a":2}', b'{"b":2,"a":"1"}'] * COMPANY)
    decoder = JsonDecoder(form)
    decoder.decode(first)
    learned, fresh = decoder.decode(other), JsonDecoder(form).decode(other)
    assert learned.frame.equals(fresh.frame)
    assert learned.bad.equals(fresh.bad)


def test_limits_on_depth_hold_however_shallow() -> None:
    record = b'{"b":[1],"a":1}'
    assert outcome("a bigint", record, max_depth=2) == {"a": 1}
    assert outcome("a bigint", record, max_depth=1) == "too_deep"


@pytest.mark.parametrize("limits", [{"max_depth": 0}, {"max_depth": 1000}, {"max_bytes": True}, {"max_bytes": -1}])
def test_unusable_limits_are_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError, match="must be a whole number from 1") as caught:
        json("a int", **limits)
    assert caught.value.code == "FORMAT_LIMIT"

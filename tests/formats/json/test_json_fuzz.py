"""Whatever the bytes: no exception, good neighbours unharmed, every bad record reported with its place."""

from __future__ import annotations

import json as stdlib_json
import random
from collections.abc import Callable
from typing import Any
from unittest import mock

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from slackwater.formats.json import JsonDecoder, json
from slackwater.formats.json import proof as json_proof
from tests.formats.json.json_model import BadError, expected
from tests.formats.spoiling import cut, drop, flip

SCHEMAS = [
    "event_id long, key string, ts long, value double",
    "t timestamp, d date, ok boolean, b binary, p decimal(10,2), small tinyint, f float",
    "s struct<x:int,y:struct<z:string>>, l array<int>, m map<string,double>, a array<struct<t:timestamp,n:int>>",
    'a int, ab int, abc string, `é` string, `we"ird` boolean',
]
EVIL_NUMBERS = [
    "1e400",
    "-1e400",
    "9" * 30,
    "1" * 5000,
    "1.5",
    "1.0",
    "-0",
    "1e2",
    "128",
    "-129",
    "9223372036854775808",
    "0.1e-500",
]
EVIL_VALUES = [
    *EVIL_NUMBERS,
    "null",
    "true",
    "NaN",
    "-Infinity",
    '"12"',
    '""',
    "[]",
    "{}",
    "[[1]]",
    '{"x":"1"}',
    '[1,"2"]',
    '"\\ud800"',
    '"\\ud83d\\ude00"',
    '"\\u0000"',
    '"\\x"',
    '"2024-02-30T00:00:00Z"',
    '"2024-02-29T12:00:00+02:00"',
    '"infinity"',
    '"2024-01-01 00:00"',
    '"AQI="',
    '"A"',
    '{"k":1,"k":2}',
    '{"y":{"z":"ok","z":"no"}}',
    "[" * 70,
    '[{"n":128},{"n":"x"}]',
    "12 8",
    "-",
    "[1,]",
]
TEXTS = st.text(alphabet=st.characters(codec="utf-8"), max_size=8)
TIMES = st.datetimes().map(lambda moment: moment.isoformat() + "Z") | st.datetimes().map(str)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "long": st.integers(-(2**63), 2**63 - 1) | st.integers(-200, 200),
    "int": st.integers(-(2**31), 2**31 - 1) | st.integers(-200, 200),
    "tinyint": st.integers(-128, 127),
    "string": TEXTS,
    "double": st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**20), 10**20),
    "float": st.floats(width=32, allow_nan=False, allow_infinity=False),
    "timestamp": TIMES,
    "date": st.dates().map(str),
    "boolean": st.booleans(),
    "binary": st.sampled_from(["", "AQI=", "AQ==", "AQID", "////"]),
    "decimal(10,2)": st.decimals(-99999999, 99999999, places=2).map(float),
}
VALUES |= {
    "struct<x:int,y:struct<z:string>>": st.fixed_dictionaries(
        {}, optional={"x": VALUES["int"], "y": st.fixed_dictionaries({}, optional={"z": TEXTS, "u": TEXTS})}
    ),
    "array<int>": st.lists(st.none() | VALUES["int"], max_size=4),
    "map<string,double>": st.dictionaries(TEXTS, st.none() | VALUES["double"], max_size=3),
    "array<struct<t:timestamp,n:int>>": st.lists(
        st.fixed_dictionaries({}, optional={"t": TIMES, "n": VALUES["int"]}), max_size=3
    ),
}
UNKNOWN = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)


def columns_of(ddl: str) -> dict[str, str]:
    """Return names and types as written; the commas inside of types have no space after them."""
    pairs = (column.rsplit(" ", 1) for column in ddl.split(", "))
    return {name.strip("`"): kind for name, kind in pairs}


@st.composite
def good_records(draw: st.DrawFn, ddl: str) -> bytes:
    """Draw a record of the declared types: any order, any spelling, with unknown and missing fields."""
    columns = columns_of(ddl)
    fields = [(name, draw(st.none() | VALUES[kind])) for name, kind in columns.items() if draw(st.integers(0, 9))]
    fields += [
        (key, value) for key, value in draw(st.dictionaries(TEXTS, UNKNOWN, max_size=2)).items() if key not in columns
    ]
    if draw(st.booleans()):
        draw(st.randoms(use_true_random=False)).shuffle(fields)
    separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", "\r\n:")]))
    return stdlib_json.dumps(dict(fields), ensure_ascii=draw(st.booleans()), separators=separators).encode()


def insert(dice: random.Random, record: bytes) -> bytes:
    at = dice.randrange(len(record) + 1)
    evil = [
        b"\x00",
        b"\xff",
        b"\xc3",
        b'"',
        b"\\",
        b",",
        b"{",
        b"}",
        b"[",
        b"]",
        b"-",
        b"1",
        b" ",
        b"\n",
        b"[" * 80,
        b"null",
    ]
    return record[:at] + dice.choice(evil) + record[at:]


def other_value(dice: random.Random, record: bytes, name: str) -> bytes:
    field = f"{stdlib_json.dumps(name)}:{dice.choice(EVIL_VALUES)}".encode()
    whole = record.strip()
    return dice.choice([b"{" + field + b"," + whole[1:], b"{" + field + b"}", whole[:-1] + b"," + field + b"}"])


@st.composite
def chunks(draw: st.DrawFn) -> tuple[str, list[bytes]]:
    """Draw a schema and records of it, some of them spoiled, in runs long enough to be learned from."""
    ddl = draw(st.sampled_from(SCHEMAS))
    records = draw(st.lists(good_records(ddl), min_size=1, max_size=6))
    dice = draw(st.randoms(use_true_random=False))
    names = list(columns_of(ddl))
    spoil: list[Callable[[bytes], bytes]] = [
        lambda record: cut(dice, record),
        lambda record: flip(dice, record),
        lambda record: insert(dice, record),
        lambda record: drop(dice, record),
        lambda record: other_value(dice, record, dice.choice(names)),
        lambda record: other_value(dice, record, dice.choice(names)),
        lambda record: dice.choice(
            [b"", b" ", b"[" * 100_000, b'{"a":' * 1000, b"\x00" * 9, b"null", b"[1]", b"\xff" * 3]
        ),
    ]
    spoiled = [dice.choice(spoil)(dice.choice(records) or b"{}") for _ in range(dice.randrange(12))]
    mixed = [record for record in [*records, *spoiled] for _ in range(dice.choice([1, 1, 3, 20]))]
    dice.shuffle(mixed)
    return ddl, mixed


def check(ddl: str, records: list[bytes], *, lenient: bool = False) -> None:
    form = json(ddl, numbers_as_strings=lenient)
    decoded = JsonDecoder(form).decode(pl.Series(records, dtype=pl.Binary))
    bad = set(decoded.bad["index"])
    assert decoded.frame.schema == form.schema
    assert decoded.bad["index"].is_sorted()
    assert len(bad) == decoded.bad.height
    for at, (record, row) in enumerate(zip(records, decoded.frame.iter_rows(named=True), strict=True)):
        try:
            wanted = expected(form.schema, record, lenient=lenient)
        except BadError:
            assert at in bad, record
            assert set(row.values()) == {None}
        else:
            assert at not in bad, (record, decoded.bad.filter(pl.col("index") == at).to_dicts())
            assert row == wanted, record


@pytest.mark.parametrize("fewest", [1, 64], ids=["patterns even for a single record", "patterns as usual"])
@given(chunk=chunks())
@example(chunk=("l array<tinyint>", [b'{"l":[128]}']))
@example(chunk=("a int, b string", [b'{"a":1"b":"x"}', b'{"a":1,"b":"x"}', b'{"a":1[{"b":"x"}']))
def test_any_bytes_decode_as_the_model_says_or_are_reported(fewest: int, chunk: tuple[str, list[bytes]]) -> None:
    with mock.patch.object(json_proof, "_FEWEST", fewest):
        check(*chunk)


@pytest.mark.parametrize("ddl", SCHEMAS)
def test_every_evil_value_in_every_field_decodes_as_the_model_says(ddl: str) -> None:
    names = [stdlib_json.dumps(name, ensure_ascii=False) for name in columns_of(ddl)]
    records = [f"{{{name}:{evil}}}".encode() for name in names for evil in EVIL_VALUES]
    with mock.patch.object(json_proof, "_FEWEST", 1):
        check(ddl, records)
        for record in records:
            check(ddl, [record])

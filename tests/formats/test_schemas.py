from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.base.errors import DefinitionError
from slackwater.formats.schemas import as_schema, normal_type, to_arrow, to_spark_ddl

UTC = pl.Datetime("us", "UTC")
KEY_VALUE = pl.List(pl.Struct({"key": pl.String, "value": pl.Float64}))


def declared(columns: Mapping[str, object]) -> pl.Schema:
    return pl.Schema(columns)  # type: ignore[arg-type]


def test_every_scalar_word_of_spark_has_its_polars_type() -> None:
    ddl = (
        "a string, b double, c float, d bigint, e long, f int, g integer, h smallint, i short, j tinyint, k byte,"
        "l boolean, m date, n timestamp, o binary, p decimal(10,2), q decimal, r numeric(5), s varchar(20), t real"
    )
    assert as_schema(ddl) == declared(
        {
            "a": pl.String,
            "b": pl.Float64,
            "c": pl.Float32,
            "d": pl.Int64,
            "e": pl.Int64,
            "f": pl.Int32,
            "g": pl.Int32,
            "h": pl.Int16,
            "i": pl.Int16,
            "j": pl.Int8,
            "k": pl.Int8,
            "l": pl.Boolean,
            "m": pl.Date,
            "n": UTC,
            "o": pl.Binary,
            "p": pl.Decimal(10, 2),
            "q": pl.Decimal(10, 0),
            "r": pl.Decimal(5, 0),
            "s": pl.String,
            "t": pl.Float32,
        }
    )


def test_nested_types_are_read_to_any_depth() -> None:
    ddl = (
        "tags array<string>, address struct<city:string,zip:int>, m map<string,double>,"
        "x array<array<struct<t timestamp>>>"
    )
    assert as_schema(ddl) == declared(
        {
            "tags": pl.List(pl.String),
            "address": pl.Struct({"city": pl.String, "zip": pl.Int32}),
            "m": KEY_VALUE,
            "x": pl.List(pl.List(pl.Struct({"t": UTC}))),
        }
    )


def test_capitals_spaces_backticks_colons_and_comments_are_read() -> None:
    ddl = " ID: STRING not null comment 'the, id', `odd ``name`  Map < String , BigInt > "
    assert as_schema(ddl) == declared(
        {"ID": pl.String, "odd `name": pl.List(pl.Struct({"key": pl.String, "value": pl.Int64}))}
    )


@pytest.mark.parametrize(
    "ddl, words",
    [
        ("", "got no column"),
        ("   ", "got no column"),
        ("id", "no type for `id` at the end"),
        ("id int64", r"unknown type `int64` of `id` \(did you mean `bigint`\?\)"),
        ("id pl.Int64", r"unknown type `pl.Int64` of `id` \(did you mean `bigint`\?\)"),
        ("id Utf8", r"\(did you mean `string`\?\)"),
        ("id str", r"\(did you mean `string`\?\)"),
        ("id f64", r"\(did you mean `double`\?\)"),
        ("id bool", r"\(did you mean `boolean`\?\)"),
        ("id datetime", r"\(did you mean `timestamp`\?\)"),
        ("id uint64", r"\(did you mean `decimal\(20,0\)`\?\)"),
        ("id list<string>", r"\(did you mean `array<…>`\?\)"),
        ("id list[string]", r"got `\[` .*; write types as Spark does: array<bigint>, timestamp"),
        ("id strin", r"unknown type `strin` of `id` \(did you mean `string`\?\) at position 4"),
        ("a int b string", "`b` at position 7"),
        ("a int,, b string", "`,` where a column name is expected at position 7"),
        ("a int,", "where a column name is expected at the end"),
        ("a array<int", "where `>` belongs at the end"),
        ("a array", "where `<` belongs"),
        ("a decimal(39,2)", r"decimal\(39,2\) at position 3"),
        ("a decimal(5,6)", r"decimal\(5,6\)"),
        ("a decimal(x)", "`x` where a number is expected"),
        ("a map<int,string>", "a map with keys of type `int`"),
        ("a int; b int", "`;` at position 6"),
        ("a int not", "write NOT NULL"),
        ("a int comment oops", "a comment without quotes"),
        ("a " + "array<" * 40 + "int" + ">" * 40, "more than 32 levels of nested types"),
    ],
)
def test_unreadable_ddl_is_refused_with_the_place_and_the_near_miss(ddl: str, words: str) -> None:
    with pytest.raises(DefinitionError, match=words) as caught:
        as_schema(ddl)
    assert caught.value.code == "BAD_SCHEMA"


@pytest.mark.parametrize(
    "spec, words",
    [
        ({"a": "int"}, "Polars types in a mapping, or one DDL string"),
        ({"a": 5}, "type 5 of `a`"),
        ({"a": pl.List}, "a complete Polars type"),
        ({"a": pl.Categorical()}, "use pl.String"),
        ({"a": pl.Duration("us")}, "a type that Spark supports"),
        ({"a": pl.List(pl.Struct({"b": pl.Time}))}, r"type Time of `a\[\]\.b`"),
        ({"a": pl.Datetime("us", "Europe/Paris")}, "times are in UTC"),
        ({"a": pl.Map(pl.Int64, pl.String)}, "a map's keys are strings"),
        ({"a": pl.Struct({})}, "a struct without fields"),
        ({1: pl.Int64}, "1 as a column's name"),
        ({"": pl.Int64}, "a column without a name"),
        ({}, "got no column"),
        (["a"], "got list"),
        (None, "got NoneType"),
    ],
)
def test_unusable_mappings_are_refused_with_the_column(spec: object, words: str) -> None:
    with pytest.raises(DefinitionError, match=words) as caught:
        as_schema(spec)  # type: ignore[arg-type]
    assert caught.value.code == "BAD_SCHEMA"


@pytest.mark.parametrize("spec", ["__ts bigint", {"__payload": pl.Binary}, "a int, `__off` bigint"])
def test_names_that_begin_with_two_underscores_are_refused(spec: object) -> None:
    with pytest.raises(DefinitionError) as caught:
        as_schema(spec)  # type: ignore[arg-type]
    assert caught.value.code == "RESERVED_COLUMN"


@pytest.mark.parametrize(
    "spec", ["a int, a string", "a int, A string", {"a": pl.Int8, "A": pl.Int8}, "s struct<x:int,X:int>"]
)
def test_two_columns_of_one_name_are_refused_whatever_their_capitals(spec: object) -> None:
    with pytest.raises(DefinitionError, match="must be unique") as caught:
        as_schema(spec)  # type: ignore[arg-type]
    assert caught.value.code == "DUPLICATE_COLUMN"


def test_times_of_any_unit_become_microseconds_in_utc_at_every_level() -> None:
    spec = {"a": pl.Datetime("ms"), "b": pl.Datetime, "c": pl.List(pl.Datetime("ns", "UTC"))}
    assert as_schema(spec) == declared({"a": UTC, "b": UTC, "c": pl.List(UTC)})


def test_a_polars_map_becomes_a_list_of_key_and_value() -> None:
    assert as_schema({"m": pl.Map(pl.String, pl.Float64)}) == declared({"m": KEY_VALUE})


def test_a_schema_is_returned_unchanged() -> None:
    schema = declared({"a": pl.UInt32, "b": pl.List(pl.String)})
    assert as_schema(schema) == schema


def test_spark_ddl_quotes_names_and_widens_unsigned_types() -> None:
    schema = declared(
        {"a b": pl.UInt32, "c`d": pl.List(UTC), "e": pl.Struct({"x y": pl.UInt64}), "f": pl.Map(pl.String, pl.Int8)}
    )
    assert to_spark_ddl(schema) == (
        "`a b` bigint, `c``d` array<timestamp>, `e` struct<`x y`:decimal(20,0)>, "
        "`f` array<struct<`key`:string,`value`:tinyint>>"
    )


def test_arrow_types_are_those_that_spark_expects() -> None:
    schema = declared({"s": pl.String, "l": pl.List(pl.UInt8), "t": pl.Datetime("ns"), "d": pl.Decimal(9, 3)})
    assert to_arrow(schema) == pa.schema(
        [("s", pa.string()), ("l", pa.list_(pa.int16())), ("t", pa.timestamp("us", "UTC")), ("d", pa.decimal128(9, 3))]
    )


@pytest.mark.parametrize("convert", [to_spark_ddl, to_arrow])
def test_types_that_spark_lacks_are_refused(convert: Callable[[pl.Schema], object]) -> None:
    with pytest.raises(DefinitionError, match="`gap`"):
        convert(pl.Schema({"gap": pl.Duration("ms")}))


def test_file_types_that_cannot_be_declared_become_ones_that_can() -> None:
    assert normal_type(pl.Categorical()) == pl.String
    assert normal_type(pl.Struct({"t": pl.Datetime("ms", "Asia/Tokyo")})) == pl.Struct({"t": UTC})
    assert normal_type(pl.Time()) == pl.Time


SCALARS = [
    pl.String(),
    pl.Int8(),
    pl.Int64(),
    pl.Float32(),
    pl.Float64(),
    pl.Boolean(),
    pl.Date(),
    UTC,
    pl.Binary(),
    pl.Decimal(12, 4),
]
NAMES = st.text(min_size=1, max_size=6).filter(
    lambda name: not name.startswith(("__", "^")) and "\x00" not in name and name != "*"
)


def columns(types: st.SearchStrategy[pl.DataType]) -> st.SearchStrategy[dict[str, pl.DataType]]:
    pairs = st.lists(st.tuples(NAMES, types), min_size=1, max_size=4, unique_by=lambda pair: pair[0].lower())
    return pairs.map(dict)


TYPES: st.SearchStrategy[pl.DataType] = st.recursive(
    st.sampled_from(SCALARS), lambda inner: inner.map(pl.List) | columns(inner).map(pl.Struct), max_leaves=6
)


@given(columns(TYPES))
def test_what_is_written_as_ddl_is_read_back_as_the_same_schema(spec: dict[str, pl.DataType]) -> None:
    schema = as_schema(spec)
    assert as_schema(to_spark_ddl(schema)) == schema


@given(st.text(alphabet="ab <>(),:`'\\int1dec.struarymapng\n", max_size=40))
def test_no_ddl_raises_anything_but_a_definition_error(text: str) -> None:
    with contextlib.suppress(DefinitionError):
        as_schema(text)

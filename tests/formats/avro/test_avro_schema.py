"""Avro schemas that cannot be used are refused when the pipeline is built, with words on what to do."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from slackwater.base.errors import DefinitionError
from slackwater.formats import avro as typed_avro
from slackwater.formats import registry
from slackwater.formats.avro.parser import AvroParser
from slackwater.formats.avro.resolution import resolve_schemas

avro: Any = typed_avro  # untyped: some of these arguments are wrong in their types


def record(*fields: Any, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"type": "record", "name": "R", "fields": list(fields), **more}


def field(kind: Any, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"name": "a", "type": kind, **more}


def nested(depth: int) -> Any:  # noqa: ANN401
    kind: Any = "int"
    for _ in range(depth):
        kind = {"type": "array", "items": kind}
    return kind


def doubled(times: int) -> dict[str, Any]:
    """Return a small schema of very many types: each record has the one before twice."""
    inner: Any = {"type": "record", "name": "T0", "fields": [field("int")]}
    fields = [{"name": "f0", "type": inner}]
    for number in range(1, times):
        parts = [{"name": name, "type": f"T{number - 1}"} for name in "xy"]
        fields.append({"name": f"f{number}", "type": {"type": "record", "name": f"T{number}", "fields": parts}})
    return record(*fields)


def chained(length: int) -> dict[str, Any]:
    """Return a schema whose last field has very many levels, none of them written within another."""
    fields = [{"name": "f0", "type": {"type": "record", "name": "T0", "fields": [field("int")]}}]
    for number in range(1, length):
        kind = {"type": "record", "name": f"T{number}", "fields": [field(f"T{number - 1}")]}
        fields.append({"name": f"f{number}", "type": kind})
    return record(*fields)


FIXED = {"type": "fixed", "name": "F", "size": 2}
ENUM = {"type": "enum", "name": "E", "symbols": ["A"]}


@pytest.mark.parametrize(
    "schema, words",
    [
        ("{", "got invalid JSON (Expecting property name"),
        ("order.avsc", "pass a file as pathlib.Path(...)"),
        ("[" * 100_000, "got invalid JSON (maximum recursion depth"),
        (record(field("int", default={1, 2})), "got invalid JSON (Object of type set is not JSON serializable)"),
        (3, "got 3 as the type"),
        ('"string"', "got string at the top; declare a record"),
        (["null", record(field("int"))], "got union of null, record `R` at the top"),
        ({"name": "x"}, 'got no type in {"name": "x"}'),
        (record(), "got record `R` without fields; name its fields"),
        (record(field("strnig")), "got unknown type `strnig` in field `a`"),
        (record(field({"type": "array", "items": "nope"})), "got unknown type `nope` in field `a[]`"),
        (record(field("null")), "got field `a` of type null only; remove it"),
        (record(field("int"), field("long")), "got field `a` twice in record `R`"),
        (record({"type": "int"}), 'got {"type": "int"} as a field'),
        (record({"name": "a"}), "got field `a` without a type"),
        (record(field("int", aliases="b")), 'got "b" as the aliases of field `a`'),
        ({"type": "record", "name": "R"}, "got record `R` without a list of fields"),
        ({"type": "record", "name": "int", "fields": []}, 'got "int" as the name of a record'),
        ({"type": "record", "fields": []}, "got null as the name of a record"),
        (record(field({"type": "record", "name": "S", "fields": []})), "got record `S` without fields in `a`"),
        (record(field(FIXED), {"name": "b", "type": FIXED}), "got two types named `F`"),
        (record(field({**FIXED, "size": -1})), "got fixed `F` of size -1"),
        (record(field({**ENUM, "symbols": ["A", "A"]})), 'got enum `E` of ["A", "A"] with default null'),
        (record(field({**ENUM, "default": "B"})), 'got enum `E` of ["A"] with default "B"'),
        (record(field({"type": "array"})), "got type array without items in field `a`"),
        (record(field({"type": "map"})), "got type map without values in field `a`"),
        (record(field([])), "got an empty union in field `a`"),
        (record(field(["null", "int", "int"])), "got a union of null, int, int in field `a`"),
        (record(field(["null", ["int"]])), "got a union of null, union in field `a`"),
        (record(field("R")), "got `R`, which contains itself in field `a`; declare a reader schema without"),
        (record(field(["null", {"type": "array", "items": "R"}])), "got `R`, which contains itself in field `a[]`"),
        (record(field(nested(40))), "got more than 32 levels of nested types"),
        (chained(60), "got more than 32 levels of nested types"),
        (doubled(20), "got more than 10000 nested types"),
        (record(field({"type": "array", "items": {**FIXED, "size": 0}})), "take no bytes; remove it"),
        (
            record(field({"type": "bytes", "logicalType": "decimal", "precision": 39})),
            "got decimal(39,0) in field `a`; declare at most 38 digits",
        ),
        (record(field("int", default="x")), 'got the default of field `a`: "x" is not a valid int'),
        (record(field("int", default=2**31)), "got the default of field `a`: 2147483648 is not a valid int"),
        (record(field("int", default=True)), "got the default of field `a`: true is not a valid int"),
        (record(field("float", default=1e300)), "got the default of field `a`: 1e+300 is not a valid float"),
        (record(field(["null", "int"], default="x")), 'default of field `a`: "x" is not a valid union of null, int'),
        (record(field({**FIXED}, default="x")), 'default of field `a`: "x" is not a valid fixed `F` of 2 bytes'),
        (record(field("bytes", default="€")), 'got the default of field `a`: "\\u20ac" is not a valid bytes'),
        (
            record(field("string", default="\ud800")),
            "got the default of field `a`: field `a`, byte 1: text that is not",
        ),
        (record(field(record(field("int"), name="S"), default={})), "got the default of field `a`: {} has no `a`"),
        (record(field(record(field("int", default=[]), name="S"))), "default of field `a.a`: [] is not a valid int"),
        (
            record(field({"type": "int", "logicalType": "date"}, default=2**30)),
            "got the default of field `a`: field `a`, byte 0: a day outside the years 1 to 9999",
        ),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_with_its_problem(schema: object, words: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        avro(schema)
    assert caught.value.code == "AVRO_SCHEMA"
    assert words in str(caught.value)


@pytest.mark.parametrize("branches", [["int", "string"], ["null", "int", "string"], ["null"]])
def test_a_union_that_is_no_column_is_refused_with_what_to_do(branches: list[str]) -> None:
    with pytest.raises(DefinitionError, match=r"in field `a\.a`; declare the field in a reader schema as") as caught:
        avro(record(field(record(field(branches), name="S"))))
    assert caught.value.code == "AVRO_UNION"


@pytest.mark.parametrize(
    "name, code", [("__a", "RESERVED_COLUMN"), ("A", "DUPLICATE_COLUMN")], ids=["hidden", "twice but for capitals"]
)
def test_names_that_cannot_be_columns_are_refused(name: str, code: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        avro(record(field("int"), {"name": name, "type": "int"}))
    assert caught.value.code == code


@pytest.mark.parametrize(
    "define, got",
    [
        (lambda: avro().decoder(), "none of them"),
        (lambda: avro(registry=registry("http://host")).schema, "registry"),
        (lambda: avro(subject="orders-value"), "subject"),
        (lambda: avro(record(field("int")), subject="orders-value"), "schema and subject"),
        (
            lambda: avro(record(field("int")), registry=registry("http://host"), subject="orders-value"),
            "schema and registry and subject",
        ),
        (lambda: avro(record(field("int")), registry="http://host"), "a str as registry"),
    ],
)
def test_arguments_that_name_no_schema_or_two_are_refused(define: Callable[[], object], got: str) -> None:
    with pytest.raises(DefinitionError, match=f"got {got}; write, for example,") as caught:
        define()
    assert caught.value.code == "AVRO_ARGUMENTS"


def test_a_schema_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "latin.avsc").write_bytes(b"\xff\xfe")
    for name, cause in (("nowhere.avsc", "No such file or directory"), ("latin.avsc", "not UTF-8")):
        with pytest.raises(DefinitionError, match=rf"{name}` \({cause}\)") as caught:
            avro(tmp_path / name)
        assert caught.value.code == "SCHEMA_FILE"


@pytest.mark.parametrize(
    "kind, default, value",
    [
        ("boolean", True, True),
        ("int", -5, -5),
        ("long", 2**40, 2**40),
        ("float", 1, 1.0),
        ("double", 2.5, 2.5),
        ("string", "é", "é"),
        ("bytes", "\u00ff\u0000", b"\xff\x00"),
        (FIXED, "ab", b"ab"),
        (ENUM, "A", "A"),
        (["null", "int"], None, None),
        (["int", "null"], 3, 3),
        ({"type": "array", "items": "int"}, [1, 2], [1, 2]),
        ({"type": "map", "values": "int"}, {"k": 1}, [{"key": "k", "value": 1}]),
        (record(field("int"), {"name": "b", "type": "int", "default": 4}, name="S"), {"a": 3}, {"a": 3, "b": 4}),
        ({"type": "int", "logicalType": "date"}, 1, date(1970, 1, 2)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, "\u0001\u0000", Decimal("2.56")),
    ],
)
def test_a_default_is_read_as_a_written_value_is(kind: object, default: object, value: object) -> None:
    form = avro(record(field(kind, default=default)))
    form_of_old = avro(record({"name": "b", "type": "int"}))
    decoder = form.decoder()
    decoder._own = resolve_schemas(form_of_old.reader, form.reader)
    decoded = decoder.decode(pl.Series([b"\x02", b"\x04"]))
    assert decoded.bad.is_empty()
    assert decoded.frame.schema == form.schema
    assert decoded.frame.to_dicts() == [{"a": value}] * 2


def test_a_field_that_was_always_null_is_read_as_null() -> None:
    decoder = avro(record(field(["null", "string"]), {"name": "b", "type": "int"})).decoder()
    old = AvroParser().parse(record({"name": "b", "type": "int"}, field("null")))
    decoder._own = resolve_schemas(old, decoder._format.reader)
    assert decoder.decode(pl.Series([b"\x02"])).frame.rows() == [(None, 1)]


def test_a_default_may_be_of_any_branch_of_a_union() -> None:
    form = avro(
        record(field(["null", "string"], default="x"), {"name": "b", "type": ["long", "null"], "default": None})
    )
    assert form.schema == {"a": pl.String(), "b": pl.Int64()}

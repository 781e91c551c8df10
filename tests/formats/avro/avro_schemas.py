"""Made-up Avro schemas, alone and as pairs of an older and a newer one, with records of them."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.formats.avro.avro_model import encode, kind_of

Values = st.SearchStrategy[Any]

LONGS = st.integers(-(2**63), 2**63 - 1) | st.integers(-200, 200) | st.sampled_from([2**55, 2**56, 2**62, -(2**63)])
INTS = st.integers(-(2**31), 2**31 - 1) | st.integers(-200, 200)
TEXTS = st.text(max_size=20) | st.sampled_from(["", "user-000473", "é" * 30, "x" * 70])
BYTES = st.binary(max_size=20)
FLOATS = st.floats(width=32)
DOUBLES = st.floats()


def decimals(precision: int, size: int | None) -> Values:
    """Draw decimals as big-endian bytes, some with more bytes than they need."""
    numbers = st.integers(-(10**precision) + 1, 10**precision - 1)
    if size is not None:
        return numbers.map(lambda number: number.to_bytes(size, "big", signed=True))
    lengths = st.integers(0, 3)
    return st.tuples(numbers, lengths).map(
        lambda both: both[0].to_bytes(both[0].bit_length() // 8 + 1 + both[1], "big", signed=True)
    )


def logical(kind: str, word: str, **more: object) -> dict[str, Any]:
    return {"type": kind, "logicalType": word, **more}


def fixed(names: Any, size: int, **more: object) -> dict[str, Any]:  # noqa: ANN401
    return {"type": "fixed", "name": f"F{next(names)}", "size": size, **more}


def scalars(names: Any) -> list[tuple[Any, Values]]:  # noqa: ANN401
    """Return every type of single values, with its values."""
    year = 366 * 86_400
    return [
        ("boolean", st.booleans()),
        ("int", INTS),
        ("long", LONGS),
        ("float", FLOATS),
        ("double", DOUBLES),
        ("bytes", BYTES),
        ("string", TEXTS),
        (logical("int", "date"), st.integers(-719162, 2932896)),
        (logical("int", "time-millis"), st.integers(0, 86_399_999)),
        (logical("long", "time-micros"), st.integers(0, 86_399_999_999)),
        (logical("long", "timestamp-millis"), st.integers(-1900 * year * 1000, 8000 * year * 1000)),
        (logical("long", "timestamp-micros"), st.integers(-1900 * year * 10**6, 8000 * year * 10**6)),
        (logical("long", "local-timestamp-micros"), st.integers(0, 10**16)),
        (logical("string", "uuid"), st.uuids().map(str)),
        (logical("bytes", "decimal", precision=10, scale=2), decimals(10, None)),
        (logical("bytes", "decimal", precision=38, scale=10), decimals(38, None)),
        (fixed(names, 12, logicalType="decimal", precision=20, scale=3), decimals(20, 12)),
        (fixed(names, 20, logicalType="decimal", precision=5, scale=5), decimals(5, 20)),
        (fixed(names, 5), st.binary(min_size=5, max_size=5)),
        (enum(names, ["A", "B", "C"]), st.sampled_from(["A", "B", "C"])),
    ]


def enum(names: Any, symbols: list[str], **more: object) -> dict[str, Any]:  # noqa: ANN401
    return {"type": "enum", "name": f"E{next(names)}", "symbols": symbols, **more}


@st.composite
def types(draw: st.DrawFn, names: Any, depth: int) -> tuple[Any, Values]:  # noqa: ANN401
    """Draw a type that can be a column, and its values."""
    shape = draw(st.sampled_from(["scalar"] * 4 + (["array", "map", "record", "nullable"] if depth else ["scalar"])))
    if shape == "scalar":
        scalar: tuple[Any, Values] = draw(st.sampled_from(scalars(names)))
        return scalar
    if shape == "record":
        schema, values = draw(records(names, depth - 1))
        return schema, values
    inner, values = draw(
        types(names, depth - 1).filter(lambda found: kind_of(found[0]) != "union" or shape != "nullable")
    )
    if shape == "array":
        return {"type": "array", "items": inner}, st.lists(values, max_size=5)
    if shape == "map":
        return {"type": "map", "values": inner}, st.dictionaries(TEXTS, values, max_size=4)
    null_first = draw(st.booleans())
    union = ["null", inner] if null_first else [inner, "null"]
    place = 1 if null_first else 0
    return union, st.just((1 - place, None)) | values.map(lambda value: (place, value))


@st.composite
def records(draw: st.DrawFn, names: Any, depth: int) -> tuple[Any, Values]:  # noqa: ANN401
    """Draw a record type, and its values."""
    drawn = draw(st.lists(types(names, depth), min_size=1, max_size=4))
    fields = [{"name": f"f{place}", "type": kind} for place, (kind, _) in enumerate(drawn)]
    values = st.fixed_dictionaries({f"f{place}": inner for place, (_, inner) in enumerate(drawn)})
    return {"type": "record", "name": f"R{next(names)}", "fields": fields}, values


@dataclass(frozen=True, kw_only=True)
class Written:
    """A writer's schema, a reader's, and records as the writer wrote them."""

    writer: Any
    reader: Any
    records: list[bytes]


@st.composite
def written(draw: st.DrawFn, *, most: int = 12) -> Written:
    """Draw a schema and records that are read by the same schema."""
    schema, values = draw(records(itertools.count(), 2))
    return Written(writer=schema, reader=schema, records=_encoded(draw, schema, values, most))


@st.composite
def evolved(draw: st.DrawFn, *, most: int = 12) -> Written:
    """Draw records of a writer's schema and another schema that must be able to read them, or some of them."""
    names = itertools.count()
    writer, reader, values = draw(evolved_records(names, 2))
    return Written(writer=writer, reader=reader, records=_encoded(draw, writer, values, most))


def _encoded(draw: st.DrawFn, schema: Any, values: Values, most: int) -> list[bytes]:  # noqa: ANN401
    dice = random.Random(draw(st.integers(0, 2**32)))
    return [encode(schema, value, dice) for value in draw(st.lists(values, min_size=1, max_size=most))]


ADDED = [
    ("long", 7),
    ("string", "é!"),
    ("double", 0.5),
    ("boolean", True),
    (["null", "long"], None),
    (["string", "null"], "new"),
    ({"type": "array", "items": "int"}, [1, -2, 300]),
    ({"type": "array", "items": "string"}, []),
    ({"type": "record", "name": "Added", "fields": [{"name": "x", "type": "int"}]}, {"x": 5}),
]
"""Types of fields that only a reader has, and their defaults, which are the same as values of columns."""


@st.composite
def evolved_records(draw: st.DrawFn, names: Any, depth: int) -> tuple[Any, Any, Values]:  # noqa: ANN401
    """Draw a writer's record type, a reader's, and the writer's values."""
    drawn = draw(st.lists(evolved_types(names, depth), min_size=1, max_size=4))
    theirs, mine = [], []
    for place, (writer, reader, _) in enumerate(drawn):
        theirs.append({"name": f"f{place}", "type": writer})
        match draw(st.sampled_from(["same"] * 3 + ["renamed", "removed"])):
            case "same":
                mine.append({"name": f"f{place}", "type": reader})
            case "renamed":
                mine.append({"name": f"new{place}", "aliases": ["other", f"f{place}"], "type": reader})
    if not mine or draw(st.integers(0, 2)) == 0:
        kind, default = draw(st.sampled_from(ADDED))
        if isinstance(kind, dict) and kind["type"] == "record":
            kind = {**kind, "name": f"A{next(names)}"}
        mine.append({"name": "added", "type": kind, "default": default})
    mine = draw(st.permutations(mine))
    values = st.fixed_dictionaries({f"f{place}": inner for place, (_, _, inner) in enumerate(drawn)})
    name = f"R{next(names)}"
    return {"type": "record", "name": name, "fields": theirs}, {"type": "record", "name": name, "fields": mine}, values


@st.composite
def evolved_types(draw: st.DrawFn, names: Any, depth: int) -> tuple[Any, Any, Values]:  # noqa: ANN401, PLR0911
    """Draw a writer's type, a reader's, and the writer's values."""
    shapes = ["same", "promoted", "enum"] + (
        ["array", "map", "record", "nullable", "was nullable", "of many"] if depth else []
    )
    shape = draw(st.sampled_from(shapes))
    if shape == "same":
        schema, values = draw(types(names, 0))
        return schema, schema, values
    if shape == "promoted":
        promoted: tuple[Any, Any, Values] = draw(st.sampled_from(_promotions()))
        return promoted
    if shape == "enum":
        name = f"E{next(names)}"
        symbols = ["A", "B", "C", "D"]
        default = draw(st.sampled_from([{}, {"default": "B"}]))
        mine = {
            "type": "enum",
            "name": f"E{next(names)}",
            "aliases": [name],
            "symbols": ["C", "B", "Z", "A"],
            **default,
        }
        return {"type": "enum", "name": name, "symbols": symbols}, mine, st.sampled_from(symbols)
    if shape == "record":
        return draw(evolved_records(names, depth - 1))
    writer, reader, values = draw(
        evolved_types(names, depth - 1).filter(lambda found: not any(isinstance(kind, list) for kind in found[:2]))
    )
    if shape == "array":
        return {"type": "array", "items": writer}, {"type": "array", "items": reader}, st.lists(values, max_size=5)
    if shape == "map":
        entries = st.dictionaries(TEXTS, values, max_size=4)
        return {"type": "map", "values": writer}, {"type": "map", "values": reader}, entries
    if shape == "nullable":
        return writer, ["null", reader], values
    some = st.just((0, None)) | values.map(lambda value: (1, value))
    if shape == "was nullable":
        return ["null", writer], draw(st.sampled_from([reader, [reader, "null"]])), some
    other: Any = {"type": "array", "items": {"type": "map", "values": "boolean"}}
    if kind_of(writer) == "array":
        other = {"type": "map", "values": "string"}
        return ["null", writer, other], ["null", reader], some | st.just((2, {"k": "v"}))
    return ["null", writer, other], ["null", reader], some | st.just((2, [{"k": True}, {}]))


def _promotions() -> list[tuple[Any, Any, Values]]:
    millis, micros = logical("long", "timestamp-millis"), logical("long", "timestamp-micros")
    return [
        ("int", "long", INTS),
        ("int", "float", INTS),
        ("int", "double", INTS),
        ("long", "float", LONGS),
        ("long", "double", LONGS),
        ("float", "double", FLOATS),
        ("string", "bytes", TEXTS),
        ("bytes", "string", BYTES),
        ("long", millis, st.integers(0, 10**13)),
        ("int", millis, INTS),
        (millis, "long", LONGS),
        (millis, micros, st.integers(0, 10**13)),
        (micros, millis, st.integers(0, 10**16)),
        (logical("int", "time-millis"), logical("long", "time-micros"), st.integers(0, 86_399_999)),
        (logical("int", "date"), "double", INTS),
        (
            logical("bytes", "decimal", precision=5, scale=2),
            logical("bytes", "decimal", precision=9, scale=2),
            decimals(5, None),
        ),
    ]

"""Reads records of one writer's schema as columns of the reader's: field by field, each for all records at once."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, cast

import numpy as np
import polars as pl
import pyarrow as pa

from slackwater.formats.avro import resolution
from slackwater.formats.avro.cursor import I64, PADDING, Buffer, Cursor, RecordFlaws
from slackwater.formats.avro.defaults import UnfitDefaultError, default_bytes
from slackwater.formats.avro.items import find_items, skip_values
from slackwater.formats.avro.schema import AvroField, inside
from slackwater.formats.avro.values import read_value, texts_of
from slackwater.formats.schemas import whole_type


def read_records(action: resolution.AsStruct, cursor: Cursor, schema: pl.Schema) -> pl.DataFrame:
    """Read each record, from first byte to last, as a row; flaws are noted."""
    columns = _fields(action, cursor, list(schema.items()))
    over = cursor.position < cursor.end
    if over.any():
        cursor.fail(over, cursor.position.copy(), "malformed", "", "extra bytes after the last field")
    return pl.DataFrame(columns)


def default_column(field: AvroField, dtype: pl.DataType) -> pl.Series:
    """Return a field's default as a column of one row; raise `UnfitDefaultError` if the field cannot hold it."""
    written = np.frombuffer(default_bytes(field), np.uint8)
    start, end = np.array([PADDING]), np.array([PADDING + len(written)])
    findings = RecordFlaws(start.copy())
    cursor = Cursor(Buffer(written), findings, record=np.array([0]), position=start, end=end)
    column = _column(resolution.resolve_schemas(field.type, field.type, field.name), cursor, dtype)
    for flaw in findings.flaws().values():
        raise UnfitDefaultError(flaw.message)
    return column


_default = lru_cache(maxsize=1024)(default_column)


def _column(  # noqa: PLR0911  one return per action
    action: resolution.Action, cursor: Cursor, dtype: pl.DataType
) -> pl.Series:
    """Read the next value at each place as a column, and move past it."""
    match action:
        case resolution.AsValue():
            return read_value(action, cursor, dtype)
        case resolution.AsSymbol():
            return _symbols(action, cursor)
        case resolution.AsBranch():
            return _branches(action, cursor, dtype)
        case resolution.AsStruct():
            inner = cast("pl.Struct", dtype)
            fields = [(field.name, whole_type(field.dtype)) for field in inner.fields]
            return pl.DataFrame(_fields(action, cursor, fields)).to_struct()
        case resolution.AsList():
            counts, items = _items(action, cursor)
            return _lists(counts, _column(action.item, items, whole_type(cast("pl.List", dtype).inner)))
        case resolution.AsMap():
            return _maps(action, cursor, dtype)
        case resolution.AsDefault(field=field):
            return _default(field, dtype).new_from_index(0, len(cursor))
        case resolution.AsNull():
            return pl.Series([None], dtype=dtype).new_from_index(0, len(cursor))
        case resolution.Unreadable():
            everywhere = np.ones(len(cursor), np.bool_)
            cursor.fail(everywhere, cursor.position.copy(), "incompatible_schema", action.path, action.why)
            return pl.Series([None], dtype=dtype).new_from_index(0, len(cursor))


def _fields(action: resolution.AsStruct, cursor: Cursor, wanted: list[tuple[str, pl.DataType]]) -> list[pl.Series]:
    """Return the reader's fields; the writer's fields are read or skipped in the order they were written."""
    place_of = {source: place for place, (source, _) in enumerate(action.sources) if source is not None}
    columns: dict[int, pl.Series] = {}
    for source, field in enumerate(action.writer.fields):
        place = place_of.get(source)
        if place is None:
            skip_values(field.type, cursor, inside(action.path, field.name))
        else:
            columns[place] = _column(action.sources[place][1], cursor, wanted[place][1])
    for place, (written_at, inner) in enumerate(action.sources):
        if written_at is None:
            columns[place] = _column(inner, cursor, wanted[place][1])
    return [columns[place].alias(name) for place, (name, _) in enumerate(wanted)]


def _symbols(action: resolution.AsSymbol, cursor: Cursor) -> pl.Series:
    start = cursor.position
    choice = cursor.choices(len(action.writer.symbols), action.path, "symbols")
    for place, symbol in enumerate(action.symbols):
        if symbol is None:
            rows = np.flatnonzero(choice == place)
            if len(rows):
                why = f"the reader's {action.reader} lacks {action.writer.symbols[place]}, and has no default"
                cursor.doubt(rows, start[rows], "incompatible_schema", action.path, why)
    return pl.Series(list(action.symbols), dtype=pl.String).gather(_places(choice))


def _branches(action: resolution.AsBranch, cursor: Cursor, dtype: pl.DataType) -> pl.Series:
    choice = cursor.choices(len(action.branches), action.path, "branches")
    places = np.full(len(cursor), -1, np.int64)
    found: list[pl.Series] = []
    height = 0
    for place, inner in enumerate(action.branches):
        rows = np.flatnonzero(choice == place)
        if not len(rows) or isinstance(inner, resolution.AsNull):
            continue
        if len(rows) == len(cursor):
            return _column(inner, cursor, dtype)
        part = cursor.subset(rows)
        found.append(_column(inner, part, dtype))
        cursor.rejoin(rows, part)
        places[rows] = np.arange(height, height + len(rows))
        height += len(rows)
    if not found:
        return pl.Series([None], dtype=dtype).new_from_index(0, len(cursor))
    return pl.concat(found).gather(_places(places))


def _items(action: resolution.AsList, cursor: Cursor) -> tuple[I64, Cursor]:
    """Move past an array; return the number of items at each place, and a cursor at every item."""
    return _at_items(cursor, *find_items(action.writer.items, cursor, action.path))


def _at_items(cursor: Cursor, counts: I64, starts: I64) -> tuple[I64, Cursor]:
    rows = np.repeat(np.arange(len(cursor)), counts)
    inner = Cursor(cursor.buffer, cursor.findings, record=cursor.record[rows], position=starts, end=cursor.end[rows])
    return counts, inner


def _maps(action: resolution.AsMap, cursor: Cursor, dtype: pl.DataType) -> pl.Series:
    counts, inner = _at_items(cursor, *find_items(action.writer.entry, cursor, action.path))
    begins = inner.position
    key = texts_of(inner, *inner.slices(action.path), action.path).alias("key")
    entry = cast("pl.Struct", cast("pl.List", dtype).inner)
    value = _column(action.value, inner, whole_type(entry.fields[1].dtype)).alias("value")
    rows = pl.Series("row", np.repeat(np.arange(len(cursor)), counts))
    twice = np.flatnonzero(pl.DataFrame([rows, key]).is_duplicated().to_numpy())
    if len(twice):
        inner.doubt(twice, begins[twice], "malformed", action.path, "a duplicate key")
    return _lists(counts, pl.DataFrame([key, value]).to_struct())


def _lists(counts: I64, items: pl.Series) -> pl.Series:
    """Group consecutive `items` into lists; `counts` has the length of each list."""
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    values: pa.Array[Any] = items.rechunk().to_arrow(compat_level=pl.CompatLevel.newest())
    return pl.Series(pa.LargeListArray.from_arrays(pa.array(offsets), values))


def _places(found: I64) -> pl.Series:
    """Return indexes to gather, with null for -1."""
    places = pl.Series(found)
    return places.set(places < 0, None) if len(found) and found.min() < 0 else places

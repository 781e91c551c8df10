"""Compares two versions of a schema: what each can read of records written with the other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

import polars as pl

from slackwater.formats.avro.resolution import Unreadable, problems, resolve_schemas
from slackwater.formats.avro.schema import AvroType
from slackwater.formats.schemas import spark_type, whole_type

Level = Literal["full", "backward", "forward", "none"]

_DIGITS: Final[dict[type[pl.DataType], int]] = {pl.Int8: 3, pl.Int16: 5, pl.Int32: 10, pl.Int64: 19}


@dataclass(frozen=True, kw_only=True)
class Compatibility:
    """The incompatibilities between an old and a new version of a schema.

    `backward` is what the new version cannot read in old records; `forward` is what the old version cannot read in new
    records.
    """

    backward: tuple[Unreadable, ...]
    forward: tuple[Unreadable, ...]

    @property
    def level(self) -> Level:
        """The level of compatibility: full, backward, forward or none."""
        if not self.backward:
            return "backward" if self.forward else "full"
        return "none" if self.forward else "forward"

    def meets(self, need: str) -> bool:
        """Return whether the level satisfies `need`; full includes backward and forward."""
        return self.level in {"full", need}


def compare_avro(old: AvroType, new: AvroType) -> Compatibility:
    """Compare two Avro schemas by the decoder's rules."""
    return Compatibility(
        backward=tuple(problems(resolve_schemas(old, new))), forward=tuple(problems(resolve_schemas(new, old)))
    )


def compare_columns(old: pl.Schema, new: pl.Schema) -> Compatibility:
    """Compare two declarations of JSON records, in which missing fields are null and undeclared ones are skipped.

    Therefore only types can be incompatible: a wider number reads a narrower one, and a string reads whatever JSON
    writes as a string.
    """
    return Compatibility(backward=tuple(_unread(old, new)), forward=tuple(_unread(new, old)))


def _unread(writer: pl.Schema, reader: pl.Schema) -> Iterable[Unreadable]:
    for name in reader:
        if name in writer:
            yield from _unread_type(writer[name], reader[name], name)


def _unread_type(writer: pl.DataType, reader: pl.DataType, path: str) -> Iterable[Unreadable]:
    if isinstance(writer, pl.List) and isinstance(reader, pl.List):
        yield from _unread_type(whole_type(writer.inner), whole_type(reader.inner), f"{path}[]")
    elif isinstance(writer, pl.Struct) and isinstance(reader, pl.Struct):
        mine = {field.name: whole_type(field.dtype) for field in reader.fields}
        for field in writer.fields:
            if field.name in mine:
                yield from _unread_type(whole_type(field.dtype), mine[field.name], f"{path}.{field.name}")
    elif not _takes(reader, writer):
        words = f"the writer has {spark_type(writer)}, the reader {spark_type(reader)}"
        yield Unreadable(path=path, why=words)


def _takes(reader: pl.DataType, writer: pl.DataType) -> bool:
    """Return whether JSON of the writer's type is always valid JSON of the reader's."""
    digits = _DIGITS.get(type(writer))
    match reader:
        case pl.String():
            return isinstance(writer, pl.String | pl.Datetime | pl.Date | pl.Binary)
        case pl.Float64():
            return digits is not None or isinstance(writer, pl.Float64 | pl.Float32 | pl.Decimal)
        case pl.Float32():
            return digits is not None or isinstance(writer, pl.Float32)
        case pl.Decimal():
            whole, scale = _shape(reader)
            if isinstance(writer, pl.Decimal):
                return whole >= _shape(writer)[0] and scale >= writer.scale
            return digits is not None and whole >= digits
    mine = _DIGITS.get(type(reader))
    return writer == reader or (digits is not None and mine is not None and digits <= mine)


def _shape(decimal: pl.Decimal) -> tuple[int, int]:
    """Return the digits before and after the decimal point."""
    return (decimal.precision or 38) - decimal.scale, decimal.scale

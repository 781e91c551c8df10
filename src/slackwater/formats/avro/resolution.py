"""Avro's schema resolution: how values of a writer's type become values of a reader's type.

The one set of rules for the decoder, which does what the result says, and for `slackwater schema check`,
which lists what cannot be done. They are those of Avro's specification, but for what a type stands for,
where silence would make wrong values: times of different units are converted, a date is never read as
a time, and a decimal's scale must stay while its precision may grow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from slackwater.formats.avro.schema import (
    NULL,
    Array,
    AvroType,
    Enum,
    Field,
    Fixed,
    Map,
    Primitive,
    Record,
    Union,
    inside,
    least_bytes,
)

_PROMOTIONS: Final = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}
_SHOWN_SYMBOLS: Final = 5


@dataclass(frozen=True, kw_only=True)
class Unreadable:
    """What the reader cannot take."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"field `{self.path}`: {self.why}" if self.path else self.why


@dataclass(frozen=True, kw_only=True)
class AsNull:
    """Nothing is written, null is read."""


@dataclass(frozen=True, kw_only=True)
class AsDefault:
    """Nothing is written, the reader's default is read."""

    field: Field
    path: str


@dataclass(frozen=True, kw_only=True)
class AsValue:
    """A single value, widened or read as what the reader says it stands for."""

    writer: Primitive | Fixed
    reader: Primitive | Fixed
    path: str


@dataclass(frozen=True, kw_only=True)
class AsSymbol:
    """An enum's symbol; `symbols` has the reader's for each of the writer's, None where there is none."""

    writer: Enum
    reader: Enum
    symbols: tuple[str | None, ...]
    path: str


@dataclass(frozen=True, kw_only=True)
class AsList:
    """An array, item by item."""

    writer: Array
    item: Action
    path: str


@dataclass(frozen=True, kw_only=True)
class AsMap:
    """A map, value by value."""

    writer: Map
    value: Action
    path: str


@dataclass(frozen=True, kw_only=True)
class AsStruct:
    """A record: for each of the reader's fields the place of the writer's, or None, and what is done."""

    writer: Record
    reader: Record
    sources: tuple[tuple[int | None, Action], ...]
    path: str


@dataclass(frozen=True, kw_only=True)
class AsBranch:
    """A union of the writer's: for each of its branches what is done."""

    writer: Union
    branches: tuple[Action, ...]
    path: str


Action = Unreadable | AsNull | AsDefault | AsValue | AsSymbol | AsList | AsMap | AsStruct | AsBranch


def resolve_schemas(  # noqa: PLR0911  one answer per pair of types
    writer: AvroType, reader: AvroType, path: str = ""
) -> Action:
    """Return how `writer`'s values are read as `reader`'s; `Unreadable` stands where they are not."""
    if isinstance(writer, Union):
        branches = tuple(resolve_schemas(branch, reader, path) for branch in writer.branches)
        return AsBranch(writer=writer, branches=branches, path=path)
    if isinstance(reader, Union):
        return _into_union(writer, reader, path)
    match writer, reader:
        case Primitive(), Primitive() if writer.kind == reader.kind or reader.kind in _PROMOTIONS.get(writer.kind, ()):
            return AsNull() if writer == NULL else _value(writer, reader, path)
        case Fixed(), Fixed() if reader.name.may_read(writer.name) and writer.size == reader.size:
            return _value(writer, reader, path)
        case Enum(), Enum() if reader.name.may_read(writer.name):
            known = [symbol if symbol in reader.symbols else reader.default for symbol in writer.symbols]
            return AsSymbol(writer=writer, reader=reader, symbols=tuple(known), path=path)
        case Array(), Array():
            return _items(
                AsList(writer=writer, item=resolve_schemas(writer.items, reader.items, f"{path}[]"), path=path)
            )
        case Map(), Map():
            return AsMap(writer=writer, value=resolve_schemas(writer.values, reader.values, f"{path}[]"), path=path)
        case Record(), Record() if reader.name.may_read(writer.name):
            return _record(writer, reader, path)
    return Unreadable(path=path, why=f"the writer has {writer}, the reader {reader}")


def problems(action: Action, *, only_always: bool = False) -> Iterator[Unreadable]:
    """Yield what cannot be read; with `only_always` what makes every record unreadable, not some of them."""
    match action:
        case Unreadable():
            yield action
        case AsSymbol() if not only_always:
            lost = [
                symbol for symbol, known in zip(action.writer.symbols, action.symbols, strict=True) if known is None
            ]
            if lost:
                shown = ", ".join(lost[:_SHOWN_SYMBOLS]) + (", …" if len(lost) > _SHOWN_SYMBOLS else "")
                words = f"the reader's {action.reader} lacks {shown} of the writer's, and has no default"
                yield Unreadable(path=action.path, why=words)
        case AsList(item=inner) | AsMap(value=inner):
            yield from problems(inner, only_always=only_always)
        case AsStruct(sources=sources):
            for _, inner in sources:
                yield from problems(inner, only_always=only_always)
        case AsBranch(branches=branches) if not only_always:
            for inner in branches:
                yield from problems(inner)


def _value(writer: Primitive | Fixed, reader: Primitive | Fixed, path: str) -> Action:
    """Return a value's reading, unless the two stand for different things."""
    mine, theirs = reader.logical, writer.logical
    if mine is not None and theirs is not None:
        same = mine.family == theirs.family
        if mine.kind == theirs.kind == "decimal":
            same = mine.scale == theirs.scale and mine.precision >= theirs.precision
        if not same:
            return Unreadable(path=path, why=f"the writer has {writer}, the reader {reader}")
    return AsValue(writer=writer, reader=reader, path=path)


def _into_union(writer: AvroType, reader: Union, path: str) -> Action:
    """Return the reading by the first branch of the reader's that can take all of it, or else most of it."""
    found = [resolve_schemas(writer, branch, path) for branch in reader.branches]
    for action in found:
        if not any(problems(action)):
            return action
    for action in found:
        if not any(problems(action, only_always=True)):
            return action
    for action in found:
        if not isinstance(action, Unreadable):
            return action
    return Unreadable(path=path, why=f"the writer has {writer}, the reader {reader}")


def _items(action: AsList) -> Action:
    """Return an array's reading, unless a few bytes could stand for any number of items."""
    if least_bytes(action.writer.items) == 0 and not isinstance(action.item, Unreadable):
        return Unreadable(path=action.path, why=f"the items of the writer's {action.writer} take no bytes")
    return action


def _record(writer: Record, reader: Record, path: str) -> Action:
    by_name = {field.name: place for place, field in enumerate(writer.fields)}
    matched = {field.name: by_name.get(field.name) for field in reader.fields}
    taken = set(matched.values())
    for field in reader.fields:
        for alias in field.aliases:
            place = by_name.get(alias)
            if matched[field.name] is None and place is not None and place not in taken:
                matched[field.name] = place
                taken.add(place)
    sources: list[tuple[int | None, Action]] = []
    for field in reader.fields:
        place, inner = matched[field.name], inside(path, field.name)
        if place is not None:
            sources.append((place, resolve_schemas(writer.fields[place].type, field.type, inner)))
        elif field.default is not None:
            sources.append((None, AsDefault(field=field, path=inner)))
        else:
            words = "the writer has no such field, and the reader has no default for it"
            sources.append((None, Unreadable(path=inner, why=words)))
    return AsStruct(writer=writer, reader=reader, sources=tuple(sources), path=path)

"""Avro's schema resolution: how values of a writer's type become values of a reader's type.

The same rules serve the decoder, which carries out the result, and `slackwater schema check`, which lists what cannot
be read. They are those of Avro's specification, except for logical types, where the specification would silently yield
wrong values: times are converted between units, a date is never read as a time, and a decimal's scale must stay the
same while its precision may grow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from slackwater.formats.avro import schema as tree

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
    """A value that the reader cannot read, and why."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"field `{self.path}`: {self.why}" if self.path else self.why


@dataclass(frozen=True, kw_only=True)
class AsNull:
    """A null, which takes no bytes."""


@dataclass(frozen=True, kw_only=True)
class AsDefault:
    """A field that the writer does not have: the reader's default."""

    field: tree.AvroField
    path: str


@dataclass(frozen=True, kw_only=True)
class AsValue:
    """A single value, possibly widened, or read as the reader's logical type."""

    writer: tree.Primitive | tree.Fixed
    reader: tree.Primitive | tree.Fixed
    path: str


@dataclass(frozen=True, kw_only=True)
class AsSymbol:
    """An enum's symbol; `symbols` has the reader's symbol for each of the writer's, or None."""

    writer: tree.Enum
    reader: tree.Enum
    symbols: tuple[str | None, ...]
    path: str


@dataclass(frozen=True, kw_only=True)
class AsList:
    """An array, item by item."""

    writer: tree.Array
    item: Action
    path: str


@dataclass(frozen=True, kw_only=True)
class AsMap:
    """A map, value by value."""

    writer: tree.AvroMap
    value: Action
    path: str


@dataclass(frozen=True, kw_only=True)
class AsStruct:
    """A record: for each of the reader's fields, the index of the writer's field or None, and its action."""

    writer: tree.AvroRecord
    reader: tree.AvroRecord
    sources: tuple[tuple[int | None, Action], ...]
    path: str


@dataclass(frozen=True, kw_only=True)
class AsBranch:
    """A union of the writer's: the action for each of its branches."""

    writer: tree.AvroUnion
    branches: tuple[Action, ...]
    path: str


Action = Unreadable | AsNull | AsDefault | AsValue | AsSymbol | AsList | AsMap | AsStruct | AsBranch


def resolve_schemas(  # noqa: PLR0911  one return per pair of types
    writer: tree.AvroType, reader: tree.AvroType, path: str = ""
) -> Action:
    """Return how to read `writer`'s values as `reader`'s, with `Unreadable` for those that cannot be read."""
    if isinstance(writer, tree.AvroUnion):
        branches = tuple(resolve_schemas(branch, reader, path) for branch in writer.branches)
        return AsBranch(writer=writer, branches=branches, path=path)
    if isinstance(reader, tree.AvroUnion):
        return _into_union(writer, reader, path)
    match writer, reader:
        case tree.Primitive(), tree.Primitive() if writer.kind == reader.kind or reader.kind in _PROMOTIONS.get(
            writer.kind, ()
        ):
            return AsNull() if writer == tree.NULL else _value(writer, reader, path)
        case tree.Fixed(), tree.Fixed() if reader.name.may_read(writer.name) and writer.size == reader.size:
            return _value(writer, reader, path)
        case tree.Enum(), tree.Enum() if reader.name.may_read(writer.name):
            known = [symbol if symbol in reader.symbols else reader.default for symbol in writer.symbols]
            return AsSymbol(writer=writer, reader=reader, symbols=tuple(known), path=path)
        case tree.Array(), tree.Array():
            return _items(
                AsList(writer=writer, item=resolve_schemas(writer.items, reader.items, f"{path}[]"), path=path)
            )
        case tree.AvroMap(), tree.AvroMap():
            return AsMap(writer=writer, value=resolve_schemas(writer.values, reader.values, f"{path}[]"), path=path)
        case tree.AvroRecord(), tree.AvroRecord() if reader.name.may_read(writer.name):
            return _record(writer, reader, path)
    return Unreadable(path=path, why=f"the writer has {writer}, the reader {reader}")


def problems(action: Action, *, only_always: bool = False) -> Iterator[Unreadable]:
    """Yield what cannot be read; with `only_always`, only what makes every record unreadable."""
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


def _value(writer: tree.Primitive | tree.Fixed, reader: tree.Primitive | tree.Fixed, path: str) -> Action:
    """Return how to read a value, or `Unreadable` if the logical types differ."""
    mine, theirs = reader.logical, writer.logical
    if mine is not None and theirs is not None:
        same = mine.family == theirs.family
        if mine.kind == theirs.kind == "decimal":
            same = mine.scale == theirs.scale and mine.precision >= theirs.precision
        if not same:
            return Unreadable(path=path, why=f"the writer has {writer}, the reader {reader}")
    return AsValue(writer=writer, reader=reader, path=path)


def _into_union(writer: tree.AvroType, reader: tree.AvroUnion, path: str) -> Action:
    """Return the action of the first of the reader's branches that can read every value, or else some values."""
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
    """Return how to read an array, or `Unreadable` if a few bytes could declare any number of items."""
    if tree.least_bytes(action.writer.items) == 0 and not isinstance(action.item, Unreadable):
        return Unreadable(path=action.path, why=f"the items of the writer's {action.writer} take no bytes")
    return action


def _record(writer: tree.AvroRecord, reader: tree.AvroRecord, path: str) -> Action:
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
        place, inner = matched[field.name], tree.inside(path, field.name)
        if place is not None:
            sources.append((place, resolve_schemas(writer.fields[place].type, field.type, inner)))
        elif field.default is not None:
            sources.append((None, AsDefault(field=field, path=inner)))
        else:
            words = "the writer has no such field, and the reader has no default for it"
            sources.append((None, Unreadable(path=inner, why=words)))
    return AsStruct(writer=writer, reader=reader, sources=tuple(sources), path=path)

"""Parses the JSON of Avro schemas: resolves names, and refuses what cannot be decoded, with a remedy.

Recursive types are refused, because a column has a fixed number of levels. Depth and size are limited, because writers'
schemas come from a registry, where anyone may have put them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from slackwater.formats.avro import schema as tree

PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")

_DEEPEST: Final = 32
_MOST_TYPES: Final = 10_000
_LARGEST_FIXED: Final = 1 << 26
_LOGICAL: Final = {
    "date": ("int",),
    "time-millis": ("int",),
    "time-micros": ("long",),
    "timestamp-millis": ("long",),
    "timestamp-micros": ("long",),
    "timestamp-nanos": ("long",),
    "local-timestamp-millis": ("long",),
    "local-timestamp-micros": ("long",),
    "local-timestamp-nanos": ("long",),
    "uuid": ("string",),
    "decimal": ("bytes",),
}
_UUID_BYTES: Final = 16
_ANY_DECIMAL_BYTES: Final = 32
"""Decimals of more bytes than this can hold every value that a column can."""


class AvroSchemaError(Exception):
    """A schema that cannot be used: the problem and its remedy."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"{problem}; {remedy}")
        self.problem = problem
        self.remedy = remedy


class AvroParser:
    """Parses schemas that may refer to named types of schemas parsed before."""

    def __init__(self) -> None:
        self._known: dict[str, tree.AvroType] = {}
        self._open: list[str] = []
        self._extent: dict[int, tuple[int, int]] = {}

    def parse(self, source: object) -> tree.AvroType:
        """Parse the type that `source` declares, as JSON text or parsed JSON."""
        try:
            given = json.loads(source if isinstance(source, str) else json.dumps(source))
        except (TypeError, ValueError, RecursionError) as error:
            cause = str(error) or type(error).__name__
            raise AvroSchemaError(
                f"invalid JSON ({cause:.100})", "correct it, or pass a file as pathlib.Path(...)"
            ) from None
        return self._type(given, namespace="", path="", depth=0)

    def _type(  # noqa: C901, PLR0911  one return per kind of type
        self, given: object, *, namespace: str, path: str, depth: int
    ) -> tree.AvroType:
        if depth > _DEEPEST:
            raise _too_deep()
        if isinstance(given, str):
            return self._by_name(given, namespace, path)
        if isinstance(given, list):
            return self._union(given, namespace, path, depth)
        if not isinstance(given, Mapping):
            raise AvroSchemaError(f"{_shown(given)} as the type{_of(path)}", "a type is a name, an object or a list")
        kind = given.get("type")
        if isinstance(kind, Mapping | list):
            return self._type(kind, namespace=namespace, path=path, depth=depth + 1)
        match kind:
            case "record" | "error":
                return self._record(given, namespace, path, depth)
            case "enum":
                return self._enum(given, namespace, path)
            case "fixed":
                return self._fixed(given, namespace, path)
            case "array" | "map":
                return self._collection(kind, given, namespace, path, depth)
            case str() if kind in PRIMITIVES:
                return self._made(tree.Primitive(kind=kind, logical=_logical(given, kind)))
            case str():
                return self._by_name(kind, namespace, path)
        raise AvroSchemaError(f"no type{_of(path)} in {_shown(given)}", 'every type has a "type"')

    def _by_name(self, name: str, namespace: str, path: str) -> tree.AvroType:
        if name in PRIMITIVES:
            return self._made(tree.Primitive(kind=name))
        for full in (_full(name, namespace), name):
            if full in self._open:
                raise AvroSchemaError(
                    f"`{full}`, which contains itself{_at(path)}",
                    "declare a reader schema without that field: columns cannot be recursive",
                )
            if full in self._known:
                return self._known[full]
        raise AvroSchemaError(
            f"unknown type `{name}`{_at(path)}", f"use {', '.join(PRIMITIVES)} or a name defined before"
        )

    def _union(self, given: list[Any], namespace: str, path: str, depth: int) -> tree.AvroType:
        branches = tuple(self._type(each, namespace=namespace, path=path, depth=depth + 1) for each in given)
        if not branches:
            raise AvroSchemaError(f"an empty union{_at(path)}", "name its types")
        kinds = [_union_kind(branch) for branch in branches]
        if "union" in kinds or len(set(kinds)) < len(kinds):
            raise AvroSchemaError(
                f"a union of {', '.join(kinds)}{_at(path)}", "a union may contain each type once, and no other union"
            )
        return self._made(tree.AvroUnion(branches=branches), *branches)

    def _record(self, given: Mapping[str, Any], namespace: str, path: str, depth: int) -> tree.AvroType:
        name = self._begin(given, namespace, path)
        listed = given.get("fields")
        if not isinstance(listed, list):
            raise AvroSchemaError(f"record `{name.full}` without a list of fields", 'give it "fields"')
        home = name.full.rpartition(".")[0]
        fields = tuple(self._field(each, home, path, depth) for each in listed)
        names = [field.name for field in fields]
        if len(set(names)) < len(names):
            twice = next(each for each in names if names.count(each) > 1)
            raise AvroSchemaError(f"field `{twice}` twice in record `{name.full}`", "name every field once")
        self._open.pop()
        return self._named(name, tree.AvroRecord(name=name, fields=fields), *(field.type for field in fields))

    def _field(self, given: object, namespace: str, path: str, depth: int) -> tree.AvroField:
        if not isinstance(given, Mapping) or not isinstance(given.get("name"), str) or not given["name"]:
            raise AvroSchemaError(f"{_shown(given)} as a field{_at(path)}", 'a field has a "name" and a "type"')
        inner = f"{path}.{given['name']}" if path else given["name"]
        if "type" not in given:
            raise AvroSchemaError(f"field `{inner}` without a type", 'a field has a "name" and a "type"')
        return tree.AvroField(
            name=given["name"],
            type=self._type(given["type"], namespace=namespace, path=inner, depth=depth + 1),
            aliases=_texts(given.get("aliases", []), f"the aliases of field `{inner}`"),
            default=json.dumps(given["default"]) if "default" in given else None,
        )

    def _enum(self, given: Mapping[str, Any], namespace: str, path: str) -> tree.AvroType:
        name = self._begin(given, namespace, path)
        symbols = _texts(given.get("symbols"), f"the symbols of enum `{name.full}`")
        default = given.get("default")
        if not symbols or len(set(symbols)) < len(symbols) or (default is not None and default not in symbols):
            raise AvroSchemaError(
                f"enum `{name.full}` of {_shown(list(symbols))} with default {_shown(default)}",
                "symbols must be unique, and the default must be one of them",
            )
        self._open.pop()
        return self._named(name, tree.Enum(name=name, symbols=symbols, default=default))

    def _fixed(self, given: Mapping[str, Any], namespace: str, path: str) -> tree.AvroType:
        name = self._begin(given, namespace, path)
        size = given.get("size")
        if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size <= _LARGEST_FIXED:
            raise AvroSchemaError(f"fixed `{name.full}` of size {_shown(size)}", "its size is a number of bytes")
        self._open.pop()
        return self._named(name, tree.Fixed(name=name, size=size, logical=_logical(given, "fixed", size)))

    def _collection(self, kind: str, given: Mapping[str, Any], namespace: str, path: str, depth: int) -> tree.AvroType:
        part = "items" if kind == "array" else "values"
        if part not in given:
            raise AvroSchemaError(f"type {kind} without {part}{_at(path)}", f'give it "{part}"')
        inner = self._type(given[part], namespace=namespace, path=f"{path}[]", depth=depth + 1)
        return self._made(tree.Array(items=inner) if kind == "array" else tree.AvroMap(values=inner), inner)

    def _begin(self, given: Mapping[str, Any], namespace: str, path: str) -> tree.Name:
        """Return the name of a type, and mark it as open until it is fully parsed."""
        name = given.get("name")
        if not isinstance(name, str) or not name or name in PRIMITIVES:
            raise AvroSchemaError(f"{_shown(name)} as the name of a {given['type']}{_at(path)}", "give it a name")
        space = given.get("namespace", namespace)
        full = _full(name, space if isinstance(space, str) else "")
        if full in self._known or full in self._open:
            raise AvroSchemaError(f"two types named `{full}`", "define it once, and refer to it by name")
        self._open.append(full)
        home = full.rpartition(".")[0]
        aliases = _texts(given.get("aliases", []), f"the aliases of `{full}`")
        return tree.Name(full=full, aliases=tuple(_full(alias, home) for alias in aliases))

    def _named(self, name: tree.Name, made: tree.AvroType, *parts: tree.AvroType) -> tree.AvroType:
        self._known[name.full] = made
        return self._made(made, *parts)

    def _made(self, made: tree.AvroType, *parts: tree.AvroType) -> tree.AvroType:
        """Check the depth and size of a new type, including everything it refers to, and return it."""
        extents = [self._extent[id(part)] for part in parts]
        depth = 1 + max((depth for depth, _ in extents), default=0)
        size = 1 + sum(size for _, size in extents)
        if depth > _DEEPEST + 1:
            raise _too_deep()
        if size > _MOST_TYPES:
            raise AvroSchemaError(f"more than {_MOST_TYPES} nested types", "declare fewer fields")
        self._extent[id(made)] = (depth, size)
        return made


def _too_deep() -> AvroSchemaError:
    return AvroSchemaError(f"more than {_DEEPEST} levels of nested types", "declare fewer levels")


def _full(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _union_kind(branch: tree.AvroType) -> str:
    """Return the kind of a branch, which must be unique in a union."""
    match branch:
        case tree.Primitive(kind=kind):
            return kind
        case tree.Array() | tree.AvroMap() | tree.AvroUnion():
            return type(branch).__name__.removeprefix("Avro").lower()
        case _:
            return branch.name.full


def _logical(given: Mapping[str, Any], kind: str, size: int = 0) -> tree.Logical | None:
    """Return the logical type, or None if there is none or it does not fit: Avro ignores invalid ones."""
    word = given.get("logicalType")
    if not isinstance(word, str):
        return None
    if word == "decimal" and kind in {"bytes", "fixed"}:
        return _decimal(given, size if kind == "fixed" else None)
    if kind == "fixed":
        return tree.Logical(kind=word) if word == "uuid" and size == _UUID_BYTES else None
    return tree.Logical(kind=word) if kind in _LOGICAL.get(word, ()) else None


def _decimal(given: Mapping[str, Any], size: int | None) -> tree.Logical | None:
    precision, scale = given.get("precision"), given.get("scale", 0)
    if type(precision) is not int or type(scale) is not int or not 0 <= scale <= precision or precision < 1:
        return None
    if size is not None and size <= _ANY_DECIMAL_BYTES and precision > len(str(2 ** max(8 * size - 1, 0) - 1)) - 1:
        return None
    return tree.Logical(kind="decimal", precision=precision, scale=scale)


def _texts(given: object, what: str) -> tuple[str, ...]:
    if not isinstance(given, list | tuple) or not all(isinstance(each, str) and each for each in given):
        raise AvroSchemaError(f"{_shown(given)} as {what}", "write a list of names")
    return tuple(given)


def _shown(given: object) -> str:
    return f"{json.dumps(given, default=str):.80}"


def _at(path: str) -> str:
    return f" in field `{path}`" if path else ""


def _of(path: str) -> str:
    return f" of field `{path}`" if path else ""

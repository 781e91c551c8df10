"""Defaults of Avro fields, encoded as Avro so that they are read like any other value."""

from __future__ import annotations

import json
import struct
from typing import Any, Final

from slackwater.formats.avro import schema as tree

_FLOATS: Final = {"float": "<f", "double": "<d"}
_BITS: Final = {"int": 31, "long": 63}


class UnfitDefaultError(Exception):
    """A default that is not a valid value of its field's type."""


def default_bytes(field: tree.AvroField) -> bytes:
    """Return a field's default as a writer would have encoded it."""
    assert field.default is not None
    return _written(field.type, json.loads(field.default))


def _written(  # noqa: C901, PLR0911  one return per type
    kind: tree.AvroType,
    value: Any,  # noqa: ANN401  any JSON
) -> bytes:
    match kind, value:
        case tree.Primitive(kind="null"), None:
            return b""
        case tree.Primitive(kind="boolean"), bool():
            return bytes([value])
        case tree.Primitive(kind="int" | "long" as word), int() if (
            type(value) is int and -(1 << _BITS[word]) <= value < 1 << _BITS[word]
        ):
            return _long(value)
        case tree.Primitive(kind="float" | "double" as word), int() | float() if not isinstance(value, bool):
            return _float(word, value)
        case tree.Primitive(kind="string"), str():
            return _counted(value.encode("utf-8", "surrogatepass"))
        case tree.Primitive(kind="bytes"), str() if _is_latin(value):
            return _counted(value.encode("latin-1"))
        case tree.Fixed(size=size), str() if _is_latin(value) and len(value) == size:
            return value.encode("latin-1")
        case tree.Enum(symbols=symbols), str() if value in symbols:
            return _long(symbols.index(value))
        case tree.Array(items=items), list():
            return _blocks([_written(items, each) for each in value])
        case tree.AvroMap(values=values), dict():
            return _blocks(
                [_counted(key.encode("utf-8", "surrogatepass")) + _written(values, each) for key, each in value.items()]
            )
        case tree.AvroRecord(fields=fields), dict():
            return b"".join(_field(field, value) for field in fields)
        case tree.AvroUnion(branches=branches), _:
            return _branch(branches, value)
    raise UnfitDefaultError(f"{json.dumps(value):.60} is not a valid {kind}")


def _branch(branches: tuple[tree.AvroType, ...], value: Any) -> bytes:  # noqa: ANN401  any JSON
    """Encode a value as the first branch that it fits."""
    for place, branch in enumerate(branches):
        try:
            return _long(place) + _written(branch, value)
        except UnfitDefaultError:
            continue
    raise UnfitDefaultError(f"{json.dumps(value):.60} is not a valid {tree.AvroUnion(branches=branches)}")


def _field(field: tree.AvroField, value: dict[str, Any]) -> bytes:
    if field.name in value:
        return _written(field.type, value[field.name])
    if field.default is None:
        raise UnfitDefaultError(f"{json.dumps(value):.60} has no `{field.name}`")
    return default_bytes(field)


def _float(word: str, value: float) -> bytes:
    try:
        return struct.pack(_FLOATS[word], value)
    except (OverflowError, struct.error):
        raise UnfitDefaultError(f"{value!r:.60} is not a valid {word}") from None


def _long(value: int) -> bytes:
    rest = (value << 1) ^ (value >> 63)
    written = bytearray()
    while rest > 0x7F:  # noqa: PLR2004  seven bits per byte
        written.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*written, rest])


def _counted(value: bytes) -> bytes:
    return _long(len(value)) + value


def _blocks(items: list[bytes]) -> bytes:
    return (_long(len(items)) + b"".join(items) if items else b"") + _long(0)


def _is_latin(value: str) -> bool:
    return all(ord(letter) <= 0xFF for letter in value)  # noqa: PLR2004  one byte per character

"""The plan for reading a message: the wire type, the column and the type of each field."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import polars as pl
from google.protobuf.descriptor import FieldDescriptor  # type: ignore[import-untyped]  # no stubs

from slackwater.base.errors import refuse
from slackwater.formats.ddl import TIMESTAMP, map_type

VARINT: Final = 0
FIXED64: Final = 1
LENGTH: Final = 2
GROUP: Final = 3
GROUP_END: Final = 4
FIXED32: Final = 5

MIN_SECONDS: Final = -62_135_596_800  # 0001-01-01T00:00:00Z
MAX_SECONDS: Final = 253_402_300_799  # 9999-12-31T23:59:59Z
MAX_NANOS: Final = 999_999_999
MAX_DURATION_SECONDS: Final = 315_576_000_000  # as in google/protobuf/duration.proto

_KINDS: Final[dict[int, tuple[str, int, pl.DataType]]] = {
    FieldDescriptor.TYPE_DOUBLE: ("double", FIXED64, pl.Float64()),
    FieldDescriptor.TYPE_FLOAT: ("float", FIXED32, pl.Float32()),
    FieldDescriptor.TYPE_INT64: ("int64", VARINT, pl.Int64()),
    FieldDescriptor.TYPE_UINT64: ("uint64", VARINT, pl.UInt64()),
    FieldDescriptor.TYPE_INT32: ("int32", VARINT, pl.Int32()),
    FieldDescriptor.TYPE_FIXED64: ("uint64", FIXED64, pl.UInt64()),
    FieldDescriptor.TYPE_FIXED32: ("uint32", FIXED32, pl.UInt32()),
    FieldDescriptor.TYPE_BOOL: ("bool", VARINT, pl.Boolean()),
    FieldDescriptor.TYPE_STRING: ("string", LENGTH, pl.String()),
    FieldDescriptor.TYPE_BYTES: ("bytes", LENGTH, pl.Binary()),
    FieldDescriptor.TYPE_UINT32: ("uint32", VARINT, pl.UInt32()),
    FieldDescriptor.TYPE_ENUM: ("enum", VARINT, pl.String()),
    FieldDescriptor.TYPE_SFIXED32: ("int32", FIXED32, pl.Int32()),
    FieldDescriptor.TYPE_SFIXED64: ("int64", FIXED64, pl.Int64()),
    FieldDescriptor.TYPE_SINT32: ("sint32", VARINT, pl.Int32()),
    FieldDescriptor.TYPE_SINT64: ("sint64", VARINT, pl.Int64()),
}
_WRAPPERS: Final = frozenset(
    f"google.protobuf.{kind}Value"
    for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
_SECONDS_AND_NANOS: Final = [(1, FieldDescriptor.TYPE_INT64), (2, FieldDescriptor.TYPE_INT32)]


@dataclass(frozen=True, kw_only=True)
class FieldPlan:
    """A field: its number in the message, its encoding, and its column."""

    name: str
    number: int
    kind: str
    wire: int
    """The wire type of one value; a repeated number may also be packed (`LENGTH`)."""
    value_type: pl.DataType
    """The type of one value."""
    is_list: bool = False
    is_map: bool = False
    has_presence: bool = False
    """Whether an absent field is null rather than its default value."""
    is_required: bool = False
    rivals: tuple[int, ...] = ()
    """The numbers of the other members of its oneof."""
    message: MessagePlan | None = None
    labels: dict[int, str] = field(default_factory=dict)
    """The names of an enum's values, by number."""

    @property
    def dtype(self) -> pl.DataType:
        """The type of the field's column."""
        if self.is_map:
            return map_type(self.entry[1].value_type)
        return pl.List(self.value_type) if self.is_list else self.value_type

    @property
    def entry(self) -> tuple[FieldPlan, ...]:
        """The fields of a map's entries: key and value."""
        assert self.message is not None
        return self.message.fields


@dataclass(frozen=True, kw_only=True)
class MessagePlan:
    """A message: its fields in declaration order, and the shape of its column.

    `shape` is "struct" for most messages; "timestamp", "duration" and "wrapper" are Google's well-known types; "empty"
    is a message without fields, which is either present or not.
    """

    name: str
    fields: tuple[FieldPlan, ...]
    shape: str = "struct"

    @cached_property
    def by_number(self) -> dict[int, FieldPlan]:
        """The fields by their numbers."""
        return {each.number: each for each in self.fields}

    @property
    def dtype(self) -> pl.DataType:
        """The type of a column of such messages."""
        if self.shape == "struct":
            return pl.Struct({each.name: each.dtype for each in self.fields})
        if self.shape == "wrapper":
            return self.fields[0].dtype
        return {"timestamp": TIMESTAMP, "duration": pl.Int64(), "empty": pl.Boolean()}[self.shape]


def plan_message(descriptor: Any) -> MessagePlan:  # noqa: ANN401  google.protobuf has no types
    """Return the plan for a record's message; refuse fields that cannot be columns."""
    return _plan(descriptor, within=(), shape="struct")


def _plan(descriptor: Any, *, within: tuple[str, ...], shape: str) -> MessagePlan:  # noqa: ANN401  protobuf has no types
    if descriptor.full_name in within:
        raise refuse(
            "PROTOBUF_RECURSIVE", message=descriptor.full_name, way=" → ".join([*within, descriptor.full_name])
        )
    inner = (*within, descriptor.full_name)
    fields = tuple(_field(each, within=inner) for each in descriptor.fields)
    return MessagePlan(name=descriptor.full_name, fields=fields, shape=shape)


def _field(given: Any, *, within: tuple[str, ...]) -> FieldPlan:  # noqa: ANN401  google.protobuf has no types
    in_entry = given.containing_type.GetOptions().map_entry
    oneof = given.containing_oneof
    facts: dict[str, Any] = {
        "name": given.name,
        "number": given.number,
        "has_presence": given.has_presence and not in_entry,
        "is_list": given.is_repeated,
        "is_required": given.is_required,
        "rivals": tuple(each.number for each in (oneof.fields if oneof else ()) if each.number != given.number),
    }
    if given.type not in _KINDS:
        return _message_field(given, facts, within=within)
    kind, wire, dtype = _KINDS[given.type]
    labels: dict[int, str] = {}
    for value in given.enum_type.values if kind == "enum" else ():
        labels.setdefault(value.number, value.name)
    return FieldPlan(**facts, kind=kind, wire=wire, value_type=dtype, labels=labels)


def _message_field(given: Any, facts: dict[str, Any], *, within: tuple[str, ...]) -> FieldPlan:  # noqa: ANN401  protobuf has no types
    message = _plan(given.message_type, within=within, shape=_shape(given.message_type))
    wire = GROUP if given.type == FieldDescriptor.TYPE_GROUP else LENGTH
    if given.message_type.GetOptions().map_entry:
        key = message.fields[0]
        if key.kind != "string":
            raise refuse("PROTOBUF_MAP_KEY", field=given.full_name, got=f"map<{key.kind}, …>")
        facts |= {"is_list": False, "is_map": True}
    return FieldPlan(**facts, kind="message", wire=wire, value_type=message.dtype, message=message)


def _shape(descriptor: Any) -> str:  # noqa: ANN401  google.protobuf has no types
    name = descriptor.full_name
    if name in _WRAPPERS and [each.number for each in descriptor.fields] == [1]:
        return "wrapper"
    if [(each.number, each.type) for each in descriptor.fields] == _SECONDS_AND_NANOS:
        return {"google.protobuf.Timestamp": "timestamp", "google.protobuf.Duration": "duration"}.get(name, "struct")
    return "struct" if descriptor.fields else "empty"

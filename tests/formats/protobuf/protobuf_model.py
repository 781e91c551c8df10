"""Messages made without protoc, and what google.protobuf itself reads in a record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.protobuf import (  # type: ignore[import-untyped]
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    empty_pb2,
    message_factory,
    struct_pb2,
    timestamp_pb2,
    unknown_fields,
    wrappers_pb2,
)
from google.protobuf.message import Message  # type: ignore[import-untyped]

FIELD = descriptor_pb2.FieldDescriptorProto
SCALARS = {
    "double": FIELD.TYPE_DOUBLE, "float": FIELD.TYPE_FLOAT, "int64": FIELD.TYPE_INT64, "uint64": FIELD.TYPE_UINT64,
    "int32": FIELD.TYPE_INT32, "fixed64": FIELD.TYPE_FIXED64, "fixed32": FIELD.TYPE_FIXED32, "bool": FIELD.TYPE_BOOL,
    "string": FIELD.TYPE_STRING, "bytes": FIELD.TYPE_BYTES, "uint32": FIELD.TYPE_UINT32,
    "sfixed32": FIELD.TYPE_SFIXED32, "sfixed64": FIELD.TYPE_SFIXED64, "sint32": FIELD.TYPE_SINT32,
    "sint64": FIELD.TYPE_SINT64,
}  # fmt: skip
GOOGLE = (duration_pb2, empty_pb2, struct_pb2, timestamp_pb2, wrappers_pb2)


def file_of(source: str, *, syntax: str = "proto3", name: str = "t.proto") -> descriptor_pb2.FileDescriptorProto:
    """Return the file of a tiny .proto text: `message A {`, `enum B {`, fields, `oneof c {`, `}`; a line each.

    Types are scalars, names of the same file (`.t.A`), or `.google.protobuf.X`.
    """
    file = descriptor_pb2.FileDescriptorProto(name=name, package="t", syntax=syntax)
    file.dependency.extend(module.DESCRIPTOR.name for module in GOOGLE)
    within: list[Any] = [file]
    oneof: int | None = None
    for line in filter(None, (line.strip().rstrip(";") for line in source.splitlines())):
        words = line.split()
        if words[0] == "message":
            outer = within[-1]
            within.append((outer.message_type if outer is file else outer.nested_type).add(name=words[1]))
        elif words[0] == "enum":
            within.append(file.enum_type.add(name=words[1]))
        elif words[0] == "oneof":
            oneof = len(within[-1].oneof_decl)
            within[-1].oneof_decl.add(name=words[1])
        elif words[0] == "}":
            if oneof is None:
                within.pop()
            oneof = None
        elif isinstance(within[-1], descriptor_pb2.EnumDescriptorProto):
            within[-1].value.add(name=words[0], number=int(words[2]))
        else:
            _add_field(within[-1], words, oneof)
    for message in file.message_type:
        _presence_of_optional(message)
    return file


def _add_field(message: Any, words: Sequence[str], oneof: int | None) -> None:  # noqa: ANN401
    labels = {"optional": FIELD.LABEL_OPTIONAL, "repeated": FIELD.LABEL_REPEATED, "required": FIELD.LABEL_REQUIRED}
    label = words[0] if words[0] in labels else ""
    kind, name, _, number, *options = words[1:] if label else words
    field = message.field.add(name=name, number=int(number), label=labels[label or "optional"])
    field.proto3_optional = label == "optional" and "proto3" in options
    if oneof is not None:
        field.oneof_index = oneof
    if options and options[0] == "unpacked":
        field.options.packed = False
    if kind.startswith("map<"):
        _make_map(message, field, *kind[4:-1].split(","))
    else:
        _type(field, kind, is_group="group" in options)


def _make_map(message: Any, field: Any, key: str, value: str) -> None:  # noqa: ANN401
    entry = message.nested_type.add(name=field.name.capitalize() + "Entry")
    entry.options.map_entry = True
    _type(entry.field.add(name="key", number=1, label=FIELD.LABEL_OPTIONAL), key)
    _type(entry.field.add(name="value", number=2, label=FIELD.LABEL_OPTIONAL), value)
    field.label = FIELD.LABEL_REPEATED
    field.type, field.type_name = FIELD.TYPE_MESSAGE, f".t.{message.name}.{entry.name}"


def _type(field: Any, kind: str, *, is_group: bool = False) -> None:  # noqa: ANN401
    if kind in SCALARS:
        field.type = SCALARS[kind]
    elif kind.startswith("enum:"):
        field.type, field.type_name = FIELD.TYPE_ENUM, kind[5:]
    else:
        field.type, field.type_name = FIELD.TYPE_GROUP if is_group else FIELD.TYPE_MESSAGE, kind


def _presence_of_optional(message: Any) -> None:  # noqa: ANN401
    """Give each `optional` field of proto3 the oneof of its own that stands for it."""
    for field in message.field:
        if field.proto3_optional:
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{field.name}")
    for inner in message.nested_type:
        _presence_of_optional(inner)


def message_class(source: str, message: str = "t.M", *, syntax: str = "proto3") -> type[Message]:
    """Return the class of a message of a tiny .proto text."""
    pool = descriptor_pool.DescriptorPool()
    for module in GOOGLE:
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    pool.Add(file_of(source, syntax=syntax))
    found: type[Message] = message_factory.GetMessageClass(pool.FindMessageTypeByName(message))
    return found


def row_of(message: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return what columns hold for a message that google.protobuf has read; maps are dictionaries."""
    return {field.name: _column(message, field) for field in message.DESCRIPTOR.fields}


def _column(message: Any, field: Any) -> Any:  # noqa: ANN401
    given = getattr(message, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        inner = field.message_type.fields_by_name["value"]
        return {key: _value(inner, given[key]) for key in given}
    if field.is_repeated:
        return [_value(field, item) for item in given]
    in_entry = field.containing_type.GetOptions().map_entry
    if field.has_presence and not in_entry and not message.HasField(field.name):
        return None
    return _value(field, given)


def _value(field: Any, value: Any) -> Any:  # noqa: ANN401
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return str(value) if known is None else known.name
    if field.message_type is None:
        return value
    name = field.message_type.full_name
    if name == "google.protobuf.Timestamp":
        return (value.seconds, value.nanos // 1000)
    if name == "google.protobuf.Duration":
        millis = abs(value.seconds) * 1000 + abs(value.nanos) // 10**6
        return -millis if min(value.seconds, value.nanos) < 0 else millis
    if name.startswith("google.protobuf.") and name.endswith("Value"):
        return value.value
    return row_of(value) if field.message_type.fields else True


def has_misfit(message: Any) -> bool:  # noqa: ANN401
    """Return whether a declared field came with a wire type that it cannot have, at any level."""
    if {unknown.field_number for unknown in unknown_fields.UnknownFieldSet(message)} & set(
        message.DESCRIPTOR.fields_by_number
    ):
        return True
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            inner = list(value.values()) if field.message_type.fields_by_name["value"].message_type else []
        else:
            inner = list(value) if field.is_repeated else [value]
        if any(has_misfit(each) for each in inner):
            return True
    return False

"""What a message's columns are, where its description may come from, and what is refused."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from google.protobuf import descriptor_pb2, struct_pb2, timestamp_pb2  # type: ignore[import-untyped]

from slackwater.base.errors import DefinitionError
from slackwater.formats.ddl import TIMESTAMP, map_type
from slackwater.formats.protobuf import ProtobufDecoder, protobuf
from tests.formats.protobuf.protobuf_model import GOOGLE, SCALARS, file_of, message_class

ORDERS = "message Line {\n string sku = 1\n}\nmessage M {\n int64 id = 1\n repeated .t.Line lines = 2\n}"


def descriptor_set(*files: descriptor_pb2.FileDescriptorProto, with_google: bool = True) -> bytes:
    known = [descriptor_pb2.FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb) for module in GOOGLE]
    content: bytes = descriptor_pb2.FileDescriptorSet(
        file=[*(known if with_google else []), *files]
    ).SerializeToString()
    return content


def refusal(**arguments: object) -> DefinitionError:
    with pytest.raises(DefinitionError) as caught:
        protobuf(**arguments)  # type: ignore[arg-type]
    return caught.value


def test_every_scalar_has_its_type() -> None:
    lines = [f"{kind} f_{kind} = {number}" for number, kind in enumerate(SCALARS, start=1)]
    schema = protobuf(message_class("message M {\n" + "\n".join(lines) + "\n}")).schema
    assert {name.removeprefix("f_"): dtype for name, dtype in schema.items()} == {
        "double": pl.Float64,
        "float": pl.Float32,
        "int64": pl.Int64,
        "uint64": pl.UInt64,
        "int32": pl.Int32,
        "fixed64": pl.UInt64,
        "fixed32": pl.UInt32,
        "bool": pl.Boolean,
        "string": pl.String,
        "bytes": pl.Binary,
        "uint32": pl.UInt32,
        "sfixed32": pl.Int32,
        "sfixed64": pl.Int64,
        "sint32": pl.Int32,
        "sint64": pl.Int64,
    }


def test_messages_lists_maps_and_googles_own_types_have_theirs() -> None:
    made = message_class(
        """
        enum E {
          ZERO = 0
        }
        message I {
          int32 n = 1
          repeated enum:.t.E e = 2
        }
        message M {
          enum:.t.E e = 1
          .t.I i = 2
          repeated .t.I l = 3
          map<string,.t.I> m = 4
          .google.protobuf.Timestamp t = 5
          .google.protobuf.Duration d = 6
          .google.protobuf.UInt64Value w = 7
          .google.protobuf.Empty x = 8
          repeated .google.protobuf.Timestamp ts = 9
        }
        """
    )
    inner = pl.Struct({"n": pl.Int32, "e": pl.List(pl.String)})
    assert protobuf(made).schema == {
        "e": pl.String,
        "i": inner,
        "l": pl.List(inner),
        "m": map_type(inner),
        "t": TIMESTAMP,
        "d": pl.Int64,
        "w": pl.UInt64,
        "x": pl.Boolean,
        "ts": pl.List(TIMESTAMP),
    }


def test_a_message_is_its_fields_even_if_it_is_one_of_googles_own() -> None:
    assert protobuf(timestamp_pb2.Timestamp).schema == {"seconds": pl.Int64, "nanos": pl.Int32}


def test_class_descriptor_bytes_and_file_describe_the_same(tmp_path: Path) -> None:
    made = message_class(ORDERS)
    content = descriptor_set(file_of(ORDERS))
    path = tmp_path / "orders.desc"
    path.write_bytes(content)
    given = [
        protobuf(made),
        protobuf(made.DESCRIPTOR),
        protobuf(descriptor_set=content, name="t.M"),
        protobuf(descriptor_set=str(path), name="t.M"),
        protobuf(descriptor_set=path, name="t.M"),
    ]
    record = made(id=1, lines=[{"sku": "a"}]).SerializeToString()
    for form in given:
        assert form.schema == given[0].schema
        assert ProtobufDecoder(form).decode(pl.Series([record])).frame.rows() == [(1, [{"sku": "a"}])]


def test_the_files_of_a_set_may_come_in_any_order_and_googles_own_may_be_left_out() -> None:
    lines = file_of("message Line {\n .google.protobuf.Timestamp at = 1\n}", name="lines.proto")
    orders = file_of("message M {\n .t.Line line = 1\n}", name="orders.proto")
    orders.dependency.append("lines.proto")
    for file in (lines, orders):
        del file.dependency[: len(GOOGLE)]
    lines.dependency.append("google/protobuf/timestamp.proto")
    form = protobuf(descriptor_set=descriptor_set(orders, lines, with_google=False), name="t.M")
    assert form.schema == {"line": pl.Struct({"at": TIMESTAMP})}


@pytest.mark.parametrize(
    "arguments, got",
    [
        ({}, "got nothing"),
        ({"message": "orders.proto"}, "got message='orders.proto'"),
        ({"message": int}, "got message=<class 'int'>"),
        ({"name": "t.M"}, "got name='t.M'"),
        ({"descriptor_set": b""}, "got descriptor_set=b''"),
        ({"message": timestamp_pb2.Timestamp, "name": "t.M"}, "name='t.M'"),
    ],
)
def test_what_describes_no_message_is_refused(arguments: dict[str, object], got: str) -> None:
    error = refusal(**arguments)
    assert error.code == "PROTOBUF_MESSAGE"
    assert got in error.message
    assert "protobuf(orders_pb2.Order)" in error.message


def test_a_descriptor_set_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    imports_more = file_of(ORDERS)
    imports_more.dependency.append("more.proto")
    itself = file_of(ORDERS)
    itself.dependency.append("t.proto")
    unknown_type = file_of("message M {\n .t.Nowhere a = 1\n}")
    for given, words in [
        (b"\xff\xff", "Error parsing message"),
        (tmp_path / "missing.desc", "No such file"),
        (descriptor_set(imports_more), "t.proto imports more.proto, which is not in the set"),
        (descriptor_set(file_of(ORDERS), with_google=False), "which is not in the set"),
        (descriptor_set(itself), "t.proto imports itself"),
        (descriptor_set(unknown_type), "couldn't resolve name '.t.Nowhere'"),
        (7, "(7)"),
    ]:
        error = refusal(descriptor_set=given, name="t.M")
        assert error.code == "PROTOBUF_DESCRIPTOR_SET"
        assert words in error.message
        assert "protoc --include_imports" in error.message


def test_a_name_that_is_not_in_the_set_is_refused_with_the_nearest() -> None:
    error = refusal(descriptor_set=descriptor_set(file_of(ORDERS)), name="t.Lines")
    assert error.code == "PROTOBUF_NAME"
    assert "got `t.Lines` (did you mean `t.Line`?)" in error.message


@pytest.mark.parametrize(
    "message, way",
    [
        (message_class("message M {\n .t.M next = 1\n}"), "t.M → t.M"),
        (message_class("message A {\n .t.M m = 1\n}\nmessage M {\n repeated .t.A a = 1\n}"), "t.M → t.A → t.M"),
        (struct_pb2.Struct, "google.protobuf.Value"),
    ],
)
def test_a_message_that_contains_itself_is_refused(message: object, way: str) -> None:
    error = refusal(message=message)
    assert error.code == "PROTOBUF_RECURSIVE"
    assert way in error.message
    assert "without this field" in error.message


def test_a_map_whose_keys_are_no_strings_is_refused() -> None:
    error = refusal(message=message_class("message M {\n map<int32,string> a = 1\n}"))
    assert error.code == "PROTOBUF_MAP_KEY"
    assert "got map<int32, …> in `t.M.a`" in error.message


@pytest.mark.parametrize(
    "source, code",
    [
        ("message M {\n}", "BAD_SCHEMA"),
        ("message M {\n int32 __a = 1\n}", "RESERVED_COLUMN"),
        ("message M {\n int32 ab = 1\n int32 AB = 2\n}", "DUPLICATE_COLUMN"),
    ],
)
def test_fields_that_can_be_no_columns_are_refused(source: str, code: str) -> None:
    assert refusal(message=message_class(source, syntax="proto2")).code == code

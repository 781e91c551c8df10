"""Any message google.protobuf writes is read as google.protobuf reads it; any other bytes are flaws, and no more."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

import polars as pl
import pytest
from google.protobuf.message import DecodeError, Message  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from slackwater.formats.base import Flaw
from slackwater.formats.protobuf import ProtobufDecoder, protobuf
from slackwater.formats.protobuf import scan as protobuf_scan
from slackwater.formats.protobuf.plan import plan_message
from slackwater.formats.protobuf.records import read_message
from tests.formats.protobuf.protobuf_model import SCALARS, has_misfit, message_class, row_of
from tests.formats.spoiling import cut, drop, flip

SHARED = """
enum Color {
  RED = 0
  BLUE = 2
  BELOW = -1
}
message Leaf {
  sint64 n = 1
  string s = 2
  repeated fixed32 l = 3
}
message Inner {
  int32 a = 1
  optional string b = 2 proto3
  repeated sint32 c = 3
  .t.Leaf leaf = 4
  repeated .t.Leaf leaves = 500
}
"""
RICH = (
    SHARED
    + """
message M {
  int64 id = 1
  string key = 2
  double value = 3
  float small = 4
  bool ok = 5
  optional int32 maybe = 6 proto3
  repeated int64 packed = 7
  repeated uint64 loose = 8 unpacked
  repeated double reals = 9
  repeated string tags = 10
  bytes raw = 11
  enum:.t.Color color = 12
  repeated enum:.t.Color colors = 13
  .t.Inner inner = 14
  repeated .t.Inner inners = 15
  map<string,int64> counts = 16
  map<string,.t.Inner> named = 17
  .google.protobuf.Timestamp at = 18
  .google.protobuf.Duration took = 19
  .google.protobuf.Int32Value wrapped = 20
  .google.protobuf.Empty nothing = 21
  oneof choice {
    int64 x = 22
    string y = 23
    .t.Inner z = 24
  }
  fixed64 far = 100000
}
"""
)
KINDS = [*SCALARS, "enum:.t.Color", ".t.Inner", ".t.Leaf", ".google.protobuf.Timestamp", ".google.protobuf.BytesValue",
         ".google.protobuf.Duration", ".google.protobuf.Empty"]  # fmt: skip
WHOLE = {
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
}
TYPES = {number: kind for kind, number in SCALARS.items()}


SEEDS = st.integers(0, 2**32).map(random.Random)
"""Dice: messages are thrown, not drawn, because a message is thousands of choices."""


def source_of(dice: random.Random) -> str:
    """Return a message of up to eight fields of any kind."""
    lines = ["message M {"]
    for at, number in enumerate(dice.sample([*range(1, 40), 3000, 500_000], dice.randrange(1, 9))):
        kind = dice.choice(KINDS)
        form = dice.choice(["", "optional", "repeated", "unpacked", "map"])
        if form == "map":
            lines.append(f"map<string,{kind}> f{at} = {number}")
        elif form == "unpacked" and kind in SCALARS and kind not in ("string", "bytes"):
            lines.append(f"repeated {kind} f{at} = {number} unpacked")
        else:
            label = {"repeated": "repeated ", "optional": "optional "}.get(form, "")
            lines.append(f"{label}{kind} f{at} = {number}" + (" proto3" if label == "optional " else ""))
    return SHARED + "\n".join([*lines, "}"])


def scalar(dice: random.Random, field: Any) -> Any:  # noqa: ANN401
    if field.enum_type is not None:
        return dice.choice([0, 2, -1, 7])
    kind = TYPES[field.type]
    if kind in ("double", "float"):
        return dice.choice([0.0, -0.0, 1.5, -1e30, math.inf, math.nan, float(dice.randrange(1000))])
    if kind == "bool":
        return dice.random() < 0.5
    if kind in ("string", "bytes"):
        text = "".join(dice.choice("ab é😀\x00") for _ in range(dice.choice([0, 1, 5, 20, 200])))
        return text if kind == "string" else text.encode()[:-1]
    least, most = WHOLE[kind.replace("sfixed", "int").replace("fixed", "uint").replace("sint", "int")]
    bits = dice.randrange(65)
    return dice.choice([least, most, 0, max(least, -1), max(least, min(most, dice.randrange(-(2**bits), 2**bits)))])


def fill(dice: random.Random, message: Any, *, depth: int = 0) -> None:  # noqa: ANN401
    """Set some of a message's fields."""
    name = message.DESCRIPTOR.full_name
    if name == "google.protobuf.Timestamp":
        message.seconds, message.nanos = dice.randint(-62135596800, 253402300799), dice.randint(0, 999999999)
    elif name == "google.protobuf.Duration":
        sign = dice.choice([-1, 1])
        message.seconds, message.nanos = sign * dice.randint(0, 315576000000), sign * dice.randint(0, 999999999)
    else:
        for field in message.DESCRIPTOR.fields:
            if dice.randrange(4 + depth) < 2:
                fill_field(dice, message, field, depth=depth)


def fill_field(dice: random.Random, message: Any, field: Any, *, depth: int) -> None:  # noqa: ANN401
    held = getattr(message, field.name)
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        value = inner.fields_by_name["value"]
        for key in dice.sample(["", "k", "key", "é"], dice.randrange(4)):
            if value.message_type is None:
                held[key] = scalar(dice, value)
            else:
                fill(dice, held[key], depth=depth + 1)
    elif field.is_repeated:
        for _ in range(dice.choice([0, 1, 2, 3, 40 if depth == 0 else 1])):
            if inner is None:
                held.append(scalar(dice, field))
            else:
                fill(dice, held.add(), depth=depth + 1)
    elif inner is not None:
        held.SetInParent()
        fill(dice, held, depth=depth + 1)
    else:
        setattr(message, field.name, scalar(dice, field))


UNKNOWN = [
    b"\xb8\x3f\x05", b"\xb9\x3f12345678", b"\xba\x3f\x03abc", b"\xbb\x3f\x08\x01\xbc\x3f", b"\xbd\x3f1234",
    b"\xbb\x3f\xc3\x3f\xc4\x3f\xbc\x3f",
]  # fmt: skip


def record_of(dice: random.Random, made: type[Message]) -> bytes:
    """Return a record: parts of messages one after the other, which is how messages are merged."""
    record = b""
    for _ in range(dice.choice([0, 1, 1, 1, 2, 3])):
        message = made()
        fill(dice, message)
        record += message.SerializeToString()
        if not dice.randrange(6):
            record += dice.choice(UNKNOWN)
    return record


def normal(value: Any) -> Any:  # noqa: ANN401
    """Return a column's value as the model has it: maps as dictionaries, times in parts, NaN comparable."""
    if isinstance(value, datetime):
        since = value - datetime(1970, 1, 1, tzinfo=UTC)
        return (since // timedelta(seconds=1), since.microseconds)
    if isinstance(value, list) and value and isinstance(value[0], dict) and list(value[0]) == ["key", "value"]:
        return {entry["key"]: normal(entry["value"]) for entry in value}
    if isinstance(value, list | tuple):
        return type(value)(map(normal, value))
    if isinstance(value, dict):
        return {key: normal(inner) for key, inner in value.items()}
    return "NaN" if value != value else value  # noqa: PLR0124  only NaN is not itself


def same(row: dict[str, Any], message: Any) -> bool:  # noqa: ANN401
    """Return whether a row is what google.protobuf has read; an empty list and an empty map look alike."""
    return bool(_loose(normal(row)) == _loose(normal(row_of(message))))


def _loose(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, dict):
        return {key: _loose(inner) for key, inner in value.items()} or []
    return [_loose(item) for item in value] if isinstance(value, list) else value


def check(made: type[Message], column: list[bytes]) -> None:
    """Compare the whole column with google.protobuf and with the reader of single records."""
    form = protobuf(made)
    decoded = ProtobufDecoder(form).decode(pl.Series(column, dtype=pl.Binary))
    assert decoded.frame.schema == form.schema
    reasons = dict(zip(decoded.bad["index"], decoded.bad["reason"], strict=True))
    words = dict(zip(decoded.bad["index"], decoded.bad["message"], strict=True))
    plan = plan_message(form.described.descriptor())
    # What google.protobuf no longer shows: entries of maps, and a member of a oneof that gave way to another.
    hidden = [f"`{field.name}." for field in plan.fields if field.is_map or field.rivals]
    for at, (record, row) in enumerate(zip(column, decoded.frame.iter_rows(named=True), strict=True)):
        alone = read_message(plan, record, 0)
        if at in reasons:
            assert isinstance(alone, Flaw), record
            assert (alone.reason, alone.message) == (reasons[at], words[at])
            assert set(row.values()) == {None}
        else:
            assert not isinstance(alone, Flaw), (record, alone)
            assert normal(list(alone)) == normal(list(row.values())), record
        try:
            message = made.FromString(record)
        except DecodeError:
            assert at in reasons, record
            continue
        if at not in reasons:
            # google.protobuf puts a map's entry aside whole if it has a field that is not declared.
            assert same(row, message) or has_misfit(message), record
        elif reasons[at] == "wrong_type":
            assert has_misfit(message) or any(name in words[at] for name in hidden), (record, words[at])
        else:
            # google.protobuf does not look at the field numbers inside of a group that is not declared.
            assert reasons[at] == "out_of_range" or "no field has the tag" in words[at], (record, words[at])


@given(dice=SEEDS)
def test_any_message_of_any_type_is_read_as_google_reads_it(dice: random.Random) -> None:
    made = message_class(source_of(dice))
    check(made, [record_of(dice, made) for _ in range(dice.choice([1, 3, 40]))])


RICH_MESSAGE = message_class(RICH)


def other_byte(dice: random.Random, record: bytes) -> bytes:
    at = dice.randrange(len(record))
    return record[:at] + bytes([dice.choice([0, 1, 0x7F, 0x80, 0xFF, dice.randrange(256)])]) + record[at + 1 :]


def insert(dice: random.Random, record: bytes) -> bytes:
    at = dice.randrange(len(record) + 1)
    evil = [
        b"\xff" * 11,
        b"\x80" * 9 + b"\x01",
        b"\x0b",
        b"\x0c",
        b"\x0e",
        b"\x00",
        b"\xff",
        bytes([dice.randrange(256)]),
    ]
    return record[:at] + dice.choice(evil) + record[at:]


SPOIL: list[Callable[[random.Random, bytes], bytes]] = [cut, flip, other_byte, insert, drop]


@pytest.mark.parametrize("fewest", [1, 16], ids=["together even if few", "together if many"])
@given(dice=SEEDS)
def test_spoiled_records_are_flaws_or_what_google_reads_and_their_neighbours_are_unharmed(
    fewest: int, dice: random.Random
) -> None:
    good = [record_of(dice, RICH_MESSAGE) for _ in range(4)]
    spoiled = [dice.choice(SPOIL)(dice, dice.choice(good) or b"\x08") for _ in range(12)]
    mixed = [record for record in [*good, *spoiled] for _ in range(dice.choice([1, 1, 3]))]
    dice.shuffle(mixed)
    with mock.patch.object(protobuf_scan, "FEWEST", fewest), mock.patch.object(protobuf_scan, "_SPARE_STEPS", -40):
        check(RICH_MESSAGE, mixed)


@given(column=st.lists(st.binary(max_size=30), max_size=30))
def test_noise_is_read_as_google_reads_it_or_reported(column: list[bytes]) -> None:
    check(RICH_MESSAGE, column)


def test_every_beginning_of_a_record_and_every_flipped_bit_is_read_as_google_reads_it() -> None:
    message = RICH_MESSAGE(
        id=-5, key="clé", value=1.5, maybe=0, packed=[1, 300, -1], loose=[7, 2**63], tags=["a", ""], raw=b"\xff",
        inner={"a": 1, "b": "", "c": [-1], "leaf": {"n": -3, "l": [1, 2]}, "leaves": [{}, {"s": "x"}]},
        counts={"k": 1}, named={"n": {"a": 2}}, took={"seconds": 1, "nanos": 5}, wrapped={"value": 3}, y="why", far=9,
    )  # fmt: skip
    record = message.SerializeToString()
    beginnings = [record[:end] for end in range(len(record) + 1)]
    flipped = [
        record[:at] + bytes([record[at] ^ 1 << bit]) + record[at + 1 :] for at in range(len(record)) for bit in range(8)
    ]
    check(RICH_MESSAGE, beginnings + flipped + [record])


def test_a_writer_with_more_fields_and_one_with_fewer_are_read_with_one_description() -> None:
    older = message_class("message M {\n int64 id = 1\n string gone = 9\n}")
    newer = message_class(
        "message More {\n string a = 1\n}\nmessage M {\n int64 id = 1\n string key = 2\n repeated .t.More more = 900\n"
        " double extra = 5\n}"
    )
    reader = message_class("message M {\n int64 id = 1\n string key = 2\n optional double value = 3 proto3\n}")
    column = [
        older(id=1, gone="x").SerializeToString(),
        newer(id=2, key="k", more=[{"a": "y"}] * 3, extra=1.0).SerializeToString(),
        reader(id=3, key="r", value=0.0).SerializeToString(),
    ] * 50
    decoded = ProtobufDecoder(protobuf(reader)).decode(pl.Series(column))
    assert decoded.bad.is_empty()
    assert decoded.frame.rows()[:3] == [(1, "", None), (2, "k", None), (3, "r", 0.0)]
    assert decoded.frame.rows() == decoded.frame.rows()[:3] * 50

"""Values of every Protobuf type become what their type says."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.formats.protobuf.protobuf_model import message_class
from tests.formats.protobuf.protobuf_outcomes import COMPANY, MIXED, decode, outcome, single


def value(kind: str, record: bytes, *, syntax: str = "proto3") -> Any:  # noqa: ANN401
    """Return what field `a` (number 1) of a type becomes, or reason and words."""
    text = (
        f"enum E {{\n ZERO = 0\n TWO = 2\n}}\nmessage I {{\n int32 n = 1\n string s = 2\n}}\nmessage M {{\n {kind}\n}}"
    )
    found = outcome(message_class(text, syntax=syntax), record)
    return found["a"] if isinstance(found, dict) else found


@pytest.mark.parametrize(
    "kind, record, expected",
    [
        ("int64 a = 1", b"\x08\x96\x01", 150),
        ("int64 a = 1", b"\x08" + b"\xff" * 9 + b"\x01", -1),
        ("int64 a = 1", b"\x08" + b"\xff" * 8 + b"\x7f", 2**63 - 1),
        ("int64 a = 1", b"\x08" + b"\x80" * 9 + b"\x01", -(2**63)),
        ("int64 a = 1", b"\x08\x80\x80\x80\x80\x80\x80\x80\x00", 0),
        ("uint64 a = 1", b"\x08" + b"\xff" * 9 + b"\x01", 2**64 - 1),
        ("int32 a = 1", b"\x08" + b"\xff" * 9 + b"\x01", -1),
        ("int32 a = 1", b"\x08\xff\xff\xff\xff\x0f", -1),
        ("uint32 a = 1", b"\x08\xff\xff\xff\xff\xff\x01", 2**32 - 1),
        ("sint32 a = 1", b"\x08\x03", -2),
        ("sint64 a = 1", b"\x08" + b"\xff" * 9 + b"\x01", -(2**63)),
        ("fixed32 a = 1", b"\x0d\xff\xff\xff\xff", 2**32 - 1),
        ("sfixed32 a = 1", b"\x0d\xff\xff\xff\xff", -1),
        ("fixed64 a = 1", b"\x09" + b"\xff" * 8, 2**64 - 1),
        ("sfixed64 a = 1", b"\x09" + b"\xff" * 8, -1),
        ("float a = 1", b"\x0d\x00\x00\xc0\x3f", 1.5),
        ("double a = 1", b"\x09\x00\x00\x00\x00\x00\x00\xf0\x7f", float("inf")),
        ("bool a = 1", b"\x08\x80\x80\x80\x80\x80\x01", True),
        ("bool a = 1", b"", False),
        ("string a = 1", b"\x0a\x03\xe2\x82\xac", "€"),
        ("string a = 1", b"\x0a\x00", ""),
        ("string a = 1", b"", ""),
        ("bytes a = 1", b"\x0a\x02\xff\x00", b"\xff\x00"),
        ("enum:.t.E a = 1", b"\x08\x02", "TWO"),
        ("enum:.t.E a = 1", b"\x08\x07", "7"),
        ("enum:.t.E a = 1", b"\x08" + b"\xff" * 9 + b"\x01", "-1"),
        ("enum:.t.E a = 1", b"", "ZERO"),
        ("int64 a = 1", b"\x08\x01\x08\x02", 2),
        ("string a = 1", b"\x0a\x01x\x0a\x01y", "y"),
        ("optional int32 a = 1 proto3", b"", None),
        ("optional int32 a = 1 proto3", b"\x08\x00", 0),
        ("optional string a = 1 proto3", b"", None),
        ("optional string a = 1 proto3", b"\x0a\x00", ""),
        (".t.I a = 1", b"", None),
        (".t.I a = 1", b"\x0a\x00", {"n": 0, "s": ""}),
        (".t.I a = 1", b"\x0a\x02\x08\x01\x0a\x03\x12\x01x", {"n": 1, "s": "x"}),
        ("repeated int32 a = 1", b"\x0a\x03\x01\x96\x01\x08\x05\x0a\x00\x0a\x01\x02", [1, 150, 5, 2]),
        ("repeated int32 a = 1 unpacked", b"\x08\x01\x08\x02\x0a\x01\x03", [1, 2, 3]),
        ("repeated fixed32 a = 1", b"\x0a\x08\x01\x00\x00\x00\x02\x00\x00\x00", [1, 2]),
        ("repeated double a = 1", b"\x09" + b"\x00" * 8 + b"\x0a\x08" + b"\x00" * 8, [0.0, 0.0]),
        ("repeated string a = 1", b"\x0a\x01x\x0a\x00\x0a\x01y", ["x", "", "y"]),
        ("repeated .t.I a = 1", b"\x0a\x02\x08\x01\x0a\x00", [{"n": 1, "s": ""}, {"n": 0, "s": ""}]),
        ("repeated enum:.t.E a = 1", b"\x0a\x03\x02\x00\x09", ["TWO", "ZERO", "9"]),
        ("repeated int32 a = 1", b"", []),
        ("map<string,int32> a = 1", b"", []),
        ("map<string,int32> a = 1", b"\x0a\x05\x0a\x01k\x10\x05", [{"key": "k", "value": 5}]),
        ("map<string,int32> a = 1", b"\x0a\x00", [{"key": "", "value": 0}]),
        ("map<string,.t.I> a = 1", b"\x0a\x03\x0a\x01k", [{"key": "k", "value": {"n": 0, "s": ""}}]),
        (".google.protobuf.Timestamp a = 1", b"\x0a\x00", datetime(1970, 1, 1, tzinfo=UTC)),
        (".google.protobuf.Timestamp a = 1", b"\x0a\x02\x10\x01", datetime(1970, 1, 1, tzinfo=UTC)),
        (".google.protobuf.Timestamp a = 1", b"\x0a\x0b\x08" + b"\xff" * 9 + b"\x01",
         datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)),
        (".google.protobuf.Timestamp a = 1", b"", None),
        (".google.protobuf.Int64Value a = 1", b"", None),
        (".google.protobuf.Int64Value a = 1", b"\x0a\x00", 0),
        (".google.protobuf.StringValue a = 1", b"\x0a\x03\x0a\x01x", "x"),
        (".google.protobuf.Empty a = 1", b"", None),
        (".google.protobuf.Empty a = 1", b"\x0a\x02\x08\x01", True),
    ],
)  # fmt: skip
def test_a_value_is_read_as_its_type_says(kind: str, record: bytes, expected: object) -> None:
    assert value(kind, record) == expected


@pytest.mark.parametrize(
    "seconds, nanos, millis",
    [
        (1, 7_999_999, 1007),
        (0, -8_999_999, -8),
        (-2, -500_000_000, -2500),
        (315_576_000_000, 999_999_999, 315576000000999),
    ],
)
def test_a_duration_is_whole_milliseconds_towards_zero(seconds: int, nanos: int, millis: int) -> None:
    record = MIXED(took={"seconds": seconds, "nanos": nanos}).SerializeToString()
    assert decode(MIXED, [record] * COMPANY).frame["took"].to_list() == [millis] * COMPANY


def test_of_a_oneof_the_last_member_on_the_wire_counts() -> None:
    made = message_class(
        "message I {\n int32 n = 1\n}\nmessage M {\n oneof c {\n  int32 x = 1\n  string y = 2\n  .t.I z = 3\n }\n}"
    )
    assert outcome(made, b"") == {"x": None, "y": None, "z": None}
    assert outcome(made, b"\x08\x00") == {"x": 0, "y": None, "z": None}
    assert outcome(made, b"\x08\x05\x12\x01a") == {"x": None, "y": "a", "z": None}
    assert outcome(made, b"\x1a\x02\x08\x01\x08\x05\x1a\x00") == {"x": None, "y": None, "z": {"n": 0}}


def test_of_a_key_given_twice_in_a_map_the_last_entry_counts() -> None:
    made = message_class("message M {\n map<string,int32> a = 1\n}")
    record = b"\x0a\x05\x0a\x01k\x10\x01\x0a\x05\x0a\x01l\x10\x02\x0a\x05\x0a\x01k\x10\x03"
    assert outcome(made, record) == {"a": [{"key": "l", "value": 2}, {"key": "k", "value": 3}]}


def test_lists_written_one_by_one_keep_their_order_in_every_record() -> None:
    made = message_class("message M {\n repeated int32 a = 1 unpacked\n repeated string b = 2\n}")
    lists = [([number, *range(number % 50)], [f"{number}", "x"] * (number % 3)) for number in range(500)]
    decoded = decode(made, [made(a=a, b=b).SerializeToString() for a, b in lists])
    assert decoded.bad.is_empty()
    assert decoded.frame.rows() == lists


class TestProto2:
    SOURCE = """
        enum E {
          ZERO = 0
          TWO = 2
        }
        message G {
          required int32 n = 1
        }
        message M {
          required int64 id = 1
          optional string s = 2
          optional enum:.t.E e = 3
          optional .t.G g = 4 group
          repeated .t.G l = 5 group
          map<string,enum:.t.E> m = 6
        }
        """

    def test_what_is_not_there_is_null_and_what_is_required_must_be_there(self) -> None:
        made = message_class(self.SOURCE, syntax="proto2")
        row: dict[str, object] = {"id": 1, "s": None, "e": None, "g": None, "l": [], "m": []}
        assert outcome(made, b"\x08\x01") == row
        words = "field `id`, byte 0: required, but missing"
        assert single(decode(made, [b""]), 0) == ("malformed", words)

    def test_groups_are_messages(self) -> None:
        made = message_class(self.SOURCE, syntax="proto2")
        record = made(id=1, g={"n": 5}, l=[{"n": 6}, {"n": 7}]).SerializeToString()
        decoded = decode(made, [record] * 20)
        assert decoded.frame["g"].to_list() == [{"n": 5}] * 20
        assert decoded.frame["l"].to_list() == [[{"n": 6}, {"n": 7}]] * 20
        broken = single(decode(made, [b"\x08\x01\x23\x08\x01"]), 0)
        assert broken == ("truncated", "field `g`, byte 5: a group is truncated (field 4)")
        lacking = single(decode(made, [b"\x08\x01\x23\x24"]), 0)
        assert lacking == ("malformed", "field `g.n`, byte 4: required, but missing")

    def test_an_enum_of_numbers_known_in_advance_shows_others_all_the_same(self) -> None:
        made = message_class(self.SOURCE, syntax="proto2")
        decoded = decode(made, [b"\x08\x01\x18\x09\x32\x03\x0a\x01k"] * COMPANY)
        assert decoded.frame["e"].to_list() == ["9"] * COMPANY
        assert decoded.frame["m"].to_list() == [[{"key": "k", "value": "ZERO"}]] * COMPANY

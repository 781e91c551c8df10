"""What becomes of Protobuf records: values of every type, and what is wrong with the others, byte by byte."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import polars as pl
import pytest
from google.protobuf.message import Message  # type: ignore[import-untyped]

from slackwater.errors import DefinitionError
from slackwater.formats.base import Decoded
from slackwater.formats.protobuf import ProtobufDecoder, protobuf
from tests.unit.formats.protobuf_model import message_class

COMPANY = 60
"""Enough neighbours for messages to be read together."""


def decode(made: type[Message], records: list[bytes | None], **options: Any) -> Decoded:  # noqa: ANN401
    return ProtobufDecoder(protobuf(made, **options)).decode(pl.Series(records, dtype=pl.Binary))


def outcome(made: type[Message], record: bytes, **options: Any) -> dict[str, Any] | tuple[str, str]:  # noqa: ANN401
    """Return a record's row, or reason and words, after checking that company makes no difference."""
    alone = single(decode(made, [record], **options), 0)
    assert single(decode(made, [record] * COMPANY, **options), COMPANY - 1) == alone
    among = decode(made, [*([b""] * COMPANY), record, *([b""] * COMPANY)], **options)
    assert single(among, COMPANY) == alone
    return alone


def single(decoded: Decoded, at: int) -> dict[str, Any] | tuple[str, str]:
    found = decoded.bad.filter(pl.col("index") == at)
    row = decoded.frame.row(at, named=True)
    if found.height:
        assert set(row.values()) == {None}
        return found["reason"][0], found["message"][0]
    return row


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


MIXED = message_class(
    """
    message L {
      string s = 2
    }
    message I {
      int32 n = 1
      .t.L more = 5
    }
    message M {
      int64 n = 1
      string s = 2
      double d = 3
      .t.I i = 4
      repeated fixed32 f = 6
      repeated int32 p = 7
      map<string,int32> m = 8
      .google.protobuf.Timestamp t = 9
      .google.protobuf.Duration took = 11
    }
    """
)


@pytest.mark.parametrize(
    "record, reason, words",
    [
        (b"\x08", "truncated", "field `n`, byte 1: a number is truncated"),
        (b"\x08\x80", "truncated", "field `n`, byte 1: a number is truncated"),
        (b"\x08" + b"\xff" * 11, "malformed", "field `n`, byte 1: a number of more than 10 bytes"),
        (b"\x12\x05abc", "truncated", "field `s`, byte 1: a value of 5 bytes, of which 3 are present"),
        (b"\x12\xff\xff\xff\xff\x0f", "malformed", "field `s`, byte 1: no value has a length of 4294967295"),
        (b"\x12\x81\x80\x80\x80\x80\x00x", "malformed", "field `s`, byte 1: a number of more than 5 bytes"),
        (b"\x08\x01\x12\x02a\xff", "invalid_utf8", "field `s`, byte 5: invalid start byte: byte 0xff"),
        (b"\x19\x01\x02", "truncated", "field `d`, byte 1: a number of 8 bytes, of which 2 are present"),
        (b"\x0a\x01x", "wrong_type", "field `n`, byte 1: declared int64 (varint); got length-delimited"),
        (b"\x0b\x0c", "wrong_type", "field `n`, byte 1: declared int64 (varint); got group"),
        (b"\x10\x01", "wrong_type", "field `s`, byte 1: declared string (length-delimited); got varint"),
        (b"\x0e", "malformed", "field `n`, byte 1: declared int64 (varint); got wire type 6"),
        (b"\x00\x01", "malformed", "byte 0: no field has the tag 0"),
        (b"\x88\x80\x80\x80\x10\x05", "malformed", "byte 0: no field has the tag 4294967304"),
        (b"\x88\x80\x80\x80\x80\x00\x05", "malformed", "byte 0: a number of more than 5 bytes"),
        (b"\x7e", "malformed", "field `15`, byte 1: no value has wire type 6"),
        (b"\x7c", "malformed", "field `15`, byte 1: a group ends that did not start (field 15)"),
        (b"\x7b\x08\x01", "truncated", "field `15`, byte 3: a group is truncated (field 15)"),
        (b"\x7b\x08\x01\x74", "malformed", "field `15`, byte 4: a group ends that did not start (field 14)"),
        (b"\x7b" * 101 + b"\x7c" * 101, "too_deep", "field `15`, byte 101: more than 100 levels of nested groups"),
        (b"\x22\x02\x08\x80", "truncated", "field `i.n`, byte 3: a number is truncated"),
        (b"\x22\x05\x08\x01", "truncated", "field `i`, byte 1: a value of 5 bytes, of which 2 are present"),
        (b"\x22\x04\x2a\x02\x12\x05", "truncated", "field `i.more.s`, byte 5: a value of 5 bytes, of which 0"),
        (b"\x32\x03\x01\x02\x03", "malformed", "field `f`, byte 2: 3 bytes of packed numbers of 4 bytes each"),
        (b"\x3a\x02\x01\x80", "truncated", "field `p`, byte 3: a number is truncated"),
        (b"\x3a\x0b" + b"\x80" * 10 + b"\x01", "malformed", "field `p`, byte 2: a number of more than 10 bytes"),
        (b"\x42\x03\x0a\x01\xff", "invalid_utf8", "field `m.key`, byte 4: invalid start byte: byte 0xff"),
        (MIXED(t={"seconds": 253402300800}).SerializeToString(), "out_of_range",
         "field `t`, byte 9: a time is in the years 1 to 9999; got 253402300800 seconds, 0 nanoseconds"),
        (MIXED(t={"seconds": -(2**63)}).SerializeToString(), "out_of_range", "got -9223372036854775808 seconds"),
        (MIXED(t={"nanos": 1000000000}).SerializeToString(), "out_of_range", "got 0 seconds, 1000000000 nanoseconds"),
        (MIXED(t={"nanos": -1}).SerializeToString(), "out_of_range", "got 0 seconds, -1 nanoseconds"),
        (MIXED(took={"seconds": 1, "nanos": -1}).SerializeToString(), "out_of_range",
         "field `took`, byte 15: a duration is below 10 000 years, its parts of one sign; got 1 seconds, -1 nano"),
        (MIXED(took={"seconds": -(2**63)}).SerializeToString(), "out_of_range", "got -9223372036854775808 seconds"),
        (MIXED(took={"nanos": -1000000000}).SerializeToString(), "out_of_range", "got 0 seconds, -1000000000 nano"),
    ],
)  # fmt: skip
def test_a_broken_record_has_its_reason_its_field_and_its_byte(record: bytes, reason: str, words: str) -> None:
    found = outcome(MIXED, record)
    assert isinstance(found, tuple)
    assert found[0] == reason
    assert words in found[1]


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


PLACED = """
message First {
  int32 a = 1
}
message M {
  int32 a = 1
  map<string,int32> m = 2
  message Inner {
    int32 a = 1
  }
  message Other {
    int32 a = 1
  }
}
"""


@pytest.mark.parametrize(
    "message, header",
    [
        ("t.First", b"\x00"),
        ("t.First", b"\x02\x00"),
        ("t.M", b"\x02\x02"),
        ("t.M.Inner", b"\x04\x02\x00"),
        ("t.M.Other", b"\x04\x02\x02"),
        ("t.M.Other", b"\x84\x00\x02\x02"),
    ],
)
def test_records_in_confluents_wire_format_are_read_after_their_header(message: str, header: bytes) -> None:
    made = message_class(PLACED, message)
    records: list[bytes | None] = [
        b"\x00" + schema_id + header + b"\x08\x05" for schema_id in (b"\0\0\0\1", b"\xff" * 4)
    ]
    decoded = decode(made, records * COMPANY, confluent=True)
    assert decoded.bad.is_empty()
    assert decoded.frame["a"].to_list() == [5, 5] * COMPANY


@pytest.mark.parametrize(
    "record, reason, words",
    [
        (b"", "empty_record", "the record is empty"),
        (b"\x08\x05", "malformed", "byte 0: a record in Confluent's wire format begins with 0; got 8"),
        (b"\x00\x00\x00", "truncated", "byte 1: a schema id has 4 bytes; got 2"),
        (b"\x00\x00\x00\x00\x07", "truncated", "byte 5: a number is truncated"),
        (b"\x00\x00\x00\x00\x07\x02", "truncated", "byte 6: a number is truncated"),
        (b"\x00\x00\x00\x00\x07\x01", "malformed", "byte 5: a path of -1 message indexes"),
        (b"\x00\x00\x00\x00\x07\xfe\x01", "malformed", "byte 5: a path of 127 message indexes"),
        (b"\x00\x00\x00\x00\x07\x00\x08\x05", "incompatible_schema",
         "schema 7 holds message [0] of its file; this reads [1]"),
        (b"\x00\x00\x00\x00\x07\x04\x02\x00\x08\x05", "incompatible_schema",
         "schema 7 holds message [1, 0] of its file; this reads [1]"),
        (b"\x00\x00\x00\x00\x07\x02\x02\x08", "truncated", "field `a`, byte 8: a number is truncated"),
    ],
)  # fmt: skip
def test_a_header_that_is_no_header_or_another_messages_is_a_flaw(record: bytes, reason: str, words: str) -> None:
    made, good = message_class(PLACED, "t.M"), b"\x00\x00\x00\x00\x01\x02\x02\x08\x05"
    decoded = decode(made, [good, record, good, record] * COMPANY, confluent=True)
    assert decoded.frame["a"].to_list() == [5, None, 5, None] * COMPANY
    assert set(zip(decoded.bad["reason"], decoded.bad["message"], strict=True)) == {(reason, words)}


def test_a_registry_says_that_records_have_headers() -> None:
    made = message_class("message M {\n int32 a = 1\n}")
    assert protobuf(made, registry=object()) == protobuf(made, confluent=True)
    assert str(protobuf(made, confluent=True)) == "Protobuf t.M in Confluent's wire format"


def test_a_record_without_payload_is_empty_and_one_of_no_bytes_is_all_defaults() -> None:
    made = message_class("message M {\n int32 a = 1\n}")
    decoded = decode(made, [None, b"", b"\x08\x01"])
    assert decoded.frame["a"].to_list() == [None, 0, 1]
    assert decoded.bad.rows() == [(0, "empty_record", "the record has no payload")]


def test_limits_on_length_hold() -> None:
    made = message_class("message M {\n string a = 1\n}")
    decoded = decode(made, [b"\x0a\x01x", b"\x0a\x02xy", None, b"\x0a\x01z"], max_bytes=3)
    assert decoded.frame["a"].to_list() == ["x", None, None, "z"]
    assert decoded.bad["reason"].to_list() == ["too_long", "empty_record"]
    assert decoded.bad["message"][0] == "a record may have at most 3 bytes; got 4"
    with pytest.raises(DefinitionError, match="format option `max_bytes` must be a whole number from 1") as caught:
        protobuf(made, max_bytes=0)
    assert caught.value.code == "FORMAT_LIMIT"


def test_frame_has_exactly_the_declared_schema_when_all_none_or_some_are_bad() -> None:
    good = MIXED(s="x", i={"n": 1, "more": {"s": "y"}}, f=[1], p=[2], m={"k": 3}, t={"seconds": 1}).SerializeToString()
    for records in ([], [good] * COMPANY, [b"\xff"] * COMPANY, [good, b"\xff"] * COMPANY, [None], [b""], [good]):
        decoded = decode(MIXED, [*records])
        assert decoded.frame.schema == protobuf(MIXED).schema
        assert decoded.frame.height == len(records)
        assert decoded.bad.height == sum(record in (b"\xff", None) for record in records)


def test_records_of_more_than_a_block_keep_their_order() -> None:
    made = message_class("message M {\n int32 a = 1\n string b = 2\n}")
    records: list[bytes | None] = [
        made(a=number, b="x" * (number % 300)).SerializeToString() for number in range(40_000)
    ]
    records[12_345] = records[30_000] = b"\x08"
    decoded = decode(made, records)
    bad = {12_345, 30_000}
    assert set(decoded.bad["index"]) == bad
    assert decoded.frame["a"].to_list() == [None if number in bad else number for number in range(40_000)]
    assert decoded.frame["b"].str.len_bytes().to_list()[:300] == list(range(300))


def test_a_slice_of_a_column_is_read_like_a_column() -> None:
    made = message_class("message M {\n int32 a = 1\n}")
    column = pl.Series([made(a=number).SerializeToString() for number in range(100)])
    decoder = ProtobufDecoder(protobuf(made))
    assert decoder.decode(column[40:60]).frame["a"].to_list() == list(range(40, 60))
    chunked = pl.concat([column[:10], column[90:]], rechunk=False)
    assert decoder.decode(chunked).frame["a"].to_list() == [*range(10), *range(90, 100)]


def test_a_format_and_a_decoder_survive_pickling() -> None:
    form = protobuf(MIXED, confluent=True)
    assert pickle.loads(pickle.dumps(form)) == form  # noqa: S301
    decoder = pickle.loads(pickle.dumps(ProtobufDecoder(protobuf(MIXED))))  # noqa: S301
    assert decoder.decode(pl.Series([b"\x08\x01"])).frame["n"].to_list() == [1]


def test_threads_decode_side_by_side() -> None:
    decoder = ProtobufDecoder(protobuf(MIXED))
    chunks = [
        pl.Series([MIXED(n=number + start, s=str(start)).SerializeToString() for number in range(500)])
        for start in range(8)
    ]
    with ThreadPoolExecutor(4) as pool:
        decoded = list(pool.map(lambda chunk: decoder.decode(chunk).frame["n"].to_list(), chunks))
    assert decoded == [list(range(start, start + 500)) for start in range(8)]

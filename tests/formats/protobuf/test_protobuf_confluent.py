"""Protobuf records in Confluent's wire format: the header, and what is wrong with others."""

from __future__ import annotations

import pytest

from slackwater.formats.protobuf import protobuf
from tests.formats.protobuf.protobuf_model import message_class
from tests.formats.protobuf.protobuf_outcomes import COMPANY, decode

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
        (
            b"\x00\x00\x00\x00\x07\x00\x08\x05",
            "incompatible_schema",
            "schema 7 holds message [0] of its file; this reads [1]",
        ),
        (
            b"\x00\x00\x00\x00\x07\x04\x02\x00\x08\x05",
            "incompatible_schema",
            "schema 7 holds message [1, 0] of its file; this reads [1]",
        ),
        (b"\x00\x00\x00\x00\x07\x02\x02\x08", "truncated", "field `a`, byte 8: a number is truncated"),
    ],
)
def test_a_header_that_is_no_header_or_another_messages_is_a_flaw(record: bytes, reason: str, words: str) -> None:
    made, good = message_class(PLACED, "t.M"), b"\x00\x00\x00\x00\x01\x02\x02\x08\x05"
    decoded = decode(made, [good, record, good, record] * COMPANY, confluent=True)
    assert decoded.frame["a"].to_list() == [5, None, 5, None] * COMPANY
    assert set(zip(decoded.bad["reason"], decoded.bad["message"], strict=True)) == {(reason, words)}


def test_a_registry_says_that_records_have_headers() -> None:
    made = message_class("message M {\n int32 a = 1\n}")
    assert protobuf(made, registry=object()) == protobuf(made, confluent=True)
    assert str(protobuf(made, confluent=True)) == "Protobuf t.M in Confluent's wire format"

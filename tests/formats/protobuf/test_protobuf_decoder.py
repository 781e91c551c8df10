"""What becomes of Protobuf records: what is wrong with one, byte by byte, and columns of many."""

from __future__ import annotations

import pytest

from tests.formats.protobuf.protobuf_model import message_class
from tests.formats.protobuf.protobuf_outcomes import MIXED, decode, outcome


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


def test_a_record_without_payload_is_empty_and_one_of_no_bytes_is_all_defaults() -> None:
    made = message_class("message M {\n int32 a = 1\n}")
    decoded = decode(made, [None, b"", b"\x08\x01"])
    assert decoded.frame["a"].to_list() == [None, 0, 1]
    assert decoded.bad.rows() == [(0, "empty_record", "the record has no payload")]

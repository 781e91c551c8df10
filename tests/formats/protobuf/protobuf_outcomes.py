"""What becomes of one Protobuf record, alone and in company."""

from __future__ import annotations

from typing import Any

import polars as pl
from google.protobuf.message import Message  # type: ignore[import-untyped]

from slackwater.formats.base import Decoded
from slackwater.formats.protobuf import ProtobufDecoder, protobuf
from tests.formats.protobuf.protobuf_model import message_class

COMPANY = 60
"""Enough neighbours for messages to be read together."""
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

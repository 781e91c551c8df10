"""What becomes of one JSON record: the same alone as in company, where the fast way is taken."""

from __future__ import annotations

from typing import Any

import polars as pl

from slackwater.formats.base import Decoded
from slackwater.formats.json import JsonDecoder, json

COMPANY = 150
"""Enough records for patterns to be learned and tried."""


def outcome(ddl: str, record: bytes | str, **options: Any) -> dict[str, object] | str:  # noqa: ANN401
    """Return a record's row or its reason, after checking that company makes no difference."""
    payload = record.encode() if isinstance(record, str) else record
    form = json(ddl, **options)
    alone = single(JsonDecoder(form).decode(pl.Series([payload], dtype=pl.Binary)), 0)
    among_equals = JsonDecoder(form).decode(pl.Series([payload] * COMPANY, dtype=pl.Binary))
    assert single(among_equals, COMPANY - 1) == alone
    empty = [b"{}"] * COMPANY
    among_others = JsonDecoder(form).decode(pl.Series([*empty, payload, *empty], dtype=pl.Binary))
    assert single(among_others, COMPANY) == alone
    assert among_others.bad.height == (1 if isinstance(alone, str) else 0)
    return alone


def single(decoded: Decoded, at: int) -> dict[str, object] | str:
    bad = dict(zip(decoded.bad["index"], decoded.bad["reason"], strict=True))
    row = decoded.frame.row(at, named=True)
    if at in bad:
        assert all(value is None for value in row.values())
        return str(bad[at])
    return row


def value(ddl_type: str, text: str, **options: Any) -> object:  # noqa: ANN401
    """Return what field `a` of a type becomes, or the reason why not."""
    found = outcome(f"a {ddl_type}", f'{{"a":{text}}}', **options)
    return found if isinstance(found, str) else found["a"]

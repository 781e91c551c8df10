from __future__ import annotations

from datetime import UTC, datetime

import polars as pl

from slackwater.formats.dead_letter_columns import DEAD_LETTER_SCHEMA, dead_letters


def test_scalars_stand_for_every_record() -> None:
    frame = dead_letters(
        payload=pl.Series([b"{", b"\xff"]),
        partition="p0",
        offset=pl.Series([7, 9]),
        reason=pl.Series(["malformed", "invalid_utf8"]),
        message="words",
        source="orders",
        step="orders.decode",
        ingestion_time_ms=1_500,
        processed_at_ms=2_500,
    )
    assert frame.schema == DEAD_LETTER_SCHEMA
    assert frame.row(1, named=True) == {
        "payload": b"\xff",
        "key": None,
        "headers": None,
        "source": "orders",
        "partition": "p0",
        "offset": 9,
        "ingestion_time": datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC),
        "step": "orders.decode",
        "reason": "invalid_utf8",
        "message": "words",
        "processed_at": datetime(1970, 1, 1, 0, 0, 2, 500_000, tzinfo=UTC),
    }


def test_a_series_of_one_value_stands_for_every_record() -> None:
    frame = dead_letters(
        payload=pl.Series([b"a", b"b", b"c"]),
        partition=pl.Series(["0", "1", "2"]),
        offset=pl.Series([1, 2, 3]),
        reason=pl.Series(["failed"]),
        message=pl.Series(["why"]),
        source="s",
        step="t",
        ingestion_time_ms=None,
        processed_at_ms=0,
        key=pl.Series([b"k", None, b"l"]),
        headers=pl.Series([[{"name": "h", "value": b"v"}], [], None]),
    )
    assert frame["reason"].to_list() == ["failed"] * 3
    assert frame["headers"].to_list() == [[{"name": "h", "value": b"v"}], [], None]
    assert frame["ingestion_time"].null_count() == 3


def test_no_record_gives_an_empty_frame_of_the_same_columns() -> None:
    frame = dead_letters(
        payload=pl.Series([], dtype=pl.Binary),
        partition="",
        offset=0,
        reason="r",
        message="m",
        source="s",
        step="t",
        ingestion_time_ms=0,
        processed_at_ms=0,
    )
    assert frame.is_empty()
    assert frame.schema == DEAD_LETTER_SCHEMA

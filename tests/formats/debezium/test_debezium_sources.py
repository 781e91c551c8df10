"""What a change event says of its source: snapshot, position, table and time."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from tests.formats.debezium.debezium_samples import (
    ANNE,
    FORM,
    MYSQL,
    POSTGRES,
    PROCESSED,
    change,
    decode,
    row,
    wrapped,
    written,
)


@pytest.mark.parametrize(
    "said, is_snapshot",
    [
        ("true", True), ("first", True), ("last", True), ("first_in_data_collection", True),
        ("last_in_data_collection", True), ("incremental", True), (True, True),
        ("false", False), (False, False), (None, False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("wrap", [wrapped, dict], ids=["wrapped", "bare"])
def test_snapshot_is_what_the_source_says(said: Any, is_snapshot: bool, wrap: Any) -> None:  # noqa: ANN401, FBT001
    assert row(wrap(change("c", None, ANNE, {**POSTGRES, "snapshot": said})))["snapshot"] is is_snapshot


def test_row_that_was_read_is_of_a_snapshot_whatever_the_source_says() -> None:
    assert row(change("r", None, ANNE))["snapshot"] is True


@pytest.mark.parametrize(
    "source, position",
    [
        (POSTGRES, 24023128),
        (MYSQL, (3 << 36) + 484),
        ({**MYSQL, "file": "mysql-bin.1000000"}, (1_000_000 << 36) + 484),
        ({**MYSQL, "file": "binlog"}, None),
        ({**MYSQL, "file": "mysql-bin.99999999999999999999"}, None),
        ({**MYSQL, "file": f"mysql-bin.{2**40}"}, None),
        ({**MYSQL, "pos": 2**36}, None),
        ({**MYSQL, "pos": None}, None),
        ({"connector": "oracle", "schema": "DEBEZIUM", "table": "CUSTOMERS", "scn": "2122185"}, 2122185),
        (
            {"connector": "sqlserver", "change_lsn": "00000027:00000758:0003", "schema": "dbo", "table": "customers"},
            None,
        ),
        ({**POSTGRES, "lsn": None}, 24023128),
        ({**POSTGRES, "lsn": None, "sequence": '[null,"24023130"]'}, 24023130),
        ({**POSTGRES, "lsn": None, "sequence": "[]"}, None),
        ({**POSTGRES, "lsn": "1:4::0:0", "sequence": None}, None),
        ({**POSTGRES, "lsn": {"file": 1}, "sequence": None}, None),
        ({**POSTGRES, "lsn": 2**70, "sequence": None}, None),
        ({}, None),
        (None, None),
    ],
)
def test_position_is_the_best_that_the_source_has(source: dict[str, Any] | None, position: int | None) -> None:
    payload = {**change("c", None, ANNE), "source": source}
    assert row(payload)["position"] == position


def test_odd_sources_do_not_hide_the_position_of_others() -> None:
    odd = written(change("c", None, ANNE, {**POSTGRES, "lsn": {"file": 1}, "sequence": None}))
    plain = written(change("c", None, ANNE, {**POSTGRES, "sequence": None}))
    for first in (odd, plain):
        decoder = FORM.decoder()
        decoder.decode(pl.Series([first] * 30))
        for _ in range(2):
            decoded = decoder.decode(pl.Series([*[odd] * 30, plain]))
            assert decoded.frame["position"].to_list() == [*[None] * 30, 24023128]


def test_position_in_mysql_grows_from_file_to_file() -> None:
    places = [("mysql-bin.000009", 4), ("mysql-bin.000009", 2**32), ("mysql-bin.000010", 4), ("mysql-bin.1000000", 4)]
    records = [written(change("c", None, ANNE, {**MYSQL, "file": file, "pos": at})) for file, at in places]
    positions = decode(FORM, *records).frame["position"].to_list()
    assert positions == sorted(set(positions))


@pytest.mark.parametrize(
    "source, table",
    [
        (POSTGRES, "public.customers"),
        (MYSQL, "inventory.customers"),
        ({"db": "shop", "collection": "orders"}, "shop.orders"),
        ({"table": "orders"}, "orders"),
        ({"db": "shop"}, None),
    ],
)
def test_table_is_named_with_its_schema(source: dict[str, Any], table: str | None) -> None:
    assert row(change("c", None, ANNE, source))["table"] == table


@pytest.mark.parametrize("at", [0, None, -1, 10**17])
def test_time_of_the_connector_stands_in_for_that_of_the_source(at: int | None) -> None:
    found = row(change("r", None, ANNE, {**MYSQL, "ts_ms": at}))
    assert found["source_time"] == found["processed_time"] == PROCESSED

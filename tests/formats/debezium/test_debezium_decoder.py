"""What becomes of change events: of every operation, in a wrapper and without one, alone and among others."""

from __future__ import annotations

import pickle
from functools import cache
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slackwater.formats.base import Decoded
from tests.formats.debezium.debezium_samples import (
    ANNE,
    CHANGES,
    FORM,
    HAPPENED,
    MARIE,
    MYSQL,
    POSTGRES,
    PROCESSED,
    ROW_FIELDS,
    change,
    decode,
    flaw,
    row,
    wrapped,
    written,
)


@pytest.mark.parametrize("op", CHANGES)
@pytest.mark.parametrize("wrap", [wrapped, dict], ids=["wrapped", "bare"])
def test_every_operation_becomes_a_row_of_its_name(op: str, wrap: Any) -> None:  # noqa: ANN401
    found = row(wrap(CHANGES[op]))
    assert found["op"] == op
    assert (found["before"], found["after"]) == (CHANGES[op].get("before"), CHANGES[op].get("after"))
    assert found["id"] == (1 if op in {"insert", "update", "delete", "snapshot"} else None)


def test_row_of_a_change_has_all_that_the_envelope_says() -> None:
    assert row(wrapped(change("u", ANNE, MARIE, transaction={"id": "571:53195829", "total_order": 1}))) == {
        "op": "update",
        "id": 1,
        "before": ANNE,
        "after": MARIE,
        "source_time": HAPPENED,
        "processed_time": PROCESSED,
        "position": 24023128,
        "snapshot": False,
        "transaction": "571:53195829",
        "table": "public.customers",
    }


def test_key_of_a_delete_is_that_of_the_row_before() -> None:
    assert row(change("d", {"id": 7}, None))["id"] == 7
    assert row(change("u", {"id": 7}, {"id": 8}))["id"] == 8


def test_key_may_be_of_several_columns() -> None:
    found = row(
        change("c", None, {"shop": "a", "number": 3}), schema="shop string, number long", key=["shop", "number"]
    )
    assert (found["shop"], found["number"]) == ("a", 3)
    assert list(found)[:4] == ["op", "shop", "number", "before"]


@pytest.mark.parametrize("before", [None, {"id": 1}, {**dict.fromkeys(ANNE), "id": 1}])
def test_update_needs_no_row_before(before: dict[str, Any] | None) -> None:
    expected = None if before is None else {**dict.fromkeys(ANNE), "id": 1}
    assert row(change("u", before, MARIE))["before"] == expected


@pytest.mark.parametrize(
    "payload, message",
    [
        (change("d", None, None), "the key of a delete is in `before`; got no id there"),
        (change("d", {"email": "x"}, ANNE), "the key of a delete is in `before`; got no id there"),
        (change("c", ANNE, None), "the key of an insert is in `after`; got no id there"),
        (change("u", ANNE, {"email": "x"}), "the key of an update is in `after`; got no id there"),
        (change("r"), "the key of a snapshot is in `after`; got no id there"),
    ],
)
def test_change_of_a_row_without_its_key_is_a_dead_letter(payload: dict[str, Any], message: str) -> None:
    assert flaw(payload) == flaw(wrapped(payload)) == ("no_key", message)


def test_key_of_which_a_part_is_there_is_a_key() -> None:
    assert row(change("d", {"b": 2}), schema="a int, b int", key=["a", "b"])["b"] == 2
    assert flaw(change("d", {}), schema="a int, b int", key=["a", "b"])[1].endswith("got no a, b there")


@pytest.mark.parametrize(
    "record",
    [None, b"null", b" null\n", b'{"schema":null,"payload":null}', written(wrapped(None)), b'{"payload":null}'],
)
def test_record_without_a_payload_is_a_tombstone(record: bytes | None) -> None:
    assert row(record) == {**dict.fromkeys(FORM.schema), "op": "tombstone"}


@pytest.mark.parametrize("record", [b"", b" ", b'{"schema":null,"payload":null', b'{"schema":null,"payload":nul}'])
def test_what_is_cut_short_is_no_tombstone(record: bytes) -> None:
    assert flaw(record)[0] in {"empty_record", "malformed"}


@pytest.mark.parametrize(
    "payload, reason, message",
    [
        (change("x", None, ANNE), "unknown_op", '`op` is one of c, u, d, r, t, m; got "x"'),
        (change("", None, ANNE), "unknown_op", 'got ""'),
        (ANNE, "not_an_envelope", "an envelope has an `op`; got a record without one"),
        ({"status": "BEGIN", "id": "571:53195829", "event_count": None}, "not_an_envelope", "without one"),
        ({"ts_ms": 1559033904961}, "not_an_envelope", "without one"),
        ({}, "not_an_envelope", "without one"),
        ({**change("c"), "after": "Anne"}, "wrong_type", "field `after` is declared struct<"),
        (change("c", None, {"id": "1"}), "wrong_type", 'field `after.id` is declared int; got string "1"'),
        (
            change("c", None, {"id": 2**40}),
            "out_of_range",
            "field `after.id` is declared int; got number 1099511627776",
        ),
        ({**change("c", None, ANNE), "op": 1}, "wrong_type", "field `op` is declared string; got number 1"),
        ({**change("c", None, ANNE), "ts_ms": "now"}, "wrong_type", "field `ts_ms` is declared bigint"),
        ([], "not_an_object", "a record must be a JSON object"),
    ],
)
def test_what_is_no_change_is_a_dead_letter_with_the_reason(payload: Any, reason: str, message: str) -> None:  # noqa: ANN401
    for record in (payload, {"schema": None, "payload": payload}):
        found = flaw(record)
        assert found[0] == reason
        assert message in found[1]


@pytest.mark.parametrize("wrap", [wrapped, dict], ids=["wrapped", "bare"])
def test_schema_change_is_a_row_of_its_own_kind(wrap: Any) -> None:  # noqa: ANN401
    payload = {
        "source": MYSQL,
        "ts_ms": 1559033904961,
        "databaseName": "inventory",
        "schemaName": None,
        "ddl": "ALTER TABLE customers ADD middle_name varchar(255) AFTER first_name",
        "tableChanges": [{"type": "ALTER", "id": '"inventory"."customers"', "table": {"columns": []}}],
    }
    found = row(wrap(payload))
    assert (found["op"], found["table"], found["id"]) == ("schema_change", "inventory.customers", None)


def test_column_that_the_table_got_later_is_passed_over_and_one_it_lost_is_null() -> None:
    after = {"id": 1, "first_name": "Anne", "middle_name": {"any": ["thing"]}, "email": "a@b.c"}
    fields = [field for field in ROW_FIELDS if field["field"] != "last_name"]
    for record in (change("c", None, after), wrapped(change("c", None, after), fields)):
        assert row(record)["after"] == {"id": 1, "first_name": "Anne", "last_name": None, "email": "a@b.c"}


def test_table_of_many_columns_is_read_like_one_of_few() -> None:
    names = [f"column_{number}" for number in range(40)]
    after = {"id": 1, **{name: number for number, name in enumerate(names)}}
    schema = ", ".join(f"{name} long" for name in after)
    found = row(change("u", after, after), schema=schema)
    assert found["before"] == found["after"] == after
    assert flaw(change("u", {**after, "column_3": "x"}, after), schema=schema)[1].startswith(
        "field `before.column_3` is"
    )
    assert flaw(change("u", after, {**after, "column_3": "x"}), schema=schema)[1].startswith(
        "field `after.column_3` is"
    )


RECORDS = [
    *(written(payload) for payload in CHANGES.values()),
    *(written(wrapped(payload)) for payload in CHANGES.values()),
    written(change("c", None, ANNE, {**POSTGRES, "snapshot": True})),
    written(change("c", None, ANNE, {**POSTGRES, "lsn": {"odd": 1}, "snapshot": 3})),
    written(change("c", None, {**ANNE, "id": "one"})),
    written(wrapped(change("d"))),
    written(wrapped(None)),
    written(wrapped(CHANGES["insert"]))[:-3],
    b'{"payload":' + written(CHANGES["insert"]) + b"}",
    b"[1]",
    b"\xff",
    None,
]


@cache
def alone(record: bytes | None) -> Decoded:
    return decode(FORM, record)


@settings(max_examples=40)
@given(st.lists(st.sampled_from(RECORDS), max_size=30), st.integers(1, 8))
def test_a_record_is_read_the_same_alone_as_among_others(records: list[bytes | None], times: int) -> None:
    decoder = FORM.decoder()
    decoder.decode(pl.Series(records[:5], dtype=pl.Binary))  # what it has learned makes no difference
    together = decoder.decode(pl.Series(records * times, dtype=pl.Binary))
    each = [alone(record) for record in records] * times
    assert together.frame.rows() == [one.frame.row(0) for one in each]
    flaws = {at: one.bad.row(0)[1:] for at, one in enumerate(each) if one.bad.height}
    assert {at: (reason, message) for at, reason, message in together.bad.rows()} == flaws


def test_decoder_travels_to_a_worker_as_its_definition() -> None:
    again = pickle.loads(pickle.dumps(FORM.decoder()))  # noqa: S301  our own bytes
    assert again.decode(pl.Series([written(CHANGES["insert"])])).frame["op"].to_list() == ["insert"]
    assert str(FORM) == "Debezium, JSON"


def test_no_records_are_no_rows() -> None:
    decoded = decode(FORM)
    assert decoded.frame.schema == FORM.schema
    assert (decoded.frame.height, decoded.bad.height) == (0, 0)


def test_record_that_is_too_long_is_a_dead_letter() -> None:
    assert flaw(change("c", None, {**ANNE, "email": "x" * 500}), max_bytes=500)[0] == "too_long"

"""What becomes of change events: of every operation, of every source, in a wrapper and without one."""

# ruff: noqa: E501  one case a line, with its reason and words

from __future__ import annotations

import json as stdlib_json
import pickle
from datetime import UTC, datetime
from functools import cache
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import slackwater
from slackwater.errors import DefinitionError
from slackwater.formats import debezium, json
from slackwater.formats.base import Decoded
from tests.unit.formats.debezium_samples import (
    ANNE,
    CHANGES,
    CUSTOMERS,
    MARIE,
    MYSQL,
    POSTGRES,
    ROW_FIELDS,
    change,
    decode,
    flaw,
    row,
    wrapped,
    written,
)

sw: Any = slackwater  # untyped: some of these definitions are wrong in their types
HAPPENED = datetime(2019, 5, 28, 8, 58, 24, 863000, tzinfo=UTC)
PROCESSED = datetime(2019, 5, 28, 8, 58, 24, 961000, tzinfo=UTC)
FORM = debezium(CUSTOMERS, key="id")


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


def test_record_that_is_too_deep_has_one_message_whether_its_schema_is_known_or_not() -> None:
    deep = written(wrapped({"op": "@"})).replace(b'"@"', b"[" * 70 + b"]" * 70)
    alone, after_another = decode(FORM, deep), decode(FORM, written(wrapped(change("c", None, ANNE))), deep)
    assert alone.bad["message"].to_list() == after_another.bad["message"].to_list()
    assert "nested deeper than 64 levels" in alone.bad["message"].item()


def test_wrapped_tombstone_that_is_cut_short_is_malformed_also_when_its_schema_is_known() -> None:
    whole = written(wrapped(None))
    decoded = decode(FORM, whole, whole[:-1], whole)
    assert decoded.frame["op"].to_list() == ["tombstone", None, "tombstone"]
    assert decoded.bad.select("index", "reason").rows() == [(1, "malformed")]


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


def test_column_that_the_table_got_later_is_passed_over_and_one_it_lost_is_null() -> None:
    after = {"id": 1, "first_name": "Anne", "middle_name": {"any": ["thing"]}, "email": "a@b.c"}
    fields = [field for field in ROW_FIELDS if field["field"] != "last_name"]
    for record in (change("c", None, after), wrapped(change("c", None, after), fields)):
        assert row(record)["after"] == {"id": 1, "first_name": "Anne", "last_name": None, "email": "a@b.c"}


def test_wrapper_is_taken_off_however_it_is_written() -> None:
    expected = row(CHANGES["update"])
    whole = wrapped(CHANGES["update"])
    schema, payload = stdlib_json.dumps(whole["schema"]), stdlib_json.dumps(whole["payload"])
    for text in (
        stdlib_json.dumps(whole, indent=2),
        f' {{ "schema" : {schema} , "payload" : {payload} }} \n',
        f'{{"payload":{payload},"schema":{schema}}}',
        f'{{"payload":{payload}}}',
        f'{{"schema":{schema},"payload":{payload},"more":[1]}}',
        f'{{"schema":{schema},"more":{{}},"payload":{payload}}}',
        f'{{"schema":null,"payload":{payload}}}',
        f'{{"schema":"none","payload":{payload}}}',
        f'{{"schema":{{"fields":[1,{{}},{{"field":2}},{{"field":"after","fields":{{}}}}]}},"payload":{payload}}}',
        f'{{"schema":{{"fields":[{{"field":"source","fields":[{{"field":"lsn","type":[]}}]}}]}},"payload":{payload}}}',
    ):
        found = row(text.encode())
        assert {**found, "position": 24023128} == expected, text[:80]


def test_envelope_with_fields_of_a_wrapper_is_an_envelope() -> None:
    both = {"schema": 1, "payload": None, **CHANGES["update"]}
    assert row(both) == row(CHANGES["update"])


@pytest.mark.parametrize(
    "cut, message",
    [
        (lambda text: text[:-1], "Expecting ',' delimiter at character"),
        (lambda text: text[:-40], "at character"),
        (lambda text: text + b"}", "Extra data at character"),
        (lambda text: text[:-1] + b',"payload":{}}', "field `payload` is given twice"),
        (lambda text: text[:-2] + b',"op":"c"}}', "field `op` is declared string"),
        (lambda text: text.replace(b'"name":"Source"', b'"name":NaN'), "NaN is not a JSON number"),
    ],
)
def test_wrapped_record_that_is_broken_is_malformed_as_a_whole(cut: Any, message: str) -> None:  # noqa: ANN401
    good = written(wrapped(CHANGES["update"]))
    broken = cut(good)
    assert flaw(broken)[0] == "malformed"
    assert message in flaw(broken)[1]
    # Its neighbours are as they were, whether the schema is known already or not.
    for records in ([broken, good, broken], [good, broken, good]):
        decoded = decode(FORM, *records)
        assert decoded.bad["index"].to_list() == [at for at, record in enumerate(records) if record == broken]
        assert decoded.bad["message"].unique().to_list() == [flaw(broken)[1]]


def test_column_may_have_records_of_more_tables_than_are_learned_at_once() -> None:
    records = []
    for number in range(200):
        fields: list[dict[str, Any]] = [*ROW_FIELDS, {"type": "string", "field": f"extra_{number % 100}"}]
        records.append(written(wrapped(change("c", None, {**ANNE, "id": number}), fields)))
    decoder = FORM.decoder()
    for _ in range(2):
        decoded = decoder.decode(pl.Series(records, dtype=pl.Binary))
        assert decoded.bad.is_empty()
        assert decoded.frame["id"].to_list() == list(range(200))


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


@pytest.mark.parametrize(
    "define, code, words",
    [
        (lambda: sw.formats.debezium(key="id"), "DEBEZIUM_ARGUMENTS", "got neither of them; write, for example, debezium("),
        (lambda: sw.formats.debezium("id int", key="id", value=json("id int")), "DEBEZIUM_ARGUMENTS", "got both"),
        (lambda: sw.formats.debezium(key="id", value="avro"), "DEBEZIUM_ENVELOPE", "got a str; use the schema"),
        (lambda: sw.formats.debezium(key="id", value=json("id int")), "DEBEZIUM_ENVELOPE", "got a format of id int, without a valid `before`"),
        (lambda: sw.formats.debezium(key="id", value=json("before struct<id:int>, after struct<id:long>, source struct<lsn:long>, op string, ts_ms long")), "DEBEZIUM_ENVELOPE", "`before` and `after` with different columns"),
        (lambda: sw.formats.debezium("id int, shop string", key="shp"), "DEBEZIUM_KEY", "got 'shp' (did you mean `shop`?); the columns are id, shop"),
        (lambda: sw.formats.debezium("id int", key=[]), "DEBEZIUM_KEY", "got []"),
        (lambda: sw.formats.debezium("id int", key=["id", "id"]), "DEBEZIUM_KEY", "got ['id', 'id']"),
        (lambda: sw.formats.debezium("id int", key=5), "DEBEZIUM_KEY", "got 5"),
        (lambda: sw.formats.debezium("id int", key=[[]]), "DEBEZIUM_KEY", "got [[]]"),
        (lambda: sw.formats.debezium("id int, `table` string", key="table"), "DEBEZIUM_KEY_NAME", "got key `table`; rename it"),
        (lambda: sw.formats.debezium("id int", key="id", times="seconds"), "DEBEZIUM_OPTION", "Debezium option `times` must be \"millis\", \"micros\", \"nanos\" or \"auto\"; got 'seconds'"),
        (lambda: sw.formats.debezium("id int", key="id", times=[]), "DEBEZIUM_OPTION", "got []"),
        (lambda: sw.formats.debezium("id int", key="id", decimals="exact"), "DEBEZIUM_OPTION", "Debezium option `decimals` must be \"precise\", \"string\" or \"double\"; got 'exact'"),
        (lambda: sw.formats.debezium("id int", key="id", max_bytes=0), "FORMAT_LIMIT", "max_bytes"),
        (lambda: sw.formats.debezium("id integre", key="id"), "BAD_SCHEMA", "integre"),
    ],
)  # fmt: skip
def test_bad_definition_is_refused_with_its_code_and_words(define: Any, code: str, words: str) -> None:  # noqa: ANN401
    with pytest.raises(DefinitionError) as caught:
        define()
    assert caught.value.code == code
    assert words in str(caught.value)

"""Change events in the wrapper of Connect's JSON converter: however it is written, broken, and of many tables."""

from __future__ import annotations

import json as stdlib_json
from typing import Any

import polars as pl
import pytest

from tests.formats.debezium.debezium_samples import (
    ANNE,
    CHANGES,
    FORM,
    ROW_FIELDS,
    change,
    decode,
    flaw,
    row,
    wrapped,
    written,
)


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

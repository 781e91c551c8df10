"""Every bad definition of the Debezium format is refused, with its own code and words."""

# ruff: noqa: E501  one case a line, with its reason and words

from __future__ import annotations

from typing import Any

import pytest

import slackwater
from slackwater.base.errors import DefinitionError
from slackwater.formats import json

sw: Any = slackwater  # untyped: some of these definitions are wrong in their types


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

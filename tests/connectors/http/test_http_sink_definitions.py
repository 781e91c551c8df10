"""What an HTTP sink may be told, and how it is shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from slackwater.base.errors import DefinitionError
from slackwater.connectors.http.sink import definition as http_module
from slackwater.connectors.http.sink import http
from slackwater.connectors.memory.sink import memory
from slackwater.connectors.sink import Slot
from slackwater.formats.dead_letter_columns import DEAD_LETTER_SCHEMA
from slackwater.sinks import files
from tests.connectors.http.deliveries import SCHEMA


@pytest.mark.parametrize(
    "url, options, words",
    [
        ("https://ann:hush@host/", {}, r"without credentials; got https://…@host/; write headers="),
        ("ftp://host/", {}, "https://host/path; got 'ftp://host/'"),
        ("https:///path", {}, "https://host/path"),
        ("https://host/#top", {}, "https://host/path"),
        ("https://host:port/", {}, "an invalid URL"),
        ("https://höst/", {}, "in ASCII"),
        (7, {}, "in ASCII; got int"),
        ("http://host/", {"ca": "ca.pem"}, "write https:// for TLS"),
        ("http://host/?token=hush", {}, r"without credentials; got http://host/\?…; write headers="),
        ("http://host/?a=1&API_Key=hush", {}, "without credentials"),
        ("http://host/?access%5Ftoken=hush", {}, "without credentials"),
        ("ftp://host/?a=hush", {}, r"https://host/path; got 'ftp://host/\?…'"),
        ("http://host/", {"rejected": None}, "a sink for rejected rows; got None; write, for example,"),
        ("http://host/", {"method": "GET"}, "one of POST, PUT, PATCH; got 'GET'"),
        ("http://host/", {"concurrency": 0}, "a whole number from 1 to 64; got 0"),
        ("http://host/", {"concurrency": 65}, "a whole number from 1 to 64; got 65"),
        ("http://host/", {"batch_rows": True}, "a whole number from 1 to 10000; got True"),
        ("http://host/", {"key": ["user", "user"]}, "distinct names"),
        ("http://host/", {"delivery": "twice"}, "one of exactly_once"),
        ("http://host/", {"headers": [("a", "b")]}, "a dictionary of names and values; got list"),
        ("http://host/", {"headers": {"Idempotency-Key": "1"}}, "the sink does not set itself; got 'Idempotency-Key'"),
        ("http://host/", {"headers": {"a b": "1"}}, "got 'a b'"),
        ("http://host/", {"headers": {"X-A": "hush\r\n"}}, "an invalid value for 'X-A'"),
    ],
)
def test_definition_that_cannot_be_right_is_refused(url: Any, options: dict[str, Any], words: str) -> None:  # noqa: ANN401
    with pytest.raises(DefinitionError, match=rf"SINK_OPTION.*of the HTTP sink must be.*{words}") as refused_as:
        http(url, **{"rejected": memory()} | options)
    assert "hush" not in str(refused_as.value)


@pytest.mark.parametrize("name", ["Authorization", "X-Auth-Token", "x-api-key", "Client-Secret"])
def test_credentials_must_be_secrets(name: str) -> None:
    with pytest.raises(DefinitionError, match=rf"SECRET_EXPECTED.*`headers\['{name}'\]`"):
        http("http://host/", rejected=memory(), headers={name: "Bearer hush"})


def test_what_follows_the_question_mark_is_not_shown() -> None:
    sink = http("http://host/rows?k=hush", rejected=memory())
    assert "hush" not in f"{sink} {sink!r}"


def test_sink_has_the_place_of_its_refused_rows(tmp_path: Path) -> None:
    sink = http("http://host/rows?x=1", rejected=files(tmp_path))
    assert sink.place == str(tmp_path)
    assert str(sink) == f"http POST http://host/rows?… (refused rows to files {tmp_path} (Parquet))"
    slot = Slot(pipeline="test", output="results", schema=SCHEMA)
    assert http_module._rejected_slot(slot) == replace(slot, output="results.rejected", schema=DEAD_LETTER_SCHEMA)

"""The records and the folders that the MQTT guide shows are those that the bridge writes."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from slackwater.connectors.mqtt.messages import Message, topic_folder, wrapped_message
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "guides" / "mqtt.md").read_text(encoding="utf-8")


def lines_of(language: str, first: str) -> list[str]:
    """Return the lines of the block whose first line begins with `first`."""
    [block] = re.findall(rf"^```{language}\n({re.escape(first)}.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return str(block).splitlines()


def test_records_of_the_page_are_those_of_the_bridge() -> None:
    sent = [("sensors/7/temp", b'{"id": "a1", "celsius": 21.50}'), ("sensors/8/door", b"OPEN")]
    written = [
        wrapped_message(
            Message(
                topic=topic,
                payload=payload,
                qos=1,
                retain=False,
                dup=False,
                packet_id=number,
                received_at=datetime(2026, 3, 1, 12, 0, number, tzinfo=UTC),
            )
        ).decode()
        for number, (topic, payload) in enumerate(sent, 1)
    ]
    assert lines_of("json", "{") == written


@pytest.mark.parametrize("line", lines_of("text", "sensors/7/temp "))
def test_folder_of_a_topic_is_the_one_on_the_page(line: str) -> None:
    topic, folder = re.split(r" {2,}", line)
    assert topic_folder(topic) == folder


def test_code_of_the_page_is_public() -> None:
    assert "from slackwater." not in PAGE

"""What is written of a message, and where it goes."""

from __future__ import annotations

import base64
import json
import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.connectors.mqtt.messages import Message, fits_a_line, topic_folder, wrapped_message

NOON = datetime(2026, 3, 1, 12, 0, 0, 7_000, tzinfo=UTC)


def message(
    payload: bytes, *, topic: str = "sensors/7/temp", user_properties: tuple[tuple[str, str], ...] = ()
) -> Message:
    return Message(
        topic=topic,
        payload=payload,
        qos=1,
        retain=False,
        dup=False,
        packet_id=9,
        received_at=NOON,
        user_properties=user_properties,
    )


def test_a_message_is_an_object_with_all_that_mqtt_knows_of_it() -> None:
    line = wrapped_message(message(b'{"celsius": 21.50}', user_properties=(("id", "a7"), ("id", "b"))))
    assert line == (
        b'{"topic":"sensors/7/temp","qos":1,"retain":false,"dup":false,"packet_id":9,'
        b'"received_at":"2026-03-01T12:00:00.007Z",'
        b'"user_properties":[{"name":"id","value":"a7"},{"name":"id","value":"b"}],'
        b'"payload":{"celsius": 21.50}}'
    )


@pytest.mark.parametrize(
    "payload",
    [
        b"ON",
        b"",
        b"\x00\xff\xfe",
        b"NaN",
        b"[-Infinity]",
        b'{"half": ',
        b'"\\ud800"',
        b"[" * 100_000,
        b"\xef\xbb\xbf1",
        '{"a":1}'.encode("utf-16"),
    ],
    ids=["text", "empty", "bytes", "nan", "infinity", "cut off", "half a character", "deep", "bom", "utf-16"],
)
def test_a_payload_that_is_no_json_is_kept_as_base64(payload: bytes) -> None:
    record = json.loads(wrapped_message(message(payload)))
    assert "payload" not in record
    assert base64.b64decode(record["payload_base64"], validate=True) == payload


@pytest.mark.parametrize("number", [b"0.10", b"1e400", b"123456789012345678901234567890", b"-0"])
def test_a_number_is_embedded_to_the_last_digit(number: bytes) -> None:
    assert wrapped_message(message(number)).endswith(b'"payload":' + number + b"}")


def test_json_over_several_lines_becomes_one_line() -> None:
    line = wrapped_message(message(b'{\r\n  "a": "x\\ny"\n}\n'))
    assert b"\n" not in line
    assert b"\r" not in line
    assert json.loads(line)["payload"] == {"a": "x\ny"}


@given(payload=st.binary() | st.text().map(str.encode), topic=st.text(min_size=1))
def test_whatever_a_payload_is_it_can_be_had_back_from_one_line(payload: bytes, topic: str) -> None:
    line = wrapped_message(message(payload, topic=topic))
    record = json.loads(line)
    assert b"\n" not in line
    assert record["topic"] == topic
    if "payload" in record:
        assert record["payload"] == json.loads(payload)
    else:
        assert base64.b64decode(record["payload_base64"]) == payload


@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_every_json_value_is_embedded_as_it_is(value: object) -> None:
    line = wrapped_message(message(json.dumps(value, indent=1).encode()))
    assert json.loads(line)["payload"] == value


@pytest.mark.parametrize(
    "payload, fits", [(b"", True), (b"a\rb", True), (b"a\r", False), (b"a\nb", False), (b"\n", False)]
)
def test_a_payload_fits_a_line_if_a_log_gives_it_back(payload: bytes, *, fits: bool) -> None:
    assert fits_a_line(payload) is fits


@pytest.mark.parametrize(
    "topic, folder",
    [
        ("sensors/7/temp", "sensors.7.temp"),
        ("a", "a"),
        ("Plant-1/line_2", "Plant-1.line_2"),
        ("_hidden/x", "hidden-x~d87478fe9c0f77ee"),
        ("a.b/c", "a-b-c~fc7cd9c4e073b50b"),
        ("../../etc", "etc~74ccf3c5b4c19a81"),
    ],
)
def test_a_topic_keeps_its_folder_for_ever(topic: str, folder: str) -> None:
    assert topic_folder(topic) == folder


@given(topic=st.text(min_size=1, max_size=300))
def test_every_topic_has_a_folder_that_a_log_and_spark_take(topic: str) -> None:
    folder = topic_folder(topic)
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._~-]{0,254}", folder)


@given(topics=st.lists(st.text(alphabet="a./_-~ü ", min_size=1), unique=True, max_size=50))
def test_two_topics_never_share_a_folder(topics: list[str]) -> None:
    assert len({topic_folder(topic) for topic in topics}) == len(topics)


def test_topics_can_be_spread_over_a_few_folders() -> None:
    folders = [topic_folder(f"device/{number}", partitions=4) for number in range(400)]
    assert set(folders) == {"0", "1", "2", "3"}
    assert min(folders.count(name) for name in "0123") > 50
    assert topic_folder("device/7", partitions=4) == folders[7]

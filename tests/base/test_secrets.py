"""No address that a user gives is shown with the part of it that may be a secret."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import slackwater as sw
from slackwater.base.errors import DefinitionError
from slackwater.base.secrets import holds_credentials, shown_url
from slackwater.connectors.mqtt.definition import mqtt_bridge
from slackwater.formats.registry import registry
from slackwater.sinks import memory
from slackwater.tools.dead_letters.places import where_of
from tests.cases import cases


@pytest.mark.parametrize(
    "url, shown",
    [
        ("https://host", "https://host"),
        ("https://host:8443/rows", "https://host:8443/rows"),
        ("https://host/rows/", "https://host/rows/"),
        ("https://hooks.example/services/T0/B0/hush", "https://hooks.example/services/…"),
        ("https://host/0123456789abcdefghijklmnop", "https://host/…"),
        ("https://host/rows;token=hush", "https://host/rows;…"),
        ("https://host/rows?token=hush", "https://host/rows?…"),
        ("https://host/#token=hush", "https://host/#…"),
        ("https://hush@host/rows", "https://…@host/rows"),
        ("https://ann:hush/@hush@host/rows", "https://…@host/rows"),
        ("s3a://ann:hush@bucket/lake/totals", "s3a://…@bucket/lake/…"),
        ("kafka://a:1,b:2/topic", "kafka://a:1,b:2/topic"),
        ("/services/hush", "/services/…"),
        ("host:8081", "host:8081"),
        ("host=db password=hush", "…"),
        ("https://ho st hush/", "https://…/"),
        ("", ""),
    ],
)
def test_address_is_shown_without_what_may_be_a_secret(url: str, shown: str) -> None:
    assert shown_url(url) == shown


@pytest.mark.parametrize(
    "url",
    [
        "https://ann:hush@host",
        "https://host/rows;token=hush",
        "https://host/;a=1;access%5Ftoken=hush",
        "https://host/?a=1&Api-Key=hush",
        "https://host/#a=1&token=hush",
        "s3a://ann:hush@bucket/lake",
    ],
)
def test_credentials_in_an_address_are_found(url: str) -> None:
    assert holds_credentials(url)


@pytest.mark.parametrize(
    "url", ["https://host:8443/rows?shop=1", "redis://reader@host:6379/0", "abfss://lake@account.example/totals"]
)
def test_address_without_credentials_is_taken_for_one(url: str) -> None:
    assert not holds_credentials(url)


def _http(url: str) -> object:
    return sw.sinks.http(url, rejected=memory())


def _redis(url: str) -> object:
    return sw.sinks.redis(url, key="user")


def _postgres(url: str) -> object:
    return sw.sinks.postgres(url, "totals")


def _kafka(servers: str) -> object:
    return sw.sources.kafka(servers, topic="orders")


def _bridge(broker: str) -> object:
    return mqtt_bridge(broker, "a", "log")


def _bridge_target(to: str) -> object:
    return mqtt_bridge("host", "a", to)


def _letters(text: str) -> object:
    return where_of(text, what="WHERE")


@pytest.mark.parametrize(
    "make, given",
    cases(
        {
            _http: [
                "https://host/rows;token=hush",
                "https://host/rows#token=hush",
                "https://host/rows#hush",
                "ftp://host/services/hush",
            ],
            _redis: [
                "redis://host/0;password=hush",
                "redis://host/0#hush",
                "redis://host/0/hush",
                "http://ann:hush@host",
            ],
            _postgres: [
                "postgresql://db/shop?options=-c%20app.token%3Dhush",
                "postgresql://db/shop?options=--app.password%3Dhush",
                "postgresql://db/shop;password=hush",
            ],
            _kafka: ["ann:hush@host:9092", "host:9092?password=hush", "host:9092;password=hush"],
            _bridge: ["mqtt://ann:hush@host", "host/a/hush", "host;password=hush"],
            _bridge_target: [
                "kafka://ann:hush@host:9092",
                "kafka://ann:hush@host:9092/topic",
                "s3://ann:hush@bucket/log",
            ],
            _letters: ["kafka://ann:hush@host:9092", "kafka://ann:hush@host:9092/topic"],
            registry: [
                "https://host;token=hush",
                "https://host/a;token=hush",
                "https://host/a#token=hush",
                "https://ann:hush@host",
            ],
            sw.sinks.delta: [
                "s3a://ann:hush@bucket/totals",
                "s3a://hush@bucket/totals",
                "https://host/totals?sig=hush",
            ],
            sw.sources.delta: ["s3a://ann:hush@bucket/totals"],
            sw.sinks.files: ["s3a://ann:hush@bucket/out"],
            sw.sources.log: ["s3a://ann:hush@bucket/out"],
        }
    ),
)
def test_address_that_is_refused_is_not_repeated_with_its_secret(make: Callable[[Any], object], given: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        make(given)
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize(
    "made, words",
    [
        (_http("https://hooks.example/services/T0/hush"), "https://hooks.example/services/… "),
        (_http("https://host/rows?shop=hush"), "https://host/rows?… "),
        (registry("https://host/api/hush"), "https://host/api/…"),
        (_postgres("postgresql://db/shop?application_name=hush"), "db/shop "),
    ],
)
def test_address_that_is_taken_is_shown_without_what_may_be_a_secret(made: object, words: str) -> None:
    assert words in str(made)
    assert "hush" not in str(made)


def test_table_s_credentials_are_spark_s() -> None:
    with pytest.raises(DefinitionError, match=r"DELTA_PATH_CREDENTIALS.*got s3a://…@bucket/totals; give them to Spark"):
        sw.sinks.delta("s3a://ann:hush@bucket/totals")


def test_table_in_azure_has_its_container_before_the_at_sign() -> None:
    path = "abfss://lake@account.example/totals"
    assert sw.sinks.delta(path).path == path

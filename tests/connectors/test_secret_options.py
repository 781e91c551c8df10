"""Every option that takes a secret: found by reading the public functions, so that a new one cannot be forgotten."""

from __future__ import annotations

import contextlib
import inspect
import json
import pickle
import types
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle

import slackwater as sw
from slackwater.base.errors import DefinitionError, SlackwaterError
from slackwater.base.secrets import Secret, is_confidential, secret
from slackwater.connectors.mqtt.definition import mqtt_bridge
from slackwater.formats.registry import Revealing
from slackwater.testing import SinkHarness, rows_source
from tests.connectors.imposter import Imposter
from tests.connectors.lookup_stores import ask, at_work

CANARY = "c4nary-c4nary"
PLACES = ("formats", "kafka", "lookups", "sinks", "sources", "testing", "windows")

Make = Callable[[Any], Any]
OPTIONS: dict[tuple[str, str], Make] = {
    ("bridge.mqtt_bridge", "password"): lambda given: mqtt_bridge(
        "127.0.0.1:1", "a", "log", username="ann", password=given
    ),
    ("formats.registry", "auth"): lambda given: sw.formats.registry("http://127.0.0.1:1", auth=given),
    ("kafka.sasl", "password"): lambda given: sw.kafka.sasl("PLAIN", "ann", given),
    ("kafka.tls", "key_password"): lambda given: sw.kafka.tls(certificate="c", key="k", key_password=given),
    ("lookups.http", "headers"): lambda given: sw.lookups.http(
        "http://127.0.0.1:1/users", headers={"Authorization": given}
    ),
    ("lookups.postgres", "password"): lambda given: sw.lookups.postgres(
        "postgresql://ann@127.0.0.1:1/shop", "users", password=given
    ),
    ("lookups.redis", "password"): lambda given: sw.lookups.redis("redis://127.0.0.1:1/0", password=given),
    ("sinks.http", "headers"): lambda given: sw.sinks.http(
        "http://127.0.0.1:1/rows", headers={"Authorization": given}, rejected=sw.sinks.memory()
    ),
    ("sinks.kafka", "sasl"): lambda given: sw.sinks.kafka("h:1", "t", sasl=sw.kafka.sasl("PLAIN", "ann", given)),
    ("sinks.kafka", "tls"): lambda given: sw.sinks.kafka(
        "h:1", "t", tls=sw.kafka.tls(certificate="c", key="k", key_password=given)
    ),
    ("sinks.postgres", "password"): lambda given: sw.sinks.postgres(
        "postgresql://ann@127.0.0.1:1/shop", "totals", password=given
    ),
    ("sinks.redis", "password"): lambda given: sw.sinks.redis("redis://127.0.0.1:1/0", key="user", password=given),
    ("sources.kafka", "sasl"): lambda given: sw.sources.kafka(
        "h:1", topic="t", sasl=sw.kafka.sasl("PLAIN", "ann", given)
    ),
    ("sources.kafka", "tls"): lambda given: sw.sources.kafka(
        "h:1", topic="t", tls=sw.kafka.tls(certificate="c", key="k", key_password=given)
    ),
    ("table", "password"): lambda given: sw.table(
        "postgresql://ann@127.0.0.1:1/shop?connect_timeout=1", query="SELECT 1 AS a", password=given
    ),
}
NEEDS_A_SERVER = {("table", "password")}
"""Tables read their columns when they are defined."""
OF_PARTS = {(name, option) for name, option in OPTIONS if option in ("sasl", "tls")}
"""Options that take what another function has made of a secret."""
MADE_BY_FUNCTIONS = {
    ("formats.Registry", "auth"),
    ("kafka.Sasl", "password"),
    ("kafka.Tls", "key_password"),
    ("sinks.Mark", "token"),
    ("testing.SinkHarness", "token"),
}
"""Classes that users get from functions; and the token of a batch's input, which is no secret."""


def public() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield every public function and class with its name."""
    yield "bridge.mqtt_bridge", mqtt_bridge
    for name in sw.__all__:
        found = getattr(sw, name)
        if isinstance(found, types.ModuleType):
            assert name in PLACES, f"{name} is new: search it for secrets as well"
            named = getattr(found, "__all__", None) or [each for each in vars(found) if not each.startswith("_")]
            for inner in named:
                if callable(value := getattr(found, inner)):
                    yield f"{name}.{inner}", value
        elif callable(found):
            yield name, found


def takes_a_secret(hint: Any) -> bool:  # noqa: ANN401  a type
    """Return whether a value of this type is a secret, or has one in it."""
    return hint in (Secret, Revealing) or any(takes_a_secret(part) for part in typing.get_args(hint))


def _hints(what: Any) -> dict[str, Any]:  # noqa: ANN401  a function or class
    with contextlib.suppress(NameError, TypeError):
        return typing.get_type_hints(what)
    return {}


def secret_options() -> set[tuple[str, str]]:
    found = set()
    for name, function in public():
        if inspect.isclass(function):
            if issubclass(function, Exception | Secret):
                continue
            hints = _hints(function.__init__)
        else:
            hints = _hints(function)
        for option, hint in hints.items():
            if option != "return" and (takes_a_secret(hint) or is_confidential(option)):
                found.add((name, option))
    return found


def test_every_option_that_takes_a_secret_is_tried_below() -> None:
    assert secret_options() - MADE_BY_FUNCTIONS == {*OPTIONS} - OF_PARTS


@pytest.mark.parametrize("option", OPTIONS, ids=".".join)
def test_a_plain_value_is_refused_and_not_repeated(option: tuple[str, str]) -> None:
    with pytest.raises(DefinitionError, match="SECRET_EXPECTED") as refused:
        OPTIONS[option](CANARY)
    assert CANARY not in str(refused.value)


@pytest.mark.parametrize("option", [each for each in OPTIONS if each not in NEEDS_A_SERVER], ids=".".join)
def test_a_definition_holds_the_name_of_its_secret_and_not_the_value(
    option: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANARY", CANARY)
    made = OPTIONS[option](secret("CANARY"))
    travels = cloudpickle.dumps(made)  # type: ignore[no-untyped-call]  # has no types
    assert b"CANARY" in travels, "it can be revealed where it is used"
    assert CANARY.encode() not in travels
    assert CANARY not in repr(made) + str(made)
    assert pickle.loads(travels) is not None  # noqa: S301  our own bytes


def test_a_plan_shows_no_secret(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CANARY", CANARY)
    rows = sw.stream("rows", rows_source("user string, ts long")).event_time("ts")
    for store in ("http", "postgres", "redis"):
        [make] = [make for (name, _), make in OPTIONS.items() if name == f"lookups.{store}"]
        rows = rows.lookup(make(secret("CANARY")), key="user", output=f"{store} string", name=store)
    sinks = [make(secret("CANARY")) for (name, _), make in OPTIONS.items() if name.startswith("sinks.")]
    pipeline = sw.Pipeline("p", *map(rows.to, sinks), rows.dead_letters.drop())
    shown = [pipeline.explain(), repr(pipeline), str(pipeline.check()), json.dumps(pipeline.plan().fingerprint)]
    assert "redis" in shown[0]
    assert CANARY not in "".join(shown)


def _lookups() -> list[str]:
    return [name for name, _ in OPTIONS if name.startswith("lookups.")]


ECHO = {
    "redis": [b"-ERR unknown command 'AUTH', with args beginning with: '%s' \r\n" % CANARY.encode()],
    "http": [b"HTTP/1.1 401 No\r\nContent-Length: 22\r\n\r\nI got %s, no" % CANARY.encode()],
    "postgres": [b"E"],
}


@pytest.mark.parametrize("name", _lookups())
def test_a_store_that_repeats_what_it_was_sent_does_not_make_us_repeat_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANARY", CANARY)
    kind = name.partition(".")[2]
    with Imposter(parts=ECHO[kind]) as server:
        lookup = OPTIONS[name, "headers" if kind == "http" else "password"](secret("CANARY"))
        object.__setattr__(lookup, "url", lookup.url.replace("127.0.0.1:1", f"127.0.0.1:{server.port}"))
        try:
            shown = str(ask(at_work(lookup, "name string"), "ada").failed)
        except SlackwaterError as error:
            shown = str(error)
    assert shown
    assert CANARY not in shown


@pytest.mark.parametrize("kind", ["redis", "http"])
def test_a_sink_whose_server_repeats_what_it_was_sent_does_not_repeat_it(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import polars as pl

    monkeypatch.setenv("CANARY", CANARY)
    with Imposter(parts=ECHO[kind]) as server:
        sink = OPTIONS[f"sinks.{kind}", "headers" if kind == "http" else "password"](secret("CANARY"))
        object.__setattr__(sink, "url", sink.url.replace("127.0.0.1:1", f"127.0.0.1:{server.port}"))
        object.__setattr__(sink, "retry_for_ms", 0)
        frame = pl.DataFrame({"user": ["ada"], "n": [1]})
        with pytest.raises(SlackwaterError) as ended:
            SinkHarness(sink=sink, schema=frame.schema).deliver(frame)
    assert CANARY not in str(ended.value)

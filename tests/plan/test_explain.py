"""What `explain` says of a sink beside its place and its promise: the options that somebody chose."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl
import pytest

import slackwater as sw
from slackwater.base.secrets import Secret
from slackwater.connectors.delta.sink import delta
from slackwater.connectors.files.sink import files
from slackwater.connectors.http.sink import http
from slackwater.connectors.kafka.sink import kafka
from slackwater.connectors.postgres.sink import postgres
from slackwater.connectors.redis.sink import redis
from slackwater.connectors.sink import Sink, SinkWriter, Slot

RECEIVER = "https://receiver.example/rows"
SERVERS = "localhost:9092"
DATABASE = "postgresql://me@db.example/shop"
CACHE = "redis://cache.example:6379/0"
SINKS: list[Callable[..., Sink]] = [delta, files, http, kafka, postgres, redis]
SAID_OTHERWISE = {
    delta: {"path", "merge_on", "delivery"},
    files: {"path", "format"},
    http: {"url", "method", "delivery"},
    kafka: {"servers", "topic", "delivery", "tls", "sasl"},
    postgres: {"url", "table", "upsert_on", "delivery", "password"},
    redis: {"url", "key", "prefix", "delivery", "password"},
}
"""Options that the sink's own line tells, and passwords, of which nothing is told."""


@dataclass(frozen=True)
class Upper:
    """A format of a user's own; what it would print of itself is nobody's business."""

    token: str

    def encoder(self, schema: pl.Schema, *, subject: str) -> Any:  # noqa: ANN401  never asked for
        raise NotImplementedError


def explained(sink: Sink) -> list[str]:
    """Return the lines of `explain` from the results' sink to the next output."""
    source = sw.testing.rows_source({"user": pl.String(), "total": pl.Int64(), "at": pl.Datetime("us", "UTC")})
    rows = sw.stream("rows", source)
    pipeline = sw.Pipeline("p", rows.to(sink), rows.dead_letters.drop())
    lines = pipeline.explain().splitlines()
    [at] = [number for number, line in enumerate(lines) if str(sink) in line]
    return lines[at : next(number for number in range(at + 1, len(lines)) if "→" in lines[number])]


@pytest.mark.parametrize(
    "sink, words",
    [
        (
            delta("/lake/t", merge_on="user", partition_by=["user", "at"], optimize_every=100, schema_evolution=True),
            "partition_by user, at; optimize_every 100; schema_evolution",
        ),
        (delta("/lake/t", changelog=True, retry_for="0s"), "changelog; retry_for 0s"),
        (files("/out/t", merge_after=100), "merge_after 100"),
        (files("/out/t", changelog=True), "changelog"),
        (
            http(RECEIVER, key=["user"], concurrency=2, timeout="3s", batch_rows=50, rejected=files("/out/no")),
            "key user; concurrency 2; timeout 3s; batch_rows 50",
        ),
        (http(RECEIVER, rejected=files("/out/no", merge_after=9)), "rejected (merge_after 9)"),
        (
            kafka(SERVERS, "t", key=["user", "at"], partitioner="random", create=8, marks_topic="m", changelog=True),
            "key user, at; partitioner random; changelog; create 8; marks_topic m",
        ),
        (
            kafka(SERVERS, "t", key="user", tombstones=True, value=sw.formats.avro(), retry_for="10m"),
            "key user; value Avro; tombstones; retry_for 10m",
        ),
        (
            postgres(DATABASE, "t", columns={"user": "who", "total": "n"}, create=True, replace_nul="?"),
            "columns user, total; create; replace_nul ?",
        ),
        (redis(CACHE, key="user", columns=["total"], ttl="30d"), "columns total; ttl 30d"),
        (redis("rediss://cache.example", key="user", ca="/etc/ca.pem"), "ca /etc/ca.pem"),
    ],
)
def test_options_that_were_chosen_are_one_line_below_the_sink(sink: Sink, words: str) -> None:
    [_, below] = explained(sink)
    assert below.strip() == f"chosen: {words}"


@pytest.mark.parametrize(
    "sink",
    [
        delta("/lake/t"),
        files("/out/t", format="json"),
        http(RECEIVER, rejected=files("/out/no")),
        kafka(SERVERS, "t", value="json", options={}),
        postgres(DATABASE, "t", retry_for="5m"),
        redis(CACHE, key="user"),
    ],
)
def test_sink_as_it_comes_is_one_line(sink: Sink) -> None:
    assert len(explained(sink)) == 1


@pytest.mark.parametrize("make", SINKS)
def test_no_option_of_a_sink_is_forgotten(make: Callable[..., Sink]) -> None:
    kind = {delta: delta("/t"), files: files("/t"), http: http(RECEIVER, rejected=files("/no"))}
    kind |= {kafka: kafka(SERVERS, "t"), postgres: postgres(DATABASE, "t"), redis: redis(CACHE, key="user")}
    shown = {name.removesuffix("_ms") for name in (*kind[make].shown_options, "retry_for_ms")}
    options = inspect.signature(make).parameters.keys()
    assert options - shown == SAID_OTHERWISE[make]


def test_values_that_may_be_secret_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "hush")
    password = sw.secret("TOKEN")
    headers: dict[str, str | Secret] = {"Authorization": password, "X-Team": "hush"}
    sinks = {
        "headers Authorization, X-Team": http(RECEIVER, headers=headers, rejected=files("/out/no")),
        "value Upper; headers team; options client.id": kafka(
            SERVERS, "t", value=Upper("hush"), headers={"team": pl.lit("hush")}, options={"client.id": "hush"}
        ),
        "create": postgres(DATABASE, "t", password=password, create=True),
        "ttl 1m": redis(CACHE, key="user", password=password, ttl="1m"),
    }
    for words, sink in sinks.items():
        lines = explained(sink)
        assert lines[1].strip() == f"chosen: {words}"
        assert "hush" not in "".join(lines)


@pytest.mark.parametrize("text, shown", [("", "''"), ("\n", r"'\n'"), ("a\nb", r"'a\nb'"), (" ", "' '")])
def test_text_that_cannot_be_seen_is_quoted(text: str, shown: str) -> None:
    assert postgres(DATABASE, "t", replace_nul=text).chosen() == f"replace_nul {shown}"


def test_name_that_breaks_lines_is_escaped() -> None:
    rows = sw.stream("rows", sw.testing.rows_source({"a\nb": pl.String(), "at": pl.Datetime("us", "UTC")}))
    results = rows.event_time("at").key_by("a\nb").window(sw.tumbling("1m")).aggregate(**{"n\t\u2028": sw.count()})
    pipeline = sw.Pipeline("p", results.to(sw.sinks.memory()), results.late.drop(), rows.dead_letters.drop())
    said = pipeline.explain()
    assert said.splitlines() == said.split("\n")[:-1]
    assert r"key       a\nb" in said
    assert r"computes  n\t\u2028: bigint" in said


@dataclass(frozen=True, kw_only=True, eq=False)
class Mail(Sink):
    """A sink of a user's own."""

    shown_options: ClassVar[tuple[str, ...]] = ("subject", "pause_ms", "hours", "share")
    subject: str = "results"
    pause_ms: int = 0
    hours: Sequence[int] = ()
    share: float = 1.0
    password: str = "hush"  # noqa: S105  is the test's
    retry_for_ms: int = 1_000

    def open(self, slot: Slot) -> SinkWriter:
        raise NotImplementedError

    def __str__(self) -> str:
        return "mail"


def test_sink_of_a_users_own_shows_what_it_names() -> None:
    assert len(explained(Mail(password="more"))) == 1  # noqa: S106  as above
    [_, below] = explained(Mail(subject="totals", pause_ms=1_500, hours=[9, 17], share=0.5, retry_for_ms=2_000))
    assert below.strip() == "chosen: subject totals; pause 1s500ms; hours 9, 17; share 0.5; retry_for 2s"

"""Every rule on a pipeline that breaks it, and on one that is as it should be."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import MagicMock

import polars as pl
import pytest

import slackwater as sw
from slackwater.connectors.dataframe.source import DataFrameSource
from slackwater.observe.checker.facts import HotKey
from slackwater.observe.checker.rules import RULES
from slackwater.plan.streams import KeyedStream, Results, WindowedStream
from tests.observe.checker.code_samples import Honest, Impatient, Restless, calm_map, restless_map, sleepy_map
from tests.observe.checker.pipelines import (
    chained,
    codes,
    decoded,
    dropping,
    joined,
    mapped,
    passing,
    processed,
    rows,
    said,
    stepped,
    windowed,
)

DAY_MS = 86_400_000
KAFKA = "localhost:9092"


@dataclass(frozen=True, kw_only=True)
class Case:
    code: str
    breaks: Callable[[], sw.Pipeline]
    says: str
    keeps: Callable[[], sw.Pipeline]
    facts: dict[str, Any] = field(default_factory=dict)
    """What is known of both pipelines."""
    quiet_facts: dict[str, Any] | None = None
    """What is known of the second one, if that is something else."""


class Assigns(Honest):
    def on_event(self, event: dict[str, Any], ctx: sw.Context) -> None:  # type: ignore[override]
        self.last = event["v"]


class KeptForever(Honest):
    last = sw.value_state(pl.Float64, ttl=sw.FOREVER)


class KeptForDecades(Honest):
    last = sw.value_state(pl.Float64, ttl="9999d")


def monthly(keyed: KeyedStream) -> WindowedStream:
    return keyed.window(sw.tumbling("30d"))


def counted(windows: WindowedStream) -> Results:
    return windows.aggregate(n=sw.count())


def daily(keyed: KeyedStream) -> WindowedStream:
    return keyed.window(sw.tumbling("1d"))


CASES = [
    Case(
        code="SW101",
        breaks=lambda: windowed(decoded().processing_time()),
        says="stream `rows`: processing time decides the results of `w`",
        keeps=windowed,
    ),
    Case(
        code="SW102",
        breaks=lambda: windowed(rows(max_ahead=None)),
        says="stream `rows`: its event time has no max_ahead",
        keeps=windowed,
    ),
    Case(
        code="SW103",
        breaks=windowed,
        says="stream `rows`: it has 3 partitions and no idle_after",
        keeps=lambda: windowed(rows(idle_after="1m")),
        facts={"partitions": {"rows": 3}},
    ),
    Case(
        code="SW104",
        breaks=windowed,
        says="stream `rows`: out_of_orderness is 10s, the measured p99 is 1m",
        keeps=lambda: windowed(rows(out_of_orderness="1m")),
        facts={"p99_ms": {"rows": 60_000}},
    ),
    Case(
        code="SW105",
        breaks=lambda: windowed(lateness="2d"),
        says="step `w`: it allows 2d of lateness, stream `rows` keeps records for 1d",
        keeps=windowed,
        facts={"retention_ms": {"rows": DAY_MS}},
    ),
    Case(
        code="SW106",
        breaks=lambda: chained("2d"),
        says="step `hours`: its watermark is 2d behind stream `rows`",
        keeps=lambda: chained("1m"),
    ),
    Case(
        code="SW201",
        breaks=lambda: stepped(lambda keyed: keyed.deduplicate(within=sw.FOREVER, name="d")),
        says="step `d`: it remembers every key forever",
        keeps=lambda: stepped(lambda keyed: keyed.deduplicate(within="1h", name="d")),
    ),
    Case(
        code="SW201",
        breaks=lambda: processed(KeptForever()),
        says="step `own`: its last is kept forever",
        keeps=lambda: processed(Honest()),
    ),
    Case(
        code="SW201",
        breaks=lambda: stepped(lambda keyed: counted(keyed.window(sw.count_window(10), name="c")), late=False),
        says="step `c`: count windows remember how many rows each key had, forever",
        keeps=windowed,
    ),
    Case(
        code="SW202",
        breaks=lambda: joined(lambda left, right: left.join(right, between=("-4d", "4d"), name="j")),
        says="step `j`: it joins rows over 8d",
        keeps=lambda: joined(lambda left, right: left.join(right, between=("0s", "7d"), name="j")),
    ),
    Case(
        code="SW202",
        breaks=lambda: joined(lambda left, right: left.join_as_of(right, versions_ttl=sw.FOREVER, name="j")),
        says="step `j`: it keeps the last version of every key forever",
        keeps=lambda: joined(lambda left, right: left.join_as_of(right, versions_ttl="90d", name="j")),
    ),
    Case(
        code="SW202",
        breaks=lambda: joined(lambda left, right: monthly(left).join(monthly(right), name="j")),
        says="step `j`: it joins rows over windows of 30d",
        keeps=lambda: joined(lambda left, right: left.join(right, between=("0s", "7d"), name="j")),
    ),
    Case(
        code="SW203",
        breaks=lambda: windowed(window=sw.tumbling("7d"), computes={"vs": sw.count_distinct("v")}),
        says="step `w`: windows of 7d keep all values of vs (count_distinct)",
        keeps=lambda: windowed(window=sw.tumbling("7d"), computes={"vs": sw.approx_distinct("v")}),
    ),
    Case(
        code="SW203",
        breaks=lambda: windowed(window=sw.calendar("month", zone="UTC"), computes={"vs": sw.collect_list("v")}),
        says="step `w`: windows of 31d keep all values of vs (collect_list)",
        keeps=lambda: windowed(window=sw.calendar("day", zone="UTC"), computes={"vs": sw.collect_list("v")}),
    ),
    Case(
        code="SW203",
        breaks=lambda: windowed(lateness="3d", computes={"vs": sw.count_distinct("v")}),
        says="step `w`: windows of 1m, with 3d of allowed lateness, keep all values of vs (count_distinct)",
        keeps=lambda: windowed(lateness="1d", computes={"vs": sw.count_distinct("v")}),
    ),
    Case(
        code="SW203",
        breaks=lambda: windowed(window=sw.session("30m")),
        says="step `w`: a key that never pauses keeps its session open, because there is no max_length",
        keeps=lambda: windowed(window=sw.session("30m", max_length="1d")),
    ),
    Case(
        code="SW203",
        breaks=lambda: windowed(window=sw.tumbling("1d"), lateness="300d"),
        says="step `w`: windows of 1d, with 300d of allowed lateness, are kept for more than 90d",
        keeps=lambda: windowed(window=sw.tumbling("30d"), lateness="60d"),
    ),
    Case(
        code="SW203",
        breaks=lambda: windowed(window=sw.tumbling("36500d"), lateness="0s"),
        says="step `w`: windows of 36500d are kept for more than 90d",
        keeps=lambda: windowed(window=sw.tumbling("90d"), lateness="0s"),
    ),
    Case(
        code="SW203",
        breaks=lambda: stepped(lambda keyed: keyed.deduplicate(within="3650d", name="d")),
        says="step `d`: it remembers every key for 3650d",
        keeps=lambda: stepped(lambda keyed: keyed.deduplicate(within="90d", name="d")),
    ),
    Case(
        code="SW203",
        breaks=lambda: processed(KeptForDecades()),
        says="step `own`: its last is kept for 9999d",
        keeps=lambda: processed(Honest()),
    ),
    Case(
        code="SW204",
        breaks=lambda: stepped(lambda keyed: keyed.deduplicate(within="1h", name="d")),
        says="step `d`: key ada has 40% of its rows",
        keeps=windowed,
        facts={"hot_keys": {"d": HotKey("ada", 0.4), "w": HotKey("ada", 0.4)}},
    ),
    Case(
        code="SW204",
        breaks=lambda: stepped(lambda keyed: keyed.deduplicate(within="1h", name="d")),
        says="step `d`: it has 3 keys for 8 cores",
        keeps=windowed,
        facts={"keys": {"d": 3}, "cores": 8},
    ),
    Case(
        code="SW205",
        breaks=lambda: windowed(key_groups=4),
        says="pipeline `p`: it has 4 key groups for 8 cores",
        keeps=windowed,
        facts={"cores": 8},
    ),
    Case(
        code="SW206",
        breaks=lambda: windowed(window=sw.tumbling("7d")),
        says="step `w`: its windows are 7d long, the job has run for 2h",
        keeps=windowed,
        facts={"age_ms": 7_200_000},
    ),
    Case(
        code="SW206",
        breaks=lambda: joined(lambda left, right: daily(left).join(daily(right), name="j")),
        says="step `j`: its windows are 1d long, the job has run for 1m",
        keeps=lambda: joined(lambda left, right: daily(left).join(daily(right), name="j")),
        facts={"age_ms": 500},
        quiet_facts={"age_ms": DAY_MS // 10},
    ),
    Case(
        code="SW301",
        breaks=lambda: mapped(restless_map),
        says="step `rows.map`: restless_map uses uuid.uuid4",
        keeps=lambda: mapped(calm_map),
    ),
    Case(
        code="SW301",
        breaks=lambda: processed(Restless()),
        says="step `own`: Restless.on_event uses datetime.datetime.now, Restless._seed uses random.random",
        keeps=lambda: processed(Honest()),
    ),
    Case(
        code="SW302",
        breaks=lambda: mapped(sleepy_map),
        says="step `rows.map`: sleepy_map uses time.sleep",
        keeps=lambda: mapped(calm_map),
    ),
    Case(
        code="SW302",
        breaks=lambda: windowed(computes={"n": sw.accumulator(Impatient, "v")}),
        says="step `w`: Impatient.merge uses subprocess.call, Impatient.add uses urllib.request.urlopen",
        keeps=windowed,
    ),
    Case(
        code="SW303",
        breaks=lambda: processed(Assigns()),
        says="step `own`: Assigns.on_event assigns self.last",
        keeps=lambda: processed(Honest()),
    ),
    Case(
        code="SW401",
        breaks=lambda: windowed(to=sw.sinks.kafka(KAFKA, topic="t", key="k", delivery="at_least_once"), lateness="0s"),
        says=f"output `w`: Kafka t at {KAFKA} is at least once, although it could be exactly once",
        keeps=lambda: windowed(to=sw.sinks.console()),
    ),
    Case(code="SW402", breaks=lambda: dropping("late"), says="step `w`: its late rows are dropped", keeps=windowed),
    Case(
        code="SW403",
        breaks=lambda: dropping("dead letters"),
        says="stream `rows`: its dead letters are dropped",
        keeps=windowed,
    ),
    Case(
        code="SW501",
        breaks=lambda: passing(DataFrameSource(frame=MagicMock(), typed=pl.Schema({"k": pl.String}))),
        says="stream `rows`: nothing here limits how many rows of Spark DataFrame a batch takes",
        keeps=windowed,
    ),
    Case(
        code="SW502",
        breaks=windowed,
        says="pipeline `p`: it has run but was never restarted from its checkpoint",
        keeps=windowed,
        facts={"starts": 1},
        quiet_facts={"starts": 2},
    ),
]


NAMES = [f"{case.code}-{number}" for number, case in enumerate(CASES)]


def without_lines(text: str) -> str:
    return re.sub(r" \(line \d+\)", "", text)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_rule_finds_the_one_thing_that_breaks_it(case: Case) -> None:
    pipeline = case.breaks()
    assert [without_lines(text) for text in said(pipeline, case.code, **case.facts)] == [case.says]
    assert codes(pipeline, **case.facts) == [case.code], "and no other rule does"


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_rule_is_silent_on_the_pipeline_as_it_should_be(case: Case) -> None:
    facts = case.facts if case.quiet_facts is None else case.quiet_facts
    assert case.code not in codes(case.keeps(), **facts)


@pytest.mark.parametrize("case", [case for case in CASES if case.facts], ids=lambda case: case.code)
def test_rule_is_silent_while_its_fact_is_unknown(case: Case) -> None:
    assert case.code not in codes(case.breaks())


def test_every_rule_has_a_case() -> None:
    assert {case.code for case in CASES} == {rule.code for rule in RULES}


def test_kafka_has_several_partitions_until_the_opposite_is_known() -> None:
    stream = rows(source=sw.sources.kafka(KAFKA, topic="t"))
    assert codes(windowed(stream)) == ["SW103"]
    assert codes(windowed(stream), partitions={"rows": 1}) == []


def test_texts_of_rules_are_sentences_that_fit_into_one_line_of_a_log() -> None:
    for rule in RULES:
        assert rule.why.endswith("."), rule.code
        assert rule.why[0].isupper(), rule.code
        assert not rule.fix.endswith("."), rule.code
        assert len(rule.fix) < 120, rule.code

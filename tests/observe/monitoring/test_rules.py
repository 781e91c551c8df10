"""The alert rules, by Prometheus' own tool: each incident fires its alert and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from slackwater.observe.monitoring.rules_file import RULES, rules_file
from slackwater.observe.monitoring.thresholds import Thresholds
from tests.conftest import Needs
from tests.observe.monitoring.made_series import AT, GONE, HARMLESS, HEALTHY, INCIDENTS, LIMITS, MINUTES, PIPELINE, REST
from tests.observe.monitoring.promtool import check, fired, needs_promtool, rendered

SLOW_SINK = "a sink that is slow"
STARTS = {"prod": f"12x{MINUTES}", "staging": f"2x{AT} 3x2 4x2 5x2 6x{REST}", "new": f"_x{AT} 40x{REST}"}
RUNS = {name: {**HEALTHY, **changed} for name, (_, changed) in INCIDENTS.items()}
RUNS |= {name: {**HEALTHY, **changed} for name, changed in HARMLESS.items()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, needs: Needs) -> Path:
    needs_promtool(needs)
    return tmp_path_factory.mktemp("rules")


def written(folder: Path, limits: Thresholds, pipeline: str | None = "shop") -> Path:
    path = folder / RULES
    path.write_text(rules_file(pipeline=pipeline, checkpoints="/jobs", limits=limits))
    return path


@pytest.fixture(scope="module")
def alerts(folder: Path) -> dict[str, set[str]]:
    """Give what fired in each run: the tool is asked once, with rules for all pipelines."""
    return fired(written(folder, LIMITS, None), RUNS, minutes=MINUTES)


@pytest.mark.parametrize("incident", INCIDENTS)
def test_incident_fires_its_alert_and_no_other(incident: str, alerts: dict[str, set[str]]) -> None:
    assert alerts[incident] == {INCIDENTS[incident][0]}


@pytest.mark.parametrize("harmless", HARMLESS)
def test_nothing_fires_on(harmless: str, alerts: dict[str, set[str]]) -> None:
    assert alerts[harmless] == set()


@pytest.mark.parametrize("pipeline, count", [("shop", 9), ('it\'s \\ a "shop"', 9), (None, 8)])
def test_prometheus_accepts_the_rules(folder: Path, pipeline: str | None, count: int) -> None:
    assert f"SUCCESS: {count} rules found" in check(written(folder, Thresholds(), pipeline))


def test_rules_of_one_pipeline_see_that_one_and_when_it_is_gone(folder: Path) -> None:
    runs = {"shop": {**HEALTHY, **GONE}, "another": RUNS[SLOW_SINK]}
    assert fired(written(folder, LIMITS), runs, minutes=MINUTES) == {"shop": {"SlackwaterJobGone"}, "another": set()}


def test_thresholds_are_those_that_were_given(folder: Path) -> None:
    rules = written(folder, Thresholds(slow_sink_ms=120_000))
    assert fired(rules, {"shop": RUNS[SLOW_SINK]}, minutes=MINUTES) == {"shop": set()}


def test_targets_with_one_pipeline_are_judged_alone(folder: Path, alerts: dict[str, set[str]]) -> None:
    # The crash loop has another target for each of its starts.
    targets = {name: run for name, run in RUNS.items() if name != "a crash loop"}
    expected = {name: alerts[name] for name in targets}
    assert fired(written(folder, LIMITS), targets, minutes=MINUTES, by="instance") == expected


def test_target_that_restarts_is_named_and_only_that_one(folder: Path) -> None:
    starts = {f'slackwater_starts_total{{{PIPELINE},instance="{name}"}}': values for name, values in STARTS.items()}
    said = rendered(written(folder, LIMITS), starts, "SlackwaterCrashLoop", minute=AT + 10)
    assert re.findall(r"summary=\"([^\"]*)", said) == ["shop at staging: The job restarted 4 times in 30m"]


def test_alert_names_the_place_and_the_command(folder: Path) -> None:
    stalled = RUNS["a partition that sends nothing"]
    said = rendered(written(folder, LIMITS), stalled, "SlackwaterWatermarkStalled", minute=120)
    assert 'severity="critical"' in said
    assert "The watermark of orders has stalled: partition 1 holds it back" in said
    assert "Run `slackwater status --checkpoint /jobs/shop`" in said

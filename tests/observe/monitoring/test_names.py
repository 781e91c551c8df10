"""The rules and the dashboard ask for metrics that exist, by labels that these have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import slackwater as sw
from slackwater.observe.metrics.families import FAMILIES
from slackwater.observe.monitoring.alerts import incidents
from slackwater.observe.monitoring.dashboard import dashboard
from slackwater.observe.monitoring.panels import ROWS
from slackwater.observe.monitoring.rules_file import is_it_running
from slackwater.observe.monitoring.selectors import Selectors, of_pipeline
from slackwater.observe.monitoring.thresholds import Thresholds
from slackwater.tools.cli.main import app

LABELS = {family.name: {"pipeline", *family.labels} for family in FAMILIES}
LABELS["slackwater_info"] = {"pipeline", "version"}
OF_TARGETS = {"instance", "job"}
"""The labels that Prometheus itself adds."""
ALERTS = [
    *incidents(of_pipeline("shop"), Thresholds(), status="status"),
    *is_it_running(of_pipeline("shop"), Thresholds(), pipeline="shop", status="status"),
]
PANELS = [panel for panels in ROWS.values() for panel in panels]
ASKED = {f"alert {alert.name}": alert.expression for alert in ALERTS} | {
    f"panel {panel.title}: {legend}": expression for panel in PANELS for expression, legend in panel.lines
}


def selectors(expression: str) -> Iterator[tuple[str, set[str]]]:
    """Yield each metric in an expression, with the labels that its braces name; written apart from what makes them."""
    for name, braces in re.findall(r"\b(slackwater_\w+)(?:\{([^}]*)\})?", expression):
        yield name, set(re.findall(r"(\w+)(?:=|!=|=~|!~)\"", braces))


@pytest.mark.parametrize("place", ASKED)
def test_every_metric_exists_and_has_the_labels_that_are_asked_for(place: str) -> None:
    found = list(selectors(ASKED[place]))
    assert found
    for name, labels in found:
        assert name in LABELS
        assert labels <= LABELS[name], name


@pytest.mark.parametrize("place", ASKED)
def test_labels_that_are_matched_or_summed_by_are_those_of_metrics(place: str) -> None:
    of_metrics = set.union(*(LABELS[name] for name, _ in selectors(ASKED[place])))
    for names in re.findall(r"\b(?:on|by|ignoring) \(([^)]*)\)", ASKED[place]):
        assert set(names.split(", ")) <= of_metrics | OF_TARGETS


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_alert_speaks_of_labels_that_its_metrics_have_and_says_what_to_run(alert: Any) -> None:  # noqa: ANN401  an Alert
    of_metrics = set.union(*(LABELS[name] for name, _ in selectors(alert.expression)))
    texts = (alert.summary, alert.description, alert.action)
    assert {name for text in texts for name in re.findall(r"\$labels\.(\w+)", text)} <= of_metrics
    assert "`status`" in alert.action
    assert alert.description.endswith(".")


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.title)
def test_legend_names_labels_of_its_metrics(panel: Any) -> None:  # noqa: ANN401  a Panel
    for expression, legend in panel.lines:
        of_metrics = set.union(*(LABELS[name] for name, _ in selectors(expression)))
        assert set(re.findall(r"{{(\w+)}}", legend)) <= of_metrics


def test_dashboard_shows_every_metric_there_is() -> None:
    shown = {name for panel in PANELS for expression, _ in panel.lines for name, _ in selectors(expression)}
    # The lag of the watermark shows the watermark.
    assert set(LABELS) - shown == {"slackwater_watermark_timestamp_seconds"}


def test_guide_explains_every_metric_and_every_alert() -> None:
    guide = (Path(__file__).resolve().parents[3] / "docs" / "guides" / "monitoring.md").read_text()
    named = set(re.findall(r"`([Ss]lackwater_?\w+)", guide))
    assert set(LABELS) <= named
    assert {alert.name for alert in ALERTS} == {name for name in named if name.startswith("Slackwater")}


def test_dashboard_asks_in_the_order_of_a_person_on_call_and_no_panel_covers_another() -> None:
    made = dashboard(pipeline="shop")
    rows = [panel["title"] for panel in made["panels"] if panel["type"] == "row"]
    assert rows == ["Is it running?", "Is it on time?", "Are the rows good?", "Does it fit?"]
    assert len({panel["id"] for panel in made["panels"]}) == len(made["panels"])
    taken: set[tuple[int, int]] = set()
    for panel in made["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells


def test_dashboard_begins_with_the_pipeline_that_was_named() -> None:
    [_, pipeline] = dashboard(pipeline="shop")["templating"]["list"]
    assert pipeline["current"] == {"text": "shop", "value": "shop"}
    [_, every] = dashboard(pipeline=None)["templating"]["list"]
    assert every["current"]["value"] == "$__all"


@pytest.mark.parametrize("matcher", ['phase="total"', "stream"])
def test_label_that_a_metric_has_not_is_refused(matcher: str) -> None:
    with pytest.raises(AssertionError):
        Selectors()("slackwater_rows_total", matcher)


def test_command_writes_both_files_and_says_where_they_go(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["monitor", "generate", "--out", str(tmp_path / "new"), "--slow-sink", "5s"])
    assert done.exit_code == 0, done.output
    assert "rule_files" in done.output
    rules = (tmp_path / "new" / "slackwater.rules.yml").read_text()
    assert "avg_over_time(slackwater_sink_seconds[5m]) > 5\n" in rules
    assert "rule_files:" in rules.partition("groups:")[0]
    assert (tmp_path / "new" / "slackwater.dashboard.json").exists()


def test_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    raised = CliRunner().invoke(app, ["monitor", "generate", "--out", str(tmp_path / "file")]).exception
    assert isinstance(raised, sw.RunError)
    assert raised.code == "MONITOR_OUT"


def test_duration_that_cannot_be_read_is_an_error_with_the_option(tmp_path: Path) -> None:
    given = ["monitor", "generate", "--out", str(tmp_path), "--stalled-after", "soon"]
    raised = CliRunner().invoke(app, given).exception
    assert isinstance(raised, sw.DefinitionError)
    assert "`--stalled-after`" in str(raised)

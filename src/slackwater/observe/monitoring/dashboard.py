"""The Grafana dashboard: the panels as JSON, for any Prometheus data source."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from slackwater.observe.metrics.exposed import INFO
from slackwater.observe.monitoring.panels import ROWS, Panel

DASHBOARD: Final = "slackwater.dashboard.json"
_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_WIDTH: Final = 24
_ACROSS: Final = 3
_HEIGHT: Final = {"stat": 4, "timeseries": 8}
_SCHEMA: Final = 39
"""The version of the dashboard format, as of Grafana 10.4; newer versions of Grafana read it too."""


def dashboard_file(*, pipeline: str | None) -> str:
    """Return the dashboard as JSON text; it initially shows `pipeline`, or all pipelines if None."""
    return json.dumps(dashboard(pipeline=pipeline), indent=2, ensure_ascii=False) + "\n"


def dashboard(*, pipeline: str | None) -> dict[str, Any]:
    """Return the dashboard as plain values."""
    name = "Slackwater" if pipeline is None else f"Slackwater: {pipeline}"
    return {
        "title": name,
        "uid": None,
        "description": "Made by `slackwater monitor generate`; docs/guides/monitoring.md explains every figure.",
        "tags": ["slackwater"],
        "schemaVersion": _SCHEMA,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "utc",
        "templating": {"list": _variables(pipeline)},
        "panels": list(_panels()),
    }


def _variables(pipeline: str | None) -> list[dict[str, Any]]:
    chosen = {"text": "All", "value": "$__all"} if pipeline is None else {"text": pipeline, "value": pipeline}
    return [
        {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"},
        {
            "name": "pipeline",
            "label": "Pipeline",
            "type": "query",
            "datasource": _SOURCE,
            "query": f"label_values({INFO}, pipeline)",
            "refresh": 2,
            "includeAll": True,
            "allValue": ".*",
            "multi": True,
            "current": chosen,
        },
    ]


def _panels() -> Iterator[dict[str, Any]]:
    number, top = 0, 0
    for title, panels in ROWS.items():
        number += 1
        yield {
            "id": number,
            "type": "row",
            "title": title,
            "collapsed": False,
            "panels": [],
            "gridPos": {"x": 0, "y": top, "w": _WIDTH, "h": 1},
        }
        top += 1
        width = _WIDTH // _ACROSS
        for start in range(0, len(panels), _ACROSS):
            abreast = panels[start : start + _ACROSS]
            height = max(_HEIGHT[panel.kind] for panel in abreast)
            for column, panel in enumerate(abreast):
                number += 1
                yield _panel(panel, number, {"x": column * width, "y": top, "w": width, "h": height})
            top += height


def _panel(panel: Panel, number: int, place: dict[str, int]) -> dict[str, Any]:
    defaults: dict[str, Any] = {"unit": panel.unit}
    if panel.least is not None:
        defaults["min"] = panel.least
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.help,
        "datasource": _SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": _options(panel),
        "targets": [
            {"refId": chr(ord("A") + at), "datasource": _SOURCE, "expr": expression, "legendFormat": legend}
            for at, (expression, legend) in enumerate(panel.lines)
        ],
    }


def _options(panel: Panel) -> dict[str, Any]:
    if panel.kind == "stat":
        text = "name" if panel.title == "Version" else "value_and_name"
        return {"reduceOptions": {"calcs": ["lastNotNull"]}, "textMode": text, "colorMode": "none"}
    return {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}}

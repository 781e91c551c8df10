"""Prometheus' own tool on our rules: which alerts fire on given series."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.conftest import Needs

PROGRAM = shutil.which("promtool")
Series = Mapping[str, str]
"""Values in promtool's notation, such as `0+5x10`, by the series as PromQL writes it."""


def needs_promtool(needs: Needs) -> None:
    needs(PROGRAM, "alert rules are tried with promtool (Debian: apt-get install prometheus)")


def check(rules: Path) -> str:
    """Return what `promtool check rules` says of a file that it accepts."""
    done = subprocess.run([str(PROGRAM), "check", "rules", rules], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def fired(rules: Path, runs: Mapping[str, Series], *, minutes: int, by: str = "pipeline") -> dict[str, set[str]]:
    """Return the alerts that fired at any time in the first `minutes` of each run, whose series have a value a minute.

    The runs are pipelines of one Prometheus, or `by="instance"` targets with one pipeline, so none of them may see
    another. promtool compares and does not tell: it is made to fail by expecting nothing, and its complaint is read.
    """
    fires = f'group by (alertname, {by}) (count_over_time(ALERTS{{alertstate="firing"}}[{minutes + 1}m]))'
    asked = {"promql_expr_test": [{"expr": fires, "eval_time": f"{minutes}m", "exp_samples": []}]}
    own = 'pipeline="shop"' if by == "instance" else ""
    renamed = {
        series.replace('pipeline="shop"', ",".join(filter(None, [own, f'{by}="{name}"']))): values
        for name, run in runs.items()
        for series, values in run.items()
    }
    said = _tested(rules, renamed, asked)
    got = re.findall(rf'\{{alertname="(\w+)"(?:, {by}="([^"]*)")?\}}', said.partition("got:")[2])
    assert got or "SUCCESS" in said, said
    found: dict[str, set[str]] = {name: set() for name in runs}
    for alert, name in got:
        found.setdefault(name, set()).add(alert)
    return found


def rendered(rules: Path, series: Series, alert: str, *, minute: int) -> str:
    """Return what promtool says of one alert: its labels and annotations, with their values filled in."""
    asked = {"alert_rule_test": [{"eval_time": f"{minute}m", "alertname": alert, "exp_alerts": []}]}
    return _tested(rules, series, asked)


def _tested(rules: Path, series: Series, asked: Mapping[str, Any]) -> str:
    written = [{"series": name, "values": values} for name, values in series.items()]
    test = {"interval": "1m", "input_series": written, **asked}
    file = rules.parent / "asked.yml"
    file.write_text(json.dumps({"rule_files": [str(rules)], "evaluation_interval": "1m", "tests": [test]}))
    done = subprocess.run([str(PROGRAM), "test", "rules", file], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr

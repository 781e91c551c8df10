"""`slackwater simulate` as a user meets it."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from slackwater.base.errors import SlackwaterError
from slackwater.tools.cli.simulate import simulate
from slackwater.tools.simulator.presets import PRESETS

app = typer.Typer(rich_markup_mode="rich")
app.command()(simulate)
SMALL = ("--duration", "90s", "--batch-every", "15s", "--rate", "10")


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_presets_are_listed_with_a_sentence_each() -> None:
    listed = " ".join(run("--list").split())
    for preset in PRESETS.values():
        assert f"{preset.name} {preset.about}" in listed


def test_preset_alone_is_shown_beside_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    tunnel = PRESETS["tunnel"]
    small = replace(tunnel, settings=replace(tunnel.settings, rate=10, duration_ms=90_000, batch_every_ms=15_000))
    monkeypatch.setitem(PRESETS, "tunnel", small)
    shown = " ".join(run("tunnel").split())
    assert "tunnel with allowed_lateness=2m" in shown
    assert "events 900 900" in shown
    assert shown.endswith("To watch it: slackwater simulate tunnel --page")


def test_table_adds_up_and_json_has_the_same_figures() -> None:
    shown = run("phones", *SMALL, "--allowed-lateness", "10s")
    shown = " ".join(shown.split())
    [found] = json.loads(run("phones", *SMALL, "--allowed-lateness", "10s", "--json"))
    accounts = ("on_time", "corrected", "late", "dead", "on_the_way")
    assert sum(found[name] for name in accounts) == found["events"] == 900
    assert found["name"] == "allowed_lateness=10s, rate=10, duration=1m30s, batch_every=15s"
    assert shown.startswith("The preset phones, changed. ")
    assert f"on time {found['on_time']:,} " in shown
    assert f"corrected a result {found['corrected']:,} " in shown
    assert f"late {found['late']:,} " in shown


def test_sweep_prints_a_table_and_a_plot_and_draws_a_picture(tmp_path: Path) -> None:
    sweep = ("phones", *SMALL, "--sweep", "out_of_orderness=0s..40s,2")
    shown = run(*sweep, "--out", str(tmp_path / "slack.svg"))
    assert "out_of_orderness" in shown
    assert "● late" in shown
    assert shown.count("○") == 3
    picture = ET.parse(tmp_path / "slack.svg").getroot()  # noqa: S314  our own
    assert picture.tag.endswith("svg")
    assert "What out_of_orderness does" in "".join(picture.itertext())
    first, last = json.loads(run(*sweep, "--json"))
    assert (first["out_of_orderness_ms"], last["out_of_orderness_ms"]) == (0, 40_000)
    assert first["late"] > last["late"]
    assert first["delay_ms"][0] < last["delay_ms"][0]


@pytest.mark.parametrize(
    "arguments, code",
    [
        (("tunel",), "SIMULATE_PRESET"),
        (("--rate", "many"), "SIMULATE_SETTING"),
        (("--out", "plot.svg"), "SIMULATE_OUT"),
        (("--sweep", "out_of_orderness=0s..5s", "--out", "plot.png"), "LATENESS_PICTURE"),
        (("--sweep", "rate=1..5"), "SIMULATE_SWEEP"),
        (("--window", "session", "--window-size", "1m", "--max-length", "10s"), "SESSION_MAX_LENGTH"),
        (("--rate", "1000", "--duration", "1h"), "SIMULATE_TOO_LARGE"),
    ],
)
def test_mistake_is_an_error_with_a_code(arguments: tuple[str, ...], code: str) -> None:
    with pytest.raises(SlackwaterError, match=rf"^\[{code}\]"):
        run(*arguments)

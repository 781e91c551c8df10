"""`slackwater check` and what `slackwater run` says of its findings."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

import slackwater as sw
from slackwater.tools.cli.main import app

FILE = """
import slackwater as sw

rows = sw.stream("rows", sw.sources.log("{log}")).decode(sw.formats.json("k string, t timestamp"))
rows = rows.event_time("t", out_of_orderness="1s", max_ahead="1m")
counts = rows.key_by("k").window(sw.tumbling("1m"), name="w").aggregate(n=sw.count())
dead = rows.dead_letters.to(sw.sinks.files("{out}_dead"))
pipeline = sw.Pipeline("p", counts.to(sw.sinks.files("{out}")), counts.late.{late}, dead)
"""
KEPT = 'to(sw.sinks.files("late"))'


def written(folder: Path, late: str = KEPT) -> str:
    file = folder / "p.py"
    file.write_text(FILE.format(log=folder / "log", out=folder / "out", late=late))
    return str(file)


def log(folder: Path, events: int = 1_000, broken: int = 0) -> Path:
    """Write a log in which every fifth event is a minute late."""
    began = datetime(2026, 3, 1, tzinfo=UTC)
    with sw.LogWriter(folder) as writer:
        for number in range(events):
            late = timedelta(minutes=1) if number % 5 == 4 else timedelta()
            writer.append({"k": "a", "t": (began + timedelta(seconds=number) - late).isoformat()})
        for _ in range(broken):
            writer.append({"k": "a", "t": "soon"})
    return folder


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_pipeline_as_it_should_be_passes_even_strictly(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["check", written(tmp_path), "--strict", "--master", "local[2]"])
    assert (done.exit_code, done.stdout) == (0, "pipeline p: no findings\n")


def test_warning_fails_only_strictly(tmp_path: Path) -> None:
    file = written(tmp_path, late="drop()")
    assert CliRunner().invoke(app, ["check", file]).exit_code == 0
    strict = CliRunner().invoke(app, ["check", file, "--strict"])
    assert strict.exit_code == 1
    assert "warning SW402 step `w`: its late rows are dropped" in strict.stdout


def test_findings_as_json(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["check", written(tmp_path, late="drop()"), "--format", "json"])
    assert [finding["code"] for finding in json.loads(done.stdout)["findings"]] == ["SW402"]


def test_lateness_of_the_log_is_compared_when_it_is_measured(tmp_path: Path) -> None:
    file = written(tmp_path)
    log(tmp_path / "log")
    assert "SW104" not in CliRunner().invoke(app, ["check", file]).stdout
    assert "SW104 stream `rows`: out_of_orderness is 1s" in CliRunner().invoke(app, ["check", file, "--measure"]).stdout


def test_lateness_of_few_events_is_not_compared_and_the_command_says_why(tmp_path: Path) -> None:
    log(tmp_path / "log", events=3, broken=997)
    done = CliRunner().invoke(app, ["check", written(tmp_path), "--measure"])
    assert "SW104" not in done.stdout
    said = "lateness needs 1,000 events, there are 3; it is not compared; dead letters among 1,000 records: 997 "
    assert f"stream `rows`: {said}" in done.stderr


@pytest.mark.parametrize("prefix", ["", "rows="])
def test_lateness_is_measured_in_another_log(prefix: str, tmp_path: Path) -> None:
    other = log(tmp_path / "other")
    done = CliRunner().invoke(app, ["check", written(tmp_path), "--log", f"{prefix}{other}"])
    assert "SW104 stream `rows`" in done.stdout


def test_log_of_a_stream_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["check", written(tmp_path), "--log", f"row={tmp_path}"])
    assert isinstance(done.exception, sw.RunError)
    assert done.exception.code == "CHECK_LOG"
    assert "did you mean `rows`?" in done.exception.message


def test_run_says_findings_in_one_line_each_before_it_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_given: object, on_start: Callable[[], None], **_: object) -> None:
        on_start()
        raise RuntimeError("started")

    monkeypatch.setattr("slackwater.spark.start.run_pipeline", start)
    with pytest.warns(
        UserWarning, match=r"^\[SW402\] step `w`: its late rows are dropped; write them to a sink.*$"
    ) as said:
        done = CliRunner().invoke(app, ["run", written(tmp_path, late="drop()")])
    assert str(done.exception) == "started"
    assert len(said) == 1
    assert "\n" not in str(said[0].message)

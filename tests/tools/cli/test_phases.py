"""The phases of a start, each with its seconds: in one line of a terminal; elsewhere, or verbose, line by line."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from slackwater.tools.cli.phases import Phases, process_age_s
from slackwater.tools.cli.progress import ProgressLines


def run_missing_file(folder: Path, *options: str) -> list[str]:
    """Return what `slackwater run` prints of a file that is not there."""
    command = [sys.executable, "-m", "slackwater", "run", "nowhere.py", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stderr.splitlines()


class Terminal(io.StringIO):
    """A terminal that keeps what is written to it."""

    def isatty(self) -> bool:
        return True


class Clock:
    """A clock that is set by hand."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def stopwatch(out: io.StringIO, clock: Clock, *, verbose: bool = False) -> Phases:
    return Phases(progress=ProgressLines(out=out, verbose=verbose), verbose=verbose, clock=clock, began=100.0)


def test_phase_begins_where_the_one_before_has_ended() -> None:
    out, clock = io.StringIO(), Clock()
    phases = stopwatch(out, clock, verbose=True)
    for clock.now, name in ((101.25, "starting the JVM"), (104.0, ""), (104.25, "shutting down")):
        phases.begin(name)
    clock.now = 104.75
    phases.end()
    assert out.getvalue().splitlines() == [
        "loading Python 1.2 s",
        "starting the JVM 2.8 s",
        "shutting down 0.5 s",
        "total 4.8 s",
    ]


def test_terminal_shows_all_phases_in_one_line_and_counts_the_last_one_up() -> None:
    out, clock = Terminal(), Clock()
    phases = stopwatch(out, clock)
    with phases.of("orders"):
        for clock.now, name in ((101.25, "checking sources and sinks"), (101.29, "starting the JVM")):
            phases.begin(name)
        clock.now = 131.0
        phases.tick()
        clock.now = 132.29
        phases.begin("running batch 0")
        phases.started()
    shown = [text.rstrip() for text in out.getvalue().split("\r")]
    assert shown[-2:] == [
        "orders: loading Python 1.2 s · starting the JVM 30 s",
        "orders: loading Python 1.2 s · starting the JVM 31.0 s · running batch 0 0 s",
    ]
    assert out.getvalue().count("\n") == 1, "the line is left as it is"


def test_narrow_terminal_shows_the_last_phases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    out, clock = Terminal(), Clock()
    phases = stopwatch(out, clock)
    with phases.of("orders"):
        for clock.now, name in ((101.25, "checking sources and sinks"), (112.0, "starting the JVM")):
            phases.begin(name)
        last = out.getvalue().split("\r")[-1].rstrip()
    assert last.startswith("orders: …")
    assert last.endswith(" · starting the JVM 0 s")
    assert len(last) < 40


def test_log_has_a_line_for_each_phase_and_one_every_30_seconds_of_it() -> None:
    out, clock = io.StringIO(), Clock()
    phases = stopwatch(out, clock)
    with phases.of("orders"):
        clock.now = 101.0
        phases.begin("starting the JVM")
        for clock.now in (110.0, 131.5, 140.0, 161.5, 162.0):
            phases.tick()
        phases.begin("running batch 0")
        phases.started()
        clock.now = 300.0
        phases.tick()
    assert out.getvalue().splitlines() == [
        "loading Python 1.0 s",
        "still starting the JVM, 30 s",
        "still starting the JVM, 60 s",
        "starting the JVM 61.0 s",
    ]


def test_first_phase_begins_with_the_process() -> None:
    script = (
        "import time; time.sleep(0.3); from slackwater.tools.cli.phases import process_age_s; print(process_age_s())"
    )
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert 0.3 <= float(done.stdout) <= time.monotonic() - began + 0.1


def test_age_is_computing_time_where_the_system_does_not_tell_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(time, "CLOCK_BOOTTIME", raising=False)
    before = time.process_time()
    assert before <= process_age_s() <= time.process_time()


def test_verbose_run_prints_each_phase_as_it_ends(tmp_path: Path) -> None:
    first, error, *rest = run_missing_file(tmp_path, "--verbose")
    assert re.fullmatch(r"loading Python \d+\.\d s", first)
    assert error.startswith("[PIPELINE_FILE_MISSING]")
    assert [re.sub(r"\d+\.\d", "_", line) for line in rest] == ["reading the pipeline _ s", "total _ s"]


def test_run_that_is_not_verbose_prints_no_phases(tmp_path: Path) -> None:
    [error] = run_missing_file(tmp_path)
    assert error.startswith("[PIPELINE_FILE_MISSING]")


@pytest.mark.parametrize("quiet", [False, True])
def test_note_has_a_line_of_its_own(quiet: bool) -> None:  # noqa: FBT001  a parameter
    out = Terminal()
    progress = ProgressLines(out=out, quiet=quiet)
    progress._say("batch 0", always=False)
    progress.note("batch 0 1.2 s")
    assert out.getvalue().split(os.linesep) == ([""] if quiet else ["\rbatch 0", "batch 0 1.2 s", ""])

"""`slackwater run --verbose`: each phase of a start, with its seconds, as it ends."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from slackwater.cli.phases import Phases, process_age_s
from slackwater.cli.progress import Progress


def run_missing_file(folder: Path, *options: str) -> list[str]:
    """Return what `slackwater run` prints of a file that is not there."""
    command = [sys.executable, "-m", "slackwater", "run", "nowhere.py", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stderr.splitlines()


def test_phase_begins_where_the_one_before_has_ended() -> None:
    said: list[str] = []
    times = iter([101.25, 104.0, 104.5])
    stopwatch = Phases(say=said.append, clock=lambda: next(times), began=100.0)
    stopwatch.over("python imports")
    stopwatch.over("jvm and session")
    stopwatch.end()
    assert said == ["python imports 1.2 s", "jvm and session 2.8 s", "shutdown 0.5 s", "total 4.5 s"]


def test_first_phase_begins_with_the_process() -> None:
    script = "import time; time.sleep(0.3); from slackwater.cli.phases import process_age_s; print(process_age_s())"
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert 0.3 <= float(done.stdout) <= time.monotonic() - began + 0.1


def test_age_is_computing_time_where_the_system_does_not_tell_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(time, "CLOCK_BOOTTIME", raising=False)
    before = time.process_time()
    assert before <= process_age_s() <= time.process_time()


def test_verbose_run_prints_each_phase_as_it_ends(tmp_path: Path) -> None:
    first, error, *rest = run_missing_file(tmp_path, "--verbose")
    assert re.fullmatch(r"python imports \d+\.\d s", first)
    assert error.startswith("[PIPELINE_FILE_MISSING]")
    assert [re.sub(r"\d+\.\d", "_", line) for line in rest] == ["shutdown _ s", "total _ s"]


def test_run_that_is_not_verbose_prints_no_phases(tmp_path: Path) -> None:
    [error] = run_missing_file(tmp_path)
    assert error.startswith("[PIPELINE_FILE_MISSING]")


@pytest.mark.parametrize("quiet", [False, True])
def test_note_has_a_line_of_its_own(quiet: bool) -> None:  # noqa: FBT001  a parameter
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    out = Terminal()
    progress = Progress(out=out, quiet=quiet)
    progress._say("batch 0", always=False)
    progress.note("batch 0 1.2 s")
    assert out.getvalue().split(os.linesep) == ([""] if quiet else ["\rbatch 0", "batch 0 1.2 s", ""])

"""The limit of open files, in processes of their own."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from slackwater.base.open_files import NEEDED

ROOT = Path(__file__).resolve().parents[2]
PIPELINE = """
import slackwater as sw

rows = sw.stream("rows", sw.sources.log("data")).decode(sw.formats.json("k string"))
pipeline = sw.Pipeline("p", rows.to(sw.sinks.console()), rows.dead_letters.drop())
"""


def limited(command: list[str], cwd: Path, soft: int, hard: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard)),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_limit_too_low_for_spark_is_one_sentence_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "p.py").write_text(PIPELINE)
    done = limited(["-m", "slackwater", "run", "p.py", "--bounded"], tmp_path, 256, 256)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    [line] = [line for line in done.stderr.splitlines() if "OPEN_FILES" in line]
    assert f"[OPEN_FILES] a job with Spark needs at least {NEEDED} open files; the limit of this process is 256" in line
    assert "ulimit -n 65536" in line


LOOK = """
import resource
from slackwater.base.open_files import check_open_files
check_open_files()
print(resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize("soft, after", [(256, NEEDED), (NEEDED, NEEDED), (NEEDED + 1, NEEDED + 1)])
def test_a_limit_that_may_be_raised_is_raised(tmp_path: Path, soft: int, after: int) -> None:
    hard = NEEDED + 10
    done = limited(["-c", LOOK], tmp_path, soft, hard)
    assert done.stdout == f"({after}, {hard})\n", done.stderr

"""The wheel with what it asks for itself, from the package index and in the locked versions, and nothing else."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Needs
from tests.release.built import ROOT, build, command, empty_environment, install

RUN_PAGE = """
import json
from tests.docs.pages import ROOT, run
print(json.dumps([[block.prints, printed] for block, printed in run(ROOT / "README.md")]))
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory, needs: Needs) -> Path:
    """Give the Python of an environment with the wheel and its dependencies."""
    needs(shutil.which("java"), "Spark needs Java 17 or newer (see scripts/preflight java)")
    needs(_has_index(), "the wheel's dependencies come from a package index, and none can be reached")
    folder = tmp_path_factory.mktemp("from-the-index")
    _, wheel = build(folder)
    locked = re.findall(r"^[\w.-]+==[\w.+!-]+", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    (folder / "constraints.txt").write_text("\n".join(locked))
    python = empty_environment(folder / "environment")
    install(python, "--constraint", folder / "constraints.txt", wheel)
    return python


def _has_index() -> bool:
    asked = [sys.executable, "-m", "pip", "index", "versions", "pyspark", "--retries", "0", "--timeout", "20"]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


@pytest.mark.long
def test_readme_runs_from_the_wheel_and_prints_what_it_says(python: Path, tmp_path: Path) -> None:
    """The page is run as in `tests/docs`, by a copy of what runs it."""
    copy = tmp_path / "copy"
    (copy / "tests" / "docs").mkdir(parents=True)
    shutil.copy(ROOT / "tests" / "docs" / "pages.py", copy / "tests" / "docs")
    shutil.copy(ROOT / "README.md", copy)
    (copy / "run.py").write_text(RUN_PAGE)
    (tmp_path / "work").mkdir()
    blocks = json.loads(command(python, copy / "run.py", cwd=tmp_path / "work").splitlines()[-1])
    assert any(prints is not None for prints, _ in blocks)
    assert [printed for prints, printed in blocks if prints is not None] == [
        prints for prints, _ in blocks if prints is not None
    ]


@pytest.mark.long
def test_new_project_runs_on_spark(python: Path, tmp_path: Path) -> None:
    command(python.with_name("slackwater"), "new", "shop", cwd=tmp_path)
    printed = command("make", "run", f"PYTHON={python}", cwd=tmp_path / "shop")
    for row in (r"ada .* 600 .* late", r"h .* bob .* 1120000", r"4 .* malformed", r"5 .* ahead_of_clock"):
        assert re.search(row, printed), row

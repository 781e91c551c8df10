"""The files around the source: the hosted CI runs what everybody runs, on the Pythons that the package names."""

from __future__ import annotations

import re
import select
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_ci_runs_make_test_on_every_python_of_the_classifiers() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    assert re.search(r"python: \[(.+)\]", workflow)[1].replace('"', "").split(", ") == named  # type: ignore[index]  # found
    assert "run: make test PYTHON=" in workflow


def test_extras_all_and_demo_hold_every_optional_package() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    single = sorted(set(extras) - {"all", "demo", "dev"})
    assert extras["all"] == [f"slackwater[{','.join(single)}]"]
    assert "slackwater[all]" in extras["demo"]


def test_set_up_shows_what_pip_does_while_it_does_it() -> None:
    script = (ROOT / "scripts" / "set-up").read_text()
    progress = script[script.index("progress() {") : script.index("\n}\n") + 3]
    command = ["bash", "-c", f"set -euo pipefail; total=30 terminal=0\n{progress}\nprogress"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        for number in range(15):
            running.stdin.write(f"Collecting package{number}==1.0 (from -r requirements.lock)\n")
            running.stdin.flush()
        is_live, _, _ = select.select([running.stdout], [], [], 10)
        running.stdin.write("Installing collected packages: a, b\n")
        running.stdin.close()
        assert is_live, "pip is not done yet, and nothing is shown"
        assert running.stdout.read() == "  fetched 15 of 30: package14==1.0\n  installing 30 packages\n"

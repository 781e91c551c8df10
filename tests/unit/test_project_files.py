"""The files around the source: the hosted CI runs what everybody runs, on the Pythons that the package names."""

from __future__ import annotations

import re
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

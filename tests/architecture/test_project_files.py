"""The files around the source: the hosted CI runs what everybody runs, on the Pythons that the package names."""

from __future__ import annotations

import re
import select
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from slackwater.base.version import VERSION

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = ROOT / ".github" / "workflows"
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


def parsed(path: Path) -> dict[Any, Any]:
    content = yaml.safe_load(path.read_text())
    assert isinstance(content, dict)
    return content


def steps(workflow: str, job: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = parsed(WORKFLOWS / workflow)["jobs"][job]["steps"]
    return found


@pytest.mark.parametrize("path", sorted(WORKFLOWS.glob("*.yml")), ids=lambda path: path.name)
def test_workflow_has_a_time_limit_few_rights_and_no_stored_secret(path: Path) -> None:
    workflow = parsed(path)
    assert workflow["permissions"] == {"contents": "read"}
    assert True in workflow, "what starts it: YAML reads `on` as true"
    assert "secrets." not in path.read_text()
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"] <= 360
        assert all(("uses" in step) != ("run" in step) for step in job["steps"])


def test_ci_runs_what_ci_runs_here_on_every_python_of_the_classifiers() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    job = parsed(WORKFLOWS / "ci.yml")["jobs"]["test"]
    assert job["strategy"]["matrix"]["python"] == re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    assert steps("ci.yml", "test")[-1] == {"run": ".ci/run", "env": {"PYTHON": "python${{ matrix.python }}"}}


def test_description_of_the_package_is_the_tagline_of_the_readme() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for page in ("README.md", "docs/README.md"):
        assert f"\n**{project['description']}.**\n" in (ROOT / page).read_text(), page


def test_long_tests_run_every_week() -> None:
    workflow = parsed(WORKFLOWS / "long.yml")
    [schedule] = workflow[True]["schedule"]  # `on`
    assert re.fullmatch(r"\d+ \d+ \* \* \d", schedule["cron"])
    assert "long" in workflow["jobs"]["long"]["strategy"]["matrix"]["target"]
    assert steps("long.yml", "long")[-1]["run"] == ".ci/run ${{ matrix.target }}"


def test_ci_script_runs_the_tests_or_the_target_that_it_is_given(tmp_path: Path) -> None:
    for command in ("make", "mosquitto", "chromium", "promtool"):
        (tmp_path / command).write_text('#!/bin/sh\necho "${0##*/} $* CI=$CI"\n')
        (tmp_path / command).chmod(0o755)

    def said(*arguments: str) -> str:
        environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
        return subprocess.check_output([ROOT / ".ci" / "run", *arguments], env=environment, text=True)

    assert said() == "make test CI=true\n"
    assert said("long") == "make long CI=true\n"


def test_only_the_publishing_job_may_prove_its_identity_and_it_runs_no_code_of_ours() -> None:
    jobs = parsed(WORKFLOWS / "publish.yml")["jobs"]
    assert {name: job.get("permissions") for name, job in jobs.items()} == {
        "build": None,
        "publish": {"id-token": "write"},
    }
    assert not [step for step in jobs["publish"]["steps"] if "run" in step]
    assert jobs["publish"]["needs"] == "build"


@pytest.mark.parametrize("tag, is_published", [(f"v{VERSION}", True), (VERSION, False), ("v9.9.9", False)])
def test_publishing_stops_if_the_tag_is_not_the_version(tag: str, *, is_published: bool) -> None:
    [command] = [step["run"] for step in steps("publish.yml", "build") if step.get("name") == "The tag is the version"]
    environment = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "GITHUB_REF_NAME": tag}
    done = subprocess.run(["bash", "-e", "-c", command], cwd=ROOT, env=environment, check=False)
    assert (done.returncode == 0) == is_published


def test_dependabot_looks_after_packages_and_actions() -> None:
    config = parsed(ROOT / ".github" / "dependabot.yml")
    assert config["version"] == 2
    assert {update["package-ecosystem"] for update in config["updates"]} == {"pip", "github-actions"}


@pytest.mark.parametrize("path", [path for path in FORMS if path.name != "config.yml"], ids=lambda path: path.name)
def test_form_of_an_issue_has_what_github_requires(path: Path) -> None:
    form = parsed(path)
    assert {"name", "description", "body"} <= set(form)
    kinds = [part["type"] for part in form["body"]]
    assert set(kinds) <= {"markdown", "textarea", "input", "dropdown", "checkboxes"}
    assert set(kinds) != {"markdown"}
    ids = [part["id"] for part in form["body"] if part["type"] != "markdown"]
    assert len(set(ids)) == len(ids)


def test_changelog_has_the_version() -> None:
    assert f"\n## [{VERSION}]" in (ROOT / "CHANGELOG.md").read_text()


def test_no_address_is_in_the_lock_or_the_configuration() -> None:
    for name in ("requirements.lock", "pyproject.toml", "MANIFEST.in", ".github/dependabot.yml"):
        assert "://" not in (ROOT / name).read_text(), name


def test_extras_all_and_demo_hold_every_optional_package() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    single = sorted(set(extras) - {"all", "demo", "dev"})
    assert extras["all"] == [f"slackwater[{','.join(single)}]"]
    assert "slackwater[all]" in extras["demo"]


def test_set_up_shows_what_pip_does_while_it_does_it() -> None:
    script = (ROOT / "scripts" / "set-up").read_text()
    begin = script.index("progress() {")
    progress = script[begin : script.index("\n}\n", begin) + 3]
    command = ["bash", "-c", f"set -euo pipefail; total=30\n{progress}\nprogress"]
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

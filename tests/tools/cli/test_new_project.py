"""`slackwater new`: the project that it writes works, and nothing that exists is overwritten."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import slackwater as sw
from slackwater.base.errors import SlackwaterError
from slackwater.tools.cli.main import app
from slackwater.tools.cli.new import project_files

FILES = {"pipeline.py", "test_pipeline.py", "show.py", "Makefile", "README.md", ".gitignore"}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def new(folder: str) -> Result:
    return CliRunner().invoke(app, ["new", folder])


def refusal(folder: str) -> SlackwaterError:
    error = new(folder).exception
    assert isinstance(error, SlackwaterError)
    return error


def test_project_has_pipeline_test_makefile_readme_and_data(here: Path) -> None:
    done = new("shop")
    assert done.exit_code == 0
    assert {path.name for path in (here / "shop").iterdir() if path.is_file()} == FILES
    assert len(list((here / "shop" / "data" / "orders" / "0").glob("*.jsonl"))) == 5


def test_pipeline_is_named_after_the_folder_and_no_placeholder_is_left(here: Path) -> None:
    new("work/shop")
    assert runpy.run_path(str(here / "work" / "shop" / "pipeline.py"))["pipeline"].name == "shop"
    assert [path for path, text in project_files("shop").items() if "{{" in text] == []


def test_folder_that_is_empty_is_used(here: Path) -> None:
    (here / "shop").mkdir()
    assert new("shop").exit_code == 0


def test_current_folder_gives_its_name(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "shop").mkdir()
    monkeypatch.chdir(here / "shop")
    done = new(".")
    assert "cd " not in done.output
    assert '"shop"' in (here / "shop" / "pipeline.py").read_text()


def test_folder_with_files_is_refused_and_left_alone(here: Path) -> None:
    (here / "shop").mkdir()
    (here / "shop" / "pipeline.py").write_text("mine")
    error = refusal("shop")
    assert error.code == "PROJECT_FOLDER"
    assert "`shop` contains pipeline.py" in error.message
    assert [path.read_text() for path in (here / "shop").iterdir()] == ["mine"]


def test_file_in_place_of_the_folder_is_refused(here: Path) -> None:
    (here / "shop").write_text("mine")
    error = refusal("shop")
    assert error.code == "PROJECT_FOLDER"
    assert "`shop` is a file" in error.message


def test_folder_that_cannot_be_written_is_refused(here: Path) -> None:
    (here / "shop").write_text("mine")
    error = refusal("shop/inner")
    assert error.code == "PROJECT_UNWRITTEN"
    assert "Not a directory" in error.message


def test_name_that_no_pipeline_can_have_is_refused(here: Path) -> None:
    assert refusal("my shop").code == "BAD_NAME"
    assert list(here.iterdir()) == []


def test_next_steps_name_this_python_where_make_would_find_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    assert new("shop").output.endswith("    cd shop\n    make test\n    make run\n")
    monkeypatch.setenv("PATH", "/nowhere")
    assert f"    make test PYTHON={sys.executable}\n" in new("store").output


def test_every_output_of_the_project_gets_rows_from_its_data(here: Path) -> None:
    new("shop")
    made = runpy.run_path(str(here / "shop" / "pipeline.py"))
    harness = sw.testing.Harness(made["pipeline"], now=datetime(2026, 3, 2, tzinfo=UTC))
    for file in sorted((here / "shop" / "data" / "orders" / "0").iterdir()):
        harness.send("orders", file.read_text().splitlines())
        harness.run_batch()
    harness.finish()
    ada = [row for row in harness.output("per_minute").iter_rows(named=True) if row["customer"] == "ada"]
    assert [(row["orders"], row["cents"], row["pane"]) for row in ada] == [
        (1, 500, "on_time"),
        (2, 600, "late"),
        (1, 250, "on_time"),
    ]
    assert harness.output("per_minute.late")["id"].to_list() == ["h"]
    assert sorted(harness.output("orders.dead_letters")["reason"]) == ["ahead_of_clock", "malformed"]


def test_files_of_the_log_are_named_by_the_offset_of_their_first_record() -> None:
    logged = {path: text for path, text in project_files("shop").items() if path.endswith(".jsonl")}
    offset = 0
    for path, text in logged.items():
        assert int(Path(path).stem) == offset
        offset += text.count("\n")


@pytest.mark.parametrize(
    "python, pipeline, says",
    [
        (f"{sys.executable} -I -S", None, "make run needs Slackwater: run `"),
        (sys.executable, "raise ValueError('half written')\n", "half written"),
    ],
    ids=["no slackwater", "a broken pipeline"],
)
def test_outputs_are_kept_when_the_project_cannot_run(here: Path, python: str, pipeline: str | None, says: str) -> None:
    new("shop")
    (here / "shop" / "out").mkdir()
    if pipeline is not None:
        (here / "shop" / "pipeline.py").write_text(pipeline)
    done = subprocess.run(
        ["make", "run", f"PYTHON={python}"], cwd=here / "shop", capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert says in done.stderr, done.stderr
    assert (here / "shop" / "out").exists()


def test_test_of_the_project_passes(here: Path) -> None:
    new("shop")
    done = subprocess.run(
        ["make", "test", f"PYTHON={sys.executable}"],
        cwd=here / "shop",
        env={**os.environ, "PYTEST_ADDOPTS": "-p no:randomly -p no:cacheprovider"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from slackwater.tools.cli.main import app
from tests.docs.pages import ROOT, WIDTH, blocks, pages, prose, run, texts

WITH_CODE = [page for page in pages() if blocks(page)]
NEEDS_SPARK = {"README.md", "docs/reference/sources-and-sinks.md"}


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def check(page: Path) -> None:
    for block, printed in run(page):
        if block.prints is not None:
            assert printed == block.prints, f"{name(page)}, the text below line {block.line}"


@pytest.mark.parametrize("page", [page for page in WITH_CODE if name(page) not in NEEDS_SPARK], ids=name)
def test_code_of_the_page_runs_and_prints_what_the_page_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    check(page)


@pytest.mark.spark
@pytest.mark.parametrize("page", [page for page in WITH_CODE if name(page) in NEEDS_SPARK], ids=name)
@pytest.mark.usefixtures("spark")
def test_code_of_the_page_runs_on_spark_and_prints_what_the_page_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    check(page)


@pytest.mark.parametrize("page", texts(), ids=name)
def test_lines_of_prose_fit_a_screen(page: Path) -> None:
    assert [number for number, line in prose(page) if len(line) > WIDTH] == []


@pytest.mark.parametrize("page", pages(), ids=name)
def test_links_lead_to_files_that_exist(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_example_of_the_readme_fits_a_screen() -> None:
    *_, result = example = blocks(ROOT / "README.md")
    assert result.prints
    assert sum(len(block.code.splitlines()) for block in example) <= 36


def test_pipeline_of_the_readme_is_a_file_for_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading it neither runs it nor writes to its log: `slackwater run` would do both twice."""
    monkeypatch.chdir(tmp_path)
    _, pipeline, _ = blocks(ROOT / "README.md")
    Path("purchases.py").write_text(pipeline.code, encoding="utf-8")
    explained = CliRunner().invoke(app, ["explain", "purchases.py"])
    assert explained.exit_code == 0, explained.output
    assert "pipeline purchases " in explained.output
    assert [path.name for path in tmp_path.iterdir() if path.name != "__pycache__"] == ["purchases.py"]

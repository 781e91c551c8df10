"""The tests stand as the source does, and their names say what holds."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
PACKAGE = TESTS.parent / "src" / "slackwater"
SUITES = {
    "architecture": "the shape of the code",
    "cluster": "a cluster that loses an executor",
    "conformance": "cases of other engines, against a slow model",
    "conformance/cases": "their files",
    "crash": "processes that are killed",
    "docs": "the documentation",
    "matrix": "a driver that fails at every step of a delivery",
    "on_spark": "what only a real Spark job shows",
    "property": "generated streams, against models",
    "release": "the wheel",
    "soak": "the short form of `make soak`",
}
"""The folders that are about more than one part."""
HEARSAY = re.compile(r"_(said|told)(_|$)|_that_is_none(_|$)")
"""Words that leave open what is printed or raised, and a "none" that means "not one"."""


def stray(folders: list[str]) -> list[str]:
    """Return the folders of tests that are neither a part of the source nor a suite."""
    return [folder for folder in folders if folder not in SUITES and not (PACKAGE / folder / "__init__.py").exists()]


def vague(source: str) -> list[str]:
    """Return the names of tests that use one of the words."""
    functions = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef))
    return [each.name for each in functions if each.name.startswith("test_") and HEARSAY.search(each.name)]


def test_folders_of_tests_are_those_of_the_source() -> None:
    folders = {
        path.relative_to(TESTS).parent.as_posix() for path in TESTS.rglob("*") if path.suffix in {".py", ".json"}
    }
    assert stray(sorted(folders - {"."})) == []


def test_only_helpers_of_all_tests_are_outside_a_folder() -> None:
    assert [path.name for path in TESTS.glob("test_*.py")] == []


def test_every_suite_of_the_list_exists() -> None:
    assert [suite for suite in SUITES if not (TESTS / suite).is_dir()] == []


def test_names_of_tests_say_what_holds() -> None:
    found = {
        path.name: names for path in TESTS.rglob("test_*.py") if (names := vague(path.read_text(encoding="utf-8")))
    }
    assert found == {}


@pytest.mark.parametrize("folder", ["unit", "operators/unit", "helpers", "connectors/rabbit"])
def test_folder_that_mirrors_nothing_is_found(folder: str) -> None:
    assert stray([folder, "operators/joins", "docs"]) == [folder]


@pytest.mark.parametrize(
    "name", ["test_mistake_is_told", "test_error_is_said_once", "test_master_that_is_none_is_refused"]
)
def test_name_that_says_nothing_is_found(name: str) -> None:
    assert vague(f"def {name}(): ...") == [name]

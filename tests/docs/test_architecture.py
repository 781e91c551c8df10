"""The architecture page names files that exist, the folders in their order, and every rule that tests cite."""

from __future__ import annotations

import re
from collections import Counter
from itertools import groupby
from pathlib import Path

from tests.architecture.imports import PACKAGE
from tests.architecture.test_imports_point_one_way import FOLDERS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "inside" / "architecture.md").read_text(encoding="utf-8")


def test_every_path_on_the_page_exists() -> None:
    named = set(re.findall(r"`((?:src/slackwater/)?[\w/]+\.py)`", PAGE))
    assert len(named) > 20
    places = (ROOT, PACKAGE)
    assert sorted(path for path in named if not any((place / path).exists() for place in places)) == []


def test_folders_on_the_page_are_those_of_the_tree_in_their_order() -> None:
    table = PAGE[PAGE.index("## Folders") : PAGE.index("## The path of one event")]
    named = re.findall(r"^\| `(\w+)` \|", table, flags=re.MULTILINE)
    found = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert named == [folder for folder in FOLDERS if folder in found]
    assert {*named} == found


def test_folders_are_counted_as_often_as_the_path_of_the_event_enters_them() -> None:
    walk = PAGE[PAGE.index("## The path of one event") : PAGE.index("## The same, from Kafka")]
    rows = re.findall(r"^\| (\d+) \| `(\w+)/", walk, flags=re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, len(rows) + 1))
    entered = Counter(folder for folder, _ in groupby(folder for _, folder in rows))
    table = PAGE[PAGE.index("### How often it enters each folder") : PAGE.index("## Where to look")]
    counted = {name: int(times) for name, times in re.findall(r"^\| `(\w+)` \| (\d+) \|", table, flags=re.MULTILINE)}
    assert counted == dict(entered)


def test_rules_that_tests_cite_are_on_the_page() -> None:
    rules = PAGE[PAGE.index("## Rules") :]
    numbers = {int(number) for number in re.findall(r"^(\d+)\. ", rules, flags=re.MULTILINE)}
    cited = {
        int(number)
        for path in (ROOT / "tests").rglob("test_*.py")
        for number in re.findall(r"def test_rule_(\d+)_", path.read_text(encoding="utf-8"))
    }
    assert cited <= numbers

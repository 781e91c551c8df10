"""What users write classes of their own with is public: nobody imports a private module for it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import slackwater as sw
from tests.docs.pages import ROOT, blocks, pages

DOORS = ("aggregates", "formats", "kafka", "lookups", "sinks", "sources", "testing", "windows")
SHOWN_ONLY = {"slackwater.formats.dead_letter_json"}
"""What a page uses to show what an output holds; no class of one's own needs it."""


@pytest.mark.parametrize(
    "module, names",
    [
        (sw.sinks, ["DamagedMarkError", "StoppedWaitingError", "Trial"]),
        (sw.sources, ["Chunk", "Reading", "TaskFacts"]),
        (sw.formats, ["Flaw"]),
        (sw.lookups, ["Refused", "RefusedKeysError", "Unavailable"]),
        (sw, ["Aggregate"]),
    ],
)
def test_names_of_the_contracts_are_public(module: object, names: list[str]) -> None:
    assert [name for name in names if name not in module.__all__ or not hasattr(module, name)] == []  # type: ignore[attr-defined]


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_import_from_public_modules_and_from_nothing_behind_them(page: Path) -> None:
    imported = {
        node.module or ""
        for block in blocks(page)
        for node in ast.walk(ast.parse(block.code))
        if isinstance(node, ast.ImportFrom)
    }
    assert [
        name for name in imported - SHOWN_ONLY if name.startswith(tuple(f"slackwater.{door}." for door in DOORS))
    ] == []

"""Rules of the folders: a class name once, one verdict on lateness, one order of a batch."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "slackwater"
DEMO = "tools/demo/"
"""The demo reads back what a job has written, as a user would."""

WAITING = "base/backoff.py"
OTHER_WAITS = ("connectors/kafka/broker.py", "spark/jvm.py", "tools/cli/status.py", DEMO)
"""Files that wait for a process which may also end, or between two pictures on a screen."""
PAUSE = re.compile(r"pause|wait|backoff", re.IGNORECASE)


@cache
def modules() -> list[tuple[str, ast.Module]]:
    """Parse the package once for all rules."""
    return [
        (path.relative_to(PACKAGE).as_posix(), ast.parse(path.read_text(encoding="utf-8")))
        for path in sorted(PACKAGE.rglob("*.py"))
    ]


def test_class_name_occurs_once() -> None:
    places = defaultdict(list)
    for name, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(name)
    assert not {name: found for name, found in places.items() if len(found) > 1}


def attributes(tree: ast.Module, wanted: str) -> list[ast.Attribute]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == wanted]


def test_one_module_decides_that_a_row_is_late() -> None:
    """It alone reads what was forgotten before; the engine only hands that on."""
    users = [name for name, tree in modules() if attributes(tree, "forgotten_ms")]
    assert [name for name in users if not name.startswith("engine/")] == ["eventtime/clock.py", "eventtime/lateness.py"]


def test_order_of_the_halves_of_a_batch_stands_once() -> None:
    users = [name for name, tree in modules() if attributes(tree, "fire_first")]
    assert users == ["eventtime/step_time.py", "operators/step.py"]


def calls(tree: ast.Module, name: str) -> bool:
    return any(isinstance(node, ast.Call) and ast.unparse(node.func) == name for node in ast.walk(tree))


def lengthens_a_pause(tree: ast.Module) -> bool:
    """Look for a pause that is doubled, or raised to a power, in any spelling."""
    return any(
        isinstance(node, ast.BinOp | ast.AugAssign)
        and isinstance(node.op, ast.Mult | ast.Pow | ast.LShift)
        and any(isinstance(each, ast.Constant) and each.value in {1, 2} for each in ast.walk(node))
        and PAUSE.search(ast.unparse(node))
        for node in ast.walk(tree)
    )


def test_one_module_sleeps_between_attempts() -> None:
    users = [name for name, tree in modules() if calls(tree, "time.sleep") and not name.startswith(OTHER_WAITS)]
    assert users == [WAITING]


def test_one_module_lengthens_pauses() -> None:
    assert not [name for name, tree in modules() if lengthens_a_pause(tree) and name != WAITING]


@pytest.mark.parametrize(
    "line",
    ["wait_s = min(2 * wait_s, 15.0)", "pause_s *= 2", "x = FIRST_PAUSE_S * 2 ** (n - 1)", "x = WAIT_S * (1 << n)"],
)
def test_lengthened_pause_is_found_in_any_spelling(line: str) -> None:
    assert lengthens_a_pause(ast.parse(line))

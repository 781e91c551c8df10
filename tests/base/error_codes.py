"""Every call of the error catalogue in the source, found without running it."""

from __future__ import annotations

import ast
import string
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "slackwater"

REFUSALS = frozenset({"refuse"})
"""Functions that make a `DefinitionError`."""
FAULTS = frozenset({"fault", "_fault", "row_error", "render", "notice", "WindowFailedError"})
"""Functions that make a `RunError`, or the text of a warning."""


@dataclass(frozen=True, kw_only=True)
class Use:
    """One place that asks the catalogue for a message."""

    code: str
    function: str
    place: str
    facts: frozenset[str] | None
    """The names of the facts it gives; None where they are not written out (`**facts`)."""

    @property
    def is_refusal(self) -> bool:
        """Whether the code is raised when a pipeline is built."""
        return self.function in REFUSALS


@cache
def uses() -> tuple[Use, ...]:
    """Return every call of `refuse` or `fault` whose code is written out, in the order of the files."""
    return tuple(use for path in sorted(PACKAGE.rglob("*.py")) for use in _uses(path))


@cache
def notices() -> frozenset[str]:
    """Return the codes that are only ever rendered: warnings of a job that continues."""
    found = uses()
    return frozenset(
        {use.code for use in found} - {use.code for use in found if use.function not in {"render", "notice"}}
    )


def placeholders(text: str) -> frozenset[str]:
    """Return the names of the facts that a message needs."""
    return frozenset(name for _, name, _, _ in string.Formatter().parse(text) if name is not None)


def _uses(path: Path) -> Iterator[Use]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or not node.args:
            continue
        code = node.args[0]
        if node.func.id not in REFUSALS | FAULTS or not isinstance(code, ast.Constant):
            continue
        names = [keyword.arg for keyword in node.keywords]
        yield Use(
            code=str(code.value),
            function=node.func.id,
            place=f"{path.relative_to(PACKAGE)}:{node.lineno}",
            facts=None if None in names else frozenset(name for name in names if name is not None),
        )

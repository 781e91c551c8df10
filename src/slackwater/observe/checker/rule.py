"""The rules of the checker: a stable code, a severity, the reason, the fix, and the function that looks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from slackwater.observe.checker.facts import Facts
from slackwater.plan.plan import Plan

Severity = Literal["error", "warning", "note"]
SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "note")
"""The severities, the worst first."""


class Violation(NamedTuple):
    """One place that breaks a rule."""

    where: str
    """The stream, step or output, as in "step `velocity`"."""
    what: str
    """What was found there, in one sentence without a full stop."""


Look = Callable[[Plan, Facts], Iterable[Violation]]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A problem that the checker looks for."""

    code: str
    severity: Severity
    title: str
    """A short description of the problem: the heading of its paragraph."""
    why: str
    """What the problem costs."""
    fix: str
    """What to do, with the option to set."""
    look: Look


def rule(code: str, severity: Severity, *, title: str, why: str, fix: str) -> Callable[[Look], Rule]:
    """Turn the function that looks for a problem into a rule."""

    def made(look: Look) -> Rule:
        return Rule(code=code, severity=severity, title=title, why=why, fix=fix, look=look)

    return made

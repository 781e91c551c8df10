"""What a rule is: a code that never changes, how much it matters, why, what to do, and how it looks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from slackwater.checker.facts import Facts
from slackwater.planning.plan import Plan

Severity = Literal["error", "warning", "note"]
SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "note")
"""The worst first."""


class Found(NamedTuple):
    """One place that breaks a rule."""

    where: str
    """The stream, step or output, as in "step `velocity`"."""
    what: str
    """What was found there, in one sentence without a full stop."""


Look = Callable[[Plan, Facts], Iterable[Found]]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One thing that the checker looks for."""

    code: str
    severity: Severity
    title: str
    """What is wrong, in short: the heading of its paragraph."""
    why: str
    """What it costs."""
    fix: str
    """What to do, with the option to write."""
    look: Look


def rule(code: str, severity: Severity, *, title: str, why: str, fix: str) -> Callable[[Look], Rule]:
    """Make a rule of the function that looks for it."""

    def made(look: Look) -> Rule:
        return Rule(code=code, severity=severity, title=title, why=why, fix=fix, look=look)

    return made

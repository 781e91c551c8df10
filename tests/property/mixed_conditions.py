"""Conditions of joins and patterns in mixed chains, as text and in Python; some fail on a row, some on a pair."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import slackwater as sw
from slackwater.operators.patterns import definitions
from tests.property.mixed_values import Row
from tests.property.pattern_model import Sought
from tests.property.pattern_model import Step as ModelStep


class FailedError(Exception):
    """The row is to blame alone."""


@dataclass(frozen=True)
class Condition:
    """A condition on pairs of a join: its text, when it is true, and which rows of each side fail alone."""

    sql: str
    holds: Callable[[Row, Row], bool]
    left_fails: Callable[[Row], bool] = lambda _: False
    right_fails: Callable[[Row], bool] = lambda _: False


def _both(left: Row, right: Row) -> bool:
    return left.v is not None and right.v is not None


JOINS: Final = (
    Condition("right.v <= left.v", lambda left, right: _both(left, right) and right.v <= left.v),  # type: ignore[operator]
    # It fails on pairs, and a pair that fails does not match.
    Condition(
        "cast(left.v - right.v as tinyint unsigned) <> 1",
        lambda left, right: _both(left, right) and left.v - right.v >= 0 and left.v - right.v != 1,  # type: ignore[operator]
    ),
    # It fails on rows alone, of one side each.
    Condition(
        "cast(left.v - 2 as tinyint unsigned) >= right.v",
        lambda left, right: _both(left, right) and left.v - 2 >= right.v,  # type: ignore[operator]
        left_fails=lambda row: row.v is not None and row.v < 2,
    ),
    Condition(
        "left.v >= 1 and cast(right.v - 1 as tinyint unsigned) < 8",
        lambda left, right: _both(left, right) and left.v >= 1 and right.v - 1 < 8,  # type: ignore[operator]
        right_fails=lambda row: row.v == 0,
    ),
)


@dataclass(frozen=True)
class PatternStep:
    """A step of a pattern."""

    name: str
    sql: str
    holds: Callable[[Any, dict[str, Any]], bool]
    fails: Callable[[Any], bool] = lambda _: False
    least: int = 1
    most: int | None = 1
    is_optional: bool = False

    @property
    def is_repeated(self) -> bool:
        """Whether the columns of results are lists."""
        return (self.least, self.most) != (1, 1)


@dataclass(frozen=True)
class Pattern:
    """A pattern: a sequence of steps, or an absence of the second."""

    steps: tuple[PatternStep, ...]
    within: int
    is_strict: bool = False
    is_past_last: bool = True
    is_absence: bool = False

    @property
    def shown(self) -> tuple[PatternStep, ...]:
        """The steps that results have columns of."""
        return self.steps[:1] if self.is_absence else self.steps

    @property
    def sought(self) -> Sought:
        """The pattern for the slow matcher."""
        steps = [ModelStep(s.name, s.sql, s.holds, s.least, s.most, s.is_optional) for s in self.steps]
        return Sought(tuple(steps), self.within, self.is_strict, self.is_past_last, self.is_absence)

    def fails(self, row: Row) -> bool:
        """Return whether a row is to blame alone."""
        return any(step.fails(row) for step in self.steps)

    def defined(self) -> definitions.Pattern:
        """Return the pattern as users write it."""
        within = f"{self.within}ms"
        if self.is_absence:
            return sw.absent(after=self.steps[0].sql, expect=self.steps[1].sql, within=within)
        steps: dict[str, Any] = {}
        for step in self.steps:
            at_least, at_most = (step.least, step.most) if step.is_repeated else (None, None)
            steps[step.name] = sw.step(step.sql, at_least=at_least, at_most=at_most, optional=step.is_optional)
        return sw.sequence(
            steps,
            within=within,
            contiguity="strict" if self.is_strict else "relaxed",
            skip="past_last" if self.is_past_last else "next_row",
        )


def own_steps(name: str) -> list[PatternStep]:
    """Return steps whose conditions look at the row alone."""
    return [
        PatternStep(name, "v < 4", lambda row, _: row.v is not None and row.v < 4),
        PatternStep(name, "v >= 3", lambda row, _: row.v is not None and row.v >= 3),
        PatternStep(name, "v is null or b = 1", lambda row, _: row.v is None or row.b == 1),
        PatternStep(name, "true", lambda _, __: True),
        PatternStep(
            name,
            "cast(v - 1 as tinyint unsigned) >= 1",
            lambda row, _: row.v is not None and row.v >= 2,
            lambda row: row.v == 0,
        ),
    ]


def tied_steps(name: str, other: str) -> list[PatternStep]:
    """Return steps whose conditions look at the row that another step took, too."""

    def value(taken: dict[str, Any]) -> int | None:
        return taken[other].v if other in taken else None

    def more(row: Any, taken: dict[str, Any]) -> bool:  # noqa: ANN401  a row of the matcher
        before = value(taken)
        return row.v is not None and before is not None and row.v > before

    def apart(row: Any, taken: dict[str, Any]) -> bool:  # noqa: ANN401  a row of the matcher
        before = value(taken)
        return row.v is not None and before is not None and row.v - before >= 2

    return [
        PatternStep(name, f"v > {other}.v", more),
        # It fails on pairs.
        PatternStep(name, f"cast(v - {other}.v as tinyint unsigned) >= 2", apart),
    ]


def as_absence(after: PatternStep, expect: PatternStep, within: int) -> Pattern:
    """Return an absence."""
    steps = (replace(after, name="after"), replace(expect, name="expect"))
    return Pattern(steps, within, is_past_last=False, is_absence=True)

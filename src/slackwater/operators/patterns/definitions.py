"""Patterns as users write them: a sequence of steps, n rows of one kind, a row that does not arrive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from slackwater.base.durations import Duration, duration_ms, render_ms
from slackwater.base.errors import refuse
from slackwater.base.expressions import Expression
from slackwater.operators.patterns.steps import MOST_ROWS, PatternStep, RowsOfStep, named_step, step

Contiguity = Literal["relaxed", "strict"]
Skip = Literal["past_last", "next_row"]
MOST_STEPS: Final = 60
"""The most steps in a pattern, because the conditions that a row meets are stored as bits of one number."""


@dataclass(frozen=True, kw_only=True)
class Pattern:
    """What to look for in the rows of one key: steps in order of event time.

    The first and last row of a match are at most `within_ms` apart. For each row at which a match can begin there is at
    most one match, found like that of a regular expression: each step takes as many rows as it can, and fewer only if
    the steps after it could not match otherwise.
    """

    steps: tuple[PatternStep, ...]
    within_ms: int
    contiguity: Contiguity = "relaxed"
    """Whether rows that no step can take are skipped, or end the match."""
    skip: Skip = "past_last"
    """Where the next match may begin: after the last row of the previous match, or at the row after its first."""
    is_absence: bool = False
    """Whether a result is a first row without a match, instead of a match."""

    def __str__(self) -> str:
        within = render_ms(self.within_ms)
        if self.is_absence:
            after, expect = self.steps
            return f"{after}, and no {expect} within {within} after it"
        return f"{' → '.join(map(str, self.steps))} within {within}"


def sequence(
    steps: Mapping[str, Expression | RowsOfStep] | None = None,
    /,
    *,
    within: Duration | None = None,
    contiguity: Contiguity = "relaxed",
    skip: Skip = "past_last",
    **more: Expression | RowsOfStep,
) -> Pattern:
    """Look for rows that follow each other: `sequence(small="amount < 1", large="amount > 500", within="1m")`.

    A condition may refer to the row that an earlier step took, `large="amount > 10 * small.amount"`; for a step that
    takes several rows, and for the step itself, to the one it took last. A step that repeats or is optional is written
    `failed=sw.step("not ok", at_least=3)`, or with its name in a dictionary, whose steps come first:
    `sequence({"failed{3,}": "not ok"}, ok="ok", within="10m")`, with `?`, `*`, `+`, `{3}`, `{3,}` or `{3,5}`.

    The time from the first row to the last is at most `within`. With `contiguity="relaxed"`, rows that no step can
    take next are skipped; with `"strict"` they end the match. With `skip="past_last"` a row belongs to at most one
    match; with `"next_row"` the next match may begin at the row after the first one.
    """
    if steps is not None and not isinstance(steps, Mapping):
        raise refuse("PATTERN_STEPS", got=repr(steps))
    found = tuple(named_step(name, value) for name, value in [*(steps or {}).items(), *more.items()])
    if not found:
        raise refuse("PATTERN_EMPTY")
    if len(found) > MOST_STEPS:
        raise refuse("PATTERN_TOO_LONG", most=MOST_STEPS, got=len(found))
    name, count = Counter(each.name for each in found).most_common(1)[0]
    if count > 1:
        raise refuse("PATTERN_STEP_TWICE", name=name)
    if all(each.is_optional for each in found):
        raise refuse("PATTERN_ALL_OPTIONAL", got=", ".join(each.name for each in found))
    if contiguity not in ("relaxed", "strict"):
        raise refuse("PATTERN_CONTIGUITY", got=repr(contiguity))
    if skip not in ("past_last", "next_row"):
        raise refuse("PATTERN_SKIP", got=repr(skip))
    return Pattern(steps=found, within_ms=_within_ms(within), contiguity=contiguity, skip=skip)


def times(
    *,
    n: int,
    within: Duration | None = None,
    contiguity: Contiguity = "relaxed",
    skip: Skip = "past_last",
    **steps: Expression | RowsOfStep,
) -> Pattern:
    """Look for `n` rows of one key that meet one condition: `times(failed="not ok", n=3, within="10m")`."""
    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= MOST_ROWS:
        raise refuse("PATTERN_TIMES", got=repr(n), most=MOST_ROWS)
    if len(steps) != 1:
        raise refuse("PATTERN_TIMES_STEPS", got=", ".join(steps) or "none")
    [(name, condition)] = steps.items()
    return sequence({f"{name}{{{n}}}": condition}, within=within, contiguity=contiguity, skip=skip)


def absent(*, after: Expression, expect: Expression, within: Duration | None = None) -> Pattern:
    """Look for rows that an expected row does not follow in time.

    `absent(after="kind = 'order'", expect="kind = 'payment'", within="30m")` finds orders without a payment.
    `expect` may refer to the `after` row: `expect="kind = 'payment' and order_id = after.order_id"`. There is one
    result for each `after` row that no `expect` row of its key follows within `within`, emitted when the watermark has
    passed that time.
    """
    steps = (named_step("after", step(after)), named_step("expect", step(expect)))
    return Pattern(steps=steps, within_ms=_within_ms(within), skip="next_row", is_absence=True)


def _within_ms(within: Duration | None) -> int:
    if within is None:
        raise refuse("PATTERN_WITHIN")
    return duration_ms(within, what="`within` of a pattern")

"""Interval joins: pairs of rows with equal keys whose times are within bounds of each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from slackwater.base.durations import Duration, duration_ms, render_ms
from slackwater.base.errors import DefinitionError, near_miss, refuse
from slackwater.base.expressions import Expression, as_expr, as_written, check_predicate, missing_field, one_type
from slackwater.formats.undecoded import Undecoded
from slackwater.operators.joins.columns import LEFT, RIGHT, SIDES, SideName, join_columns
from slackwater.operators.joins.conditions import columns_read, tried_alone
from slackwater.operators.joins.front import JoinFront
from slackwater.operators.joins.interval_operator import IntervalOperator
from slackwater.operators.joins.kept_rows import Kept
from slackwater.operators.joins.step import (
    How,
    JoinStep,
    check_late,
    checked_how,
    checked_late,
    checked_suffixes,
)
from slackwater.operators.late_rows import Late
from slackwater.operators.ports import Port
from slackwater.operators.step import PortFront, StepDefinition


@dataclass(frozen=True, kw_only=True)
class IntervalJoin(JoinStep):
    """A join of rows with `lower <= right time - left time <= upper`."""

    lower_ms: int
    upper_ms: int
    on_match: pl.Expr | None = None
    condition_text: str = ""
    """The condition as the user wrote it."""

    def reach_ms(self, side: SideName) -> int:
        """Return how far the watermark must be past a row's time before no new row can match it."""
        return self.upper_ms if side == LEFT else -self.lower_ms

    @property
    def emission_delay_ms(self) -> int:
        """How far behind the watermark a result may be.

        A pair has the time of its later row; if both rows are on time, that is not behind the watermark. A padded row
        is emitted when no partner can arrive any more. A late row that is processed may match any row that is still
        stored; results of rows that are even later are late for the next step and go to its late output.
        """
        padded = [self.reach_ms(side) for side in SIDES if self.pads(side) or self.late == "process"]
        return max([0, *padded])

    @property
    def layout(self) -> dict[str, str]:
        """The columns of both sides, and the settings that decide how long rows are stored."""
        return {**self._ports_text, "between": f"{self.lower_ms} {self.upper_ms}", "how": self.how}

    @property
    def rules(self) -> str:
        """The other settings that decide which pairs match, and the columns of results."""
        return repr((self.late, str(self.on_match), dict(self.result_types)))

    def kept(self, side: SideName) -> Kept:
        """Return how a side is stored."""
        port, is_padded = self.ports[side], self.pads(side)
        return Kept(
            part=SIDES.index(side),
            types=self.kept_types(side),
            keys=port.keys,
            reach_ms=self.reach_ms(side),
            width_ms=self.upper_ms - self.lower_ms,
            is_awaited=is_padded,
            is_marked=is_padded,
        )

    def front(self, port: str, undecoded: Undecoded | None) -> PortFront:  # noqa: ARG002  all columns are read
        """Return the FRONT part of a side."""
        side: SideName = LEFT if port == LEFT else RIGHT
        return JoinFront(
            step=self,
            side=side,
            judges=self.late == "output",
            keeps_null_keys=self.pads(side),
            parts=self._tried_alone[side],
        )

    @cached_property
    def _tried_alone(self) -> Mapping[SideName, tuple[pl.Expr, ...]]:
        """The parts of the condition that the rows of each side are tried with before they are paired."""
        if self.on_match is None:
            return dict.fromkeys(SIDES, ())
        return {side: tried_alone(self.on_match, side, self.ports[side].schema) for side in SIDES}

    @cached_property
    def condition_columns(self) -> Mapping[SideName, list[str]]:
        """The columns of each side that the condition reads."""
        assert self.on_match is not None
        return {side: columns_read(self.on_match, side, self.ports[side].schema) for side in SIDES}

    def operator(self) -> IntervalOperator:
        """Return the KEYED part."""
        return IntervalOperator(self)

    def describe(self) -> list[tuple[str, str]]:
        """Return the lines of the step in `explain`."""
        keys = [f"{mine} = {other}" for mine, other in zip(self.left.keys, self.right.keys, strict=True)]
        lines = [
            ("join", f"{self.how}, {', '.join(keys)}"),
            ("between", f"right time - left time from {render_ms(self.lower_ms)} to {render_ms(self.upper_ms)}"),
        ]
        lines += [("if", self.condition_text)] if self.on_match is not None else []
        for side in SIDES:
            lines += [("keeps", f"{side} rows {_until(self.reach_ms(side))}")]
        lines += [
            ("unmatched", f"{side} rows come out {_after(self.reach_ms(side))}") for side in SIDES if self.pads(side)
        ]
        lines += [("late", "rows are joined with what is still kept")] if self.late == "process" else []
        return lines


def _until(reach_ms: int) -> str:
    if reach_ms < 0:
        return f"until {render_ms(-reach_ms)} before the watermark reaches their time"
    return (
        f"until the watermark is past their time + {render_ms(reach_ms)}"
        if reach_ms
        else "until the watermark is past their time"
    )


def _after(reach_ms: int) -> str:
    if reach_ms <= 0:
        return (
            "when the watermark passes their time"
            if not reach_ms
            else f"{render_ms(-reach_ms)} before their time, when the watermark passes"
        )
    return f"{render_ms(reach_ms)} after their time, when the watermark passes"


@dataclass(frozen=True, kw_only=True, eq=False)
class IntervalDefinition(StepDefinition):
    """An interval join as the user defined it."""

    lower_ms: int
    upper_ms: int
    how: How
    on_match: pl.Expr | None
    condition_text: str
    suffixes: tuple[str, str]
    late: Late

    def resolve(self, name: str, ports: Mapping[str, Port]) -> IntervalJoin:
        """Return the step for the columns of `ports`, or reject the definition."""
        left, right = ports[LEFT], ports[RIGHT]
        check_late(name, self.late, left, right)
        columns = join_columns(name, left, right, self.suffixes)
        if self.on_match is not None:
            _check_condition(name, self.on_match, self.condition_text, left, right)
        return IntervalJoin(
            name=name,
            left=left,
            right=right,
            columns=columns,
            how=self.how,
            late=self.late,
            lower_ms=self.lower_ms,
            upper_ms=self.upper_ms,
            on_match=self.on_match,
            condition_text=self.condition_text,
        )


def interval_join(
    *,
    between: tuple[Duration, Duration] | None,
    how: How,
    on_match: Expression | None,
    suffixes: tuple[str, str],
    late: Late,
) -> IntervalDefinition:
    """Return the definition of an interval join, or reject its options."""
    lower_ms, upper_ms = _bounds(between)
    return IntervalDefinition(
        lower_ms=lower_ms,
        upper_ms=upper_ms,
        how=checked_how(how),
        on_match=None if on_match is None else as_expr(on_match),
        condition_text="" if on_match is None else as_written(on_match),
        suffixes=checked_suffixes(suffixes),
        late=checked_late(late),
    )


def _bounds(between: Any) -> tuple[int, int]:  # noqa: ANN401  any user input
    is_pair = isinstance(between, tuple | list) and len(between) == 2  # noqa: PLR2004  a pair
    if not is_pair or any(bound is None for bound in between):
        raise refuse("JOIN_BETWEEN", got=repr(between))
    lower_ms, upper_ms = (duration_ms(bound, what="a bound of `between`", least_ms=None) for bound in between)
    if lower_ms > upper_ms:
        raise refuse("JOIN_BETWEEN_ORDER", lower=render_ms(lower_ms), upper=render_ms(upper_ms))
    return lower_ms, upper_ms


def _check_condition(step: str, condition: pl.Expr, condition_text: str, left: Port, right: Port) -> None:
    """Reject a condition that is not one Boolean per pair."""
    schema = pl.Schema({"left": pl.Struct(left.schema), "right": pl.Struct(right.schema)})
    try:
        check_predicate(schema, condition, step=step)
    except DefinitionError as error:
        if (cause := _cause(error, condition, schema, step)) is None:
            raise
        raise refuse("JOIN_ON_MATCH", step=step, got=condition_text, cause=cause) from error
    if not condition.meta.root_names() and pl.select(condition).item() is not True:
        raise refuse("JOIN_ON_MATCH", step=step, got=condition_text, cause="no pair meets it")


def _cause(error: DefinitionError, condition: pl.Expr, schema: pl.Schema, step: str) -> str | None:
    """Return what is wrong with a condition, in terms of a join; None if the error says it better."""
    if (missing := missing_field([condition], schema)) is not None:
        hint = near_miss(missing.name, missing.known)
        return f"the {missing.of} rows have no column `{missing.name}`{hint}"
    if error.code == "UNKNOWN_COLUMN":
        name = next(name for name in condition.meta.root_names() if name not in schema)
        return f"`{name}` is of neither side"
    if error.code == "PREDICATE_TYPE":
        return f"the value has the type {one_type(schema, condition, step=step)}"
    if error.code == "EXPRESSION_NOT_A_ROW_VALUE":
        return "the value may depend on other pairs"
    if error.code == "EXPRESSION_TYPE":
        return "the types do not fit: " + str(error.__cause__).partition("\n")[0]
    return None

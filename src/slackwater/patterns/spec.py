"""The pattern step, checked and resolved: what a keyed step tells the rooms around it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import polars as pl

from slackwater.errors import refuse
from slackwater.formats.undecoded import Undecoded
from slackwater.ground.durations import render_ms
from slackwater.ground.stable_text import stable_text
from slackwater.ground.times import MIN_MS
from slackwater.patterns.conditions import Condition, conditions, referred_fields
from slackwater.patterns.course import Course
from slackwater.patterns.definitions import Pattern
from slackwater.patterns.results import result_columns
from slackwater.state.late_rows import check_late_columns, late_schema
from slackwater.state.pieces import StepState
from slackwater.state.shown import held_rows, moment, readable
from slackwater.state.step import ROWS, KeyedStep, Operator, Port, PortFront, StepDefinition

_HELD: Final = {
    "__ts": pl.Int64(),
    "__part": pl.String(),
    "__off": pl.Int64(),
    "__end": pl.Int64(),
    "__fits": pl.Int64(),
    "__due": pl.Int64(),
    "__seen": pl.Int64(),
}


@dataclass(frozen=True, kw_only=True)
class PatternSpec(KeyedStep):
    """One pattern on one keyed stream."""

    name: str
    keys: tuple[str, ...]
    row_schema: pl.Schema
    pattern: Pattern
    conditions: tuple[Condition, ...]
    fields: tuple[str, ...]
    """The columns that conditions read of the rows of other steps."""
    lateness_ms: int = 0

    @cached_property
    def course(self) -> Course:
        """The pattern's steps as the search takes them."""
        return Course(self.pattern, self.conditions, self.keys, self.fields)

    @cached_property
    def state_types(self) -> pl.Schema:
        """The columns of a state row: a row of the stream, the conditions it meets, when it is looked at."""
        return pl.Schema(dict(self.row_schema) | _HELD)

    def conform(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return `rows` with exactly the state's columns; a new row is looked at when the watermark passes it."""
        if "__due" not in rows.columns:
            seen = pl.lit(MIN_MS, dtype=pl.Int64).alias("__seen")
            rows = rows.with_columns(pl.col("__end").alias("__due"), seen)
        return rows.select(self.state_types.names())

    @property
    def ports(self) -> Mapping[str, Port]:
        """The rows among which the pattern is looked for."""
        return {ROWS: Port(schema=self.row_schema, keys=self.keys)}

    @cached_property
    def result_types(self) -> pl.Schema:
        """The columns of a result."""
        return pl.Schema(result_columns(self.pattern, self.row_schema, self.keys))

    @cached_property
    def late_types(self) -> pl.Schema:
        """The columns of a late row: the original row, and why it was too late."""
        return late_schema(self.row_schema)

    @property
    def result_order(self) -> list[str]:
        """By key and first row."""
        return [*self.keys, "first_time", "last_time"]

    @property
    def emission_delay_ms(self) -> int:
        """How long after the watermark has passed a match it may still be emitted.

        Where a step may take one row more, or an earlier row may begin a match that takes the place of this one, only
        the end of `within` is certain. An absence has that end as its time.
        """
        is_fixed = all(step.is_fixed for step in self.pattern.steps)
        is_tied = any(condition.tied is not None for condition in self.conditions)
        is_certain = is_fixed and (self.course.is_strict or not is_tied)
        return 0 if self.pattern.is_absence or is_certain else self.pattern.within_ms

    @property
    def layout(self) -> dict[str, str]:
        """What the state looks like; rows are stored with the conditions they meet, so these belong to it."""
        return {
            "keys": ", ".join(f"{key} {self.row_schema[key]}" for key in self.keys),
            "pattern": f"{self.pattern}, {self.pattern.contiguity}, {self.pattern.skip}",
            "state": ", ".join(f"{name} {dtype}" for name, dtype in self.state_types.items()),
        }

    @property
    def rules(self) -> str:
        """The conditions as Polars has them; the layout has them as they are written."""
        return stable_text(self.pattern)

    def reads(self, port: str) -> list[pl.Expr]:  # noqa: ARG002  it has but one
        """Return all columns: results show them."""
        return [pl.col(name) for name in self.row_schema]

    def front(self, port: str, undecoded: Undecoded | None) -> PortFront:  # noqa: ARG002  as above, and it reads all
        """Return what FRONT does to the rows."""
        from slackwater.patterns.front import PatternFront  # noqa: PLC0415  it works on this step

        return PatternFront(self)

    def operator(self) -> Operator:
        """Return what looks for the pattern in a key group."""
        from slackwater.patterns.operator import PatternOperator  # noqa: PLC0415  as above

        return PatternOperator(self)

    def shown_state(self, state: StepState, key: pl.DataFrame | None = None) -> pl.DataFrame:
        """Return the rows that a match may still begin with or need."""
        return readable(held_rows(state, self.keys, key, self), self.keys, event_time=moment(pl.col("__ts")))

    def check_next(self, step: str) -> None:
        """Accept any step: a match is shown once, with its event time."""

    def check_replaces(self, replaced_by: Sequence[str], **facts: object) -> None:
        """Accept any table: it shows each key's newest match, or all of them."""

    def describe(self) -> list[tuple[str, str]]:
        """Return what `explain` shows."""
        pattern, within = self.pattern, render_ms(self.pattern.within_ms)
        label = "absence" if pattern.is_absence else "pattern"
        found = [("key", ", ".join(self.keys)), (label, str(pattern))]
        if not pattern.is_absence:
            between = "rows between are passed over" if pattern.contiguity == "relaxed" else "no rows between"
            after = "after the last row" if pattern.skip == "past_last" else "at the row after the first"
            found.append(("rows", f"{pattern.contiguity}: {between}; the next match begins {after}"))
        found.append(("results", self._said_when(within)))
        return [*found, ("state", f"at most the rows of the last {within} per key, and those ahead of the watermark")]

    def _said_when(self, within: str) -> str:
        """Return when a result is shown, and what it waits for."""
        if self.pattern.is_absence:
            return f"when the watermark passes the row by {within}"
        if self.emission_delay_ms == 0:
            return "when the watermark passes the last row"
        last = self.pattern.steps[-1]
        why = "other rows may still make a better match" if last.is_fixed else f"{last.name} may still take rows"
        return f"at the latest when the watermark passes the first row by {within}: until then {why}"


@dataclass(frozen=True, kw_only=True, eq=False)
class PatternDefinition(StepDefinition):
    """A pattern to look for, before the rows are known."""

    pattern: Pattern

    def resolve(self, name: str, ports: Mapping[str, Port]) -> PatternSpec:
        """Return the step for rows as `ports` have them, or refuse it."""
        port, pattern = ports[ROWS], self.pattern
        columns = Counter(column for column, _ in result_columns(pattern, port.schema, port.keys))
        if twice := next((column for column, count in columns.items() if count > 1), None):
            raise refuse("PATTERN_COLUMN_TAKEN", step=name, column=twice)
        check_late_columns(port, name)
        found = conditions(pattern.steps, port.schema, step=name)
        return PatternSpec(
            name=name,
            keys=port.keys,
            row_schema=port.schema,
            pattern=pattern,
            conditions=found,
            fields=referred_fields(found, pattern.steps, port.schema),
        )

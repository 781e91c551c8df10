"""The pattern step, validated and resolved."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import polars as pl

from slackwater.base.durations import render_ms
from slackwater.base.errors import refuse
from slackwater.base.stable_text import stable_text
from slackwater.base.times import MIN_MS
from slackwater.formats.undecoded import Undecoded
from slackwater.operators.late_rows import check_late_columns, late_schema
from slackwater.operators.patterns.conditions import Condition, conditions, referred_fields
from slackwater.operators.patterns.course import Course
from slackwater.operators.patterns.definitions import Pattern
from slackwater.operators.patterns.results import result_columns
from slackwater.operators.ports import ROWS, Port
from slackwater.operators.state.pieces import StepState
from slackwater.operators.state.shown import held_rows, moment, readable
from slackwater.operators.step import KeyedStep, Operator, PortFront, StepDefinition
from slackwater.operators.step_memory import Difference

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
    """The columns that conditions read from the rows of other steps."""
    lateness_ms: int = 0

    @cached_property
    def course(self) -> Course:
        """The steps of the pattern, as tables for the search."""
        return Course(self.pattern, self.conditions, self.keys, self.fields)

    @cached_property
    def state_types(self) -> pl.Schema:
        """The columns of a state row: an input row, the conditions it meets, and when it must be processed."""
        return pl.Schema(dict(self.row_schema) | _HELD)

    def conform(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return `rows` with exactly the state columns; a new row is processed when the watermark passes it."""
        if "__due" not in rows.columns:
            seen = pl.lit(MIN_MS, dtype=pl.Int64).alias("__seen")
            rows = rows.with_columns(pl.col("__end").alias("__due"), seen)
        return rows.select(self.state_types.names())

    @property
    def ports(self) -> Mapping[str, Port]:
        """The single port of the step."""
        return {ROWS: Port(schema=self.row_schema, keys=self.keys)}

    @cached_property
    def result_types(self) -> pl.Schema:
        """The columns of a result."""
        return pl.Schema(result_columns(self.pattern, self.row_schema, self.keys))

    @cached_property
    def late_types(self) -> pl.Schema:
        """The columns of a late row: those of the original row, and how late it was."""
        return late_schema(self.row_schema)

    @property
    def result_order(self) -> list[str]:
        """The key, and the times of the first and last row."""
        return [*self.keys, "first_time", "last_time"]

    @property
    def lineage(self) -> tuple[str, ...]:
        """The places of the last row and of the first one."""
        return ("__last_part", "__last_off", "__first_part", "__first_off")

    @property
    def emission_delay_ms(self) -> int:
        """How long after the watermark has passed a match it may still be emitted.

        If a step may take one more row, or an earlier row may begin a match that replaces this one, a match is only
        certain at the end of `within`. An absence has that end as its time.
        """
        is_fixed = all(step.is_fixed for step in self.pattern.steps)
        is_tied = any(condition.tied is not None for condition in self.conditions)
        is_certain = is_fixed and (self.course.is_strict or not is_tied)
        return 0 if self.pattern.is_absence or is_certain else self.pattern.within_ms

    @property
    def layout(self) -> dict[str, str]:
        """The keys, the pattern and the state columns; rows are stored with the conditions they meet."""
        return {
            "keys": ", ".join(f"{key} {self.row_schema[key]}" for key in self.keys),
            "pattern": f"{self.pattern}, {self.pattern.contiguity}, {self.pattern.skip}",
            "met": self._met,
            "state": ", ".join(f"{name} {dtype}" for name, dtype in self.state_types.items()),
        }

    @property
    def _met(self) -> str:
        """A hash of what decides which conditions a row alone meets, and thus of what is stored with it."""
        steps = [(step.name, step.least, step.most, step.is_optional) for step in self.pattern.steps]
        own = [b"" if each.own is None else each.own.meta.serialize() for each in self.conditions]
        shape = (steps, own, self.pattern.within_ms, self.pattern.contiguity, self.pattern.skip)
        return hashlib.sha256(repr(shape).encode()).hexdigest()[:16]

    def difference(self, stored: Mapping[str, str]) -> Difference | None:
        """Return what prevents resuming; conditions on other rows may change, and then apply to later matches."""
        mine = self.layout
        lasting = [part for part in mine if part not in ("pattern", "met")]
        is_same = stored.get("pattern") == mine["pattern"] or stored.get("met") == mine["met"]
        for part in lasting if is_same else [*lasting, "pattern"]:
            if stored.get(part) != mine[part]:
                return Difference(part=part, found=stored.get(part, "nothing"), mine=mine[part])
        return None

    @property
    def rules(self) -> str:
        """The conditions as Polars expressions; the layout has them as the user wrote them."""
        return stable_text(self.pattern)

    def reads(self, port: str) -> list[pl.Expr]:  # noqa: ARG002  there is only one
        """Return all columns, because results contain them."""
        return [pl.col(name) for name in self.row_schema]

    def front(self, port: str, undecoded: Undecoded | None) -> PortFront:  # noqa: ARG002  as above, and it reads all
        """Return the FRONT part."""
        from slackwater.operators.patterns.front import PatternFront  # noqa: PLC0415  it imports this module

        return PatternFront(self)

    def operator(self) -> Operator:
        """Return the KEYED part."""
        from slackwater.operators.patterns.operator import PatternOperator  # noqa: PLC0415  as above

        return PatternOperator(self)

    def shown_state(self, state: StepState, key: pl.DataFrame | None = None) -> pl.DataFrame:
        """Return the rows that may still be part of a match."""
        return readable(held_rows(state, self.keys, key, self), self.keys, event_time=moment(pl.col("__ts")))

    def describe(self) -> list[tuple[str, str]]:
        """Return the lines of the step in `explain`."""
        pattern, within = self.pattern, render_ms(self.pattern.within_ms)
        label = "absence" if pattern.is_absence else "pattern"
        found = [("key", ", ".join(self.keys)), (label, str(pattern))]
        if not pattern.is_absence:
            between = "rows between are passed over" if pattern.contiguity == "relaxed" else "no rows between"
            after = "after the last row" if pattern.skip == "past_last" else "at the row after the first"
            found.append(("rows", f"{pattern.contiguity}: {between}; the next match begins {after}"))
        found.append(("results", self._when(within)))
        return [*found, ("state", f"at most the rows of the last {within} per key, and those ahead of the watermark")]

    def _when(self, within: str) -> str:
        """Return when a result is emitted, and what it waits for, for `explain`."""
        if self.pattern.is_absence:
            return f"when the watermark passes the row by {within}"
        if self.emission_delay_ms == 0:
            return "when the watermark passes the last row"
        last = self.pattern.steps[-1]
        why = "other rows may still make a better match" if last.is_fixed else f"{last.name} may still take rows"
        return f"at the latest when the watermark passes the first row by {within}: until then {why}"


@dataclass(frozen=True, kw_only=True, eq=False)
class PatternDefinition(StepDefinition):
    """A pattern step as the user defined it, before the columns of its port are known."""

    pattern: Pattern

    def resolve(self, name: str, ports: Mapping[str, Port]) -> PatternSpec:
        """Return the step for the columns of `ports`, or reject the definition."""
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

"""The results of a keyed step: their columns, how they change earlier ones, and when they come."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Literal, Self

import polars as pl

from slackwater.operators.identity import Identity

Change = Literal["append", "update", "retract"]
"""How a result may change earlier ones: leave them all in place, replace one, or withdraw one."""


class StepResults(ABC):
    """The part of a keyed step that the planner, the steps behind it and the sinks read."""

    lateness_ms: int
    """The allowed lateness: how long the step keeps state that the watermark has passed."""

    @property
    @abstractmethod
    def result_types(self) -> pl.Schema:
        """The columns of the results."""

    @property
    def own_columns(self) -> frozenset[str]:
        """The columns that Slackwater adds to the rows of all outputs, and that the next step may replace."""
        return frozenset({"event_time"})

    @property
    def sides(self) -> Mapping[str, pl.Schema]:
        """The columns of the step's side outputs, by output; the rows have an `event_time` and are append-only."""
        return {}

    @property
    def may_end_unused(self) -> bool:
        """Whether the results may have no sink, because a side output that is in use contains them."""
        return False

    def asked(self, sides: frozenset[str]) -> Self:  # noqa: ARG002  as subclasses need it
        """Return the step for a pipeline that uses `sides`; some side outputs exist only if they are used."""
        return self

    @property
    @abstractmethod
    def late_types(self) -> pl.Schema | None:
        """The columns of the late rows; None for a step that accepts rows no matter how late they are."""

    @property
    def emits(self) -> Change:
        """The strongest change that a result may make to earlier ones; by default, results are append-only."""
        return "append"

    @property
    def event_time(self) -> pl.Expr:
        """The event time of a result in epoch milliseconds, for the steps that follow; by default its `event_time`."""
        return pl.col("event_time").dt.epoch("ms")

    @property
    def identity(self) -> Identity | None:
        """The columns that identify a result; None if only the author of the pipeline can know them."""
        return None

    @property
    def result_order(self) -> list[str]:
        """The columns to sort a batch's results by, for a replay with the same order; empty if it has it anyway."""
        return []

    @property
    def lineage(self) -> tuple[str, ...]:
        """Hidden columns of the results: the places of the rows that a result follows from, the decisive one first.

        They break ties between results with the same event time. Without them, the columns of `result_order` do.
        """
        return ()

    @property
    def emission_delay_ms(self) -> int:
        """How long after the watermark the step may still emit."""
        return 0

    def check_next(self, step: str) -> None:  # noqa: B027  most steps follow any other
        """Reject `step` as the consumer of this step's results, if it cannot process them."""

    def check_replaces(self, replaced_by: Sequence[str], **facts: object) -> None:  # noqa: B027  as above
        """Reject an upsert table with the key columns `replaced_by`, if its content would be wrong."""

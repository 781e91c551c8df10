"""The state of a keyed step, as seen from outside: whether a job can resume from it, and what it shows to people."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import NamedTuple

import polars as pl

from slackwater.operators.ports import Port
from slackwater.operators.state.counted_keys import count_keys
from slackwater.operators.state.pieces import StepState
from slackwater.operators.state.shown import held_rows, moment, readable


class Difference(NamedTuple):
    """A part of the layout that prevents a step from resuming from a checkpoint's state: its old and new value."""

    part: str
    found: str
    mine: str

    def __str__(self) -> str:
        return f"{self.part}: {self.found} -> {self.mine}"


class StepMemory(ABC):
    """The part of a keyed step that the checkpoint and the readers of state use."""

    keys: tuple[str, ...]
    """The key columns, by their names in the results."""

    @property
    @abstractmethod
    def ports(self) -> Mapping[str, Port]:
        """The step's inputs by name."""

    @property
    @abstractmethod
    def layout(self) -> dict[str, str]:
        """The layout of the step's state, as named parts that `difference` compares."""

    def difference(self, stored: Mapping[str, str]) -> Difference | None:
        """Return what prevents the step from resuming from state with the layout `stored`, or None.

        By default any difference does; a step that can convert old state overrides this.
        """
        for part, text in self.layout.items():
            if stored.get(part) != text:
                return Difference(part=part, found=stored.get(part, "nothing"), mine=text)
        return None

    def continued(self, stored: Mapping[str, str]) -> Mapping[str, str]:  # noqa: ARG002  as subclasses need it
        """Return the layout to record for state that was resumed from the layout `stored`."""
        return self.layout

    def written(self, part: str, text: str) -> str:  # noqa: ARG002  as subclasses need it
        """Return a part of a layout, this step's or a stored one, in the notation that users write."""
        return text

    @property
    def independent(self) -> tuple[str, ...]:
        """Columns of the stored rows: rows that differ in one of them do not affect each other; at least the key.

        Empty for a step whose stored rows cannot be taken apart, because they refer to each other.
        """
        return self.keys

    @property
    def state_parts(self) -> Mapping[int, str]:
        """The ports whose rows are stored separately, by the part of the state that holds them."""
        return {}

    def shown_state(self, state: StepState, key: pl.DataFrame | None = None) -> pl.DataFrame:
        """Return a readable frame of a key group's state, or of the state of the one key in `key`.

        Key columns come first; hidden columns are omitted or renamed. The time of a row, if it has one, is in
        `event_time` or `window_start`. The state is not modified.
        """
        rows = held_rows(state, self.keys, key)
        time = {"event_time": moment(pl.col("__ts"))} if "__ts" in rows.columns else {}
        return readable(rows, self.keys, **time)

    def shown_rows(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return stored rows with what dead letters show of their hidden columns, such as the event time."""
        if "__ts" not in rows.columns or "event_time" in rows.columns:
            return rows
        return rows.with_columns(moment(pl.col("__ts")).alias("event_time"))

    def count_keys(self, state: StepState) -> int:
        """Return the number of keys in a key group's state."""
        parts = self.state_parts or {0: next(iter(self.ports))}
        return count_keys(state, {part: self.ports[port].keys for part, port in parts.items()})

"""The deduplication step, validated and resolved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

import polars as pl

from slackwater.base.durations import render_ms
from slackwater.base.errors import refuse
from slackwater.base.times import MAX_MS, TIMESTAMP
from slackwater.formats.undecoded import Undecoded
from slackwater.operators.deduplication.by_time import FirstByTime, LastByTime
from slackwater.operators.deduplication.first import FirstToArrive
from slackwater.operators.deduplication.shown import shown_hashes
from slackwater.operators.late_rows import Late, late_schema
from slackwater.operators.ports import ROWS, Port
from slackwater.operators.state.pieces import StepState
from slackwater.operators.state.shown import held_rows, moment, readable
from slackwater.operators.step import KeyedStep, Operator, PortFront
from slackwater.operators.step_results import Change
from slackwater.operators.whole_rows import WholeRows

Keep = Literal["first", "first_by_time", "last_by_time"]
DUPLICATES: Final = "duplicates"
"""The name of the side output for rows that are not kept."""
_PLACE: Final = {"__part": pl.String(), "__off": pl.Int64()}
"""The place of a row, which breaks ties in time."""
_KEPT_ROW: Final[dict[Keep, str]] = {
    "first": "the first row to arrive, at once",
    "first_by_time": "the row with the smallest event time, when the watermark passes it",
    "last_by_time": "the row with the largest event time so far, at once, retracting the one before",
}


@dataclass(frozen=True, kw_only=True)
class DeduplicateSpec(KeyedStep):
    """One deduplication: which row of a key is kept, and how long the key is remembered."""

    name: str
    keys: tuple[str, ...]
    row_schema: pl.Schema
    keep: Keep
    within_ms: int
    """How far the watermark must be past a key's row for the key to be forgotten; `MAX_MS` for never."""
    late: Late
    lateness_ms: int = 0

    @property
    def ports(self) -> Mapping[str, Port]:
        """The single port of the step."""
        return {ROWS: Port(schema=self.row_schema, keys=self.keys)}

    @cached_property
    def row_types(self) -> pl.Schema:
        """The columns of an output row: those of the input row and `event_time`."""
        return pl.Schema({**self.row_schema, "event_time": TIMESTAMP})

    @cached_property
    def result_types(self) -> pl.Schema:
        """The columns of a result."""
        return pl.Schema({**self.row_types, "is_retraction": pl.Boolean()}) if self.retracts else self.row_types

    @cached_property
    def state_types(self) -> pl.Schema:
        """The columns of a state row, if whole rows are stored."""
        hidden = {"__ts": pl.Int64(), "__until": pl.Int64(), "__is_shown": pl.Boolean(), "__end": pl.Int64()}
        return pl.Schema({**self.row_schema, **hidden, **_PLACE})

    def conform(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return `rows` with the columns of the state; rows that were stored without their place come first."""
        missing = [pl.lit(None, dtype=dtype).alias(name) for name, dtype in _PLACE.items() if name not in rows.columns]
        return rows.with_columns(missing).select(self.state_types.names())

    @property
    def sides(self) -> Mapping[str, pl.Schema]:
        """The output of the rows that are not kept."""
        return {DUPLICATES: self.row_types}

    @cached_property
    def late_types(self) -> pl.Schema | None:
        """The columns of a late row; None if late rows are processed."""
        return late_schema(self.row_schema) if self.late == "output" else None

    @property
    def retracts(self) -> bool:
        """Whether a result may retract an earlier one."""
        return self.keep == "last_by_time"

    @property
    def emits(self) -> Change:
        """Retractions for `last_by_time`; otherwise results are append-only."""
        return "retract" if self.retracts else "append"

    @property
    def result_order(self) -> list[str]:
        """The time and the key; a result and its retraction, equal in both, stay in the order they were emitted.

        Nothing for the first row to arrive: such rows are emitted in log order.
        """
        return [] if self.keep == "first" else ["event_time", *self.keys]

    @property
    def independent(self) -> tuple[str, ...]:
        """The key, if whole rows are stored."""
        return () if self.keep == "first" else self.keys

    @property
    def lineage(self) -> tuple[str, ...]:
        """The place of the row."""
        return ("__part", "__off")

    @property
    def layout(self) -> dict[str, str]:
        """The keys, which row is kept, and its columns; `within` may change, and then applies to later rows."""
        layout = {"keys": _listed(self.row_schema, self.keys), "keep": self.keep}
        if self.keep != "first":
            layout["rows"] = _listed(self.row_schema, self.row_schema.names())
        return layout

    @property
    def rules(self) -> str:
        """How long keys are remembered, and how late rows are handled."""
        return repr((self.within_ms, self.late))

    def reads(self, port: str) -> list[pl.Expr]:  # noqa: ARG002  there is only one
        """Return all columns, because results contain them."""
        return [pl.all()]

    def front(self, port: str, undecoded: Undecoded | None) -> PortFront:  # noqa: ARG002  nothing is left undecoded
        """Return the FRONT part, which splits off late rows."""
        return WholeRows(self, port, judges=self.late == "output")

    def operator(self) -> Operator:
        """Return the KEYED part."""
        if self.keep == "first":
            return FirstToArrive(self)
        return FirstByTime(self) if self.keep == "first_by_time" else LastByTime(self)

    def shown_state(self, state: StepState, key: pl.DataFrame | None = None) -> pl.DataFrame:
        """Return the remembered keys, until which watermark they are remembered, and their rows if these are stored."""
        if self.keep == "first":
            return shown_hashes(state, self.within_ms, self.keys, key)
        facts = {"event_time": pl.col("__ts"), "remembered_until": pl.col("__until")}
        times = {name: moment(time) for name, time in facts.items()}
        rows = held_rows(state, self.keys, key, self)
        return readable(rows, self.keys, **times, is_shown=pl.col("__is_shown"))

    def count_keys(self, state: StepState) -> int:
        """Return the number of keys in a key group's state; if only hashes are stored, there is one per key."""
        return sum(piece.rows for piece in state.pieces) if self.keep == "first" else super().count_keys(state)

    def check_next(self, step: str) -> None:
        """Reject a next step if results may be retracted."""
        if self.retracts:
            raise refuse("CHAIN_RETRACTIONS", step=step, before=self.name)

    def check_replaces(self, replaced_by: Sequence[str], **facts: object) -> None:
        """Reject a table in which the retraction of one key would remove the row of another."""
        missing = [key for key in self.keys if key not in replaced_by]
        if self.retracts and missing:
            raise refuse("SINK_KEY_RETRACTED", missing=", ".join(missing), **facts)

    def describe(self) -> list[tuple[str, str]]:
        """Return the lines of the step in `explain`."""
        remembered = "forever" if self.within_ms >= MAX_MS else f"until {render_ms(self.within_ms)} after its row"
        text = [
            ("key", f"{', '.join(self.keys)}, remembered {remembered}"),
            ("keeps", _KEPT_ROW[self.keep]),
        ]
        return text if self.late == "output" else [*text, ("late rows", "are processed like others")]


def _listed(schema: pl.Schema, columns: Sequence[str]) -> str:
    return ", ".join(f"{name} {schema[name]}" for name in columns)

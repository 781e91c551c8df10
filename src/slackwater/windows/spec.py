"""What a window operator is told: keys, window, trigger schedule, accumulation, aggregates, and its state's layout."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, get_args, get_type_hints

import polars as pl

from slackwater.aggregates.base import Aggregate
from slackwater.aggregates.combine import state_schema
from slackwater.errors import refuse
from slackwater.ground.times import TIMESTAMP
from slackwater.triggers import Schedule
from slackwater.windows import SessionWindow, SlidingWindow, Window

Accumulation = Literal["discarding", "accumulating", "retracting"]


@dataclass(frozen=True, kw_only=True)
class Semantics:
    """The points on which Flink, Beam, Spark and Kafka Streams disagree, with Slackwater's defaults."""

    session_lateness: Literal["after_merge", "before_merge"] = "after_merge"
    """Whether the merged session or the single row is compared with the watermark."""
    empty_on_time_pane: Literal["skip", "emit"] = "skip"
    """Whether a discarding window emits an on-time pane although no rows arrived since the early one."""
    retract_unchanged: Literal["skip", "emit"] = "skip"
    """Whether an unchanged result is retracted and emitted again."""
    on_close: Literal["flush", "discard"] = "flush"
    """What happens to rows that no trigger has emitted when the window is forgotten."""

    def __post_init__(self) -> None:
        for name, choices in get_type_hints(type(self)).items():
            known, given = get_args(choices), getattr(self, name)
            if given not in known:
                words = " or ".join(f'"{choice}"' for choice in known)
                raise refuse("SEMANTICS_CHOICE", name=name, known=words, got=repr(given), usual=known[0])


@dataclass(frozen=True, kw_only=True)
class WindowSpec:
    """One windowed aggregation, checked and resolved; frozen, picklable, the same in both engines."""

    name: str
    keys: tuple[str, ...]
    row_schema: pl.Schema
    """The rows as they arrive at the step: the user's columns, without hidden ones."""
    window: Window
    lateness_ms: int
    schedule: Schedule
    accumulation: Accumulation
    aggregates: dict[str, Aggregate]
    semantics: Semantics = field(default_factory=Semantics)

    @cached_property
    def aggregate_types(self) -> pl.Schema:
        """The aggregates' result columns."""
        return pl.Schema({alias: agg.output_type(self.row_schema) for alias, agg in self.aggregates.items()})

    @cached_property
    def by(self) -> list[str]:
        """The columns that name a window of a key."""
        return [*self.keys, "__start", "__end"]

    @cached_property
    def state_types(self) -> pl.Schema:
        """The columns of a state row: a key's window, what its panes did so far, and partial aggregates."""
        types: dict[str, pl.DataType] = {key: self.row_schema[key] for key in self.keys}
        types |= {"__start": pl.Int64(), "__end": pl.Int64(), "__new": pl.Int64(), "__panes": pl.Int32()}
        if self.can_finish:
            types["__done"] = pl.Boolean()
        if self.schedule.early_every_ms is not None:
            types["__due"] = pl.Int64()
        if self.schedule.early_event_time_ms is not None:
            types["__tick"] = pl.Int64()
        if self.accumulation == "retracting":
            types["__shown"] = pl.List(pl.Struct(self.shown_types))
        if isinstance(self.window, SessionWindow) and self.window.max_length_ms is not None:
            # The rows of a unit; where its session began when it was shown; where its session ends.
            types |= {"__rows": pl.Int64(), "__in": pl.Int64(), "__until": pl.Int64()}
        return pl.Schema(types | dict(state_schema(self.row_schema, self.aggregates)))

    def conform(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return `rows` with exactly the state's columns; what is missing gets its first value."""
        if rows.columns == self.state_types.names():
            return rows
        first: dict[str, object] = {"__panes": 0, "__done": False, "__shown": []}
        first |= {"__rows": pl.col("__new"), "__until": pl.col("__end")}
        missing = [
            (known if isinstance(known := first.get(name), pl.Expr) else pl.lit(known, dtype=dtype)).alias(name)
            for name, dtype in self.state_types.items()
            if name not in rows.columns
        ]
        return rows.with_columns(missing).select(self.state_types.names())

    @cached_property
    def shown_types(self) -> pl.Schema:
        """What is remembered of a shown row, so that a retraction repeats it to the letter."""
        bounds = {"__start": pl.Int64(), "__end": pl.Int64(), "__panes": pl.Int32()}
        return pl.Schema(bounds | dict(self.aggregate_types))

    @cached_property
    def result_types(self) -> pl.Schema:
        """The columns of a result row."""
        types: dict[str, pl.DataType] = {key: self.row_schema[key] for key in self.keys}
        types |= {"window_start": TIMESTAMP, "window_end": TIMESTAMP}
        types |= dict(self.aggregate_types)
        types |= {"pane": pl.String(), "pane_index": pl.Int32(), "is_retraction": pl.Boolean(), "watermark": TIMESTAMP}
        return pl.Schema(types)

    @cached_property
    def late_types(self) -> pl.Schema:
        """The columns of a late row: the original row, and why it was too late."""
        types = dict(self.row_schema)
        types |= {"event_time": TIMESTAMP, "late_by_ms": pl.Int64(), "watermark": TIMESTAMP}
        types |= {"windows": pl.List(pl.Struct({"start": TIMESTAMP, "end": TIMESTAMP})), "step": pl.String()}
        return pl.Schema(types)

    @property
    def can_finish(self) -> bool:
        """Whether a window may be finished before it is forgotten."""
        return self.schedule.once or self.schedule.finish_on_time

    @property
    def is_shown_once(self) -> bool:
        """Whether a window shows exactly one pane, when it is complete, and is forgotten then."""
        sched = self.schedule
        return sched.is_lazy and sched.on_time and self.lateness_ms == 0 and not self.can_finish

    @property
    def may_update(self) -> bool:
        """Whether a key's window may show more than one pane."""
        if isinstance(self.window, SlidingWindow):
            return self.lateness_ms > 0
        sched = self.schedule
        if sched.once:
            return False
        refires = self.lateness_ms > 0 and not sched.finish_on_time
        return not sched.is_lazy or refires

    @property
    def emission_delay_ms(self) -> int:
        """How long after its watermark this step may still emit."""
        return self.lateness_ms

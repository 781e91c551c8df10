"""The specification of a window step: keys, window, trigger, accumulation, aggregates, and the layout of its state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Final, Literal, get_args, get_type_hints

import polars as pl

from slackwater.base.durations import render_ms
from slackwater.base.errors import refuse
from slackwater.base.times import MIN_MS, TIMESTAMP
from slackwater.formats.schemas import spark_type
from slackwater.formats.undecoded import Undecoded
from slackwater.operators.aggregates.base import Aggregate
from slackwater.operators.aggregates.combine import state_schema
from slackwater.operators.identity import Identity
from slackwater.operators.late_rows import late_schema
from slackwater.operators.ports import ROWS, Port
from slackwater.operators.state.pieces import StepState
from slackwater.operators.state.shown import held_rows, moment, readable
from slackwater.operators.step import KeyedStep, Operator, PortFront
from slackwater.operators.step_results import Change
from slackwater.operators.windows.base import Window, written_kind
from slackwater.operators.windows.shown import results_so_far
from slackwater.operators.windows.triggers import Schedule, written

FINAL: Final = "final"
"""The name of the side output with the final result of each window."""
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
class WindowSpec(KeyedStep):
    """One windowed aggregation, validated and resolved: immutable, picklable, the same in both engines."""

    combines: ClassVar[bool] = True

    name: str
    keys: tuple[str, ...]
    row_schema: pl.Schema
    """The columns of the step's input rows: the user's, without hidden ones."""
    window: Window
    lateness_ms: int
    schedule: Schedule
    accumulation: Accumulation
    aggregates: dict[str, Aggregate]
    semantics: Semantics = field(default_factory=Semantics)
    has_final: bool = False
    """Whether the step has a side output with the final result of each window."""

    @cached_property
    def aggregate_types(self) -> pl.Schema:
        """The result columns of the aggregates."""
        return pl.Schema({alias: agg.output_type(self.row_schema) for alias, agg in self.aggregates.items()})

    @cached_property
    def by(self) -> list[str]:
        """The columns that identify a window of a key."""
        return [*self.keys, "__start", "__end"]

    @property
    def independent(self) -> tuple[str, ...]:
        """The key, and the window where each stored row belongs to a single one."""
        is_own = self.window.is_aligned and not self.window.cells_meet
        return tuple(self.by) if is_own else self.keys

    @cached_property
    def state_types(self) -> pl.Schema:
        """The columns of a state row: the key, the window, its panes so far, and partial aggregates."""
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
        types |= self.window.state_types()
        return pl.Schema(types | dict(state_schema(self.row_schema, self.aggregates)))

    def shown_rows(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return stored rows with the bounds of their windows, and the number of rows that each combines."""
        start, end = moment(pl.col("__start")), moment(pl.col("__end"))
        return rows.with_columns(window_start=start, window_end=end, rows=pl.col("__new"))

    def conform(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return `rows` with exactly the state columns; missing ones get their initial value."""
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
        """The columns stored of an emitted row, so that a retraction repeats it exactly."""
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
    def final_types(self) -> pl.Schema:
        """The columns of a final result: those of a result without the pane columns, and its event time."""
        of_panes = ("pane", "pane_index", "is_retraction", "watermark")
        types = {name: dtype for name, dtype in self.result_types.items() if name not in of_panes}
        return pl.Schema({**types, "event_time": TIMESTAMP})

    @property
    def sides(self) -> Mapping[str, pl.Schema]:
        """The output of final results, if it is used."""
        return {FINAL: self.final_types} if self.has_final else {}

    @property
    def may_end_unused(self) -> bool:
        """Whether final results are used: panes are then only a preview of them."""
        return self.has_final

    def asked(self, sides: frozenset[str]) -> WindowSpec:
        """Return the step with final results if they are used, or reject that if it cannot have them."""
        if FINAL not in sides:
            return self
        reasons = {
            'has accumulation="discarding", so no pane is the whole result': self.accumulation == "discarding",
            "has windows without an end": not self.window.has_end,
            "has windows that share rows, one for each event": not self.window.is_whole,
            "ignores rows once a window is finished": self.can_finish,
            "has a column `event_time`, which final results have too": "event_time" in self.result_types,
        }
        for reason, is_true in reasons.items():
            if is_true:
                raise refuse("FINAL_UNAVAILABLE", step=self.name, reason=reason)
        return replace(self, has_final=True)

    @cached_property
    def late_types(self) -> pl.Schema:
        """The columns of a late row: those of the original row, how late it was, and the windows it missed."""
        missed = pl.List(pl.Struct({"start": TIMESTAMP, "end": TIMESTAMP}))
        return late_schema(self.row_schema, windows=missed)

    @property
    def own_columns(self) -> frozenset[str]:
        """The watermark, because a late row of the next step replaces it with the one it was compared with."""
        return frozenset({"watermark", "event_time"} if self.has_final else {"watermark"})

    @property
    def can_finish(self) -> bool:
        """Whether a window may be finished before it is forgotten."""
        return self.schedule.once or self.schedule.finish_on_time

    @property
    def is_shown_once(self) -> bool:
        """Whether a window fires exactly one pane, when it is complete, and is forgotten at once."""
        sched = self.schedule
        return sched.is_lazy and sched.on_time and self.lateness_ms == 0 and not self.can_finish

    @property
    def may_update(self) -> bool:
        """Whether a window of a key may fire more than once."""
        return self.window.may_update(self)

    @property
    def ports(self) -> Mapping[str, Port]:
        """The single port of the step."""
        return {ROWS: Port(schema=self.row_schema, keys=self.keys)}

    @property
    def band(self) -> tuple[int, int] | None:
        """The size and offset of the windows, if they have one size and follow each other without gaps."""
        return self.window.band()

    @property
    def gap_ms(self) -> int | None:
        """The gap that ends a session, if the windows are sessions with one gap."""
        return self.window.session_gap_ms()

    def check_spread(self) -> None:
        """Reject windows that depend on all rows of a key, and triggers that depend on the first row."""
        if not self.window.is_aligned:
            raise refuse("KEY_SPREAD_STEP", step=self.name, what=f"whose windows depend on the rows: {self.window}")
        if self.schedule.early_event_time_ms is not None:
            raise refuse("KEY_SPREAD_STEP", step=self.name, what="whose trigger depends on the first row of a window")

    @property
    def emits(self) -> Change:
        """Retractions if requested; else updates, unless a window fires only once or its panes are discarding."""
        if self.accumulation == "retracting":
            return "retract"
        return "update" if self.may_update and self.accumulation == "accumulating" else "append"

    @property
    def event_time(self) -> pl.Expr:
        """The last instant of the window."""
        return pl.col("window_end").dt.epoch("ms") - 1

    @property
    def identity(self) -> Identity:
        """The key, the bounds of the window and the pane; the watermark depends on how rows were batched."""
        bounds = ("window_start", "window_end")
        return Identity(keys=self.keys, bounds=bounds, version="pane_index", incidental=("watermark",))

    @property
    def result_order(self) -> list[str]:
        """The key and the window; panes of one window stay in the order they fired."""
        return [*self.keys, *self.identity.bounds]

    @property
    def trails_ms(self) -> int:
        """How long after its end a window may still get an on-time row."""
        return self.window.trails_ms

    def shown_watermark_ms(self, own_ms: int) -> int:
        """Return the watermark that results and late rows show, from the step's own."""
        return own_ms + self.trails_ms if own_ms > MIN_MS else own_ms

    @property
    def emission_delay_ms(self) -> int:
        """The allowed lateness: a window may fire until it is forgotten by the step's own watermark."""
        return self.lateness_ms + self.trails_ms

    @property
    def layout(self) -> dict[str, str]:
        """The keys, the window, the accumulation, the aggregates and the state columns."""
        return {
            "keys": ", ".join(f"{key} {self.row_schema[key]}" for key in self.keys),
            "window": self.window.layout_text,
            "accumulation": self.accumulation,
            "aggregates": repr(self.aggregates),
            "state": ", ".join(f"{name} {dtype}" for name, dtype in self.state_types.items()),
        }

    def written(self, part: str, text: str) -> str:
        """Return a part of a layout with the name that users write for the kind of window."""
        return written_kind(text) if part == "window" else text

    @property
    def rules(self) -> str:
        """The settings that decide when panes fire, and the types of the aggregated columns, in the users' notation."""
        read = {
            name
            for aggregate in self.aggregates.values()
            for expr in aggregate.inputs()
            for name in expr.meta.root_names()
        }
        rules = {
            "trigger": written(self.schedule),
            "allowed lateness": render_ms(self.lateness_ms),
            "semantics": repr(self.semantics),
            **{f"column {name}": spark_type(dtype, name) for name, dtype in self.row_schema.items() if name in read},
        }
        return "\n".join(f"{name}: {text}" for name, text in rules.items())

    def reads(self, port: str) -> list[pl.Expr]:  # noqa: ARG002  there is only one
        """Return the expressions that the aggregates and the window evaluate."""
        inputs = [expr for aggregate in self.aggregates.values() for expr in aggregate.inputs()]
        return [*inputs, *self.window.reads()]

    def front(self, port: str, undecoded: Undecoded | None) -> PortFront:  # noqa: ARG002  as above
        """Return the FRONT part."""
        return self.window.front(self, undecoded)

    def operator(self) -> Operator:
        """Return the KEYED part."""
        return self.window.operator(self)

    def shown_state(self, state: StepState, key: pl.DataFrame | None = None) -> pl.DataFrame:
        """Return the windows in state, with their results so far."""
        rows = self.window.operator(self).merged(held_rows(state, self.keys, key, self))
        results = results_so_far(rows, self.aggregates, self.aggregate_types)
        facts = {"panes_shown": pl.col("__panes"), "rows_since_pane": pl.col("__new")}
        facts |= {"is_finished": pl.col("__done")} if self.can_finish else {}
        return readable(results, self.keys, **self.window.shown_bounds(), **facts)

    def check_next(self, step: str) -> None:
        """Reject a next step if results may be updated, or if windows never end."""
        if self.may_update and self.accumulation != "discarding":
            raise refuse("CHAIN_UPDATES", step=step, before=self.name)
        if not self.window.has_end:
            raise refuse("CHAIN_GLOBAL", step=step, before=self.name)

    def check_replaces(self, replaced_by: Sequence[str], **facts: object) -> None:
        """Reject an upsert table with the key columns `replaced_by`, if panes would make its content wrong."""
        of_windows = {*self.identity.bounds} & {*replaced_by}
        if self.may_update and self.accumulation == "discarding" and self.identity.version not in replaced_by:
            raise refuse("SINK_KEEPS_LAST_PANE", **facts)
        if not (self.window.may_move and of_windows):
            return
        # A session whose bounds changed is a different row of the table, and nothing would replace the old row.
        if self.may_update and self.accumulation == "accumulating":
            raise refuse("SINK_KEEPS_MERGED_SESSIONS", **facts)
        # A session may have the start or the end of a forgotten one, but never both.
        if len(of_windows) == 1:
            raise refuse("SINK_SESSION_KEY", **facts)

    @property
    def _kept(self) -> str:
        """How long the state of a window is kept, as shown by `explain`."""
        if not self.window.has_end:
            return "forever"
        after = f"until {render_ms(self.lateness_ms)} after" if self.lateness_ms else "until the watermark passes"
        return f"{after} its end"

    def describe(self) -> list[tuple[str, str]]:
        """Return the lines of the step in `explain`."""
        return [
            ("key", ", ".join(self.keys)),
            ("window", f"{self.window}, allowed lateness {render_ms(self.lateness_ms)}"),
            ("trigger", str(self.schedule)),
            ("panes", self.accumulation),
            ("state", f"a row per key and window, {self._kept}"),
            *(("computes", f"{alias}: {spark_type(dtype, alias)}") for alias, dtype in self.aggregate_types.items()),
        ]

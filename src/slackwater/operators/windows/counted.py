"""Count windows: a fixed number of a key's rows, in order of arrival."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from slackwater.base.durations import render_ms
from slackwater.base.errors import refuse
from slackwater.base.keys import join_on_keys
from slackwater.base.stable_text import stable_text
from slackwater.base.times import MAX_MS, MIN_MS, TIMESTAMP, to_timestamp
from slackwater.eventtime.step_time import StepTime
from slackwater.formats.schemas import spark_type
from slackwater.formats.undecoded import Undecoded
from slackwater.operators.aggregates.base import Aggregate
from slackwater.operators.aggregates.combine import combine_rows, empty_state, finish, merge_states, state_schema
from slackwater.operators.ports import ROWS, Port
from slackwater.operators.state.buckets import Buckets
from slackwater.operators.state.pieces import StepState
from slackwater.operators.state.shown import held_rows, moment, readable
from slackwater.operators.step import Emitted, Guard, KeyedStep, Operator, PortFront, StepBatch, Taken
from slackwater.operators.whole_rows import WholeRows
from slackwater.operators.windows.base import Window, written_kind
from slackwater.operators.windows.front import WindowFront, usable_rows
from slackwater.operators.windows.operator import WindowOperator
from slackwater.operators.windows.shown import results_so_far
from slackwater.operators.windows.spec import Accumulation, WindowSpec
from slackwater.operators.windows.triggers import Trigger, after_watermark

if TYPE_CHECKING:
    from slackwater.operators.windows.definition import WindowDefinition

_COUNTER = -1
"""The `__index` of the state row that counts all rows of a key so far."""


@dataclass(frozen=True, kw_only=True)
class CountWindow(Window):
    """Windows of `size` rows of a key in order of arrival, one starting after `every` number of rows.

    Window i of a key holds its rows [i * every, i * every + size). It fires when it is full; time plays no
    role, so no row is late. Rows of a window that never fills are counted as ignored at the end of a bounded run.
    """

    size: int
    every: int

    has_end: ClassVar[bool] = False

    def check_options(self, trigger: Trigger, accumulation: Accumulation) -> None:
        """Reject triggers and accumulations: a window fires once, when it is full."""
        if trigger != after_watermark():
            raise refuse("COUNT_WINDOW_OPTIONS", got="a trigger")
        if accumulation != "accumulating":
            raise refuse("COUNT_WINDOW_OPTIONS", got=f'accumulation="{accumulation}"')

    def specify(self, definition: WindowDefinition, name: str, port: Port) -> KeyedStep:
        """Return a `CountSpec` instead of a `WindowSpec`."""
        if definition.lateness_ms:
            raise refuse("COUNT_WINDOW_OPTIONS", got=f'allowed_lateness="{render_ms(definition.lateness_ms)}"')
        for taken in ("window_index", "event_time"):
            if taken in port.keys or taken in definition.aggregates:
                raise refuse("COUNT_WINDOW_NAME", step=name, name=taken)
        return CountSpec(
            name=name, keys=port.keys, row_schema=port.schema, window=self, aggregates=dict(definition.aggregates)
        )

    def front(self, spec: WindowSpec, undecoded: Undecoded | None) -> WindowFront:  # noqa: ARG002  see below
        """Never called: `CountSpec` provides this part."""
        raise AssertionError

    def operator(self, spec: WindowSpec) -> WindowOperator:  # noqa: ARG002  see above
        """Never called: `CountSpec` provides this part."""
        raise AssertionError

    def __str__(self) -> str:
        return f"count {self.size} rows" + (f" every {self.every}" if self.every != self.size else "")


def count_window(size: int, *, every: int | None = None) -> CountWindow:
    """Windows of `size` rows of a key, in order of arrival: `count_window(100)`, `count_window(100, every=10)`.

    Results have `window_index` instead of bounds, and the largest event time of their rows as `event_time`. A key is
    remembered until the end of a bounded run, so use keys that are limited in number.
    """
    every = size if every is None else every
    for what, number in (("size", size), ("every", every)):
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            raise refuse("COUNT_WINDOW_SIZE", what=what, got=repr(number))
    return CountWindow(size=size, every=every)


@dataclass(frozen=True, kw_only=True)
class CountSpec(KeyedStep):
    """One aggregation over count windows, validated and resolved."""

    name: str
    keys: tuple[str, ...]
    row_schema: pl.Schema
    window: CountWindow
    aggregates: dict[str, Aggregate]
    lateness_ms: int = 0

    @property
    def ports(self) -> Mapping[str, Port]:
        """The single port of the step."""
        return {ROWS: Port(schema=self.row_schema, keys=self.keys)}

    @cached_property
    def aggregate_types(self) -> pl.Schema:
        """The result columns of the aggregates."""
        return pl.Schema({alias: agg.output_type(self.row_schema) for alias, agg in self.aggregates.items()})

    @cached_property
    def result_types(self) -> pl.Schema:
        """The columns of a result row."""
        types: dict[str, pl.DataType] = {key: self.row_schema[key] for key in self.keys}
        types |= {"window_index": pl.Int64(), **self.aggregate_types, "event_time": TIMESTAMP}
        return pl.Schema(types)

    @property
    def late_types(self) -> None:
        """None: no row is late."""
        return

    @cached_property
    def state_types(self) -> pl.Schema:
        """The columns of a state row, which is a window that is not full, or the counter of a key."""
        types: dict[str, pl.DataType] = {key: self.row_schema[key] for key in self.keys}
        types |= {"__index": pl.Int64(), "__rows": pl.Int64(), "__time": pl.Int64()}
        return pl.Schema(types | dict(state_schema(self.row_schema, self.aggregates)))

    def conform(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return `rows` with the state columns in order."""
        return rows.select(self.state_types.names())

    @property
    def result_order(self) -> list[str]:
        """The key and the window."""
        return [*self.keys, "window_index"]

    @property
    def layout(self) -> dict[str, str]:
        """The keys, the window, the aggregates and the state columns."""
        return {
            "keys": ", ".join(f"{key} {self.row_schema[key]}" for key in self.keys),
            "window": stable_text(self.window),
            "aggregates": repr(self.aggregates),
            "state": ", ".join(f"{name} {dtype}" for name, dtype in self.state_types.items()),
        }

    def written(self, part: str, text: str) -> str:
        """Return a part of a layout with the name that users write for the kind of window."""
        return written_kind(text) if part == "window" else text

    @property
    def rules(self) -> str:
        """Empty: the layout contains every setting."""
        return ""

    def reads(self, port: str) -> list[pl.Expr]:  # noqa: ARG002  there is only one
        """Return all columns: whole rows are sent to KEYED."""
        return [pl.col(name) for name in self.row_schema]

    def front(self, port: str, undecoded: Undecoded | None) -> PortFront:  # noqa: ARG002  all columns are read
        """Return the FRONT part."""
        return _CountFront(self, port, judges=False)

    def operator(self) -> Operator:
        """Return the KEYED part."""
        return _CountOperator(self)

    def shown_state(self, state: StepState, key: pl.DataFrame | None = None) -> pl.DataFrame:
        """Return the windows that are not full, with the row count of their key; keys without one have nulls."""
        rows = held_rows(state, self.keys, key, self)
        keys, is_counter = list(self.keys), pl.col("__index") == _COUNTER
        counters = rows.filter(is_counter).select(*keys, pl.col("__rows").alias("__seen"))
        windows = results_so_far(rows.filter(~is_counter), self.aggregates, self.aggregate_types)
        shown = join_on_keys(counters, windows, keys, how="left", order="left_right")
        facts = {"window_index": pl.col("__index"), "rows": pl.col("__rows"), "event_time": moment(pl.col("__time"))}
        return readable(shown, self.keys, **facts, rows_seen=pl.col("__seen"))

    def describe(self) -> list[tuple[str, str]]:
        """Return the lines of the step in `explain`."""
        return [
            ("key", ", ".join(self.keys)),
            ("window", f"{self.window}, in order of arrival; keys are remembered for good"),
            *(("computes", f"{alias}: {spark_type(dtype, alias)}") for alias, dtype in self.aggregate_types.items()),
        ]


class _CountFront(WholeRows):
    """Passes rows on unchanged; rows on which an aggregate fails become dead letters."""

    step: CountSpec

    def take(self, rows: pl.DataFrame, time: StepTime, guard: Guard) -> Taken:
        return super().take(usable_rows(rows, self.step.aggregates, guard), time, guard)


class _CountOperator(Operator):
    """Counts the rows of each key, and fires the windows that are full."""

    def __init__(self, spec: CountSpec) -> None:
        self.spec = spec

    def advance(self, batch: StepBatch) -> None:
        """At the final watermark, forget the windows that never filled."""
        if batch.time.watermark_ms >= MAX_MS:
            for left in Buckets(batch.state, self.spec).everything():
                batch.out.count("ignored", int(left.filter(pl.col("__index") != _COUNTER)["__rows"].sum()))

    def add(self, batch: StepBatch) -> None:
        """Add the batch's rows in order of arrival."""
        if (fresh := batch.rows.frame(ROWS)) is not None:
            buckets = Buckets(batch.state, self.spec)
            for portion in buckets.touched(fresh):
                kept = self._filled(portion.of(fresh), portion.rows, batch.out)
                buckets.store(kept, pl.lit(MAX_MS, dtype=pl.Int64), _unhurried)

    def _filled(self, fresh: pl.DataFrame, known: pl.DataFrame, out: Emitted) -> pl.DataFrame:
        """Fire the windows that `fresh` fills; return the new state of their keys."""
        spec, keys, window = self.spec, list(self.spec.keys), self.spec.window
        counters = known.filter(pl.col("__index") == _COUNTER)
        before = join_on_keys(fresh.select(keys), counters, keys, how="left")
        number = before["__rows"].fill_null(0) + fresh.select(pl.int_range(pl.len()).over(keys)).to_series()
        numbered = fresh.with_columns(number.alias("__number"))
        # Row n is in the windows i with i * every <= n < i * every + size.
        last = pl.col("__number") // window.every
        first = ((pl.col("__number") - window.size) // window.every + 1).clip(lower_bound=0)
        spread = numbered.with_columns(pl.int_ranges(first, last + 1).alias("__index")).explode("__index")
        spread = spread.filter(pl.col("__index").is_not_null())
        extra = [pl.len().cast(pl.Int64).alias("__rows"), pl.col("__ts").max().alias("__time")]
        added = combine_rows(spread, [*keys, "__index"], spec.aggregates, extra)
        windows = pl.concat([known.filter(pl.col("__index") != _COUNTER), spec.conform(added)])
        sums = [pl.col("__rows").sum(), pl.col("__time").max()]
        merged = spec.conform(merge_states(windows, [*keys, "__index"], spec.aggregates, sums))
        full = merged["__rows"] == window.size
        if full.any():
            # Groups come in random order, and a replayed batch must emit the same rows in the same order.
            self._show(merged.filter(full).sort([*keys, "__index"]), out)
        return pl.concat([merged.filter(~full), self._counters(numbered, counters)])

    def _show(self, windows: pl.DataFrame, out: Emitted) -> None:
        results = finish(windows, self.spec.aggregates).select(
            *self.spec.keys,
            pl.col("__index").alias("window_index"),
            *self.spec.aggregates,
            to_timestamp(pl.col("__time")).alias("event_time"),
        )
        out.results.append(results.cast(self.spec.result_types))
        out.count("panes", results.height)

    def _counters(self, numbered: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
        keys = list(self.spec.keys)
        seen = numbered.group_by(keys, maintain_order=True).agg((pl.col("__number").max() + 1).alias("__rows"))
        untouched = join_on_keys(known, seen, keys, how="anti")
        fixed = [pl.lit(_COUNTER, dtype=pl.Int64).alias("__index"), pl.lit(MIN_MS, dtype=pl.Int64).alias("__time")]
        empty = empty_state(self.spec.row_schema, self.spec.aggregates, seen.height)
        counters = seen.with_columns(fixed).hstack(empty.get_columns())
        return pl.concat([untouched, self.spec.conform(counters)])


def _unhurried(rows: pl.DataFrame) -> dict[str, Any]:  # noqa: ARG001  the same for all rows
    """Return the fields of the index entry for rows that no clock wakes."""
    return {"min_end_ms": MAX_MS, "max_end_ms": MAX_MS, "wake_ms": MAX_MS}

"""Running the user's code on frames of one batch and key group.

1. State that expired before the key's events is left out.
2. `on_rows` is called with the events of all keys. If it fails, the keys are bisected until those that fail are alone:
   their events become dead letters, and their state stays unchanged.
3. The state it returned and the untouched state become the new state, without what has expired by now.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import polars as pl

from slackwater.base.expressions import FAILURES
from slackwater.base.keys import join_on_keys
from slackwater.base.times import MAX_MS, MIN_MS, TIMESTAMP, to_timestamp
from slackwater.eventtime.forgetting import is_forgotten
from slackwater.eventtime.step_time import StepTime
from slackwater.operators.process.base import FrameContext
from slackwater.operators.process.failures import MOST_LETTERS, MisfitError, described
from slackwater.operators.process.fitting import check_distinct_keys, check_keys, check_unchanged, fitted
from slackwater.operators.process.operator import Worker
from slackwater.operators.process.state import NEVER_MS
from slackwater.operators.process.timers_of_a_key import moment
from slackwater.operators.step import Failed

if TYPE_CHECKING:
    from slackwater.operators.process.frame_spec import FrameSpec

_AT: Final = pl.col("__at")
NAN_KEY: Final = "nan_key"
"""The reason of dead letters for events with a NaN key."""
_How = Literal["inner", "left", "semi", "anti"]


class _Made(NamedTuple):
    """What the user's code returned for some keys: results, and state rows without their time."""

    results: pl.DataFrame | None
    state: pl.DataFrame


class FrameWorker(Worker):
    """Runs a process on frames with the events of some keys."""

    def __init__(self, spec: FrameSpec, time: StepTime) -> None:
        super().__init__()
        self.spec, self.time = spec, time
        self._keys = list(spec.keys)

    def readable(self, events: pl.DataFrame) -> pl.DataFrame:
        """Return the events without a NaN key; those with one become dead letters.

        The user's code joins frames by key, and Polars does not find NaN where both have a single row.
        """
        floats = [key for key in self._keys if self.spec.key_types[key].is_float()]
        if not floats or not (is_nan := events.select(pl.any_horizontal(pl.col(floats).is_nan())).to_series()).any():
            return events
        is_nan = is_nan.fill_null(value=False)
        self._bury(events.filter(is_nan), "a frame process takes no NaN key", NAN_KEY)
        return events.filter(~is_nan)

    def work(
        self, keys: pl.DataFrame, known: pl.DataFrame, events: pl.DataFrame | None, *, watermark_ms: int
    ) -> pl.DataFrame:
        """Run the user's code on the events of `keys`; return the new state rows of all `keys`."""
        mine = self._joined(known, keys, "semi").select(*self._keys, *self.spec.cell_types)
        if events is None or events.is_empty():
            return self._kept(mine, watermark_ms)
        ts = pl.col("__ts")
        touched = events.group_by(self._keys, maintain_order=True).agg(
            ts.min().alias("__first"), ts.max().alias("__last")
        )
        old = self._joined(mine, touched, "left")
        reached = self._reached(watermark_ms, pl.col("__first"))
        old = old.filter(~is_forgotten(_AT + 1, reached, self.spec.ttl_ms)).select(mine.columns)
        self._context = FrameContext(
            watermark=None if watermark_ms <= MIN_MS else moment(watermark_ms),
            processing_time=moment(self.time.now_ms),
        )
        failed: list[pl.DataFrame] = []
        state = pl.concat([made.state for made in self._made(touched, events, old, failed)] or [old.clear()])
        at = self._written(watermark_ms, pl.col("__last"))
        new = self._joined(state, touched.select(*self._keys, at.alias("__at")), "left")
        # What is returned never lives shorter than what it replaces, even if the events are behind those of that.
        new = self._joined(new, old.select(*self._keys, _AT.alias("__before")), "left")
        new = new.with_columns(pl.max_horizontal("__at", "__before"))
        done = self._joined(touched, pl.concat(failed), "anti") if failed else touched
        untouched = self._joined(mine, done, "anti")
        return self._kept(pl.concat([untouched, new.select(mine.columns)]), watermark_ms)

    def _made(
        self, keys: pl.DataFrame, events: pl.DataFrame, state: pl.DataFrame, failed: list[pl.DataFrame]
    ) -> list[_Made]:
        """Run the user's code on `keys`; keys that fail go to `failed`, and their events become dead letters."""
        rows = self._joined(events, keys, "semi")
        try:
            made = self._call(keys, rows, state)
        except FAILURES as error:
            if isinstance(error, MemoryError):
                raise
            if keys.height == 1:
                self._bury(rows, str(error)[:MOST_LETTERS] if isinstance(error, MisfitError) else described(error))
                failed.append(keys)
                return []
        else:
            if made.results is not None and made.results.height:
                self.out.results.append(made.results)
            self.out.count("on_time", rows.height)
            return [made]
        half = keys.height // 2
        return [made for part in (keys[:half], keys[half:]) for made in self._made(part, rows, state, failed)]

    def _call(self, keys: pl.DataFrame, rows: pl.DataFrame, state: pl.DataFrame) -> _Made:
        """Call `on_rows` with the events of `keys`, and fit the returned frames to their declared columns."""
        spec = self.spec
        columns = [name for name in spec.row_schema if name != "event_time"]
        given = rows.select(*columns, to_timestamp(pl.col("__ts")).alias("event_time"))
        theirs = self._joined(keys, state, "inner")
        known = theirs.select(*self._keys, *(pl.col(cell).alias(name) for cell, name in spec.cells.items()))
        made = copy.copy(spec.process).on_rows(given, known, self._context)
        if not isinstance(made, tuple) or len(made) != 2:  # noqa: PLR2004  a pair
            got = f"{len(made)} of them" if isinstance(made, tuple) else type(made).__name__
            raise MisfitError(f"on_rows must return two frames, the results and the new state; got {got}")
        results, returned = made
        just_keys = keys.select(self._keys)
        if results is not None:
            results = self._results(results, keys)
            check_keys(results, just_keys, "results")
            if spec.adds:
                check_unchanged(results, given, [*dict.fromkeys([*self._keys, *spec.carried]), "event_time"])
        held = fitted(returned, {**spec.key_types, **spec.state}, "the new state")
        check_keys(held, just_keys, "the new state")
        check_distinct_keys(held, self._keys, "the new state")
        return _Made(results, held.rename({name: cell for cell, name in spec.cells.items()}))

    def _results(self, made: object, keys: pl.DataFrame) -> pl.DataFrame:
        """Return results with their declared columns.

        Without `event_time`, they get the latest of their key's rows; but with `adds`, they keep that of their event.
        """
        types = self.spec.result_types
        if not self.spec.adds and isinstance(made, pl.DataFrame) and "event_time" not in made.columns:
            results = fitted(made, {name: dtype for name, dtype in types.items() if name != "event_time"}, "results")
            last = keys.select(*self._keys, to_timestamp(pl.col("__last")).alias("event_time"))
            return self._joined(results, last, "left").select(types.names())
        results = fitted(made, types, "results")
        if not self.spec.adds and results["event_time"].null_count():
            raise MisfitError(f"column `event_time` of results takes {TIMESTAMP}; got null: leave it out, or fill it")
        return results

    def _bury(self, rows: pl.DataFrame, message: str, reason: str = "failed") -> None:
        lost = rows.select(*self.spec.row_schema, *self.spec.place)
        messages = pl.repeat(message, lost.height, eager=True)
        self.out.failed.append(Failed(rows=lost, messages=messages, reason=reason))

    def _reached(self, watermark_ms: int, first: pl.Expr) -> pl.Expr:
        """Return the time that the clock of the state has reached when the key's events arrive."""
        if self.spec.clock == "processing":
            return pl.lit(self.time.now_ms, dtype=pl.Int64)
        by_event = self.spec.order == "event_time"
        return first.fill_null(watermark_ms) if by_event else pl.max_horizontal(first, watermark_ms)

    def _written(self, watermark_ms: int, last: pl.Expr) -> pl.Expr:
        """Return the write time that is stored with new state."""
        if self.spec.clock == "processing":
            return pl.lit(self.time.now_ms, dtype=pl.Int64)
        return last if self.spec.order == "event_time" else pl.max_horizontal(last, pl.lit(watermark_ms))

    def _kept(self, rows: pl.DataFrame, watermark_ms: int) -> pl.DataFrame:
        """Return the state rows that have not expired, each with the time at which it must next be processed."""
        spec, ttl_ms = self.spec, self.spec.ttl_ms
        never = pl.lit(MAX_MS, dtype=pl.Int64)
        rows = rows.filter(_AT.is_not_null())
        if ttl_ms >= NEVER_MS:
            return spec.conform(rows.with_columns((never + 1).alias("__end"), never.alias("__due")))
        if watermark_ms >= MAX_MS:
            rows = rows.clear()  # at the end of time, there is nothing to wait for
        over = _AT + (ttl_ms + 1)
        if spec.clock == "processing":
            alive = rows.filter(~is_forgotten(over, self.time.now_ms))
            return spec.conform(alive.with_columns(never.alias("__end"), over.alias("__due")))
        alive = rows.filter(~is_forgotten(over, watermark_ms))
        return spec.conform(alive.with_columns(over.alias("__end"), never.alias("__due")))

    def _joined(self, left: pl.DataFrame, right: pl.DataFrame, how: _How) -> pl.DataFrame:
        """Return frames joined by the key, in the order of the left one, which a replayed batch repeats."""
        return join_on_keys(left, right, self._keys, how=how)

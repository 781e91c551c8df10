"""The floor of KEYED: a step that fails on some rows loses these to the dead letters, and the batch goes through.

A failure in an operator would come back with every replay of the batch, and the job would be stuck. So:

1. The operator runs on all rows. If it fails, its state is rolled back.
2. It runs without the batch's rows. If it still fails, stored rows are to blame: they are removed from the state, with
   all that depends on them (`KeyedStep.independent`), and become dead letters.
3. It runs on all rows again. If it fails, the rows to blame are found by `engine/blame.py` and become dead letters.
4. It runs on the others. If it fails now, or no row is to blame, the batch fails with an error that names the step.

A step that does not fail pays for none of this. Steps that can tell a failing row themselves (a process, the
conditions of joins and patterns) do so, and never get here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import polars as pl

from slackwater.base.expressions import FAILURES
from slackwater.base.stable_hash import hash_columns
from slackwater.engine.blame import I64, blamed_rows, is_of_rows
from slackwater.operators.state.packets import Packet
from slackwater.operators.state.packing import pack, unpack
from slackwater.operators.state.pieces import Piece, StepState
from slackwater.operators.state.store import DictStore
from slackwater.operators.step import Emitted, Failed, KeyedStep, StepRows

STORED_FAILED: Final = "stored_rows_failed"
"""The reason of dead letters for stored rows, which contain what the state had of them."""

Run = Callable[[StepRows, StepState], Emitted]
"""Runs the operator of a step on the rows of a batch and its state."""


def run_on_floor(step: KeyedStep, rows: StepRows, state: StepState, run: Run) -> Emitted:
    """Run an operator, and bury the rows on which it fails."""
    before = state.savepoint()
    try:
        return run(rows, state)  # 1
    except FAILURES as error:
        state.roll_back(before)
        if not is_of_rows(error):
            raise
    floor = _Floor(step=step, run=run)
    buried = floor.without_failing_state(state)  # 2
    before = state.savepoint()
    try:
        shown = run(rows, state)  # 3
    except FAILURES as error:
        state.roll_back(before)
        if not is_of_rows(error):
            raise
        kept, failed = floor.without_failing_rows(rows, state)
        buried += failed
        shown = run(kept, state)  # 4
        if not step.buries:
            # They were counted as on time, in FRONT or by their cells.
            shown.count("on_time", -sum(_number(lost.rows) for lost in failed))
    shown.failed += buried
    return shown


@dataclass(frozen=True, kw_only=True)
class _Floor:
    step: KeyedStep
    run: Run

    def without_failing_state(self, state: StepState) -> list[Failed]:
        """Remove the stored rows on which the step fails without any new row; return them."""
        error = self._failure(StepRows(), state)
        if error is None:
            return []
        if not self.step.independent:
            raise error
        pieces = sorted(state.pieces, key=lambda piece: piece.seq)
        frames = state.read(pieces)
        # Rows with the same hash must not be separated.
        units = list(self.step.independent)
        hashes = np.concatenate([hash_columns(frame, units) for frame in frames])
        ends = np.cumsum([frame.height for frame in frames])

        def attempt(chosen: I64) -> None:
            trial = StepState(step=state.step, store=DictStore(), buckets=state.buckets)
            for piece, frame, mine in zip(pieces, frames, _split(chosen, ends), strict=True):
                _put(trial, piece, frame[mine])
            self.run(StepRows(), trial)

        # All rows of a unit go: what is left of it would give a wrong result.
        guilty = blamed_rows(hashes, attempt)
        words = {hashes[row]: message for row, message in reversed(guilty.items())}
        is_bad = np.isin(hashes, np.array([*words], np.uint64))
        failed = []
        for piece, frame, first in zip(pieces, frames, [0, *ends[:-1]], strict=True):
            bad = is_bad[first : first + frame.height]
            if bad.any():
                state.drop([piece])
                _put(state, piece, frame.filter(pl.Series(~bad)))
                messages = [words[unit] for unit in hashes[first : first + frame.height][bad]]
                lost, own = _placed(self.step.shown_rows(frame.filter(pl.Series(bad))), "state")
                shown = Failed(rows=lost, messages=pl.Series(messages), reason=STORED_FAILED, has_places=own)
                failed.append(shown)
        return failed

    def without_failing_rows(self, rows: StepRows, state: StepState) -> tuple[StepRows, list[Failed]]:
        """Return the rows of the batch on which the step does not fail, and the others."""
        packets = rows.packets(*rows.channels)
        frames = [unpack(packet.payload or b"", packet.target) for packet in packets]
        keys = [hash_columns(frame, self._keys(packet)) for packet, frame in zip(packets, frames, strict=True)]
        ends = np.cumsum([frame.height for frame in frames])

        def chosen_rows(chosen: I64) -> StepRows:
            some = StepRows()
            for packet, frame, mine in zip(packets, frames, _split(chosen, ends), strict=True):
                if len(mine):
                    part = frame[mine]
                    some.add(packet._replace(rows=part.height, payload=pack(part, packet.target)))
            return some

        def attempt(chosen: I64) -> None:
            before = state.savepoint()
            try:
                self.run(chosen_rows(chosen), state)
            finally:
                state.roll_back(before)

        bad = blamed_rows(np.concatenate(keys), attempt)
        kept = np.setdiff1d(np.arange(ends[-1]), np.array([*bad], np.int64))
        failed = []
        for packet, frame, first in zip(packets, frames, [0, *ends[:-1]], strict=True):
            mine = [row for row in bad if first <= row < first + frame.height]
            if mine:
                lost, own = _placed(frame[[row - int(first) for row in mine]], packet.order.partition("\x00")[0])
                messages = pl.Series([bad[row] for row in mine])
                failed.append(Failed(rows=lost, messages=messages, port=packet.kind, has_places=own))
        return chosen_rows(kept), failed

    def _failure(self, rows: StepRows, state: StepState) -> BaseException | None:
        before = state.savepoint()
        try:
            self.run(rows, state)
        except FAILURES as error:
            if not is_of_rows(error):
                raise
            return error
        finally:
            state.roll_back(before)
        return None

    def _keys(self, packet: Packet) -> list[str]:
        port = self.step.ports.get(packet.kind)
        return list(self.step.keys if port is None else port.keys)


def _split(chosen: I64, ends: I64) -> Iterator[I64]:
    """Yield for each frame the numbers within it of the chosen rows, which are numbered across all frames."""
    first = 0
    for end in ends:
        low, high = np.searchsorted(chosen, [first, end])
        yield chosen[low:high] - first
        first = int(end)


def _put(state: StepState, piece: Piece, rows: pl.DataFrame) -> None:
    """Store some rows of a piece as a piece like it; its times may be wider than those of the rows."""
    if rows.height:
        state.append_blob(pack(rows, state.step), **_facts(replace(piece, rows=rows.height)))


def _number(rows: pl.DataFrame) -> int:
    """Return the number of events in `rows`, which FRONT may have combined."""
    return int(rows["__new"].sum()) if "__new" in rows.columns else rows.height


def _facts(piece: Piece) -> dict[str, object]:
    return {name: value for name, value in vars(piece).items() if name not in ("seq", "bytes", "crc")}


def _placed(rows: pl.DataFrame, partition: str) -> tuple[pl.DataFrame, bool]:
    """Return `rows` with a place, and whether it is their own; that of combined rows is the partition and a number."""
    missing = {
        "__part": pl.lit(partition),
        "__off": pl.int_range(pl.len(), dtype=pl.Int64),
        "__ingested": pl.lit(None, dtype=pl.Int64),
    }
    placed = rows.with_columns(value.alias(name) for name, value in missing.items() if name not in rows.columns)
    return placed, "__off" in rows.columns

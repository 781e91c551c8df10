"""Rows that leave row functions: to the keyed steps that take them, and to outputs, as packets by key group."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import polars as pl

from slackwater.base.errors import SlackwaterError, UnplacedError, cause_of, fault
from slackwater.base.expressions import FAILURES
from slackwater.base.keys import canonical
from slackwater.base.stable_hash import hash_columns
from slackwater.connectors.sink import Trial
from slackwater.engine.blame import I64, blamed_rows, is_of_rows
from slackwater.engine.dead_letters import bury, guarded
from slackwater.engine.front.samples import Sampler
from slackwater.engine.key_groups import group_of, labels
from slackwater.engine.losses import Losses, records
from slackwater.engine.row_context import RowContext
from slackwater.engine.skew import Skew
from slackwater.engine.step_times import step_time
from slackwater.eventtime.ages import EVENT, INGESTION, AgeSketch
from slackwater.eventtime.clock import Clock
from slackwater.eventtime.step_time import StepTime
from slackwater.formats.dead_letter_columns import PLACE
from slackwater.operators.late_rows import shared_late_rows
from slackwater.operators.state import pieces
from slackwater.operators.state.packets import Packet, output
from slackwater.operators.state.packing import pack
from slackwater.operators.step import PortFront, StepRows, Taken
from slackwater.operators.whole_rows import STREAM, with_stream
from slackwater.plan.plan import Feed, Plan, RowNode, StepPlan


@contextmanager
def placed_errors(step: StepPlan) -> Iterator[None]:
    """Name the step, and the key where it is known, in errors that no row is to blame for."""
    try:
        yield
    except UnplacedError as failed:
        raise failed.placed(step.name, step.spec.keys) from failed.__cause__
    except (MemoryError, SlackwaterError):
        raise
    except FAILURES as error:
        raise fault("STEP_FAILED", step=step.name, cause=cause_of(error)) from error


@dataclass(kw_only=True)
class Arrivals:
    """Collects the rows that leave row functions, and packs them for outputs and keyed steps."""

    plan: Plan
    clock: Clock
    fronts: dict[tuple[Feed, RowNode], PortFront] = field(default_factory=dict)
    kept: dict[tuple[Feed, RowNode], list[pl.DataFrame]] = field(default_factory=dict)
    packets: list[Packet] = field(default_factory=list)
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    skew: dict[str, Skew] = field(default_factory=dict)
    """Per step that does not combine rows, how its rows are distributed over its keys."""
    ages: dict[str, dict[str, AgeSketch]] = field(default_factory=dict)
    """Per output, the ages of its rows, since their event time and since they were ingested."""
    reasons: dict[str, Counter[str]] = field(default_factory=dict)
    """Per keyed step, dead letters by reason."""
    losses: dict[str, Losses] = field(default_factory=dict)
    """Per stream, and per output of a step, its rows and its dead letters."""
    order: str = ""
    way_out: int | None = None
    """The key group that outputs leave by: in KEYED the group itself; None, in FRONT, spreads them by their place."""
    has_places: bool = True
    """Whether rows have a place in a log, which is the same when the batch is replayed."""
    samples: Sampler = field(init=False)

    def __post_init__(self) -> None:
        self.samples = Sampler(shows_data=self.plan.shows_data)

    def arrive(self, node: RowNode, frame: pl.DataFrame, context: RowContext) -> None:
        """Pass the rows that leave a tree of row functions at `node` to its outputs and keyed steps."""
        for name in node.outputs:
            self.count(name, "rows", self.emit(name, frame, context))
        for feed in node.feeds:
            step, way = self.plan.by_name[feed.step], (feed, node)
            if way not in self.fronts:
                self.fronts[way] = step.spec.front(feed.port, node.undecoded)
            rows = frame
            if feed.port in step.unions:
                rows = frame.with_columns(with_stream("__part", context.stream))
                rows = rows.with_columns(pl.lit(context.stream).alias(STREAM)) if step.spec.buries else rows
            rows = canonical(rows, step.spec.ports[feed.port].keys)
            with placed_errors(step):
                taken = self._taken(step, feed, self.fronts[way], rows, context)
            for what, number in taken.counts.items():
                self.count(step.name, what, number)
            if taken.kept.height:
                self.kept.setdefault(way, []).append(taken.kept)
            if taken.late is not None:
                self.emit_late(step, taken.late, context)
            for channel, whole in taken.whole.items():
                self._by_group(whole, feed, channel)

    def _taken(self, step: StepPlan, feed: Feed, front: PortFront, rows: pl.DataFrame, context: RowContext) -> Taken:
        """Pass rows to the FRONT part of a step; rows on which it fails only together become dead letters."""
        time, guard = step_time(step, self.clock), partial(guarded, step=step.name, context=context)
        try:
            return front.take(rows, time, guard)
        except FAILURES as error:
            if not is_of_rows(error):
                raise

        def attempt(chosen: I64) -> None:
            aside = replace(context, dead=[])
            front.take(rows[chosen], time, partial(guarded, step=step.name, context=aside))

        bad = blamed_rows(hash_columns(rows, list(step.spec.ports[feed.port].keys)), attempt)
        messages = pl.Series([*bad.values()], dtype=pl.String)
        bury(rows[[*bad]], step.name, pl.Series(["failed"]), messages, context)
        return front.take(rows[np.setdiff1d(np.arange(rows.height), [*bad])], time, guard)

    def emit(self, name: str, frame: pl.DataFrame, context: RowContext) -> int:
        """Send rows to an output, or to the dead letters if its sinks cannot write them; return the number sent."""
        columns = self.plan.output_by_name[name].schema.names()
        for trial in self.plan.trials[name]:
            frame = guarded(frame, partial(_tried, trial=trial, columns=columns), name, context, reason="unwritable")
        with self.measuring(name):
            self._note_ages(frame, name)
        self._out(frame.select(columns), name)
        return frame.height

    def emit_late(self, step: StepPlan, late: pl.DataFrame, context: RowContext, stream: str = "") -> None:
        """Send rows that have been counted as late to the late output of `step`.

        `stream` is the stream or step that they come from, if it is not the context's.
        """
        assert step.late is not None, f"step {step.name} takes rows however late they are"
        with self.measuring(step.name):
            self.samples.late(late, step.name, place_of=context.shown_place)
        if step.late in self.plan.shared:
            late = shared_late_rows(late, stream or context.stream)
        self.count(step.name, "late", self.emit(step.late, late, context) - late.height)

    def flush(self) -> list[Packet]:
        """Merge the rows kept from the chunks so far, and return them with all other packets."""
        for way, parts in self.kept.items():
            feed, _ = way
            step = self.plan.by_name[feed.step]
            with placed_errors(step):
                merged = _merged(self.fronts[way], parts, step_time(step, self.clock))
            for channels in merged:
                for channel, rows in channels.items():
                    self._by_group(rows, feed, channel)
        packets, self.packets, self.kept = self.packets, [], {}
        return packets

    def count(self, name: str, what: str, number: int) -> None:
        """Add to the statistics of a step or output."""
        if number:
            known = self.counts.setdefault(name, {})
            known[what] = known.get(what, 0) + number

    @contextmanager
    def measuring(self, name: str) -> Iterator[None]:
        """Compute statistics that no result depends on; where that fails, it is counted, and the batch goes through."""
        try:
            yield
        except MemoryError:
            raise
        except FAILURES:
            self.count(name, "unmeasured", 1)

    def count_rows(self, origin: str, rows: int) -> None:
        """Add rows of a stream, or of an output of a step, to those that its dead letters are a share of."""
        if rows:
            self.losses.setdefault(origin, Losses()).rows += rows

    def bury(self, dead: list[pl.DataFrame], name: str, *, origin: str) -> int:
        """Send dead letters of an origin's rows to their output; return their number."""
        if not dead:
            return 0
        frame = pl.concat(dead)
        losses = self.losses.setdefault(origin, Losses())
        losses.note(frame)
        losses.dead += frame.height if self.way_out is not None else records(frame)
        with self.measuring(name):
            self.samples.dead(frame)
        self.count(name, "rows", frame.height)
        self._out(frame, name)
        return frame.height

    def _out(self, frame: pl.DataFrame, name: str) -> None:
        if self.way_out is None and not self.has_places:
            content = [column for column in frame.columns if column not in PLACE]
            ways = self._grouped(frame, content)
        else:
            every = labels(self.plan.key_groups)
            ways = [(every if self.way_out is None else (self.way_out,), frame)]
        for labels_, part in ways:
            self.packets += output(part, name, f"{self.order}/{len(self.packets):06d}", labels_)

    def _note_ages(self, frame: pl.DataFrame, name: str) -> None:
        """Record the ages of rows that leave by an output; results have no ingestion time."""
        if "__ts" in frame.columns:
            self._observe(name, EVENT, frame["__ts"])
        elif self.plan.output_by_name[name].kind == "late":
            self._observe(name, EVENT, frame["event_time"].dt.epoch("ms"))
        if self.way_out is None and "__ingested" in frame.columns:
            self._observe(name, INGESTION, frame["__ingested"])

    def _observe(self, name: str, since: str, times_ms: pl.Series) -> None:
        if not times_ms.is_empty():
            self.ages.setdefault(name, {}).setdefault(since, AgeSketch()).observe(times_ms, self.clock.now)

    def ages_facts(self) -> dict[str, dict[str, str]]:
        """Return the ages in the form that a task reports."""
        return {name: {since: each.to_json() for since, each in ages.items()} for name, ages in self.ages.items()}

    def _by_group(self, rows: pl.DataFrame, feed: Feed, channel: str) -> None:
        step = self.plan.by_name[feed.step]
        keys = list(step.spec.ports[feed.port].keys)
        if rows.height and not step.spec.combines:
            with self.measuring(feed.step):
                self.skew.setdefault(feed.step, Skew()).observe(rows, keys)
        # The rows of a key from one file stay together, and a replayed batch uses the same key groups.
        shift = zlib.crc32(self.order.encode()) % step.spread
        for (label,), part in self._grouped(rows, keys, shift=shift):
            self._pack(part, label, feed.step, channel)

    def relay(self, step: StepPlan, rows: StepRows) -> None:
        """Condense the rows of a key that was spread over key groups, and send them to the key groups of `step`."""
        [(port, keys)] = [(name, list(port.keys)) for name, port in step.spec.ports.items()]
        front = step.spec.front(port, None)
        for channel in sorted(rows.channels):
            frame = rows.frame(channel)
            assert frame is not None, "a channel has packets"
            for (label,), part in self._grouped(front.condense(channel, frame), keys):
                self._pack(part, label, step.name, channel)

    def _grouped(
        self, rows: pl.DataFrame, by: list[str], *, shift: int = 0
    ) -> list[tuple[tuple[int, ...], pl.DataFrame]]:
        """Split `rows` by the key group of the columns `by`; return the parts with labels, rotated by `shift`."""
        if rows.is_empty():
            return []
        known = labels(self.plan.key_groups)
        known = known[shift % len(known) :] + known[: shift % len(known)]
        grouped = rows.with_columns(group_of(rows, by, self.plan.key_groups))
        parts = grouped.partition_by("__group", include_key=False, as_dict=True, maintain_order=True)
        return [((known[group],), part) for (group,), part in parts.items()]

    def _pack(self, rows: pl.DataFrame, label: int, step: str, channel: str) -> None:
        payload = pack(rows, step)
        if len(payload) > pieces.MOST_BYTES and rows.height > 1:
            # A packet may be stored unchanged as a piece of state, so it has the same size limit.
            half = rows.height // 2
            self._pack(rows[:half], label, step, channel)
            self._pack(rows[half:], label, step, channel)
            return
        ends = rows["__end"]
        self.packets.append(
            Packet(
                label,
                channel,
                step,
                f"{self.order}/{len(self.packets):06d}",
                rows.height,
                int(ends.min()),  # type: ignore[arg-type]  # an Int64 column; the stubs say Any
                int(ends.max()),  # type: ignore[arg-type]  # an Int64 column; the stubs say Any
                payload,
            )
        )


def _merged(front: PortFront, parts: list[pl.DataFrame], time: StepTime) -> list[dict[str, pl.DataFrame]]:
    """Merge the kept rows of a file's chunks; where that fails, they travel unmerged, and KEYED decides."""
    try:
        return [front.merge(parts, time)]
    except FAILURES as error:
        if not is_of_rows(error) or len(parts) == 1:
            raise
    return [front.merge([part], time) for part in parts]


def _tried(rows: pl.DataFrame, *, trial: Trial, columns: list[str]) -> pl.DataFrame:
    """Return `rows`, or fail if a sink cannot write one of them."""
    trial.check(rows.select(columns))
    return rows

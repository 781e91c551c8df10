"""FRONT: from raw records to packets by key group, in one pass.

Decode, dead letters, event time, guard, row functions, late split, windows, combine, pack. It works
in chunks of bounded size; the chunks of one file are merged, files never are: the order of packets
must not depend on which task read which file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import polars as pl

from slackwater.engine.key_groups import group_of, labels
from slackwater.engine.packets import Kind, Packet, output, stats
from slackwater.engine.rows import RowContext, RowFunctions
from slackwater.eventtime.clock import MIN_MS, Clock, StepTime
from slackwater.eventtime.lateness import LatenessSketch
from slackwater.operators import pieces
from slackwater.operators.packing import pack
from slackwater.operators.window_front import WindowFront
from slackwater.plan import Plan, RowNode, SourcePlan, StepPlan


def step_time(step: StepPlan, clock: Clock) -> StepTime:
    """Return the time `step` works by: the smallest of its sources' watermarks, less the delays before it."""
    times = [clock.streams[name] for name in step.sources]
    delay = step.delay_ms
    return StepTime(
        previous_ms=max(MIN_MS, min(time.previous_ms for time in times) - delay),
        watermark_ms=max(MIN_MS, min(time.watermark_ms for time in times) - delay),
        now_ms=clock.now,
        fire_first=step.stage == 0,
    )


@dataclass(kw_only=True)
class Arrivals:
    """Rows on their way to the outputs and keyed steps of one stream, between two merges."""

    plan: Plan
    clock: Clock
    fronts: dict[str, WindowFront] = field(default_factory=dict)
    combined: dict[str, list[pl.DataFrame]] = field(default_factory=dict)
    packets: list[Packet] = field(default_factory=list)
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    order: str = ""

    def arrive(self, node: RowNode, frame: pl.DataFrame) -> None:
        """Take the rows that leave a tree of row functions at `node`."""
        for name in node.outputs:
            self.count(name, "rows", frame.height)
            self._out(frame.select(node.schema.names()), name)
        for name in node.steps:
            step = self.plan.by_name[name]
            front = self.fronts.setdefault(name, WindowFront(step.spec, node.undecoded))
            made = front.combine(frame, step_time(step, self.clock))
            for what, number in made.counts.items():
                self.count(name, what, number)
            if made.combined.height:
                self.combined.setdefault(name, []).append(made.combined)
            if made.late is not None:
                self._out(made.late, step.late)
            if made.suspect is not None:
                self._by_group(made.suspect, step, "suspect")

    def flush(self) -> list[Packet]:
        """Merge what the chunks so far gave, and return it with everything else as packets."""
        for name, parts in self.combined.items():
            step = self.plan.by_name[name]
            rows = self.fronts[name].merge(parts)
            behind = rows["__end"] <= step_time(step, self.clock).judge_ms
            if behind.any():
                self._by_group(rows.filter(behind), step, "behind")
                rows = rows.filter(~behind)
            self._by_group(rows, step, "open")
        packets, self.packets, self.combined = self.packets, [], {}
        return packets

    def count(self, name: str, what: str, number: int) -> None:
        """Add to the statistics of a step or output."""
        if number:
            known = self.counts.setdefault(name, {})
            known[what] = known.get(what, 0) + number

    def bury(self, dead: list[pl.DataFrame], name: str) -> None:
        """Send dead letters to their output."""
        if dead:
            frame = pl.concat(dead)
            self.count(name, "rows", frame.height)
            self._out(frame, name)

    def _out(self, frame: pl.DataFrame, name: str) -> None:
        place = f"{self.order}/{len(self.packets):06d}"
        self.packets += output(frame, name, place, labels(self.plan.key_groups))

    def _by_group(self, rows: pl.DataFrame, step: StepPlan, kind: Kind) -> None:
        if rows.is_empty():
            return
        grouped = rows.with_columns(group_of(rows, list(step.spec.keys), self.plan.key_groups))
        known = labels(self.plan.key_groups)
        parts = grouped.partition_by("__group", include_key=False, as_dict=True, maintain_order=True)
        for (group,), part in parts.items():
            self._pack(part, known[group], step.name, kind)

    def _pack(self, rows: pl.DataFrame, label: int, step: str, kind: Kind) -> None:
        payload = pack(rows, step)
        if len(payload) > pieces.MOST_BYTES and rows.height > 1:
            # A packet may become a piece of state as it is, so it has the same limit.
            half = rows.height // 2
            self._pack(rows[:half], label, step, kind)
            self._pack(rows[half:], label, step, kind)
            return
        ends = rows["__end"]
        self.packets.append(
            Packet(
                label,
                kind,
                step,
                f"{self.order}/{len(self.packets):06d}",
                rows.height,
                int(ends.min()),  # type: ignore[arg-type]
                int(ends.max()),  # type: ignore[arg-type]
                payload,
            )
        )


@dataclass(kw_only=True)
class Chunk:
    """Some records of one file, or of one Arrow batch, with where they come from."""

    frame: pl.DataFrame
    """The columns of a typed source; or `__payload`, with `__key` and `__headers` where there are such."""
    partition: str
    file: str
    """What `partition` calls the file; chunks with equal files are merged."""
    first_offset: int
    source: str
    ingestion_ms: int | pl.Series
    """When the log received the records: all of them, or each."""
    shown_offset: int | None = None
    """What dead letters call the place of the first record; `first_offset` unless its file's name says another."""
    offsets: pl.Series | None = None
    """The place of each record, if they do not simply follow `first_offset`."""

    def placed(self) -> pl.DataFrame:
        """Return the frame with each row's partition, place and ingestion time, which travel with it."""
        stop = self.first_offset + self.frame.height
        offsets = pl.int_range(self.first_offset, stop, dtype=pl.Int64) if self.offsets is None else self.offsets
        ingested = self.ingestion_ms
        return self.frame.with_columns(
            pl.lit(self.partition).alias("__part"),
            offsets.alias("__off"),
            (ingested if isinstance(ingested, pl.Series) else pl.lit(ingested, dtype=pl.Int64)).alias("__ingested"),
        )


class Front:
    """FRONT for one source stream, during one task of one batch."""

    def __init__(self, plan: Plan, source: SourcePlan, clock: Clock) -> None:
        self.source = source
        self.functions = RowFunctions(source.rows)
        self.arrivals = Arrivals(plan=plan, clock=clock)
        self.now_ms = clock.now
        self._file: str | None = None
        self._chunks = 0
        self._partitions: dict[str, dict[str, int]] = {}
        self._totals = {"rows": 0, "filtered": 0, "added": 0, "dead": 0}
        self._reasons: dict[str, dict[str, int]] = {}
        self._newest_ms = {name: known.max_ts_ms for name, known in clock.streams[source.name].partitions.items()}
        self._least_newest_ms = MIN_MS if self._newest_ms else _slowest_ms(source, clock)
        self._lateness: dict[str, LatenessSketch] = {}

    def process(self, chunk: Chunk) -> list[Packet]:
        """Process one chunk; returns the packets of the file before, when a new file begins."""
        is_new = chunk.file != self._file
        packets = self._flush() if is_new else []
        if is_new:
            self._file = chunk.file
            self.arrivals.order = f"{chunk.partition}\x00{chunk.first_offset:020d}"
        height = chunk.frame.height
        frame = chunk.placed()
        context = RowContext(
            source=chunk.source,
            partition=chunk.partition,
            now_ms=self.now_ms,
            newest_ms=self._newest_ms.get(chunk.partition, self._least_newest_ms),
            lateness=self._sketch(chunk.partition),
            shown_offset=0 if chunk.shown_offset is None else chunk.shown_offset - chunk.first_offset,
        )
        self.functions.run(frame, context, self.arrivals.arrive)
        self._newest_ms[chunk.partition] = context.newest_ms
        dead = sum(frame.height for frame in context.dead)
        self._note_reasons(context.dead)
        self.arrivals.bury(context.dead, self.source.dead_letters)
        found = {"rows": height, "filtered": context.filtered, "added": context.added, "dead": dead}
        for what, number in found.items():
            self._totals[what] += number
        known = self._partitions.setdefault(chunk.partition, {"rows": 0, "max_ts_ms": MIN_MS})
        known["rows"] += height
        known["max_ts_ms"] = max(known["max_ts_ms"], context.max_ts_ms)
        return packets

    def finish(self, task: str) -> list[Packet]:
        """Return the last file's packets and the statistics of the task."""
        packets = self._flush()
        facts: dict[str, Any] = {
            "stream": self.source.name,
            "now_ms": self.now_ms,
            **self._totals,
            "partitions": self._partitions,
            "counts": self.arrivals.counts,
            "reasons": self._reasons,
            "lateness": {name: sketch.to_json() for name, sketch in self._lateness.items()},
        }
        place = f"front/{self.source.name}/{task}"
        return [*packets, stats(facts, place, labels(self.arrivals.plan.key_groups))]

    def _note_reasons(self, dead: list[pl.DataFrame]) -> None:
        """Count dead letters by reason; those of a writer's schema by their words as well, which name it."""
        for letters in dead:
            by_reason = letters.group_by("reason").agg(pl.len(), words=pl.col("message").first())
            for reason, count, words in by_reason.iter_rows():
                known = self._reasons.setdefault(reason, {})
                key = words if reason == "incompatible_schema" else ""
                known[key] = known.get(key, 0) + count

    def _sketch(self, partition: str) -> LatenessSketch | None:
        """Return where the lateness of a partition's rows is counted.

        Against the newest row of the batches before and of this task: what another task reads of the
        partition in the same batch is not known here, and makes a row seem less late than it is.
        """
        if self.source.time is None or self.source.time.clock != "event":
            return None
        return self._lateness.setdefault(partition, LatenessSketch.empty())

    def _flush(self) -> list[Packet]:
        return self.arrivals.flush() if self._file is not None else []


def _slowest_ms(source: SourcePlan, clock: Clock) -> int:
    """Return the largest time of the slowest partition, which is all that is known where there are very many."""
    watermark_ms = clock.streams[source.name].watermark_ms
    if source.time is None or watermark_ms <= MIN_MS:
        return MIN_MS
    return watermark_ms + source.time.out_of_orderness_ms

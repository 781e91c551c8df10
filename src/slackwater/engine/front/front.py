"""FRONT: from raw records to packets by key group, in one pass.

Decode, dead letters, event time, guard, row functions (`rows.py`), late split, combine, pack (`arrivals.py`). It works
in chunks of bounded size. The chunks of one file are merged, but never those of different files: the
order of packets must not depend on which task read which file.
"""

from __future__ import annotations

import time
from typing import Any

import polars as pl

from slackwater.base.times import MIN_MS
from slackwater.connectors.chunk import Chunk
from slackwater.engine.dead_letters import bury
from slackwater.engine.enrichment.answers import Span
from slackwater.engine.enrichment.enrichment import Enrichment
from slackwater.engine.front.arrivals import Arrivals
from slackwater.engine.front.rows import RowFunctions
from slackwater.engine.key_groups import labels
from slackwater.engine.ranges import Ranges, ranges_of
from slackwater.engine.row_context import RowContext
from slackwater.eventtime.ages import AgeSketch
from slackwater.eventtime.clock import Clock
from slackwater.eventtime.measured_lateness import LatenessSketch
from slackwater.operators.state.packets import Packet, stats
from slackwater.plan.plan import Plan, SkippedRows, SourcePlan


class Front:
    """FRONT for one source stream, during one task of one batch."""

    def __init__(self, plan: Plan, source: SourcePlan, clock: Clock, enrichment: Enrichment | None = None) -> None:
        self.source = source
        self.enrichment = enrichment
        self.functions = RowFunctions(source.rows, source.source)
        self.arrivals = Arrivals(plan=plan, clock=clock, has_places=source.source.has_places)
        self.now_ms = clock.now
        self._file: str | None = None
        self._chunks = 0
        self._partitions: dict[str, dict[str, int]] = {}
        self._totals = {"rows": 0, "filtered": 0, "added": 0, "dead": 0}
        self._reasons: dict[str, dict[str, int]] = {}
        self._newest_ms = {name: known.max_ts_ms for name, known in clock.streams[source.name].partitions.items()}
        self._least_newest_ms = MIN_MS if self._newest_ms else _slowest_ms(source, clock)
        self._lateness: dict[str, LatenessSketch] = {}
        has_ages = source.time is not None and source.time.clock != "processing"
        self._ages = AgeSketch() if has_ages else None
        self._ahead = 0
        self._skipped: dict[str, Ranges] = {}

    def process(self, chunk: Chunk) -> list[Packet]:
        """Process one chunk; return the packets of the previous file if this chunk begins a new one."""
        is_new = chunk.file != self._file
        packets = self._flush() if is_new else []
        if is_new:
            self._file = chunk.file
            self.arrivals.order = f"{chunk.partition}\x00{chunk.first_offset:020d}"
        height = chunk.frame.height
        frame = chunk.placed()
        context = RowContext(
            source=chunk.source,
            stream=self.source.name,
            partition=chunk.partition,
            now_ms=self.now_ms,
            newest_ms=self._newest_ms.get(chunk.partition, self._least_newest_ms),
            lateness=self._sketch(chunk.partition),
            ages=self._ages,
            shown_offset=0 if chunk.shown_offset is None else chunk.shown_offset - chunk.first_offset,
            # The streams of a union share their lookups, and may have partitions of the same name.
            span=Span(
                partition=f"{self.source.name}\x00{chunk.partition}", first=chunk.first_offset, last=chunk.last_offset
            ),
            enrichment=self.enrichment,
        )
        for rows in self.source.skipped:
            frame = self._without(rows, frame, context)
        self.functions.run(frame, context, self.arrivals.arrive)
        self._newest_ms[chunk.partition] = context.newest_ms
        self._ahead += context.ahead
        self._note_reasons(context.dead)
        self.arrivals.count_rows(self.source.name, height)
        dead = self.arrivals.bury(context.dead, self.source.dead_letters, origin=self.source.name)
        found = {"rows": height, "filtered": context.filtered, "added": context.added, "dead": dead}
        for what, number in found.items():
            self._totals[what] += number
        known = self._partitions.setdefault(chunk.partition, {"rows": 0, "max_ts_ms": MIN_MS})
        known["rows"] += height
        known["max_ts_ms"] = max(known["max_ts_ms"], context.max_ts_ms)
        return packets

    def finish(self, task: str) -> list[Packet]:
        """Return the packets of the last file and the statistics of the task."""
        packets = self._flush()
        facts: dict[str, Any] = {
            "stream": self.source.name,
            "now_ms": self.now_ms,
            "ended_ms": round(1_000 * time.time()),
            **self._totals,
            "partitions": self._partitions,
            "counts": self.arrivals.counts,
            "skew": {step: skew.to_json() for step, skew in self.arrivals.skew.items()},
            "reasons": self._reasons,
            "losses": {name: each.to_json() for name, each in self.arrivals.losses.items()},
            "lateness": {name: sketch.to_json() for name, sketch in self._lateness.items()},
            "ages": self.arrivals.ages_facts(),
            "age": None if self._ages is None else self._ages.to_json(),
            "ahead": self._ahead,
            "lookups": {} if self.enrichment is None else self.enrichment.facts(),
            "samples": self.arrivals.samples.taken,
            "skipped": {rows: ranges.pairs for rows, ranges in self._skipped.items()},
        }
        place = f"front/{self.source.name}/{task}"
        return [*packets, stats(facts, place, labels(self.arrivals.plan.key_groups))]

    def _note_reasons(self, dead: list[pl.DataFrame]) -> None:
        """Count dead letters by reason; if the schema is incompatible, by message, which names it."""
        for letters in dead:
            by_reason = letters.group_by("reason").agg(pl.len(), pl.col("message").first())
            for reason, count, words in by_reason.iter_rows():
                known = self._reasons.setdefault(reason, {})
                key = words if reason == "incompatible_schema" else ""
                known[key] = known.get(key, 0) + count

    def _sketch(self, partition: str) -> LatenessSketch | None:
        """Return the sketch of the lateness of a partition's rows.

        Lateness is relative to the newest row of earlier batches and of this task. The rows of the partition that
        another task reads in the same batch are unknown here, which makes a row seem less late than it is.
        """
        if self.source.time is None or self.source.time.clock != "event":
            return None
        return self._lateness.setdefault(partition, LatenessSketch.empty())

    def _without(self, skipped: SkippedRows, frame: pl.DataFrame, context: RowContext) -> pl.DataFrame:
        """Return the rows that are not skipped; the others become dead letters."""
        offsets = frame["__off"] + context.shown_offset
        is_skipped = skipped.covers(context.partition, offsets)
        if not is_skipped.any():
            return frame
        met = offsets.filter(is_skipped) if self.source.source.has_places else pl.Series([skipped.first])
        self._skipped.setdefault(str(skipped), Ranges()).add(ranges_of(met))
        message = pl.Series([f"skipped by --skip-rows {skipped}"])
        bury(frame.filter(is_skipped), context.stream, pl.Series(["skipped"]), message, context)
        return frame.filter(~is_skipped)

    def _flush(self) -> list[Packet]:
        return self.arrivals.flush() if self._file is not None else []


def _slowest_ms(source: SourcePlan, clock: Clock) -> int:
    """Return the largest time of the slowest partition: with very many partitions, nothing else is recorded."""
    watermark_ms = clock.streams[source.name].watermark_ms
    if source.time is None or watermark_ms <= MIN_MS:
        return MIN_MS
    return watermark_ms + source.time.out_of_orderness_ms

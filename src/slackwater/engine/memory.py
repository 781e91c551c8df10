"""The engine without Spark: the same plan, packets, state and clock rules, in one process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import polars as pl

from slackwater.connectors.chunk import Chunk
from slackwater.engine.batch_stats import BatchStats
from slackwater.engine.enrichment.answers import MemoryAnswers
from slackwater.engine.enrichment.cached_lookups import CachedLookups
from slackwater.engine.enrichment.enrichment import Enrichment
from slackwater.engine.enrichment.snapshots import MemorySnapshots
from slackwater.engine.front.front import Front
from slackwater.engine.key_groups import labels
from slackwater.engine.keyed.stage import Stage
from slackwater.eventtime.clock import Clock
from slackwater.operators.state.packets import Packet, tick
from slackwater.operators.state.packing import unpack
from slackwater.operators.state.store import DictStore
from slackwater.plan.plan import Plan


@dataclass(kw_only=True)
class MemoryBatch:
    """The result of one batch: the rows of every output, and its statistics."""

    outputs: dict[str, pl.DataFrame]
    stats: BatchStats


@dataclass(kw_only=True)
class MemoryEngine:
    """Runs batches of one plan; everything that survives a restart is in `state`."""

    plan: Plan
    state: dict[tuple[int, int], dict[str, bytes]] = field(default_factory=dict)
    """Blobs by (stage, key group label)."""
    answers: MemoryAnswers = field(default_factory=MemoryAnswers)
    """The answers to lookups, which also survive a restart."""
    snapshots: MemorySnapshots = field(default_factory=MemorySnapshots)
    """The versions of tables, which also survive a restart."""
    lookups: CachedLookups = field(default_factory=CachedLookups)

    def run(self, chunks: Mapping[str, Iterable[Chunk]], clock: Clock) -> MemoryBatch:
        """Run one batch under `clock`, which includes the processing time; if it fails, the state is unchanged."""
        before = {place: dict(blobs) for place, blobs in self.state.items()}
        try:
            return self._run(chunks, clock)
        except BaseException:
            self.state = before
            raise

    def _run(self, chunks: Mapping[str, Iterable[Chunk]], clock: Clock) -> MemoryBatch:
        known = labels(self.plan.key_groups)
        packets = [tick(label) for label in known]
        for source in self.plan.sources:
            front = Front(self.plan, source, clock, self._enrichment(clock))
            for chunk in () if clock.is_over else chunks.get(source.name, ()):
                packets += front.process(chunk)
            packets += front.finish("0")
        for number in range(self.plan.stages):
            packets = self._stage(Stage(self.plan, number, self._enrichment(clock)), packets, clock)
        return self._unpack(packets)

    def _enrichment(self, clock: Clock) -> Enrichment:
        return Enrichment(clock=clock, answers=self.answers, snapshots=self.snapshots, lookups=self.lookups)

    def _stage(self, stage: Stage, packets: list[Packet], clock: Clock) -> list[Packet]:
        by_group: dict[int, list[Packet]] = {}
        for packet in packets:
            by_group.setdefault(packet.key_group, []).append(packet)
        out: list[Packet] = []
        for label, group in by_group.items():
            store = DictStore(self.state.setdefault((stage.number, label), {}))
            out += stage.run(label, group, store, clock)
        return out

    @cached_property
    def _empty(self) -> dict[str, pl.DataFrame]:
        return {plan.name: pl.DataFrame(schema=plan.schema) for plan in self.plan.outputs}

    def _unpack(self, packets: list[Packet]) -> MemoryBatch:
        frames = {name: [empty] for name, empty in self._empty.items()}
        for packet in sorted(packets, key=lambda packet: (packet.order, packet.payload or b"")):
            if packet.kind == "output":
                frames[packet.target].append(unpack(packet.payload or b"", packet.target))
        return MemoryBatch(
            outputs={name: pl.concat(parts) for name, parts in frames.items()},
            stats=BatchStats.merged(packet.payload or b"" for packet in packets if packet.kind == "stats"),
        )

"""A batch run again, as a shuffle might deliver it the second time: results and state must be the same."""

from __future__ import annotations

import random
from dataclasses import replace

import polars as pl
from polars.testing import assert_frame_equal

from slackwater.engine.keyed.stage import Stage
from slackwater.engine.memory import MemoryBatch, MemoryEngine
from slackwater.eventtime.clock import Clock
from slackwater.operators.state.packets import Packet
from slackwater.operators.state.packing import unpack
from slackwater.testing import Harness


class ShufflingEngine(MemoryEngine):
    """Delivers the packets of every stage in random order, as shuffles do."""

    dice = random.Random(0)

    def _stage(self, stage: Stage, packets: list[Packet], clock: Clock) -> list[Packet]:
        shuffled = list(packets)
        self.dice.shuffle(shuffled)
        return super()._stage(stage, shuffled, clock)


def copied(state: dict[tuple[int, int], dict[str, bytes]]) -> dict[tuple[int, int], dict[str, bytes]]:
    return {place: dict(blobs) for place, blobs in state.items()}


def as_text(state: dict[tuple[int, int], dict[str, bytes]]) -> dict[tuple[int, int, str], list[str]]:
    """Return the state as text: the rows of every piece, whose order means nothing."""
    return {
        (*place, name): rows_as_text(unpack(blob, name.rsplit("/", 1)[0]))
        for place, blobs in state.items()
        for name, blob in blobs.items()
        if name != "index"
    }


def rows_as_text(frame: pl.DataFrame) -> list[str]:
    """Return rows as text, sorted; dates and times as numbers, as Python does not have them all."""
    return sorted(map(str, frame.select(pl.all().to_physical()).rows(named=True)))


def assert_same(one: MemoryBatch, other: MemoryBatch, *, in_order: str) -> None:
    assert one.outputs.keys() == other.outputs.keys()
    assert not in_order or in_order in one.outputs
    for name, frame in one.outputs.items():
        assert_frame_equal(frame, other.outputs[name], check_row_order=name == in_order, check_exact=True)
    assert one.stats.counts == other.stats.counts
    assert one.stats.streams == other.stats.streams


def check_run_again(harness: Harness, dice: random.Random, *, in_order: str = "", same_bytes: bool = False) -> None:
    """Run the next batch of `harness` twice, the second time with everything that a shuffle may change changed.

    The rows of the output `in_order` come in the same order; with `same_bytes`, state is the same to the byte.
    """
    chunks = {name: list(sent) for name, sent in harness._sent.items()}
    before, clock = copied(harness.engine.state), replace(harness.clock, now_ms=harness.now_ms)
    again = ShufflingEngine(plan=harness.pipeline.plan(), state=copied(before))
    again.dice = dice
    for sent in chunks.values():
        # Each partition was sent as one chunk; tasks of their own read them, in any order.
        dice.shuffle(sent)
    first = harness.engine.run(harness._sent, clock)
    second = again.run(chunks, clock)
    assert_same(first, second, in_order=in_order)
    assert as_text(harness.engine.state) == as_text(again.state)
    assert not same_bytes or harness.engine.state == again.state
    harness.engine.state = before
    harness.run_batch()

"""A batch that is run again gives the same rows and leaves the same state, in whatever order its packets come."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import slackwater as sw
from slackwater.engine.keyed.stage import Stage
from slackwater.engine.memory import MemoryBatch, MemoryEngine
from slackwater.eventtime.clock import Clock
from slackwater.operators.state.packets import Packet
from slackwater.operators.state.packing import unpack
from slackwater.plan.streams import Output, Results, SideOutput, Stream
from slackwater.testing import Harness, rows_source, run
from tests.property.streams import T0, Batch, Setup, batches, send, setups


class ShufflingEngine(MemoryEngine):
    """Delivers the packets of every stage in random order, as shuffles do."""

    dice = random.Random(0)

    def _stage(self, stage: Stage, packets: list[Packet], clock: Clock) -> list[Packet]:
        shuffled = list(packets)
        self.dice.shuffle(shuffled)
        return super()._stage(stage, shuffled, clock)


def copied(state: dict[tuple[int, int], dict[str, bytes]]) -> dict[tuple[int, int], dict[str, bytes]]:
    return {place: dict(blobs) for place, blobs in state.items()}


def told(state: dict[tuple[int, int], dict[str, bytes]]) -> dict[tuple[int, int, str], list[str]]:
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


def assert_same(one: MemoryBatch, other: MemoryBatch) -> None:
    assert one.outputs.keys() == other.outputs.keys()
    for name, frame in one.outputs.items():
        assert_frame_equal(frame, other.outputs[name], check_row_order=False, check_exact=True)
    assert one.stats.counts == other.stats.counts
    assert one.stats.streams == other.stats.streams


def check_run_again(harness: Harness, dice: random.Random) -> None:
    """Run the next batch of `harness` twice, the second time with everything that a shuffle may change changed."""
    chunks = {name: list(sent) for name, sent in harness._sent.items()}
    before, clock = copied(harness.engine.state), replace(harness.clock, now_ms=harness.now_ms)
    again = ShufflingEngine(plan=harness.pipeline.plan(), state=copied(before))
    again.dice = dice
    for sent in chunks.values():
        # Each partition was sent as one chunk; tasks of their own read them, in any order.
        dice.shuffle(sent)
    first = harness.engine.run(harness._sent, clock)
    second = again.run(chunks, clock)
    assert_same(first, second)
    assert told(harness.engine.state) == told(again.state)
    harness.engine.state = before
    harness.run_batch()


@given(setups(), batches(most=5), st.randoms(use_true_random=False))
def test_a_batch_run_again_gives_the_same_rows_and_state(
    setup: Setup, stream: list[Batch], dice: random.Random
) -> None:
    pipeline, _, _ = setup.pipeline()
    harness = Harness(pipeline, now=T0)
    for batch in stream:
        harness.now_ms += batch.later_ms
        send(harness, batch)
        check_run_again(harness, dice)


def test_a_chain_sees_the_same_to_the_last_bit_in_every_run() -> None:
    """Polars groups in random order, so the same input is run several times in one process."""
    events = sw.stream("events", rows_source("key string, ts long, x double")).event_time("ts")
    first = (
        events.key_by("key")
        .window(sw.hopping("30ms", every="10ms"), name="first")
        .aggregate(total=sw.sum("x"), n=sw.count())
    )
    second = (
        first.key_by("n")
        .window(sw.session("40ms"), name="second")
        .aggregate(keys=sw.collect_list("key"), totals=sw.collect_list("total"), total=sw.sum("total"))
    )
    ended: list[Stream | Output] = [first, first.late, second, second.late, events.dead_letters]
    pipeline = sw.Pipeline("chain", *(output.to(sw.sinks.memory()) for output in ended), key_groups=4)
    dice = random.Random(1)
    rows = [{"key": dice.choice("abcdef"), "ts": dice.randint(0, 99), "x": dice.random()} for _ in range(200)]
    runs = []
    for _ in range(5):
        done = run(pipeline, {"events": rows})
        runs.append((done[first].sort("key", "window_start"), done[second].sort("n", "window_start")))
    for again in runs[1:]:
        for frame, same in zip(runs[0], again, strict=True):
            assert_frame_equal(frame, same, check_exact=True)


def joined_or_deduplicated(kind: str) -> sw.Pipeline:
    names = ("left", "right")
    left, right = (sw.stream(name, rows_source("key long, ts long, n long")).event_time("ts") for name in names)
    mine, other = left.key_by("key"), right.key_by("key")
    step: Results
    if kind == "interval":
        step = mine.join(other, between=("-9ms", "9ms"), how="full", suffixes=("", "_r"))
    elif kind == "as of":
        step = mine.join_as_of(other, versions_ttl="1s", how="left", suffixes=("", "_r"))
    elif kind == "windows":
        window = sw.tumbling("20ms")
        step = mine.window(window).join(other.window(window), how="full", suffixes=("", "_r"))
    ends: list[SideOutput | Output] = [left.dead_letters, right.dead_letters]
    if kind == "first":
        first = left.union(right).key_by("key").deduplicate(within="15ms")
        step, ends = first, [*ends, first.duplicates]
    ends.append(step.late)
    return sw.Pipeline("p", step.to(sw.sinks.memory()), *(each.drop() for each in ends), key_groups=2)


@pytest.mark.parametrize("kind", ["interval", "as of", "windows", "first"])
def test_unsorted_results_of_a_batch_run_again_are_in_the_same_order(kind: str) -> None:
    """Sinks of users may depend on it."""
    dice = random.Random(7)
    harness = Harness(joined_or_deduplicated(kind))
    shown = 0
    for number in range(6):
        for stream, partition in itertools.product(("left", "right"), "01"):
            rows = [{"key": dice.randint(0, 9), "ts": number * 30 + dice.randint(0, 40), "n": n} for n in range(40)]
            harness.send(stream, rows, partition=partition)
        before, clock = copied(harness.engine.state), replace(harness.clock, now_ms=harness.now_ms)
        again = ShufflingEngine(plan=harness.pipeline.plan(), state=before)
        again.dice = dice
        second = again.run({name: dice.sample(sent, len(sent)) for name, sent in harness._sent.items()}, clock)
        first = harness.run_batch()
        for name, frame in first.items():
            shown += frame.height
            assert_frame_equal(frame, second.outputs[name], check_exact=True)
    assert shown > 100

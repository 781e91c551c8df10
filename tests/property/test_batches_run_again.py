"""A batch that is run again gives the same rows and leaves the same state, in whatever order its packets come."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import slackwater as sw
from slackwater.plan.streams import Output, Results, SideOutput, Stream
from slackwater.testing import Harness, rows_source, run
from tests.operators.state.bucket_sizes import tiny_buckets
from tests.property import join_streams as pairs
from tests.property import pattern_runs, streams
from tests.property import test_as_of_joins as as_of_joins
from tests.property import test_deduplication as deduplication
from tests.property import test_frame_process as frame_process
from tests.property import test_interval_joins as interval_joins
from tests.property import test_patterns as patterns
from tests.property import test_process as process
from tests.property import test_window_joins as window_joins
from tests.property.pattern_strategies import sought
from tests.property.run_again import ShufflingEngine, check_run_again, copied
from tests.property.streams import T0


@dataclass(frozen=True)
class Steps:
    """A pipeline with a step of one kind, drawn by a test, and batches for it."""

    pipeline: sw.Pipeline
    batches: Sequence[Any]
    send: Callable[[Harness, Any], None]
    """Puts a batch into the sources of a harness."""
    small: AbstractContextManager[None] = field(default_factory=nullcontext)
    """Makes pieces and buckets so small that they split and merge."""
    in_order: str = ""
    """The output whose rows come in the same order."""
    same_bytes: bool = False


@st.composite
def windowed(draw: st.DrawFn) -> Steps:
    return Steps(draw(streams.setups()).pipeline()[0], draw(streams.batches(most=5)), streams.send)


@st.composite
def joined(draw: st.DrawFn, joins: st.SearchStrategy[interval_joins.Setup | as_of_joins.Setup]) -> Steps:
    join = replace(draw(joins), late=draw(st.sampled_from(["output", "process"])))
    return Steps(join.pipeline()[0], draw(pairs.batches(most=5)), pairs.send, pairs.tiny_pieces())


@st.composite
def windows_joined(draw: st.DrawFn) -> Steps:
    join = draw(window_joins.setups())
    return Steps(join.pipeline()[0], draw(pairs.batches(most=5)), pairs.send, pairs.tiny_pieces())


@st.composite
def deduplicated(draw: st.DrawFn) -> Steps:
    setup = draw(deduplication.SETUPS)
    pipeline, results = setup.pipeline()
    stream, small = draw(streams.batches(most=5)), deduplication.sized(setup)
    return Steps(pipeline, stream, streams.send, small, results.name, same_bytes=True)


@st.composite
def processed(draw: st.DrawFn) -> Steps:
    setup = draw(process.SETUPS)
    pipeline, _, results = setup.pipeline()
    return Steps(pipeline, draw(process.batches(most=5)), process.send, setup.stored(), results.name, same_bytes=True)


@st.composite
def frames_processed(draw: st.DrawFn) -> Steps:
    setup = draw(frame_process.SETUPS)
    pipeline, results = setup.pipeline()
    small = tiny_buckets() if setup.is_crowded else nullcontext()
    return Steps(pipeline, draw(process.batches(most=5)), process.send, small, results.name, same_bytes=True)


@st.composite
def matched(draw: st.DrawFn) -> Steps:
    pipeline, _, results = pattern_runs.pipeline_of(draw(sought()), key_groups=1)
    return Steps(pipeline, draw(patterns.streams()), pattern_runs.send, in_order=results.name)


KINDS = {
    "windows": windowed(),
    "interval joins": joined(interval_joins.setups),
    "as-of joins": joined(as_of_joins.setups),
    "window joins": windows_joined(),
    "deduplications": deduplicated(),
    "processes": processed(),
    "processes of frames": frames_processed(),
    "patterns": matched(),
}


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data(), dice=st.randoms(use_true_random=False))
def test_a_batch_run_again_gives_the_same_rows_and_state(kind: str, data: st.DataObject, dice: random.Random) -> None:
    steps = data.draw(KINDS[kind])
    harness = Harness(steps.pipeline, now=0 if kind == "patterns" else T0)
    with steps.small:
        for batch in steps.batches:
            harness.now_ms += getattr(batch, "later_ms", 0)
            steps.send(harness, batch)
            check_run_again(harness, dice, in_order=steps.in_order, same_bytes=steps.same_bytes)


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

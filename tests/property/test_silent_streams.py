"""Streams that fall silent and return, against a model of the watermark of a join; every batch is run again."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.base.times import MIN_MS
from slackwater.engine.step_times import step_time
from slackwater.eventtime.clock import Clock
from slackwater.plan.streams import Results
from slackwater.testing import Harness, rows_source
from tests.property.run_again import check_run_again

IDLE_MS: Final = 20
Rows = Sequence[tuple[str, int]]
"""Rows of one batch: the stream, and the event time."""


@dataclass
class Stream:
    """The model of one stream with one partition."""

    idle_after_ms: int | None
    advances: bool
    first_ms: int | None = None
    active_ms: int | None = None
    newest_ms: int | None = None
    watermark_ms: int = MIN_MS

    def batch(self, times: list[int], now_ms: int) -> None:
        self.first_ms = now_ms if self.first_ms is None else self.first_ms
        if times:
            self.active_ms, self.newest_ms = now_ms, max([*times, self.newest_ms or 0])
        if self.newest_ms is not None and self.active_ms is not None:
            silent_ms = now_ms - self.active_ms if self.is_idle(now_ms) and self.advances else 0
            self.watermark_ms = max(self.watermark_ms, self.newest_ms + silent_ms)

    def is_idle(self, now_ms: int) -> bool:
        since_ms = self.first_ms if self.active_ms is None else self.active_ms
        assert since_ms is not None
        return self.idle_after_ms is not None and now_ms - since_ms >= self.idle_after_ms


@dataclass
class Model:
    """The model of a join of both: the watermark that it works by in the next batch, and which rows were late."""

    streams: dict[str, Stream]
    watermark_ms: int = MIN_MS
    late: list[tuple[str, int]] = field(default_factory=list)

    def batch(self, rows: Rows, now_ms: int) -> None:
        self.late += [row for row in rows if row[1] < self.watermark_ms]
        for name, stream in self.streams.items():
            stream.batch([ts for each, ts in rows if each == name], now_ms)
        live = [stream.watermark_ms for stream in self.streams.values() if not stream.is_idle(now_ms)]
        every = [stream.watermark_ms for stream in self.streams.values()]
        self.watermark_ms = max(self.watermark_ms, min(live) if live else max(every))


def pipeline(model: Model) -> tuple[sw.Pipeline, Results]:
    left, right = (
        sw.stream(name, rows_source("k long, t long")).event_time(
            "t",
            idle_after=None if each.idle_after_ms is None else f"{each.idle_after_ms}ms",
            when_all_idle="advance" if each.advances else "wait",
        )
        for name, each in model.streams.items()
    )
    pairs = left.key_by("k").join(right.key_by("k"), between=("-5ms", "5ms"), how="full", suffixes=("", "_r"), name="j")
    memory = sw.sinks.memory()
    ends = [pairs.to(memory), pairs.late.to(memory), left.dead_letters.drop(), right.dead_letters.drop()]
    return sw.Pipeline("silent", *ends, key_groups=2), pairs


_SETTINGS: Final = st.tuples(st.sampled_from([None, IDLE_MS, IDLE_MS]), st.booleans())
_ROWS: Final = st.tuples(st.sampled_from(["left", "left", "right"]), st.integers(-15, 5))


@given(
    st.tuples(_SETTINGS, _SETTINGS),
    st.lists(st.tuples(st.integers(0, 15), st.lists(_ROWS, max_size=3)), min_size=1, max_size=10),
    st.randoms(use_true_random=False),
)
def test_a_join_follows_the_streams_that_are_not_silent(
    settings: tuple[tuple[int | None, bool], tuple[int | None, bool]],
    batches: list[tuple[int, list[tuple[str, int]]]],
    dice: random.Random,
) -> None:
    model = Model(
        {
            name: Stream(idle_after_ms=idle_ms, advances=advances and idle_ms is not None)
            for name, (idle_ms, advances) in zip(("left", "right"), settings, strict=True)
        }
    )
    made, pairs = pipeline(model)
    harness = Harness(made, now=1_000)
    [step] = harness.plan.steps
    for later_ms, drawn in batches:
        harness.now_ms += later_ms
        rows = [(name, harness.now_ms + behind) for name, behind in drawn]
        for name in ("left", "right"):
            harness.send(name, [{"k": 1, "t": ts} for each, ts in rows if each == name])
        check_run_again(harness, dice)
        model.batch(rows, harness.now_ms)
        clock = replace(harness.clock, now_ms=harness.now_ms)
        assert step_time(step, clock).watermark_ms == model.watermark_ms
        assert step_time(step, Clock.from_property(clock.to_property())) == step_time(step, clock)
        assert harness.output(pairs.late).height == len(model.late)
    harness.finish()
    late = [ts for _, ts in model.late]
    assert sorted(harness.output(pairs.late)["t"].to_list()) == sorted(late)

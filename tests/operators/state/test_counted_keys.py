"""The estimate of keys in state, against the keys that are there: for each kind of step, and after each batch."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

import slackwater as sw
from slackwater.observe.state_reading.groups import MemoryGroups, StoredStep
from slackwater.observe.state_reading.summary import summarise
from slackwater.operators.state import counted_keys
from slackwater.operators.state.counted_keys import estimated_keys
from slackwater.plan.streams import Results, Stream
from tests.observe.state_reading.held import events, row

GROUPS = 4
BATCHES = 8
USERS = 900


class Remembers(sw.Process):
    """Keeps a number for each key."""

    last = sw.value_state("double", ttl="2m")

    def on_event(self, event: dict[str, Any], ctx: sw.Context) -> None:
        self.last.set(event["v"])


def windowed(window: Any, **options: Any) -> Callable[[Stream], Results]:  # noqa: ANN401  as users give them
    return lambda stream: stream.key_by("user").window(window, name="step", **options).aggregate(n=sw.count())


def deduplicated(keep: Any) -> Callable[[Stream], Results]:  # noqa: ANN401  as above
    return lambda stream: stream.key_by("user").deduplicate(keep=keep, within="3m", name="step")


def processed(order: Any) -> Callable[[Stream], Results]:  # noqa: ANN401  as above
    return lambda stream: stream.key_by("user").process(Remembers(), output="x long", name="step", order=order)


STEPS: dict[str, Callable[[Stream], Results]] = {
    "tumbling": windowed(sw.tumbling("1m"), allowed_lateness="2m"),
    "early panes": windowed(sw.tumbling("1m"), trigger=sw.after_watermark(early=sw.every("10s"))),
    "hopping": windowed(sw.hopping("2m", every="30s")),
    "sliding": windowed(sw.sliding("1m")),
    "session": windowed(sw.session("40s"), allowed_lateness="1m"),
    "count": windowed(sw.count_window(3)),
    "first": deduplicated("first"),
    "first by time": deduplicated("first_by_time"),
    "last by time": deduplicated("last_by_time"),
    "process": processed("arrival"),
    "process in order": processed("event_time"),
    "pattern": lambda stream: stream.key_by("user").match(
        sw.sequence(low="v < 2", high="v > 3", within="2m"), name="step"
    ),
    "join": lambda stream: stream.key_by("user").join(stream.key_by("user"), between=("0s", "2m"), name="step"),
    "join of all": lambda stream: stream.key_by("user").join(
        stream.select(buyer="user").key_by("buyer"), between=("0s", "1m"), how="full", name="step"
    ),
    "join as of": lambda stream: stream.key_by("user").join_as_of(
        stream.key_by("user"), versions_ttl="2m", name="step"
    ),
    "join by window": lambda stream: (
        stream.key_by("user")
        .window(sw.tumbling("1m"))
        .join(stream.key_by("user").window(sw.tumbling("1m")), name="step")
    ),
}


def started(kind: str) -> sw.testing.Harness:
    stream = events()
    results = STEPS[kind](stream)
    ends = [results.to(sw.sinks.memory()), stream.dead_letters.drop()]
    ends += [] if kind in {"count", "process"} else [results.late.drop()]
    ends += [results.output("duplicates").drop()] if kind in {"first", "first by time", "last by time"} else []
    return sw.testing.Harness(sw.Pipeline("held", *ends, key_groups=GROUPS))


def exact(work: sw.testing.Harness) -> int:
    """Return how many keys `slackwater state` finds."""
    steps = [StoredStep(name=each.name, stage=each.stage, spec=each.spec) for each in work.plan.steps]
    [summary] = summarise(MemoryGroups(work.engine.state), steps)
    assert summary.keys is not None
    return summary.keys


@pytest.mark.parametrize("kind", STEPS)
def test_estimate_is_close_to_the_keys_of_a_step_after_each_batch(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted_keys, "READ_BYTES", 1 << 20)
    work, dice = started(kind), random.Random(7)
    most, counted = 0, dict[int, int]()
    for batch in range(BATCHES):
        users = [f"user {dice.randrange(USERS)}" for _ in range(600)]
        work.send("events", [row(user, 40 * batch + dice.random() * 40) for user in users])
        work.run_batch()
        keys = exact(work)
        most = max(most, keys)
        counted |= work.last.keys["step"]
        if batch >= GROUPS:
            assert estimated_keys(counted, GROUPS) == pytest.approx(keys, rel=0.2, abs=3)
    assert most > 200


def test_one_key_group_in_each_batch_counts() -> None:
    work = started("tumbling")
    counted: dict[int, int] = {}
    for batch in range(GROUPS):
        work.send("events", [row(f"user {number}", batch / 10) for number in range(100)])
        work.run_batch()
        [(place, keys)] = work.last.keys["step"].items()
        assert place not in counted
        counted[place] = keys
        assert estimated_keys(counted, GROUPS) == pytest.approx(100, rel=0.5)
    assert estimated_keys(counted, GROUPS) == 100


def test_of_many_keys_the_newest_counts_are_enough() -> None:
    few = {0: 90, 1: 110, 2: 100}
    assert estimated_keys(few, GROUPS) == 400
    assert estimated_keys({3: 1, 0: 9_000, 2: 11_000}, GROUPS) == 44_000
    assert estimated_keys({}, GROUPS) is None


def test_a_group_without_keys_counts_too() -> None:
    work = started("tumbling")
    work.send("events", [row("ada", 0)])
    for _ in range(GROUPS):
        work.run_batch()
        assert len(work.last.keys["step"]) == 1


def test_large_state_is_counted_less_often_and_unchanged_state_never(monkeypatch: pytest.MonkeyPatch) -> None:
    work = started("process")
    monkeypatch.setattr(counted_keys, "READ_BYTES", 3_000)
    counted = []
    for batch in range(8 * GROUPS):
        work.send("events", [row(f"user {number}", batch) for number in range(1_000)])
        work.run_batch()
        counted += [work.last.keys.get("step", {})]
    per_group = work.last.state["step"]["bytes"] / GROUPS
    assert per_group > 3_000
    assert 0 < sum(len(each) for each in counted[GROUPS:]) <= 7 * GROUPS / (per_group // 3_000)
    for _ in range(8 * GROUPS):
        work.run_batch()
        assert work.last.keys == {}

"""NaN in a set, or as a key of a map, is one value, as it is in the keys of joins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import slackwater as sw
from slackwater.testing import Harness


class Seen(sw.Process):
    """Notes numbers and counts each; forgets NaN when it is given a one."""

    numbers = sw.set_state("double", ttl="1h")
    counts = sw.map_state("float", "long", ttl="1h")

    def on_event(self, event: dict[str, Any], ctx: sw.Context) -> Iterator[dict[str, Any]]:
        number = event["x"]
        if number == 1.0:
            self.numbers.remove(np.float32("nan"))
            self.counts.remove(float("nan"))
        had = number in self.numbers and np.float64(number) in self.numbers
        self.numbers.add(number)
        self.counts.set(number, self.counts.get(number, 0) + 1)
        yield {"had": had, "size": len(self.numbers), "n": self.counts.get(float(number)), "of": len(self.counts)}


@pytest.mark.parametrize("restarts", [False, True])
def test_nan_is_found_counted_and_removed(*, restarts: bool) -> None:
    events = sw.stream("events", sw.testing.rows_source("key string, ts long, x double")).event_time("ts")
    results = events.key_by("key").process(Seen(), output="had boolean, size long, n long, of long", name="seen")
    test = Harness(sw.Pipeline("p", results.to(sw.sinks.memory()), events.dead_letters.drop(), key_groups=1))
    for ts, number in enumerate([float("nan"), -float("nan"), 2.0, float("nan"), 1.0]):
        test.send("events", [{"key": "a", "ts": ts, "x": number}]).run_batch()
        if restarts:
            test.restart()
    shown = test.output(results).select("had", "size", "n", "of").rows()
    assert shown == [(False, 1, 1, 1), (True, 1, 2, 1), (False, 2, 1, 2), (True, 2, 3, 2), (False, 2, 1, 2)]

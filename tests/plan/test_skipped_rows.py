"""Rows that an operator skips by name: dead letters with their bytes, and nothing else changes."""

from __future__ import annotations

import pytest

import slackwater as sw
from slackwater.base.errors import DefinitionError
from slackwater.plan.plan import Plan
from slackwater.plan.skipping import skipping
from slackwater.testing import Harness, rows_source


def pipeline() -> sw.Pipeline:
    events = sw.stream("events", rows_source("k string, t long")).event_time("t")
    counts = events.key_by("k").window(sw.tumbling("1s"), name="w").aggregate(n=sw.count())
    ends = [out.to(sw.sinks.memory()) for out in (counts, counts.late, events.dead_letters)]
    return sw.Pipeline("p", *ends)


def ran(*skipped: str) -> Harness:
    harness = Harness(pipeline())
    harness.engine.plan = skipping(harness.engine.plan, skipped)
    for partition in ("0", "1"):
        harness.send("events", [{"k": "x", "t": n} for n in range(5)], partition=partition)
    harness.run_batch()
    harness.finish()
    return harness


def test_skipped_rows_are_dead_letters_and_the_others_are_counted() -> None:
    harness = ran("events/0:1-2", "events/1:4")
    assert harness.output("w")["n"].to_list() == [7]
    dead = harness.output("events.dead_letters").sort("partition", "offset")
    assert dead.select("partition", "offset", "reason", "message").rows() == [
        ("0", 1, "skipped", "skipped by --skip-rows events/0:1-2"),
        ("0", 2, "skipped", "skipped by --skip-rows events/0:1-2"),
        ("1", 4, "skipped", "skipped by --skip-rows events/1:4-4"),
    ]
    assert dead["payload"].to_list() == [b'{"k":"x","t":1}', b'{"k":"x","t":2}', b'{"k":"x","t":4}']


def test_a_batch_that_was_half_delivered_with_other_rows_is_noticed() -> None:
    plan = pipeline().plan()
    assert skipping(plan, ["events/0:1-2"]).fingerprint != plan.fingerprint
    assert skipping(plan, []).fingerprint == plan.fingerprint


@pytest.mark.parametrize(
    "text, code, words",
    [
        ("events/0", "SKIP_ROWS", "try orders/0:1200-1300"),
        ("events/0:5-3", "SKIP_ROWS", "both offsets included"),
        ("event/0:5", "SKIP_ROWS_STREAM", "did you mean `events`"),
        ("7-9", "SKIP_ROWS", "got '7-9'"),
    ],
)
def test_what_names_no_rows_is_refused(text: str, code: str, words: str) -> None:
    plan: Plan = pipeline().plan()
    with pytest.raises(DefinitionError, match=words) as caught:
        skipping(plan, [text])
    assert caught.value.code == code

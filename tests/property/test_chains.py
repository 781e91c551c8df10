"""A chain of two steps counts every row once: what the first step shows, the second is never too early to take."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.eventtime.times import EPOCH
from slackwater.streams import Output, Stream
from slackwater.testing import Harness
from slackwater.windows import Window
from tests.property.model import Model, windows_of
from tests.property.streams import OUT_OF_ORDERNESS_MS, T0, Batch, Setup, batches, send

TRIGGERS = st.sampled_from(
    [
        sw.after_watermark(),
        sw.after_watermark(early=sw.after_count(2)),
        sw.after_watermark(early=sw.every("10ms"), late=sw.after_count(2)),
        sw.after_watermark(late=sw.never()),
        sw.after_count(3),
        sw.every("15ms"),
    ]
)
SECOND = st.sampled_from([sw.tumbling("40ms"), sw.hopping("40ms", every="20ms")])


@given(TRIGGERS, st.sampled_from([0, 15, 60]), SECOND, st.sampled_from(["0ms", "30ms"]), batches())
def test_a_chain_counts_every_row_once(
    trigger: sw.triggers.Trigger, lateness_ms: int, window: Window, lateness: str, stream: list[Batch]
) -> None:
    first_setup = Setup(sw.tumbling("20ms"), lateness_ms, trigger, "discarding")
    events = (
        sw.stream("events", sw.sources.log("nowhere"))
        .decode(sw.formats.json("id long, key string, ts long, keep boolean"))
        .event_time("ts", out_of_orderness=f"{OUT_OF_ORDERNESS_MS}ms", max_ahead="1m")
        .where("keep")
    )
    first = (
        events.key_by("key")
        .window(
            first_setup.window,
            allowed_lateness=f"{lateness_ms}ms",
            trigger=trigger,
            accumulation="discarding",
            name="first",
        )
        .aggregate(n=sw.count())
    )
    second = first.key_by("key").window(window, allowed_lateness=lateness, name="second").aggregate(total=sw.sum("n"))
    ended: list[Stream | Output] = [first.late, second, second.late, events.dead_letters]
    pipeline = sw.Pipeline("chain", *(output.to(sw.sinks.memory()) for output in ended), key_groups=4)
    harness, model = Harness(pipeline, now=T0), Model(first_setup)
    for batch in stream:
        if batch.restart:
            harness.restart()
        harness.now_ms += batch.later_ms
        send(harness, batch)
        model.batch([record for record in batch.records if record.fate == "good"], harness.watermark["events"])
        harness.run_batch()
    harness.finish()

    expected: Counter[tuple[str | None, int]] = Counter()
    for (key, _, end), ids in model.windows.items():
        assert end is not None
        for start, _ in windows_of(window, end - 1):
            expected[key, start] += len(ids)
    last = {
        (row["key"], round((row["window_start"] - EPOCH).total_seconds() * 1000)): row["total"]
        for row in harness.output(second).to_dicts()
    }
    assert harness.output(second.late).height == 0
    assert last == dict(expected)
    assert harness.pieces == 0

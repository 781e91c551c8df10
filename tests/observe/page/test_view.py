"""The record of a batch as the page draws it."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

import slackwater as sw
from slackwater.observe.metrics.job_facts import job_facts
from slackwater.observe.metrics.record import BatchRecord, StreamRecord
from slackwater.observe.page.view import shown_record
from tests.observe.metrics.made_records import record


@pytest.mark.parametrize(
    "ages, bars",
    [
        ((), []),
        (((0, 5),), [[0, 1, 5]]),
        (((0, 5), (100, 2), (110, 1)), [[0, 1, 5], [100, 110, 2], [110, 144, 1]]),
    ],
    ids=["nothing", "one bar", "several"],
)
def test_bars_end_before_the_next_one_begins(ages: tuple[tuple[int, int], ...], bars: list[list[int]]) -> None:
    made = replace(record(0), streams={"orders": StreamRecord(ages=ages)})
    assert shown_record(made)["streams"]["orders"]["ages"] == bars


def test_a_batch_of_nothing_can_be_shown() -> None:
    shown = shown_record(BatchRecord(batch=3, at_ms=5, now_ms=4))
    assert (shown["batch"], shown["at"], shown["rows"], shown["late"]) == (3, 5, 0, 0)


def test_lateness_is_in_bars_of_its_quantiles() -> None:
    bars = shown_record(record(0))["streams"]["orders"]["behind"]
    assert [bar[:2] for bar in bars] == [[0, 1_500], [1_500, 2_500], [2_500, 4_000]]
    assert [bar[2] for bar in bars] == pytest.approx([50, 45, 4])


def test_facts_have_the_gap_of_sessions() -> None:
    rows = sw.stream("clicks", sw.testing.rows_source("user string, t long")).event_time("t", out_of_orderness="1s")
    keyed = rows.key_by("user")
    steps = [
        keyed.window(window, name=name).aggregate(n=sw.count())
        for name, window in (
            ("visits", sw.session("10m", max_length="2h")),
            ("own", sw.session(pl.col("t") % 100)),
            ("minutes", sw.tumbling("1m")),
        )
    ]
    pipeline = sw.Pipeline(
        "p",
        *[step.to(sw.sinks.memory()) for step in steps],
        *[step.late.drop() for step in steps],
        rows.dead_letters.drop(),
    )
    facts = job_facts(pipeline.plan())
    gaps = {step["name"]: (step["gap_ms"], step["size_ms"]) for step in facts["steps"]}
    assert gaps == {"visits": (600_000, None), "own": (None, None), "minutes": (None, 60_000)}

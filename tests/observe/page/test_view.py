"""The record of a batch as the page draws it."""

from __future__ import annotations

from dataclasses import replace

import pytest

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

"""What is shown: definitions in one short line, with what they are called; counts with what they count."""

from __future__ import annotations

import pytest

import slackwater as sw
from benchmarks.growth import growth_table
from slackwater.testing import rows_source

FIGURES = (
    *("keys", "rows_per_batch", "warm_batches", "batch_seconds", "rows_per_s", "panes_per_batch"),
    *("state_rows", "state_mb", "peak_worker_mb"),
)

flights = sw.stream("flights", rows_source("flight string, delay double, at timestamp")).event_time("at")
keyed = flights.key_by("flight")
windowed = keyed.window(sw.tumbling("1m"), name="per_minute")
counts = windowed.aggregate(n=sw.count(), delay=sw.sum("delay"))
pipeline = sw.Pipeline(
    "b", counts.to(sw.sinks.memory()), counts.late.drop(), flights.dead_letters.to(sw.sinks.files("/out"))
)


def test_pipeline_is_shown_with_its_outputs() -> None:
    assert repr(pipeline) == "<Pipeline b, outputs flights.dead_letters, per_minute, per_minute.late>"


def test_streams_and_results_are_shown_by_name() -> None:
    assert repr(flights) == "<Stream flights>"
    assert repr(keyed) == "<KeyedStream flights by flight>"
    assert repr(windowed) == "<WindowedStream per_minute: tumbling 1m>"
    assert repr(counts) == "<WindowResults per_minute>"
    assert repr(counts.final) == "<SideOutput per_minute.final>"


def test_outputs_are_shown_by_name_and_sink() -> None:
    assert repr(counts.late) == "<Output per_minute.late>"
    assert repr(counts.late.drop()) == "<Output per_minute.late to dropped (counted)>"
    assert repr(flights.dead_letters.to(sw.sinks.files("/out"))) == (
        "<Output flights.dead_letters to files /out (Parquet)>"
    )


@pytest.mark.parametrize("size, shown", [(1, "1 open window"), (1_000, "1,000 open windows")])
def test_row_of_the_growth_table_counts_what_grows(size: int, shown: str) -> None:
    rows = growth_table([{"axis": "open windows", "size": size, **dict.fromkeys(FIGURES, 0)}])
    assert list(rows.columns[0].cells) == [shown]

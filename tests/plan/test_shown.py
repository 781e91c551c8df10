"""What is shown: definitions in one short line, with what they are called; counts with what they count."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import polars as pl
import pytest

import slackwater as sw
from benchmarks.growth import growth_table
from slackwater.engine.batch_stats import BatchStats, StreamStats
from slackwater.engine.checkpoint.checkpoint import marked_outputs
from slackwater.engine.next_clock import first_clock
from slackwater.observe.checker import Facts
from slackwater.observe.metrics.report import BatchReport
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


def test_streams_and_results_are_shown_with_their_columns() -> None:
    assert repr(flights) == "<Stream flights: flight string, delay double, at timestamp>"
    assert repr(keyed) == "<KeyedStream flights by flight>"
    assert repr(windowed) == "<WindowedStream per_minute: tumbling 1m>"
    panes = "flight string, window_start timestamp, window_end timestamp, n bigint, delay double"
    assert repr(counts).startswith(f"<WindowResults per_minute: {panes}, ")
    assert repr(counts.where("n > 1").select("n")) == "<WindowResults per_minute: n bigint>"
    assert repr(counts.final).startswith("<SideOutput per_minute.final: flight string, ")


def test_stream_without_columns_says_why() -> None:
    lines = sw.stream("lines", sw.sources.log("nowhere"))
    assert repr(lines) == "<Stream lines: not decoded>"
    assert repr(flights.select("gone")) == "<Stream flights: columns unknown until the pipeline is built>"


def test_wide_stream_is_shown_with_its_first_columns() -> None:
    wide = sw.stream("wide", rows_source(", ".join(f"c{number} long" for number in range(40))))
    assert repr(wide).endswith(", c9 bigint and 30 more>")


@pytest.mark.parametrize(
    "shown, facts",
    [
        (flights, ["Stream flights", "event_time", "flight string, delay double, at timestamp"]),
        (keyed, ["KeyedStream flights", "<th>key</th><td>flight</td>"]),
        (windowed, ["WindowedStream per_minute", "<th>window</th><td>tumbling 1m</td>"]),
        (counts, ["WindowResults per_minute", "step per_minute of flights by flight", "n bigint"]),
    ],
)
def test_notebook_shows_streams_and_results_as_tables(shown: Any, facts: list[str]) -> None:  # noqa: ANN401  any of them
    html = shown._repr_html_()
    assert html.startswith("<table><caption>")
    assert [fact for fact in facts if fact not in html] == []


def test_notebook_escapes_what_it_shows() -> None:
    hostile = sw.stream("s", rows_source({"<script>": pl.Int64, "t": pl.Int64})).event_time("t")
    assert "<script>" not in hostile._repr_html_()
    assert "&lt;script&gt; bigint" in hostile._repr_html_()


def test_findings_are_shown_as_the_command_prints_them_and_as_a_table() -> None:
    findings = pipeline.check(facts=Facts(cores=1))
    assert repr(findings) == str(findings)
    assert all(repr(each).startswith(f"<{each.severity} [{each.code}] ") for each in findings)
    html = findings._repr_html_()
    assert html.startswith(f"<table><caption>b: {findings.summary}</caption>")
    assert all(each.code in html for each in findings)


def test_outcome_of_a_run_in_memory_is_shown_with_its_rows() -> None:
    outcome = sw.testing.run(
        pipeline, {"flights": [{"flight": "a", "delay": 1.0, "at": datetime(2026, 3, 1, tzinfo=UTC)}]}
    )
    assert repr(outcome) == "<Outcome b: flights.dead_letters 0 rows, per_minute 1 row, per_minute.late 0 rows>"
    assert "<th>per_minute</th><td>1 row</td>" in outcome._repr_html_()


def test_report_of_a_batch_is_shown_in_figures() -> None:
    clock = first_clock(pipeline.plan())
    stats = BatchStats(streams={"flights": StreamStats(rows=1_200, dead=2)}, counts={"per_minute": Counter(late=3)})
    report = BatchReport(batch=7, seconds=1.234, stats=stats, clock=clock, next_clock=clock, rows_out={"per_minute": 4})
    assert repr(report) == (
        "<batch 7: 1,200 rows in, out 4 of per_minute, late 3, dead letters 2, watermark none yet, 1.23 s>"
    )
    assert "<th>dead letters</th><td>2</td>" in report._repr_html_()


def test_outputs_are_shown_by_name_and_sink() -> None:
    assert repr(counts.late) == "<Output per_minute.late>"
    assert repr(counts.late.drop()) == "<Output per_minute.late to dropped (counted)>"
    assert repr(flights.dead_letters.to(sw.sinks.files("/out"))) == (
        "<Output flights.dead_letters to files /out (Parquet)>"
    )


def test_finished_run_names_the_first_of_its_sinks_and_the_number_of_the_others() -> None:
    ends = [flights.to(sw.sinks.files(f"/out/{number:02d}")) for number in range(15)]
    many = sw.Pipeline("many", *ends, flights.dead_letters.drop())
    assert marked_outputs(many.plan()) == (
        " and change the outputs, currently files /out/00 (Parquet), files /out/01 (Parquet), files /out/02 (Parquet) "
        "and 12 more"
    )


@pytest.mark.parametrize("size, shown", [(1, "1 open window"), (1_000, "1,000 open windows")])
def test_row_of_the_growth_table_counts_what_grows(size: int, shown: str) -> None:
    rows = growth_table([{"axis": "open windows", "size": size, **dict.fromkeys(FIGURES, 0)}])
    assert list(rows.columns[0].cells) == [shown]

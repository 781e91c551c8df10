"""Every metric, as a scrape shows it, against the records it comes from."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

import slackwater as sw
from slackwater.base.version import VERSION
from slackwater.observe.metrics.families import FAMILIES
from slackwater.observe.metrics.merging import merged
from slackwater.observe.metrics.monitor import Live
from slackwater.observe.metrics.prometheus import Collector, serving
from slackwater.observe.metrics.runs import Run
from tests.observe.metrics.made_records import START_MS, record

Samples = dict[tuple[str, ...], float]


@pytest.fixture(scope="module")
def scraped() -> Iterator[dict[str, Samples]]:
    collector = Collector()
    with serving(collector, port=0) as port:
        assert parsed(port) == {}
        records = [record(0, rows=60), record(1)]
        run = Run(starts=3, since_ms=START_MS)
        live = Live(pipeline="shop", run=run, last=records[-1], total=merged(records), export_failures=7)
        collector.note(live)
        yield parsed(port)


def parsed(port: int) -> dict[str, Samples]:
    """Return each metric's samples by the values of its labels, in the order of their names, without the pipeline."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    found: dict[str, Samples] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            assert sample.labels["pipeline"] == "shop"
            labels = tuple(value for name, value in sorted(sample.labels.items()) if name != "pipeline")
            found.setdefault(sample.name, {})[labels] = sample.value
    return found


NOW_S = START_MS / 1_000 + 1
QUANTILES = {"0.5": 1.5, "0.95": 2.5, "0.99": 4.0}
TRUTH: dict[str, Samples] = {
    "slackwater_info": {(VERSION,): 1},
    "slackwater_batches_total": {(): 2},
    "slackwater_batch_seconds": {
        ("front",): 0.15,
        ("keyed",): 0.1,
        ("sinks",): 0.125,
        ("clock",): 0.025,
        ("total",): 0.4,
    },
    "slackwater_spark_seconds": {("queryPlanning",): 0.05, ("addBatch",): 0.4},
    "slackwater_rows_total": {("orders",): 160},
    "slackwater_rows_out_total": {("orders.window",): 18, ("orders",): 160},
    "slackwater_late_rows_total": {("orders.window",): 2},
    "slackwater_refired_rows_total": {("orders.window",): 6},
    "slackwater_ignored_rows_total": {("orders.window",): 4},
    "slackwater_filtered_rows_total": {("orders",): 6, ("orders.window",): 10},
    "slackwater_dead_letters_total": {("malformed", "orders"): 4, ("failed", "orders.window"): 2},
    "slackwater_watermark_timestamp_seconds": {("orders",): NOW_S - 30},
    "slackwater_watermark_lag_seconds": {("orders",): 30},
    "slackwater_partition_watermark_lag_seconds": {("orders-0", "orders"): 15, ("orders-1", "orders"): 30},
    "slackwater_partition_idle": {("orders-0", "orders"): 0, ("orders-1", "orders"): 0, ("orders-2", "orders"): 1},
    "slackwater_stream_set_aside": {("orders",): 0},
    "slackwater_partition_holds_watermark": {
        ("orders-0", "orders"): 0,
        ("orders-1", "orders"): 1,
        ("orders-2", "orders"): 0,
    },
    "slackwater_watermark_held_since_timestamp_seconds": {("orders",): START_MS / 1_000},
    "slackwater_consumer_lag_records": {("orders-0", "orders"): 40, ("orders-1", "orders"): 2},
    "slackwater_consumer_lag_growth": {("orders-0", "orders"): 2.5, ("orders-1", "orders"): -0.5},
    "slackwater_latency_seconds": {
        **{(output, q, "event"): value for output in ("orders.window", "orders") for q, value in QUANTILES.items()},
        ("orders", "0.5", "ingestion"): 0.5,
        ("orders", "0.95", "ingestion"): 0.75,
        ("orders", "0.99", "ingestion"): 0.875,
    },
    "slackwater_state_bytes": {("orders.window",): 5_000},
    "slackwater_state_rows": {("orders.window",): 50},
    "slackwater_state_keys_estimate": {("orders.window",): 30},
    "slackwater_state_open_rows": {("orders.window",): 40},
    "slackwater_largest_key_share": {("orders.window",): 0.25},
    "slackwater_sink_seconds": {("orders to files",): 0.1},
    "slackwater_sink_retries_total": {("orders to files",): 4},
    "slackwater_sink_wait_seconds_total": {("orders to files",): 0.06},
    "slackwater_starts_total": {(): 3},
    "slackwater_rows_ahead_of_clock_total": {("orders",): 2},
    "slackwater_lateness_seconds": {(q, "orders"): value for q, value in QUANTILES.items()},
    "slackwater_out_of_orderness_seconds": {("orders",): 5},
    "slackwater_stream_waits": {("orders",): 1},
    "slackwater_lookup_seconds": {(q, "orders.look_up"): value for q, value in QUANTILES.items()},
    "slackwater_lookup_requests_total": {("orders.look_up",): 10},
    "slackwater_lookup_keys_total": {("hit", "orders.look_up"): 14, ("miss", "orders.look_up"): 10},
    "slackwater_lookup_errors_total": {("orders.look_up",): 2},
    "slackwater_last_batch_timestamp_seconds": {(): NOW_S + 0.4},
    "slackwater_export_failures_total": {(): 7},
}


@pytest.mark.parametrize("name", TRUTH)
def test_metric_has_the_figures_of_the_records(name: str, scraped: dict[str, Samples]) -> None:
    assert scraped[name] == pytest.approx(TRUTH[name])


def test_there_is_no_metric_besides(scraped: dict[str, Samples]) -> None:
    assert set(scraped) == set(TRUTH) == {"slackwater_info", *(family.name for family in FAMILIES)}


def test_port_that_is_taken_is_an_error_with_its_number() -> None:
    with serving(Collector(), port=0) as port:
        taken = rf"127\.0\.0\.1:{port} cannot be used"
        with pytest.raises(sw.RunError, match=taken) as raised, serving(Collector(), port=port):
            pass
    assert raised.value.code == "METRICS_PORT"

"""`slackwater run --page`, `--metrics-port`, `--metrics-host` and `--metrics-file`."""

from __future__ import annotations

import json
import re
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

import slackwater as sw
from slackwater.cli.main import app
from slackwater.cli.metrics import Takers, recording
from slackwater.metrics.monitor import Live, Monitor, OnRecord
from slackwater.metrics.runs import Run
from tests.unit.metrics.made_records import START_MS, record

ROWS = sw.stream("orders", sw.testing.rows_source("t long")).event_time("t")
PLAN = sw.Pipeline("shop", ROWS.to(sw.sinks.memory()), ROWS.dead_letters.drop()).plan()
LIVE = Live(pipeline="shop", run=Run(starts=1, since_ms=START_MS), last=record(0), total=record(0))


def test_nobody_who_wants_records_gets_none() -> None:
    with recording(PLAN, say=print) as takers:
        assert (takers.on_record, takers.on_run) == (None, None)


def test_port_and_file_get_every_record(tmp_path: Path) -> None:
    said: list[str] = []
    with recording(PLAN, port=0, file=tmp_path / "figures.jsonl", say=said.append) as takers:
        on_record = taker(takers)
        on_record(LIVE)
        [address] = re.findall(r"http://127\.0\.0\.1:\d+/metrics", said[0])
        assert 'slackwater_rows_total{pipeline="shop",stream="orders"} 100.0' in got(address)
    [line] = (tmp_path / "figures.jsonl").read_text().splitlines()
    assert json.loads(line)["batch"] == 0


def test_page_shows_every_record_and_serves_metrics() -> None:
    said: list[str] = []
    with recording(PLAN, page=("127.0.0.1", 0), say=said.append) as takers:
        on_record = taker(takers)
        [address] = re.findall(r"page: (http://127\.0\.0\.1:\d+/)", said[0])
        assert json.loads(got(f"{address}api/job"))["state"] == "starting"
        on_record(LIVE)
        assert json.loads(got(f"{address}api/job"))["state"] == "running"
        assert [each["batch"] for each in json.loads(got(f"{address}api/history"))] == [0]
        assert 'slackwater_rows_total{pipeline="shop",stream="orders"} 100.0' in got(f"{address}metrics")


def test_start_of_a_run_is_seen_before_its_first_batch_and_is_no_record(tmp_path: Path) -> None:
    said: list[str] = []
    with recording(PLAN, port=0, file=tmp_path / "figures.jsonl", say=said.append) as takers:
        [address] = re.findall(r"http://127\.0\.0\.1:\d+/metrics", said[0])
        Monitor(plan=PLAN, checkpoint=tmp_path, on_run=takers.on_run).close()
        shown = got(address)
    assert 'slackwater_starts_total{pipeline="shop"} 1.0' in shown
    assert 'slackwater_rows_total{pipeline="shop",stream="orders"} 0.0' in shown
    assert "slackwater_last_batch_timestamp_seconds" not in shown
    assert (tmp_path / "figures.jsonl").read_text() == ""


def taker(takers: Takers) -> OnRecord:
    assert takers.on_record is not None
    return takers.on_record


def got(address: str) -> str:
    with urllib.request.urlopen(address, timeout=10) as answer:  # noqa: S310  our own
        return str(answer.read().decode())


def test_host_without_a_port_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "shop.py"
    file.write_text(
        "import slackwater as sw\n"
        "rows = sw.stream('rows', sw.sources.log('log')).decode(sw.formats.json('t long')).event_time('t')\n"
        "pipeline = sw.Pipeline('shop', rows.to(sw.sinks.memory()), rows.dead_letters.drop())\n"
    )
    raised = CliRunner().invoke(app, ["run", str(file), "--metrics-host", "0.0.0.0"]).exception  # noqa: S104  refused
    assert isinstance(raised, sw.RunError)
    assert raised.code == "METRICS_HOST"


def test_missing_client_is_an_error_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "prometheus_client", None)
    with (
        pytest.raises(sw.RunError, match=r"pip install 'slackwater\[monitor\]'"),
        recording(PLAN, port=0, say=print),
    ):
        pass

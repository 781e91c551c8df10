"""`slackwater run --page`, `--metrics-port`, `--metrics-host` and `--metrics-file`."""

from __future__ import annotations

import json
import re
import urllib.request
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

import slackwater as sw
from slackwater.connectors.kafka.broker import free_port
from slackwater.observe.metrics.monitor import Live, Monitor, OnRecord
from slackwater.observe.metrics.runs import Run
from slackwater.observe.page.recording import Takers, recording
from slackwater.plan.plan import Plan
from slackwater.tools.cli.main import app
from tests.observe.metrics.made_records import START_MS, record

ROWS = sw.stream("orders", sw.testing.rows_source("t long")).event_time("t")
PIPELINE = sw.Pipeline("shop", ROWS.to(sw.sinks.memory()), ROWS.dead_letters.drop())
PLAN = PIPELINE.plan()
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


@pytest.mark.parametrize("way", ["run", "start"])
def test_job_from_python_takes_the_same_receivers(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown: list[str] = []

    def made(plan: Plan, _options: object, *, on_record: OnRecord, **_: Any) -> Any:  # noqa: ANN401  what stands in for a job
        job = SimpleNamespace(plan=plan, on_record=on_record, is_finished=True)

        def ran() -> None:
            job.on_record(LIVE)
            shown.append(got(f"http://127.0.0.1:{port}/metrics"))

        job.run = ran
        if way == "run":
            ran()
        return job

    monkeypatch.setattr("slackwater.spark.start.run_pipeline", made)
    monkeypatch.setattr("slackwater.spark.handle.make_job", made)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    port, file = free_port(), tmp_path / "figures.jsonl"
    if way == "run":
        PIPELINE.run(metrics_port=port, metrics_file=str(file))
        assert capsys.readouterr().out == f"metrics at http://127.0.0.1:{port}/metrics\n"
    else:
        PIPELINE.start(metrics_port=port, metrics_file=file).wait()
    assert 'slackwater_rows_total{pipeline="shop",stream="orders"} 100.0' in shown[0]
    assert json.loads(file.read_text())["batch"] == 0


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

"""Jobs on the page from their checkpoints: several of one machine, some running elsewhere, some dead."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

import slackwater as sw
from slackwater.engine.checkpoint.checkpoint import open_checkpoint
from slackwater.engine.checkpoint.lock import held
from slackwater.observe.metrics.history import history_folder
from slackwater.observe.metrics.monitor import Monitor
from slackwater.observe.metrics.samples import KeptSamples
from slackwater.observe.page.server import PageServer
from slackwater.observe.page.stored import Following, StoredJob
from slackwater.plan.plan import Plan
from slackwater.tools.cli.main import app
from slackwater.tools.cli.status import job_folders
from tests.observe.metrics.made_records import record
from tests.observe.page.test_app import asked

SAMPLE = {"kind": "dead", "step": "decode", "reason": "malformed", "source": "orders", "partition": "0", "offset": 3}


def plan_of(name: str) -> Plan:
    rows = sw.stream("orders", sw.testing.rows_source("k string, t long")).event_time("t", out_of_orderness="5s")
    counts = rows.key_by("k").window(sw.tumbling("1m"), name="per_minute").aggregate(n=sw.count())
    return sw.Pipeline(name, counts.to(sw.sinks.memory()), counts.late.drop(), rows.dead_letters.drop()).plan()


@contextmanager
def running(checkpoint: Path, name: str, *batches: int) -> Iterator[Monitor]:
    """Have a job with some batches that holds its checkpoint inside."""
    plan = plan_of(name)
    with held(checkpoint):
        open_checkpoint(checkpoint, plan, partitions=2)
        with closing(Monitor(plan=plan, checkpoint=checkpoint)) as monitor:
            for batch in batches:
                monitor.history.append(record(batch))
            yield monitor


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / ".slackwater"


def test_all_jobs_are_on_one_page_those_that_run_and_those_that_do_not(home: Path) -> None:
    with running(home / "alerts", "alerts", 0, 1):
        pass
    with running(home / "orders", "orders", 0):
        jobs = [StoredJob(folder) for folder in job_folders([], [])]
        with PageServer([job.feed for job in jobs]) as server:
            assert json.loads(asked(server, "/api/jobs")[2]) == [
                {"name": "alerts", "state": "stopped"},
                {"name": "orders", "state": "running"},
            ]
            assert len(json.loads(asked(server, "/api/history?job=alerts")[2])) == 2
            assert json.loads(asked(server, "/api/job?job=orders")[2])["starts"] == 1
            assert asked(server, "/api/job?job=gone")[0] == 404


def test_running_job_is_followed_until_it_stops(home: Path) -> None:
    with running(home / "orders", "orders", 0) as monitor:
        job = StoredJob(home / "orders")
        monitor.history.append(record(1))
        monitor.samples.add([{**SAMPLE, "batch": 1, "at": record(1).at_ms}])
        for _ in range(2):
            job.look()
        assert [each["batch"] for each in job.feed.records] == [0, 1]
        assert [each["offset"] for each in job.feed.samples] == [3]
        assert job.feed.job["state"] == "running"
    job.look()
    assert job.feed.job["state"] == "stopped"
    with running(home / "orders", "orders", 2):
        job.look()
        assert (job.feed.job["state"], job.feed.job["starts"]) == ("running", 2)
        assert [each["batch"] for each in job.feed.records] == [0, 1, 2]


def test_jobs_are_looked_at_in_the_background_and_one_that_is_gone_disturbs_nobody(home: Path) -> None:
    with running(home / "orders", "orders", 0) as monitor, running(home / "zombie", "zombie", 0):
        jobs = [StoredJob(home / "zombie"), StoredJob(home / "orders")]
        (home / "zombie" / "slackwater" / "manifest.json").unlink()
        with Following(jobs, every_s=0.01):
            monitor.history.append(record(1))
            patience = time.monotonic() + 20
            while len(jobs[1].feed.records) < 2:
                assert time.monotonic() < patience
                time.sleep(0.01)


def test_data_is_shown_only_if_it_is_asked_for(home: Path) -> None:
    with running(home / "orders", "orders", 0):
        kept = KeptSamples(folder=history_folder(home / "orders"), shows_data=True)
        kept.add([{**SAMPLE, "at": 1, "batch": 0, "data": "4929-1234", "message": "at 4929"}])
    assert "4929" not in str(StoredJob(home / "orders").feed.samples)
    assert StoredJob(home / "orders", show_data=True).feed.samples[0]["data"] == "4929-1234"
    for options, is_there in (([], False), (["--show-data"], True)):
        done = CliRunner().invoke(app, ["page", "--out", "page.html", *options])
        assert done.exit_code == 0
        assert ("4929-1234" in Path("page.html").read_text()) is is_there


def test_one_file_is_of_one_job_and_where_it_can_be_written(home: Path, tmp_path: Path) -> None:
    for name in ("alerts", "orders"):
        with running(home / name, name, 0):
            pass
    both = CliRunner().invoke(app, ["page", "--out", str(tmp_path / "page.html")]).exception
    assert isinstance(both, sw.RunError)
    assert (both.code, "alerts, orders" in both.message) == ("PAGE_OUT_ONE", True)
    one = ["page", "--checkpoint", str(home / "orders"), "--out"]
    nowhere = CliRunner().invoke(app, [*one, str(tmp_path / "nowhere" / "page.html")]).exception
    assert isinstance(nowhere, sw.RunError)
    assert nowhere.code == "PAGE_OUT"
    assert CliRunner().invoke(app, [*one, str(tmp_path / "page.html")]).exit_code == 0


def test_status_is_asked_of_a_page(home: Path) -> None:
    with running(home / "orders", "orders", 0, 1):
        job = StoredJob(home / "orders")
        with PageServer([job.feed]) as server:
            said = CliRunner().invoke(app, ["status", "--url", server.address]).output
            plain = CliRunner().invoke(app, ["status", "--url", server.address, "--json"]).output
    assert said.startswith("orders  running, 1 start\n  batch 1, delivered ")
    assert (
        ": 100 rows in 0.40 s\n  orders: watermark 2025-12-31 23:59:31 UTC, 30s behind, held by partition orders-1\n"
        in said
    )
    assert json.loads(plain)[0]["latest"]["batch"] == 1


@pytest.mark.parametrize("url", ["orders", "http://127.0.0.1:9", "ftp://host"])
def test_address_without_a_page_is_an_error(url: str) -> None:
    raised = CliRunner().invoke(app, ["status", "--url", url]).exception
    assert isinstance(raised, sw.RunError)
    assert raised.code == "STATUS_URL"

"""A batch that fails again and again: its number, its rows and its error, until it is committed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

import slackwater as sw
from slackwater.engine.checkpoint.checkpoint import FORMAT
from slackwater.observe.metrics.failing import FAILING, FailingBatch, failing_batch, note_failure
from slackwater.observe.metrics.history import history_folder
from slackwater.observe.metrics.monitor import Live
from slackwater.observe.metrics.runs import Run
from slackwater.observe.metrics.status import read_status
from slackwater.observe.metrics.status_text import print_status
from slackwater.observe.page.recording import recording
from slackwater.observe.page.stored import stored_feed
from slackwater.testing import rows_source
from slackwater.tools.cli.main import app
from tests.observe.metrics.made_records import START_MS, record
from tests.sealing import write_manifest

ROWS = ["orders/eu/0:1200-1300", "orders/us/0:7-7"]


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    path = tmp_path / "shop"
    facts = {"format": FORMAT, "pipeline": "shop", "incarnation": "i", "key_groups": 8, "partitions": 1}
    write_manifest(path, facts | {"sources": {}, "steps": {}, "finished": False})
    return path


def fail(
    checkpoint: Path, batch: int, *, code: str = "WORKER_CRASHED", rows: list[str] = ROWS, after_ms: int = 0
) -> None:
    note_failure(checkpoint, batch=batch, code=code, rows=rows, now_ms=START_MS + after_ms)


def commit(checkpoint: Path, batch: int) -> None:
    (checkpoint / "commits").mkdir(exist_ok=True)
    (checkpoint / "commits" / str(batch)).touch()


def test_failures_of_one_batch_are_counted_until_it_is_committed(checkpoint: Path) -> None:
    commit(checkpoint, 4)
    fail(checkpoint, 5)
    fail(checkpoint, 5, code="STEP_FAILED", after_ms=60_000)
    assert read_status(checkpoint).failing == FailingBatch(
        batch=5, failures=2, since_ms=START_MS, at_ms=START_MS + 60_000, code="STEP_FAILED", rows=ROWS
    )
    commit(checkpoint, 5)
    assert read_status(checkpoint).failing is None
    fail(checkpoint, 6)
    found = failing_batch(checkpoint)
    assert found is not None
    assert (found.batch, found.failures) == (6, 1)


def test_status_shows_the_batch_its_rows_and_the_error(checkpoint: Path) -> None:
    fail(checkpoint, 0)
    fail(checkpoint, 0)
    console = Console(width=160)
    with console.capture() as text:
        print_status([read_status(checkpoint)], console)
    shown = text.get()
    assert "batch 0 has failed 2 times, last at " in shown
    assert "with WORKER_CRASHED; it reads\n  orders/eu/0:1200-1300\n  orders/us/0:7-7\n" in shown
    printed = CliRunner().invoke(app, ["status", "--checkpoint", str(checkpoint), "--json"])
    assert json.loads(printed.stdout)[0]["failing"]["rows"] == ROWS


def test_the_page_shows_the_batch_its_rows_and_the_error(checkpoint: Path) -> None:
    fail(checkpoint, 3)
    job = stored_feed(checkpoint).job
    assert job["failing"]["rows"] == ROWS
    assert (
        "batch 3 has failed 1 time, last with WORKER_CRASHED; it reads orders/eu/0:1200-1300, orders/us/0:7-7"
        in str(job["notice"])
    )


def test_of_very_many_partitions_the_first_are_kept_and_fewer_are_shown(checkpoint: Path) -> None:
    fail(checkpoint, 0, rows=[f"orders/{number}:0-9" for number in range(5_000)])
    console = Console(width=160)
    with console.capture() as text:
        print_status([read_status(checkpoint)], console)
    assert "and 4,980 more ranges" in text.get()
    assert (history_folder(checkpoint) / FAILING).stat().st_size < 50_000


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"batch": "x"}'])
def test_a_damaged_record_is_no_record(checkpoint: Path, content: str) -> None:
    fail(checkpoint, 0)
    (history_folder(checkpoint) / FAILING).write_text(content)
    assert failing_batch(checkpoint) is None
    fail(checkpoint, 0)
    assert failing_batch(checkpoint) is not None


def test_the_page_of_the_next_run_shows_it_until_the_first_batch(checkpoint: Path) -> None:
    fail(checkpoint, 0)
    events = sw.stream("events", rows_source("id long"))
    plan = sw.Pipeline("shop", events.to(sw.sinks.memory()), events.dead_letters.drop()).plan()
    first = record(0)
    live = Live(pipeline="shop", run=Run(starts=2, since_ms=START_MS), last=first, total=first)
    with recording(plan, page=("127.0.0.1", 0), environ={}, say=lambda _: None) as takers:
        page = takers.page
        assert page is not None
        assert takers.on_run is not None
        assert takers.on_record is not None
        takers.on_run(replace(live, failing=failing_batch(checkpoint)))
        assert page._feed.job["failing"]["rows"] == ROWS
        assert page._feed.job["notice"].startswith("batch 0 has failed 1 time, last with WORKER_CRASHED")
        takers.on_record(live)
        assert (page._feed.job["failing"], page._feed.job["notice"]) == (None, "")

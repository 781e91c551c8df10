"""The status of a job from its checkpoint: its state, and every figure against the records it comes from."""

from __future__ import annotations

import json
import os
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

import slackwater as sw
from slackwater.base.durations import roughly
from slackwater.engine.checkpoint import lock
from slackwater.engine.checkpoint.checkpoint import FORMAT
from slackwater.engine.checkpoint.lock import Owner, held, lock_folder
from slackwater.observe.metrics.history import History, history_folder
from slackwater.observe.metrics.job_status import JobStatus
from slackwater.observe.metrics.record import BatchRecord, StreamRecord
from slackwater.observe.metrics.runs import begin_run, last_run
from slackwater.observe.metrics.status import read_status, status_of
from slackwater.observe.metrics.status_text import print_status, size
from slackwater.tools.cli.main import app
from tests.observe.metrics.made_records import QUANTILES, START_MS, record
from tests.sealing import content_of, reseal, write_manifest

HEAD = JobStatus(pipeline="shop", checkpoint="/jobs/shop", state="running", since_ms=START_MS, starts=2)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    path = tmp_path / "shop"
    facts = {"format": FORMAT, "pipeline": "shop", "incarnation": "i", "key_groups": 8, "partitions": 1}
    facts |= {"sources": {}, "steps": {}, "finished": False}
    write_manifest(path, facts)
    return path


def keep(checkpoint: Path, *records: BatchRecord) -> None:
    with closing(History(folder=history_folder(checkpoint))) as history:
        for each in records:
            history.append(each)


def died(checkpoint: Path, *, machine: str | None = None, at_s: float = START_MS / 1_000) -> None:
    """Leave a lock as a killed driver does: of a process that is gone, or of another machine."""
    owner = replace(Owner.this(), born="long ago")
    owner = owner if machine is None else replace(owner, machine=machine)
    lock_folder(checkpoint).mkdir()
    file = lock_folder(checkpoint) / "1"
    file.write_text(json.dumps(asdict(owner)))
    os.utime(file, (at_s, at_s))


def test_job_that_never_ran_is_new(checkpoint: Path) -> None:
    assert read_status(checkpoint).state == "new"


def test_job_that_holds_its_lock_runs_since_its_start(checkpoint: Path) -> None:
    with held(checkpoint):
        begin_run(history_folder(checkpoint), START_MS)
        status = read_status(checkpoint)
    assert (status.state, status.since_ms, status.starts) == ("running", START_MS, 1)
    assert f"process {os.getpid()}" in status.owner


def test_job_that_released_its_lock_is_stopped_since_then(checkpoint: Path) -> None:
    with held(checkpoint):
        pass
    os.utime(lock_folder(checkpoint) / "1", (1_000, 1_000))
    status = read_status(checkpoint)
    assert (status.state, status.since_ms) == ("stopped", 1_000_000)


def test_job_at_the_end_of_its_input_is_finished(checkpoint: Path) -> None:
    with held(checkpoint):
        pass
    manifest = checkpoint / "slackwater" / "manifest.json"
    reseal(manifest, {**content_of(manifest), "finished": True})
    assert read_status(checkpoint).state == "finished"


def test_job_whose_process_is_gone_is_dead_since_its_last_heartbeat(checkpoint: Path) -> None:
    died(checkpoint)
    keep(checkpoint, record(0), record(1))
    status = read_status(checkpoint)
    assert (status.state, status.since_ms) == ("dead", START_MS)
    assert (status.batch, status.rows, status.streams["orders"].watermark_lag_ms) == (1, 200, 30_400)


@pytest.mark.parametrize("silent_s, state", [(lock.STALE_S - 1, "running"), (lock.STALE_S, "dead")])
def test_job_of_another_machine_is_dead_after_a_silence(checkpoint: Path, silent_s: float, state: str) -> None:
    died(checkpoint, machine="another")
    assert read_status(checkpoint, clock_s=lambda: START_MS / 1_000 + silent_s).state == state


def test_starts_are_counted_over_restarts_and_a_damaged_count_begins_again(tmp_path: Path) -> None:
    assert [begin_run(tmp_path, now_ms).starts for now_ms in (5, 6, 7)] == [1, 2, 3]
    assert last_run(tmp_path).since_ms == 7
    (tmp_path / "runs.json").write_text("{")
    assert begin_run(tmp_path, 8).starts == 1


def test_folder_that_is_no_checkpoint_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(sw.RunError, match="with --checkpoint") as raised:
        read_status(tmp_path)
    assert raised.value.code == "STATUS_NOWHERE"


def test_totals_are_of_the_last_run_and_rates_of_the_last_minute() -> None:
    records = [record(0), *(record(batch, run=2, state_bytes=5_000 + 10 * batch) for batch in range(1, 101))]
    now_ms = records[-1].at_ms + 600
    status = status_of(records, HEAD, now_ms=now_ms)
    assert (status.batch, status.batches, status.rows, status.rows_out) == (100, 100, 10_000, 10_900)
    # Batches 41 to 100 were delivered in the last minute, in the 60.6 s since batch 40.
    assert status.rows_per_s == pytest.approx(60 * 100 / 60.6)
    assert status.batch_s == pytest.approx(0.4)
    assert status.phases_s == pytest.approx({"front": 0.15, "keyed": 0.1, "sinks": 0.125, "clock": 0.025})
    stream = status.streams["orders"]
    assert (stream.rows, stream.ahead_of_clock, stream.lag, stream.lag_per_s) == (10_000, 100, 42, 2.0)
    assert (stream.watermark_ms, stream.watermark_lag_ms) == (START_MS + 70_000, 31_000)
    assert (stream.held_by, stream.held_since_ms, stream.held_back_ms) == ("orders-1", START_MS, 12_000)
    assert (stream.idle, stream.waits_for, stream.waits_ms) == (["orders-2"], "payments", 700)
    assert (stream.lateness_s, stream.out_of_orderness_ms) == (QUANTILES, 5_000)
    step = status.steps["orders.window"]
    assert step.counts == {"on_time": 9_600, "refired": 300, "late": 100, "panes": 900, "ignored": 200, "filtered": 500}
    assert (step.state_bytes, step.state_rows, step.open_rows, step.state_keys) == (6_000, 50, 40, 30)
    assert step.bytes_per_hour == pytest.approx(36_000)
    assert (status.outputs["orders"].rows, status.outputs["orders"].event_s) == (10_000, QUANTILES)
    sink = status.sinks["orders to files"]
    assert (sink.rows, sink.retries, sink.seconds, sink.last_batch) == (10_000, 200, 0.1, 100)
    assert status.dead == {"orders": {"malformed": 200}, "orders.window": {"failed": 100}}


def test_job_without_a_batch_in_the_last_minute_has_no_throughput() -> None:
    status = status_of([record(0)], HEAD, now_ms=START_MS + 600_000)
    assert (status.rows_per_s, status.batch_s, status.rows) == (0.0, 0.0, 100)
    assert status.streams["orders"].watermark_lag_ms == 630_000


def test_latency_of_an_output_is_that_of_its_last_rows() -> None:
    empty = record(1)
    outputs = {name: replace(each, rows=0, event_s={}, ingestion_s={}) for name, each in empty.outputs.items()}
    status = status_of([record(0), replace(empty, outputs=outputs)], HEAD, now_ms=START_MS + 2_000)
    assert status.outputs["orders"].event_s == QUANTILES


def test_text_says_which_partition_has_no_record_and_which_stream_no_step_waits_for() -> None:
    last = record(0)
    orders = replace(last.streams["orders"], held_by="orders-2", held_back_ms=5_400_000)
    streams = {"orders": orders, "refunds": StreamRecord(aside="idle")}
    status = status_of([replace(last, streams=streams)], HEAD, now_ms=START_MS + 2_000)
    text = shown(status)
    assert "orders: held back by orders-2, which has had no usable record\n" in text
    assert "behind, since" not in text
    assert "refunds: set aside: idle\n" in text
    assert "set aside" not in shown(replace(status, state="finished"))


def shown(status: JobStatus) -> str:
    console = Console(width=160, record=True, file=open(os.devnull, "w"))  # noqa: PTH123, SIM115  thrown away
    print_status([status], console)
    console.file.close()
    return "\n".join(line.rstrip() for line in console.export_text().splitlines())


def test_text_names_what_an_operator_looks_for() -> None:
    status = status_of([record(batch) for batch in range(20)], HEAD, now_ms=START_MS + 20_000)
    console = Console(width=160, record=True, file=open(os.devnull, "w"))  # noqa: PTH123, SIM115  thrown away
    print_status([status], console)
    text = console.export_text()
    console.file.close()
    for words in (
        "shop  running since 2026-01-01 00:00:00 UTC, 2 starts",
        "this run 20 batches, 2,000 rows in, 2,180 out",
        "orders: held back by orders-1, 12s behind, since 2026-01-01 00:00:00",
        "orders: waiting, 700ms ahead of payments",
        "orders: 1 idle: orders-2",
        "42 (+2/s)",
        "ada (25%)",
        "keys (est.)",
        "malformed",
    ):
        assert words in text


@pytest.mark.parametrize(
    "milliseconds, said",
    [
        (0, "0s"),
        (-7_799_392, "-2h9m"),
        (7_799_392, "2h9m"),
        (1_234, "1s234ms"),
        (61_234, "1m1s"),
        (90_061_000, "1d1h"),
        (10**10, "115d"),
    ],
)
def test_durations_are_shown_roughly(milliseconds: int, said: str) -> None:
    assert roughly(milliseconds) == said


@pytest.mark.parametrize(
    "number, said", [(12, "12 B"), (1_500, "1.5 kB"), (-2_000_000, "-2.0 MB"), (4e15, "4000.0 TB")]
)
def test_sizes_are_shown_with_their_unit(number: float, said: str) -> None:
    assert size(number) == said


def test_command_shows_several_jobs_as_json_and_as_text(checkpoint: Path) -> None:
    died(checkpoint)
    keep(checkpoint, record(0))
    twice = ["status", "--checkpoint", str(checkpoint), "--checkpoint", str(checkpoint)]
    shown = CliRunner().invoke(app, [*twice, "--json"])
    assert [(each["state"], each["rows"]) for each in json.loads(shown.stdout)] == [("dead", 100)] * 2
    assert CliRunner().invoke(app, twice).stdout.count("shop  dead since 2026-01-01 00:00:00 UTC") == 2


def test_command_without_arguments_finds_the_jobs_of_the_folder(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(checkpoint.parent)
    raised = CliRunner().invoke(app, ["status"]).exception
    assert isinstance(raised, sw.RunError)
    assert raised.code == "STATUS_OF_NOTHING"
    (checkpoint.parent / ".slackwater").mkdir()
    checkpoint.rename(checkpoint.parent / ".slackwater" / "shop")
    assert "shop  new" in CliRunner().invoke(app, ["status"]).stdout


def test_command_finds_the_checkpoint_of_a_pipeline_file(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(checkpoint.parent)
    (checkpoint.parent / ".slackwater").mkdir()
    checkpoint.rename(checkpoint.parent / ".slackwater" / "shop")
    file = checkpoint.parent / "pipeline.py"
    file.write_text(
        "import slackwater as sw\n"
        "rows = sw.stream('rows', sw.sources.log('log')).decode(sw.formats.json('t long')).event_time('t')\n"
        "pipeline = sw.Pipeline('shop', rows.to(sw.sinks.memory()), rows.dead_letters.drop())\n"
    )
    [shown] = json.loads(CliRunner().invoke(app, ["status", str(file), "--json"]).stdout)
    assert (shown["pipeline"], shown["state"]) == ("shop", "new")


def test_watch_shows_the_status_again_until_it_is_interrupted(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = iter([None, KeyboardInterrupt])

    def sleep(_seconds: float) -> None:
        if (end := next(waits)) is not None:
            raise end
        died(checkpoint)

    monkeypatch.setattr("slackwater.tools.cli.status.time.sleep", sleep)
    shown = CliRunner().invoke(app, ["status", "--checkpoint", str(checkpoint), "--watch"])
    assert shown.exit_code == 0
    assert "shop  dead since" in shown.stdout

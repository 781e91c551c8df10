"""Stopping: between two batches, by a call or a signal, and going on from there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.base.errors import RunError
from slackwater.engine.next_clock import final_clock
from slackwater.spark import job as job_module
from slackwater.spark.options import RunOptions
from slackwater.spark.start import make_job
from tests.on_spark.jobs import MINUTE, Kept, record, run, stream, write_log

pytestmark = pytest.mark.spark
ROOT = Path(__file__).resolve().parents[2]


def counted(log: Path) -> Kept:
    events = stream(log)
    windowed = events.key_by("k").window(sw.tumbling("1m"))
    return Kept(events=events, results=windowed.aggregate(ids=sw.collect_list("id")))


def test_rule_16_stop_from_another_thread_waits_for_the_batch_and_a_restart_goes_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_log(tmp_path / "log", [[record(minute, minute * MINUTE)] for minute in range(4)])
    kept = counted(tmp_path / "log")

    def in_mid_batch(report: Any) -> None:  # noqa: ANN401
        if report.batch == 1:
            with pytest.raises(RunError, match=r"PIPELINE_RUNNING.*kept"):
                run(spark, counted(tmp_path / "log").pipeline, tmp_path / "twice")
            stopper = threading.Thread(target=job.stop)
            stopper.start()
            stopper.join()

    job = make_job(
        kept.pipeline.plan(),
        RunOptions(spark=spark, checkpoint=tmp_path / "checkpoint", bounded=True, partitions=2, on_batch=in_mid_batch),
    )
    job.run()
    assert [report.batch for report in job.reports] == [0, 1]
    assert kept.shown.rows().is_empty(), "the batch that was begun is over, and no other was"
    again = run(spark, kept.pipeline, tmp_path / "checkpoint")
    assert again.reports[0].batch == 2
    assert sorted(kept.shown.rows()["ids"].to_list()) == [[0], [1], [2], [3]]


def test_stop_before_the_final_batch_leaves_it_to_the_next_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log(tmp_path / "log", [[record(0, 0)]])
    kept = counted(tmp_path / "log")
    job = make_job(
        kept.pipeline.plan(), RunOptions(spark=spark, checkpoint=tmp_path / "checkpoint", bounded=True, partitions=2)
    )

    def stopped(clock: Any) -> Any:  # noqa: ANN401
        job.stop()
        return final_clock(clock)

    with monkeypatch.context() as patch:
        patch.setattr(job_module, "final_clock", stopped)
        job.run()
    assert kept.shown.rows().is_empty()
    run(spark, kept.pipeline, tmp_path / "checkpoint")
    assert kept.shown.rows()["ids"].to_list() == [[0]]


PIPELINE = """
import os
import slackwater as sw
events = sw.stream("events", sw.sources.log(os.environ["LOG"])).decode(sw.formats.json("k string, ts long"))
events = events.event_time("ts")
counts = events.key_by("k").window(sw.tumbling("1m")).aggregate(n=sw.count())
ends = [counts.to(sw.sinks.files(os.environ["OUT"])), counts.late.drop(), events.dead_letters.drop()]
pipeline = sw.Pipeline("stopped", *ends, key_groups=2)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "number", [pytest.param(signal.SIGTERM, marks=pytest.mark.long), signal.SIGINT], ids=["SIGTERM", "SIGINT"]
)
def test_signal_stops_the_command_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    write_log(tmp_path / "log", [[record(0, 0), record(1, 2 * MINUTE)]])
    (tmp_path / "pipeline.py").write_text(PIPELINE)
    command = [sys.executable, "-m", "slackwater", "run", str(tmp_path / "pipeline.py")]
    process = subprocess.Popen(
        [*command, "--master", "local[2]", "--checkpoint", str(tmp_path / "checkpoint"), "--trigger", "0s"],
        cwd=tmp_path,
        env={
            **os.environ,
            "LOG": str(tmp_path / "log"),
            "OUT": str(tmp_path / "out"),
            "PYTHONPATH": str(ROOT / "src"),
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        while not list(tmp_path.glob("out/batch-*")):
            assert process.poll() is None, process.stderr and process.stderr.read()
            threading.Event().wait(0.1)
        process.send_signal(number)
        _, said = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 0, said
    assert "stopped after" in said
    assert "Traceback" not in said
    assert "ERROR" not in said

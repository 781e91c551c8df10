"""A job that was started from Python: looked at while it runs, stopped, and its error raised where it is waited for."""

from __future__ import annotations

import json
import urllib.request
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.base.errors import RunError
from tests.connectors.kafka.topics import until
from tests.on_spark.jobs import MINUTE, Kept, record, stream, write_log

pytestmark = pytest.mark.spark


def kept(folder: Path) -> Kept:
    write_log(folder / "log", [[record(0, MINUTE)], [record(1, 2 * MINUTE)]])
    events = stream(folder / "log")
    return Kept(events=events, results=events.key_by("k").window(sw.tumbling("1m")).aggregate(n=sw.count()))


def test_job_is_looked_at_while_it_runs_and_stopped(spark: SparkSession, tmp_path: Path) -> None:
    made = kept(tmp_path)
    job = made.pipeline.start(spark, checkpoint=tmp_path / "checkpoint", trigger="0s", partitions=2, page=True)
    until(lambda: job.status()["rows"] == 2, "both records")
    assert job.page is not None
    [told] = json.loads(got(f"{job.page}api/status"))
    assert (told["pipeline"], told["state"]) == (job.status()["pipeline"], "running")
    assert b"slackwater_rows_total" in got(f"{job.page}metrics")
    until(lambda: job.watermark == datetime(1970, 1, 1, 0, 2, tzinfo=UTC), "the watermark of the second")
    assert job.is_running
    assert not job.wait(0.01)
    latest = job.latest
    assert latest is not None
    assert job.status()["batch"] >= latest.batch
    assert "running" in repr(job)
    assert job.page in job._repr_html_()
    job.stop()
    assert not job.is_running
    assert job.status()["state"] == "stopped"
    with made.pipeline.start(spark, checkpoint=tmp_path / "checkpoint", bounded=True, partitions=2) as again:
        assert again.wait()
    assert again.status()["state"] == "finished"
    assert again.watermark is None
    assert again.page is None
    assert made.shown.rows()["n"].to_list() == [1, 1]


def got(address: str) -> bytes:
    with urllib.request.urlopen(address, timeout=10) as answer:  # noqa: S310  our own
        return bytes(answer.read())


def test_error_that_ends_a_job_is_raised_where_it_is_waited_for(spark: SparkSession, tmp_path: Path) -> None:
    def fails(_report: Any) -> None:  # noqa: ANN401
        raise ValueError("no")

    made = kept(tmp_path)
    job = made.pipeline.start(spark, checkpoint=tmp_path / "checkpoint", bounded=True, partitions=2, on_batch=fails)
    with pytest.raises(ValueError, match="no"):
        job.wait()
    assert job.status()["state"] == "failed"
    with pytest.raises(ValueError, match="no"):
        job.stop()


def test_session_of_spark_connect_is_refused(tmp_path: Path) -> None:
    remote: Any = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    with pytest.raises(RunError, match=r"^\[SPARK_CONNECT\]"):
        kept(tmp_path).pipeline.start(remote)

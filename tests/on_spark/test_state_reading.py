"""The state of a job on Spark, read from its checkpoint while it runs, against the same batches in memory."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import slackwater as sw
from slackwater.base.errors import RunError
from slackwater.observe.state_reading.rows import all_rows, rows_of_key
from slackwater.observe.state_reading.stored import StoredState, stored_state
from slackwater.observe.state_reading.summary import summarise
from slackwater.spark.options import RunOptions
from slackwater.spark.start import make_job
from slackwater.spark.state_groups import CheckpointGroups
from slackwater.tools.cli.loading import load_pipeline
from slackwater.tools.cli.main import app
from tests.on_spark.jobs import MINUTE, record, write_log
from tests.sealing import content_of

pytestmark = pytest.mark.spark

PIPELINE = """
import polars as pl
import slackwater as sw


class Totals(sw.Process):
    total = sw.value_state(pl.Float64, ttl="1h")
    ids = sw.list_state(pl.Int64, ttl="1h")

    def on_event(self, event, ctx):
        self.total.set((self.total.get() or 0.0) + event["v"])
        self.ids.add(event["id"])
        ctx.set_timer(ctx.event_time + sw.duration("30m"), name="close")
        yield {"total": self.total.get()}

    def on_timer(self, when, ctx):
        self.total.clear()


source = sw.sources.log("LOG", max_files_per_batch=1)
events = sw.stream("events", source).decode(sw.formats.json("id long, k string, ts long, v double")).event_time("ts")
keyed = events.key_by("k")
windows = keyed.window(sw.tumbling("1m"), allowed_lateness="5m", name="windows").aggregate(n=sw.count(), s=sw.sum("v"))
totals = keyed.process(Totals(), output="total double", name="totals")
pairs = keyed.join(keyed, between=("0s", "5m"), name="pairs")
hourly = totals.key_by("k").window(sw.tumbling("1h"), name="hourly").aggregate(n=sw.count())
steps = (windows, pairs, hourly)
pipeline = sw.Pipeline(
    "watched",
    *(step.to(sw.sinks.memory()) for step in steps),
    *(step.late.drop() for step in steps),
    events.dead_letters.drop(),
    key_groups=4,
)
"""
FILES = [
    [record(10 * number + each, number * MINUTE + each, k="abcab"[each], v=float(each)) for each in range(5)]
    for number in range(4)
]
STEPS = ("windows", "totals", "pairs", "hourly")
LAST = len(FILES) - 1
"""The batch in which the job is held; the one before it is committed."""


@contextmanager
def held_in_a_batch(spark: SparkSession, file: Path, checkpoint: Path) -> Iterator[None]:
    """Run the pipeline, and hold its last batch after its delivery and before its commit."""
    is_there, go_on = threading.Event(), threading.Event()
    failures: list[BaseException] = []

    def on_batch(report: Any) -> None:  # noqa: ANN401
        if report.batch == LAST:
            is_there.set()
            go_on.wait(120)

    job = make_job(
        load_pipeline(file).plan(),
        RunOptions(spark=spark, checkpoint=checkpoint, partitions=2, trigger="0s", on_batch=on_batch),
    )

    def run() -> None:
        try:
            job.run()
        except BaseException as error:  # noqa: BLE001  it is raised where the test can see it
            failures.append(error)
            is_there.set()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert is_there.wait(240)
        assert not failures, failures
        yield
    finally:
        job.stop()
        go_on.set()
        thread.join(120)
    assert not failures, failures


def in_memory(file: Path, batches: int) -> sw.testing.Harness:
    harness = sw.testing.Harness(load_pipeline(file))
    for records in FILES[:batches]:
        harness.send("events", records)
        harness.run_batch()
    return harness


def sorted_rows(frame: pl.DataFrame) -> list[str]:
    return sorted(map(repr, frame.to_dicts()))


def files_of(checkpoint: Path) -> dict[str, tuple[int, int]]:
    """Return every file of a checkpoint with its size and time, but not the lock, which its driver keeps alive."""
    return {
        str(path): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in checkpoint.rglob("*")
        if path.is_file() and "lock" not in path.parts
    }


def test_state_of_a_running_job_is_that_of_the_same_batches_in_memory(spark: SparkSession, tmp_path: Path) -> None:
    log, file, checkpoint = tmp_path / "log", tmp_path / "watched.py", tmp_path / "checkpoint"
    write_log(log, FILES)
    file.write_text(PIPELINE.replace("LOG", str(log)))
    plan = load_pipeline(file).plan()
    with held_in_a_batch(spark, file, checkpoint):
        before = files_of(checkpoint)
        stored = stored_state(checkpoint, plan)
        assert stored.batch == LAST - 1
        check_steps(spark, stored, in_memory(file, LAST))
        check_key(spark, stored_state(checkpoint, plan, 1), in_memory(file, 2))
        check_command(file, checkpoint, in_memory(file, LAST))
        assert files_of(checkpoint) == before
        with pytest.raises(RunError, match=f"which are 0 to {LAST - 1}") as refused:
            stored_state(checkpoint, plan, LAST)
        assert refused.value.code == "STATE_READ_BATCH"
    check_damage(spark, stored)


def check_steps(spark: SparkSession, stored: StoredState, truth: sw.testing.Harness) -> None:
    groups, steps = CheckpointGroups(spark, stored), stored.chosen(None)
    assert {step.name for step in steps} == {*STEPS}
    for step in steps:
        assert sorted_rows(all_rows(groups, step)) == sorted_rows(truth.state(step.name))
    sizes = {summary.step: summary for summary in summarise(groups, steps)}
    assert {name: sizes[name].keys for name in STEPS} == dict.fromkeys(STEPS, 3)
    assert {each["key"]: each["entries"] for each in sizes["pairs"].largest} == {
        key: truth.state("pairs", key=key).height for key in "abc"
    }


def check_key(spark: SparkSession, stored: StoredState, truth: sw.testing.Harness) -> None:
    keys = stored.with_key("b", None)
    found = rows_of_key(CheckpointGroups(spark, stored), stored.chosen(None), keys, stored.key_groups)
    assert {name: sorted_rows(rows) for name, rows in found.items()} == {
        name: sorted_rows(truth.state(name, key="b")) for name in STEPS
    }


def check_command(file: Path, checkpoint: Path, truth: sw.testing.Harness) -> None:
    command = ["state", str(file), "--checkpoint", str(checkpoint), "--format", "json"]
    done = CliRunner().invoke(app, [*command, "--step", "totals", "--key", "a"])
    assert done.exit_code == 0, done.output
    [row] = json.loads(done.output)["steps"]["totals"]
    assert (row["k"], row["ids"]) == ("a", truth.state("totals", key="a")["ids"][0].to_list())
    done = CliRunner().invoke(app, command)
    assert [step["step"] for step in json.loads(done.output)["steps"]] == [*json_steps(checkpoint)]
    missing = CliRunner().invoke(app, [*command, "--key", "nobody"])
    assert isinstance(missing.exception, RunError)
    assert missing.exception.code == "STATE_READ_KEY_MISSING"


def check_damage(spark: SparkSession, stored: StoredState) -> None:
    for change in stored.path.glob("state/*/*/2.changelog"):
        change.unlink()
    with pytest.raises(RunError) as refused:
        summarise(CheckpointGroups(spark, stored), stored.chosen("windows"))
    assert refused.value.code == "CHECKPOINT_DAMAGED"


def json_steps(checkpoint: Path) -> list[str]:
    return list(content_of(checkpoint / "slackwater" / "manifest.json")["steps"])

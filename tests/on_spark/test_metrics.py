"""The figures of a real job: history, scrape and status, while it runs and after it died."""

from __future__ import annotations

import json
import os
import urllib.request
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.engine.checkpoint.lock import Owner, lock_folder
from slackwater.observe.metrics.history import history_folder, read_history
from slackwater.observe.metrics.monitor import Live
from slackwater.observe.metrics.prometheus import Collector, serving
from slackwater.observe.metrics.status import read_status
from tests.on_spark.jobs import MINUTE, Kept, record, run, stream, write_log
from tests.sealing import content_of, reseal

pytestmark = pytest.mark.spark


def scraped(port: int) -> dict[str, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        families = text_string_to_metric_families(answer.read().decode())
    return {sample.name: sample.value for family in families for sample in family.samples}


def test_job_is_recorded_scraped_and_known_after_its_death(spark: SparkSession, tmp_path: Path) -> None:
    log, checkpoint = tmp_path / "log", tmp_path / "checkpoint"
    write_log(log, [[record(number, number * MINUTE)] for number in range(4)])
    events = stream(log)
    kept = Kept(events=events, results=events.key_by("k").window(sw.tumbling("1m")).aggregate(n=sw.count()))
    collector, states, rows = Collector(), [], []
    begun: list[Live] = []
    with serving(collector, port=0) as port:

        def look(live: Live) -> None:
            collector.note(live)
            states.append(read_status(checkpoint).state)
            rows.append(scraped(port)["slackwater_rows_total"])

        run(spark, kept.pipeline, checkpoint, on_record=look, on_run=begun.append)
        last = scraped(port)

    assert [(live.run.starts, live.has_batch, live.total.rows) for live in begun] == [(1, False, 0)]
    assert set(states) == {"running"}
    assert rows == sorted(rows)
    assert (last["slackwater_rows_total"], last["slackwater_starts_total"]) == (4, 1)

    records = read_history(history_folder(checkpoint))
    assert [each.batch for each in records] == list(range(len(records)))
    assert sum(each.rows for each in records) == 4
    assert sum(each.outputs["events.window"].rows for each in records) == 4
    shown = [each for each in records if each.outputs["events.window"].rows]
    assert all(each.outputs["events.window"].event_s["0.5"] > 0 for each in shown)
    assert all(sum(sink.rows for sink in each.sinks.values()) >= 1 for each in shown)
    assert any(each.spark_s.get("addBatch", 0) > 0 for each in records[1:])
    assert records[-1].steps["events.window"].state_bytes == 0
    held = [(each.steps["events.window"].state_rows > 0, each.steps["events.window"].state_keys) for each in records]
    assert {(keys > 0) is has_rows for has_rows, keys in held if keys is not None} == {True}
    assert any(keys for _, keys in held)

    assert read_status(checkpoint).state == "finished"
    manifest = checkpoint / "slackwater" / "manifest.json"
    reseal(manifest, {**content_of(manifest), "finished": False})
    newest = max(lock_folder(checkpoint).iterdir(), key=lambda path: int(path.name))
    newest.write_text(json.dumps(asdict(replace(Owner.read(newest), is_released=False, born="long ago"))))
    os.utime(newest, (1_767_225_600, 1_767_225_600))
    status = read_status(checkpoint)
    assert (status.state, status.since_ms, status.rows, status.starts) == ("dead", 1_767_225_600_000, 4, 1)
    assert (status.batch, status.steps["events.window"].counts["on_time"]) == (records[-1].batch, 4)

"""Rows to skip that do not exist: rejected where that is known before the start, and otherwise reported at the end."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

import slackwater as sw
from slackwater.base.errors import DefinitionError
from slackwater.engine.checkpoint.checkpoint import open_checkpoint
from slackwater.plan.plan import Plan
from slackwater.plan.skipping import check_partitions, skipping
from slackwater.spark.intake import check_intake
from slackwater.spark.skipped_rows import SkippedSoFar, UnmetRowsWarning
from slackwater.testing import Harness, rows_source
from tests.engine.log_jobs import write


def of_a_log(home: Path, *skipped: str) -> Plan:
    (home / "log").mkdir(exist_ok=True)
    events = sw.stream("events", sw.sources.log(home / "log")).decode(sw.formats.json("id long"))
    return skipping(sw.Pipeline("p", events.to(sw.sinks.memory()), events.dead_letters.drop()).plan(), skipped)


def ran(*skipped: str, rows: int = 5) -> SkippedSoFar:
    """Return what a run of two batches met."""
    harness = Harness(in_memory())
    harness.engine.plan = skipping(harness.engine.plan, skipped)
    so_far = SkippedSoFar()
    for _ in range(2):
        for partition in ("0", "1"):
            harness.send("events", [{"id": number} for number in range(rows)], partition=partition)
        harness.run_batch()
        so_far.note(harness.last)
    return so_far


def in_memory() -> sw.Pipeline:
    events = sw.stream("events", rows_source("id long"))
    return sw.Pipeline("p", events.to(sw.sinks.memory()), events.dead_letters.drop())


def test_a_partition_that_a_log_does_not_have_is_rejected_before_the_start(tmp_path: Path) -> None:
    for partition in ("eu-1", "eu-2", "us"):
        write(tmp_path, f"{partition}/0.jsonl")
    with pytest.raises(DefinitionError, match=r"got 'events/eu-3:5-5' \(did you mean `events/eu-2`\?\)") as caught:
        check_intake(of_a_log(tmp_path, "events/us:1", "events/eu-3:5"), None)
    assert caught.value.code == "SKIP_ROWS_PARTITION"
    assert "`events` has the partitions events/eu-1, events/eu-2, events/us" in str(caught.value)
    check_intake(of_a_log(tmp_path, "events/us:1"), None)


def test_a_partition_whose_files_were_read_and_deleted_is_known(tmp_path: Path) -> None:
    plan = of_a_log(tmp_path, "events/old:5")
    checkpoint = open_checkpoint(tmp_path / "checkpoint", plan, partitions=1)
    with pytest.raises(DefinitionError, match="`events` has the partitions none"):
        check_intake(plan, checkpoint)
    write(tmp_path, "old/0.jsonl")
    check_intake(plan, checkpoint)


def test_of_very_many_partitions_the_closest_are_listed() -> None:
    [source] = skipping(in_memory().plan(), ["events/p0999x:1"]).sources
    with pytest.raises(DefinitionError, match=r"did you mean `events/p0999`.* and 1,995 more;") as caught:
        check_partitions(source, {f"p{number:04d}" for number in range(2_000)})
    assert len(str(caught.value)) < 400


def test_a_partition_of_a_topic_without_its_topic_is_a_near_miss() -> None:
    [source] = skipping(in_memory().plan(), ["events/3:1"]).sources
    with pytest.raises(DefinitionError, match=r"did you mean `events/orders/3`\?"):
        check_partitions(source, {f"orders/{number}" for number in range(8)})


def test_rows_that_no_batch_had_are_named_and_counted_after_the_run() -> None:
    given = ("events/0:3-12", "events/1:2", "events/1:100-1099")
    plan = skipping(in_memory().plan(), given)
    words = r"\[SKIP_ROWS_UNMET\] 1,003 rows that --skip-rows names are not .*: events/0:10-12, events/1:100-1099;"
    with pytest.warns(UnmetRowsWarning, match=words):
        ran(*given).report(plan)


def test_rows_that_were_all_met_in_several_batches_are_not_reported() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ran("events/0:3-9", "events/1:0").report(skipping(in_memory().plan(), ["events/0:3-9", "events/1:0"]))

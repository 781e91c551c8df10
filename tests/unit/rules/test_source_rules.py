"""The rules about logs that show without Spark: what is still to be read, and what never will be."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest

import slackwater as sw
from slackwater.engine.ticking import first_clock
from slackwater.eventtime.clock import Clock, PartitionTime, StreamTime
from slackwater.plan import Plan
from slackwater.runtime.backlog import StrayFilesWarning, Unread, report_strays, unread

NOW_MS = 1_767_000_000_000


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    events = sw.stream("events", sw.sources.log(tmp_path / "log")).decode(sw.formats.json("id long"))
    return sw.Pipeline("p", events.to(sw.sinks.memory()), events.dead_letters.drop()).plan()


def write(tmp_path: Path, name: str, *, age_s: int) -> str:
    """Write a file of the log, `age_s` seconds before now."""
    path = tmp_path / "log" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}\n")
    os.utime(path, (NOW_MS // 1_000 - age_s,) * 2)
    return str(path)


def read_until(age_s: int, partition: str = "0") -> Clock:
    """Return the clock of a stream that has read a partition up to files of this age."""
    known = {partition: PartitionTime(modified_ms=NOW_MS - age_s * 1_000)}
    return Clock(batch=3, streams={"events": StreamTime(partitions=known)})


def test_rule_06_partition_with_newer_files_has_a_backlog(plan: Plan, tmp_path: Path) -> None:
    write(tmp_path, "0/a.jsonl", age_s=300)
    write(tmp_path, "0/b.jsonl", age_s=200)
    taken = {"events": {"0": NOW_MS - 300_000}}
    assert unread(plan, first_clock(plan), taken, NOW_MS) == Unread(
        backlog={"events": frozenset({"0"})}, strays={"events": []}
    )


def test_rule_06_partition_read_to_its_end_has_none(plan: Plan, tmp_path: Path) -> None:
    write(tmp_path, "0/a.jsonl", age_s=300)
    assert unread(plan, read_until(300), {}, NOW_MS).backlog == {"events": frozenset()}


def test_rule_06_partition_never_read_has_a_backlog_however_old_its_files_are(plan: Plan, tmp_path: Path) -> None:
    write(tmp_path, "1/a.jsonl", age_s=900_000)
    found = unread(plan, read_until(300), {}, NOW_MS)
    assert (found.backlog["events"], found.strays["events"]) == (frozenset({"1"}), [])


def test_rule_17_file_overwritten_after_it_was_read_is_a_stray(plan: Plan, tmp_path: Path) -> None:
    """Spark found nothing new, though a file is newer than all that was read: it has been read before."""
    path = write(tmp_path, "0/a.jsonl", age_s=60)
    found = unread(plan, read_until(300), {}, NOW_MS)
    assert (found.backlog["events"], found.strays["events"]) == (frozenset(), [path])


def test_rule_17_file_that_has_just_come_is_no_stray(plan: Plan, tmp_path: Path) -> None:
    write(tmp_path, "0/a.jsonl", age_s=1)
    found = unread(plan, read_until(300), {}, NOW_MS)
    assert (found.backlog["events"], found.strays["events"]) == (frozenset({"0"}), [])


def test_rule_17_names_that_spark_passes_over_are_strays_and_temporary_ones_are_not(plan: Plan, tmp_path: Path) -> None:
    strays = [write(tmp_path, name, age_s=60) for name in ("0/_a.jsonl", "_1/b.jsonl")]
    write(tmp_path, "0/.c.jsonl", age_s=60)
    assert unread(plan, first_clock(plan), {}, NOW_MS).strays == {"events": strays}


def test_rule_17_each_stray_is_reported_once(plan: Plan, tmp_path: Path) -> None:
    reported: set[str] = set()
    with pytest.warns(StrayFilesWarning, match=r"LOG_STRAYS.*2 of `.*/log` never will be: /a, /b;"):
        report_strays(plan, Unread(strays={"events": ["/a", "/b"]}), reported)
    with pytest.warns(StrayFilesWarning, match=r"1 of `.*/log` never will be: /c;"):
        report_strays(plan, Unread(strays={"events": ["/a", "/b", "/c"]}), reported)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report_strays(plan, Unread(strays={"events": ["/a", "/b", "/c"]}), reported)

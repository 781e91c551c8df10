"""The rules about a log's files that have changed, or are never read, as they show without Spark."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

from slackwater.base.errors import RunError
from slackwater.base.times import render_time
from slackwater.connectors.log.reports import StrayFilesWarning, report_strays
from slackwater.spark.options import RunOptions
from slackwater.spark.start import make_job
from tests.engine.log_jobs import TIME_S, Job, write


def test_rule_17_file_that_grew_after_it_was_read_is_a_stray_also_when_newer_ones_came(tmp_path: Path) -> None:
    grown = write(tmp_path, "0/a.jsonl")
    job = Job(tmp_path)
    job.intake.publish()
    job.batch()
    write(tmp_path, "0/a.jsonl", time_s=TIME_S + 1, text="{}\n{}\n")
    write(tmp_path, "0/b.jsonl", time_s=TIME_S + 2)
    job.intake.publish()
    assert job.batch() == ["b.jsonl"]
    assert job.strays == [str(grown)]
    assert Job(tmp_path).strays == [str(grown)], "a restarted job knows it, too"


def test_rule_17_file_replaced_under_its_time_by_one_of_another_length_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, "0/a.jsonl")
    job = Job(tmp_path)
    job.intake.publish()
    job.batch()
    write(tmp_path, "0/a.jsonl", text="{}\n{}\n")
    for started in (job, Job(tmp_path)):
        with pytest.raises(RunError, match=r"LOG_FILE_CHANGED.*a\.jsonl was listed with 3 bytes.*now has 6 bytes"):
            started.look()
    assert Job(tmp_path, accept_changes=True).strays == [str(tmp_path / "log/0/a.jsonl")]


@pytest.mark.parametrize("time_s, text", [(TIME_S, "{}\n{}\n"), (TIME_S + 1, "{}\n")])
def test_rule_17_batch_that_was_begun_is_not_run_with_another_file(tmp_path: Path, time_s: int, text: str) -> None:
    write(tmp_path, "0/a.jsonl")
    job = Job(tmp_path)
    job.intake.publish()
    batch = job.begin()
    write(tmp_path, "0/a.jsonl", time_s=time_s, text=text)
    again = Job(tmp_path)
    assert again.strays == [], "its batch is not over"
    with pytest.raises(
        RunError, match=rf"BATCH_INPUT_CHANGED.*batch 0 .*modified at {render_time(time_s * 1_000)}, and was 3 bytes"
    ):
        again.intake.take(batch)
    accepted = Job(tmp_path, accept_changes=True)
    accepted.intake.take(batch)
    [share] = [share for share in accepted.intake.listings.glob("*/*") if share.stat().st_size]
    assert json.loads(share.read_text())["length"] == len(text)


def test_rule_17_names_that_begin_with_an_underscore_are_strays_and_temporary_ones_are_not(tmp_path: Path) -> None:
    strays = [str(write(tmp_path, name)) for name in ("0/_a.jsonl", "_1/b.jsonl")]
    write(tmp_path, "0/.c.jsonl")
    assert Job(tmp_path).strays == strays


def test_rule_17_each_stray_is_reported_once(tmp_path: Path) -> None:
    log, reported = str(tmp_path / "log"), set[str]()
    with pytest.warns(
        StrayFilesWarning, match=r"LOG_STRAYS.*2 files of .* will never be read \(changed after it was read\): /a, /b;"
    ):
        report_strays(log, ["/a", "/b"], reported)
    with pytest.warns(
        StrayFilesWarning, match=r"1 file of .*log` will never be read \(changed after it was read\): /c;"
    ):
        report_strays(log, ["/a", "/b", "/c"], reported)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report_strays(log, ["/a", "/b", "/c"], reported)


@pytest.mark.parametrize(
    "name, why, remedy",
    [
        ("0/_a.jsonl", "name starts with `_`", "rename it"),
        ("_1/b.jsonl", "name starts with `_`", "rename it"),
        ("0/link.jsonl", "broken link", "restore its target"),
        ("0/changed.jsonl", "changed after it was read", "write new records to new files"),
    ],
)
def test_rule_17_stray_is_reported_with_the_one_reason_that_it_has(
    tmp_path: Path, name: str, why: str, remedy: str
) -> None:
    file = write(tmp_path, name)
    if why == "broken link":
        file.unlink()
        file.symlink_to(tmp_path / "nothing")
    with pytest.warns(StrayFilesWarning, match="LOG_STRAYS") as told:
        report_strays(str(tmp_path / "log"), [str(file)], set())
    reasons = ("begins with", "broken link", "changed after")
    assert [reason for reason in reasons if reason in str(told[0].message)] == [r for r in reasons if r in why]
    assert remedy in str(told[0].message)


def refused_before_spark(job: Job, checkpoint: Path) -> str:
    """Return what a start is refused with, before it would call `on_start` and make a session."""
    with pytest.raises(RunError) as refused:
        make_job(
            job.plan,
            RunOptions(checkpoint=checkpoint),
            on_start=lambda: pytest.fail("all that needs no Spark was checked"),
        )
    return refused.value.code


def test_link_that_leads_back_is_refused_before_spark_starts(tmp_path: Path) -> None:
    job = Job(tmp_path)
    (tmp_path / "log" / "loop").symlink_to(".")
    assert refused_before_spark(job, tmp_path / "new") == "LOG_LINK"
    assert refused_before_spark(job, job.home) == "LOG_LINK"


def test_file_that_has_changed_is_refused_before_spark_starts_and_nothing_is_written(tmp_path: Path) -> None:
    write(tmp_path, "0/a.jsonl")
    job = Job(tmp_path)
    job.intake.publish()
    job.batch()
    job.checkpoint.write_clock(replace(job.checkpoint.clock(0), batch=1))
    write(tmp_path, "0/b.jsonl")
    job.intake.publish()
    write(tmp_path, "0/a.jsonl", text="{}\n{}\n")
    before = {path: path.read_bytes() for path in job.home.rglob("*") if path.is_file()}
    assert refused_before_spark(job, job.home) == "LOG_FILE_CHANGED"
    assert before == {path: path.read_bytes() for path in job.home.rglob("*") if path.is_file()}

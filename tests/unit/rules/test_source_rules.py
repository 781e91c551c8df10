"""The rules about logs that show without Spark: which files a batch gets, what waits, and what is never read."""

from __future__ import annotations

import json
import os
import shutil
import threading
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import slackwater as sw
from slackwater.checkpoint.checkpoint import Checkpoint, open_checkpoint
from slackwater.errors import RunError
from slackwater.ground.times import render_time
from slackwater.sources.intake import Look, StreamPlace
from slackwater.sources.log.intake import KEPT, LogIntake
from slackwater.sources.log.listing import ListedFile
from slackwater.sources.log.reports import StrayFilesWarning, report_strays
from slackwater.sources.log.spark_files import newest_files
from slackwater.spark.feed import Feed
from slackwater.spark.start import make_job

TIME_S = 1_767_000_000


class Job:
    """A job over one log without Spark: its batches take listings as Spark's would, and are over at once."""

    def __init__(self, home: Path, *, accept_changes: bool = False, **limits: Any) -> None:  # noqa: ANN401  as log's
        (home / "log").mkdir(exist_ok=True)
        events = sw.stream("events", sw.sources.log(home / "log", **limits)).decode(sw.formats.json("id long"))
        self.plan = sw.Pipeline("p", events.to(sw.sinks.memory()), events.dead_letters.drop()).plan()
        self.home = home / "checkpoint"
        self.checkpoint = open_checkpoint(self.home, self.plan, partitions=1, accept_changes=accept_changes)
        source = self.plan.sources[0].source
        place = StreamPlace(pipeline="p", stream="events", number=0, progress=self.checkpoint, slots=2)
        made = source.intake(place)
        assert isinstance(made, LogIntake)
        self.intake = made
        self.intake.open()

    def offer(self, most: int | None = None) -> list[Path]:
        """Return the shares that Spark finds and no batch has, oldest first."""
        taken = {share for path in (self.home / "sources" / "0").glob("*") for share in path.read_text().split("\n")}
        shares = sorted(self.intake.listings.glob("[0-9]*/*"), key=lambda share: (share.stat().st_mtime_ns, share))
        return [share for share in shares if not any(str(share) in line for line in taken)][:most]

    def begin(self, most: int | None = None) -> int:
        """Begin a batch as Spark does: write down which shares it has."""
        log, offsets = self.home / "sources" / "0", self.home / "offsets"
        for folder in (log, offsets, self.home / "commits"):
            folder.mkdir(parents=True, exist_ok=True)
        batch, entry = len(list(offsets.iterdir())), len(list(log.iterdir()))
        if shares := self.offer(most):
            lines = [json.dumps({"path": f"file://{s}", "timestamp": 0, "batchId": entry}) for s in shares]
            (log / str(entry)).write_text("\n".join(["v1", *lines]))
            entry += 1
        offset = json.dumps({"logOffset": entry - 1}) if entry else "-"
        (offsets / str(batch)).write_text(f'v1\n{{"batchTimestampMs":0}}\n{offset}\n0')
        return batch

    def batch(self, most: int | None = None) -> list[str]:
        """Run a batch; returns the names of its files, in the order in which they are read."""
        number = self.begin(most)
        files = self.taken(number)
        self.intake.take(number)
        (self.home / "commits" / str(number)).touch()
        return files

    def taken(self, number: int) -> list[str]:
        """Return the names of a batch's files."""
        lines = (self.home / "offsets" / str(number)).read_text().splitlines()
        before = (self.home / "offsets" / str(number - 1)).read_text().splitlines()[2] if number else "-"
        if lines[2] in ("-", before):
            return []
        entry = (self.home / "sources" / "0" / str(json.loads(lines[2])["logOffset"])).read_text().splitlines()[1:]
        shares = [Path(json.loads(line)["path"].removeprefix("file://")) for line in entry]
        listed = [ListedFile(**json.loads(line)) for share in shares for line in share.read_text().splitlines()]
        return [Path(file.place).name for file in sorted(listed, key=lambda file: (file.partition, file.number))]

    def look(self) -> Look:
        """Compare the log with what batches have taken."""
        return self.intake.look(0, ())

    @property
    def strays(self) -> list[str]:
        """What is never read."""
        return self.intake.unread()[0].strays

    @property
    def left(self) -> list[str]:
        """What no batch has."""
        return [file.path for file in self.intake.unread()[0].files]


def write(home: Path, name: str, *, time_s: int = TIME_S, text: str = "{}\n") -> Path:
    """Write a file of the log."""
    path = home / "log" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (time_s, time_s))
    return path


def test_rule_07_files_of_one_time_are_read_by_name_with_numbers_as_numbers(tmp_path: Path) -> None:
    for day in (10, 2, 1, 9, 11):
        write(tmp_path, f"0/day-{day}.jsonl")
    write(tmp_path, "0/day-30.jsonl", time_s=TIME_S - 1)
    job = Job(tmp_path, max_files_per_batch=2)
    job.intake.publish(all_of_it=True)
    read = [job.batch(most=2) for _ in range(4)]
    assert read == [
        ["day-30.jsonl", "day-1.jsonl"],
        ["day-2.jsonl", "day-9.jsonl"],
        ["day-10.jsonl", "day-11.jsonl"],
        [],
    ]


def test_rule_07_a_live_job_gets_as_many_files_as_a_batch_may_have(tmp_path: Path) -> None:
    for number in range(5):
        write(tmp_path, f"0/{number}.jsonl")
    job = Job(tmp_path, max_files_per_batch=2)
    for _ in range(3):
        job.intake.publish()
    assert job.batch() == ["0.jsonl", "1.jsonl"]
    job.intake.publish()
    write(tmp_path, "0/00.jsonl")
    job.intake.publish()
    assert job.batch() == ["2.jsonl", "3.jsonl"]
    job.intake.publish()
    assert job.batch() == ["00.jsonl", "4.jsonl"]


def test_rule_17_a_batch_has_its_bytes_at_most_but_one_file_at_least(tmp_path: Path) -> None:
    for name, size in (("a", 60), ("b", 30), ("c", 30), ("d", 200), ("e", 1)):
        write(tmp_path, f"0/{name}", text="x" * size)
    job = Job(tmp_path, max_bytes_per_batch=100)
    job.intake.publish(all_of_it=True)
    assert [job.batch(most=2) for _ in range(4)] == [["a", "b"], ["c"], ["d"], ["e"]]


def test_rule_17_what_comes_during_a_bounded_run_is_not_in_it(tmp_path: Path) -> None:
    write(tmp_path, "0/a.jsonl")
    job = Job(tmp_path)
    job.intake.publish(all_of_it=True)
    late = write(tmp_path, "0/b.jsonl")
    assert (job.batch(), job.batch()) == (["a.jsonl"], [])
    assert job.left == [str(late)]


def test_rule_17_a_restarted_job_lists_again_what_no_batch_has(tmp_path: Path) -> None:
    for name in "bd":
        write(tmp_path, f"0/{name}")
    job = Job(tmp_path, max_files_per_batch=1)
    job.intake.publish(all_of_it=True)
    assert job.batch(most=2) == ["b"]
    write(tmp_path, "0/c")
    with (job.home / "slackwater" / "log" / "0" / "files.jsonl").open("a") as record:
        record.write('{"path": "torn')
    again = Job(tmp_path, max_files_per_batch=1)
    again.intake.publish(all_of_it=True)
    assert [again.batch(most=2) for _ in range(3)] == [["c"], ["d"], []]


def test_rule_17_a_file_is_read_once_however_often_the_job_is_started(tmp_path: Path) -> None:
    write(tmp_path, "0/a")
    for expected in (["a"], [], []):
        job = Job(tmp_path)
        job.intake.publish()
        assert job.batch() == expected


def test_rule_06_files_that_no_batch_has_are_backlog_whatever_their_times(tmp_path: Path) -> None:
    write(tmp_path, "0/a.jsonl")
    write(tmp_path, "1/a.jsonl")
    job = Job(tmp_path)
    job.intake.publish()
    job.batch()
    assert job.look().backlog == frozenset()
    write(tmp_path, "1/b.jsonl")
    write(tmp_path, "2/old.jsonl", time_s=TIME_S - 900_000)
    job.intake.publish()
    assert job.look().backlog == frozenset({"1", "2"}), "listed, and not taken yet"


def test_rule_06_partition_whose_folder_was_removed_is_missing(tmp_path: Path) -> None:
    for partition in "01":
        write(tmp_path, f"{partition}/a.jsonl")
    job = Job(tmp_path)
    job.intake.publish()
    job.batch()
    (tmp_path / "log" / "0" / "a.jsonl").unlink()
    assert job.look().missing == frozenset(), "an empty partition is one"
    shutil.rmtree(tmp_path / "log" / "1")
    assert job.look().missing == frozenset({"1"})
    shutil.rmtree(tmp_path / "log")
    assert job.look().missing == frozenset(), "a log that is away for a while loses nothing"


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


def test_rule_17_a_checkpoint_may_be_moved_amid_a_batch(tmp_path: Path) -> None:
    write(tmp_path, "0/a.jsonl")
    job = Job(tmp_path)
    job.intake.publish()
    batch = job.begin()
    (tmp_path / "checkpoint").rename(tmp_path / "else where")
    place = StreamPlace(
        pipeline="p", stream="events", number=0, progress=replace(job.checkpoint, path=tmp_path / "else where")
    )
    moved = job.plan.sources[0].source.intake(place)
    assert isinstance(moved, LogIntake)
    moved.open()
    [share] = newest_files(tmp_path / "else where" / "sources" / "0")
    assert Path(share).is_relative_to(tmp_path / "else where")
    assert Path(share).exists()
    moved.take(batch)
    assert moved.look(batch, ()).backlog == frozenset()


def test_rule_17_old_listings_are_removed_and_what_they_listed_is_remembered(tmp_path: Path) -> None:
    job = Job(tmp_path)
    for number in range(KEPT + 5):
        write(tmp_path, f"0/{number}")
        job.intake.publish()
        assert job.batch() == [str(number)]
    assert len(list(job.intake.listings.iterdir())) == KEPT
    again = Job(tmp_path)
    again.intake.publish()
    assert again.batch() == []


def test_rule_17_names_that_are_not_utf_8_are_listed_as_they_are(tmp_path: Path) -> None:
    job = Job(tmp_path)
    name = os.fsencode(tmp_path) + b"/log/z\xfcrich"
    os.mkdir(name)  # noqa: PTH102  the name is bytes
    with open(name + b"/\xff", "wb") as file:  # noqa: PTH123
        file.write(b"x")
    job.intake.publish()
    assert job.look().backlog == frozenset({"z\\xfcrich"})
    assert job.batch() == ["\udcff"]
    assert job.left == []


def test_checkpoint_that_has_lost_what_it_listed_is_refused(tmp_path: Path) -> None:
    job = Job(tmp_path)
    write(tmp_path, "0/a")
    job.intake.publish()
    job.batch()
    shutil.rmtree(job.home / "slackwater" / "log")
    with pytest.raises(RunError, match=r"CHECKPOINT_DAMAGED.*files.jsonl.*it ends before listing 0"):
        Job(tmp_path)


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


def test_files_that_come_between_batches_are_listed_by_the_feed_and_its_errors_end_the_job(tmp_path: Path) -> None:
    job, failed, errors = Job(tmp_path), threading.Event(), list[Exception]()

    def on_error(error: Exception) -> None:
        errors.append(error)
        failed.set()

    with Feed([job.intake], is_between=lambda: True, on_error=on_error):
        write(tmp_path, ".a").rename(tmp_path / "log" / "a")
        while not job.offer():
            assert not failed.wait(0.01), errors
        (tmp_path / "log" / "loop").symlink_to(".")
        assert failed.wait(30)
    assert "LOG_LINK" in str(errors[0])
    assert isinstance(job.checkpoint, Checkpoint)


def test_sparks_own_list_of_listings_keeps_those_of_the_last_batches(tmp_path: Path) -> None:
    job, many = Job(tmp_path), 2 * KEPT
    log = job.home / "sources" / "0"
    for number in range(many):
        write(tmp_path, f"0/{number}")
        job.intake.publish()
        job.batch()
    # Now and then Spark writes an entry with all that there were.
    lines = [line for entry in range(many) for line in (log / str(entry)).read_text().splitlines()[1:]]
    compaction = log / f"{many - 1}.compact"
    compaction.write_text("\n".join(["v1", *lines]))
    (log / f".{compaction.name}.crc").write_text("of what it was")
    write(tmp_path, f"0/{many}")
    job.intake.publish()
    job.batch()
    version, *left = compaction.read_text().splitlines()
    assert (version, left) == ("v1", lines[-KEPT + 1 :])
    assert not (log / f".{compaction.name}.crc").exists()
    assert Job(tmp_path).left == [], "nothing is read again"


def refused_before_spark(job: Job, checkpoint: Path) -> str:
    """Return what a start is refused with, before it would call `on_start` and make a session."""
    with pytest.raises(RunError) as refused:
        make_job(job.plan, checkpoint=checkpoint, on_start=lambda: pytest.fail("all that needs no Spark was checked"))
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

"""The rules about logs that show without Spark: which files a batch gets, what waits, and what is remembered."""

from __future__ import annotations

import os
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from slackwater.base.errors import RunError
from slackwater.connectors.intake import StreamPlace
from slackwater.connectors.log.intake import KEPT, LogIntake
from slackwater.connectors.log.spark_files import newest_files
from slackwater.engine.checkpoint.checkpoint import Checkpoint
from slackwater.spark.source_lister import SourceLister
from tests.engine.log_jobs import TIME_S, Job, write


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
    with pytest.raises(RunError, match=r"CHECKPOINT_DAMAGED.*files.arrow` is damaged: it is missing"):
        Job(tmp_path)


def test_files_that_come_between_batches_are_listed_by_the_feed_and_its_errors_end_the_job(tmp_path: Path) -> None:
    job, failed, errors = Job(tmp_path), threading.Event(), list[Exception]()

    def on_error(error: Exception) -> None:
        errors.append(error)
        failed.set()

    with SourceLister([job.intake], is_between=lambda: True, on_error=on_error):
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

"""The rows that a started batch reads, by partition, as --skip-rows takes them."""

from __future__ import annotations

import json
from pathlib import Path

import slackwater as sw
from slackwater.connectors.dataframe.intake import NumberedIntake
from slackwater.connectors.intake import StreamPlace
from slackwater.connectors.kafka.source.intake import KafkaIntake
from slackwater.engine.next_clock import first_clock
from slackwater.plan.skipping import skipping
from slackwater.spark.intake import Intakes
from tests.engine.log_jobs import Job, write


def test_a_batch_of_a_log_reads_the_lines_of_its_files(tmp_path: Path) -> None:
    job = Job(tmp_path)
    write(tmp_path, "eu/00000000000000000100.jsonl", text="{}\n" * 20)
    write(tmp_path, "eu/00000000000000000120.jsonl", text="{}\n" * 5)
    write(tmp_path, "us/any.jsonl", text="{}\n" * 3)
    job.intake.publish(all_of_it=True)
    batch = job.begin()
    job.intake.take(batch)
    assert job.intake.reads(batch, rows_before=0) == {"eu": (100, 124), "us": (0, 2)}
    rows = Intakes(progress=job.checkpoint, streams={"events": job.intake}).reads(first_clock(job.plan))
    assert rows == ["events/eu:100-124", "events/us:0-2"]
    assert [str(each) for each in skipping(job.plan, rows).sources[0].skipped] == rows


def test_files_that_cannot_be_read_leave_the_rows_out(tmp_path: Path) -> None:
    job = Job(tmp_path)
    path = write(tmp_path, "0/a.jsonl")
    job.intake.publish()
    job.intake.take(job.begin())
    path.unlink()
    assert Intakes(progress=job.checkpoint, streams={"events": job.intake}).reads(first_clock(job.plan)) == []


def test_a_batch_of_a_topic_reads_from_the_offsets_of_the_one_before(tmp_path: Path) -> None:
    job = Job(tmp_path)
    source = sw.sources.kafka("localhost:1", topic="orders")
    intake = KafkaIntake(source, StreamPlace(pipeline="p", stream="orders", number=0, progress=job.checkpoint, slots=1))
    (job.home / "sources" / "0").mkdir(parents=True)
    (job.home / "sources" / "0" / "0").write_text('v1\n{"orders":{"0":40,"1":7}}')
    (job.home / "offsets").mkdir()
    for batch, ends in enumerate(({"0": 50, "1": 7}, {"0": 60, "1": 9, "2": 3})):
        line = json.dumps({"orders": ends})
        (job.home / "offsets" / str(batch)).write_text(f'v1\n{{"batchTimestampMs":0}}\n{line}')
    assert intake.reads(0, rows_before=0) == {"orders/0": (40, 49)}
    assert intake.reads(1, rows_before=10) == {"orders/0": (50, 59), "orders/1": (7, 8), "orders/2": (0, 2)}


def test_a_batch_of_a_table_reads_rows_from_the_number_that_follows() -> None:
    assert NumberedIntake().reads(3, rows_before=2) == {"": (131_072, None)}

"""A log into a topic and back, on a real broker."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from slackwater.cli.main import app
from slackwater.errors import RunError
from slackwater.kafka import broker
from slackwater.kafka.connection import connection
from slackwater.kafka.playing import Pace, export, play
from slackwater.log_writer import LogWriter
from slackwater.sources.log_listing import list_log
from tests.kafka.topics import Topics

pytestmark = pytest.mark.kafka


def write(folder: Path, *partitions: list[int]) -> None:
    with LogWriter(folder, roll_after=None) as log:
        for number, ids in enumerate(partitions):
            for each in ids:
                log.append({"id": each}, str(number))


def lines(folder: Path, partition: str) -> list[int]:
    files = [file for file in list_log(folder) if file.partition == partition]
    return [json.loads(line)["id"] for file in files for line in Path(file.path).read_text().splitlines()]


def test_log_that_went_through_a_topic_is_the_log_it_was(topics: Topics, tmp_path: Path) -> None:
    topic = topics.make(partitions=2)
    write(tmp_path / "log", list(range(1_500)), [5_000, 5_001])
    played = CliRunner().invoke(app, ["produce", str(tmp_path / "log"), "--topic", topic, "--servers", topics.servers])
    assert played.exit_code == 0, played.output
    assert f"sent 1,502 records of {tmp_path / 'log'} to {topic}" in played.stdout
    topics.produce(topic, [None], partition=1)  # a tombstone
    out = ["log", "export", str(tmp_path / "back"), "--topic", topic, "--servers", topics.servers]
    exported = CliRunner().invoke(app, out)
    assert exported.exit_code == 0, exported.output
    assert f"wrote 1,502 records of {topic} to {tmp_path / 'back'}; 1 had no value and are left out" in exported.stdout
    assert lines(tmp_path / "back", "0") == list(range(1_500))
    assert lines(tmp_path / "back", "1") == [5_000, 5_001]


def test_pace_is_kept(topics: Topics, tmp_path: Path) -> None:
    topic = topics.make()
    write(tmp_path / "log", list(range(3_000)))
    began = time.monotonic()
    play(tmp_path / "log", connection(topics.servers), topic, pace=Pace(rate=2_000))
    assert time.monotonic() - began >= 1.0, "two thousand a second, a thousand at a time"


def test_what_cannot_be_played_or_exported_is_said(topics: Topics, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    write(tmp_path / "log", [1])
    with pytest.raises(RunError, match="PLAY_EMPTY"):
        play(tmp_path / "empty", connection(topics.servers), "t", pace=Pace())
    with pytest.raises(RunError, match="KAFKA_TOPIC_MISSING"):
        play(tmp_path / "log", connection(topics.servers), "nowhere", pace=Pace())
    with pytest.raises(RunError, match="KAFKA_TOPIC_MISSING"):
        export(connection(topics.servers), "nowhere", tmp_path / "back")
    nobody = f"localhost:{broker.free_port()}"
    with pytest.raises(RunError, match=rf"KAFKA_REFUSED.*{nobody}"):
        export(connection(nobody), "nowhere", tmp_path / "back")


def test_lateness_of_a_topic_is_measured_with_and_without_a_pipeline(topics: Topics, tmp_path: Path) -> None:
    topic = topics.make(partitions=2)
    for partition in range(2):
        times = [1_000 * number - (5_000 if number % 10 == 0 else 0) for number in range(100, 200)]
        topics.produce(topic, [{"ts": ts} for ts in times], partition=partition)
    alone = ["lateness", "--kafka", f"{topics.servers}/{topic}", "--time", "ts", "--json", "--quiet"]
    said = CliRunner().invoke(app, alone)
    assert said.exit_code == 0, said.output
    [stream] = json.loads(said.stdout)["streams"]
    assert (stream["records"], stream["max_ms"]) == (200, 6_000 - 2_000)
    (tmp_path / "p.py").write_text(
        "import slackwater as sw\n"
        f"source = sw.sources.kafka('{topics.servers}', pattern='{topic}')\n"
        "rows = sw.stream('rows', source).decode(sw.formats.json('ts long')).event_time('ts')\n"
        "pipeline = sw.Pipeline('p', rows.to(sw.sinks.memory()), rows.dead_letters.drop())\n"
    )
    same = CliRunner().invoke(app, ["lateness", str(tmp_path / "p.py"), "--json", "--quiet"])
    assert json.loads(same.stdout)["streams"][0]["max_ms"] == stream["max_ms"]
    few = CliRunner().invoke(app, [*alone, "--limit", "20"])
    assert json.loads(few.stdout)["streams"][0]["records"] == 20

"""A log into a topic and back, on a real broker."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from slackwater.base.errors import RunError
from slackwater.connectors.kafka import broker, client
from slackwater.connectors.kafka.connection import connection
from slackwater.connectors.kafka.exporting import export
from slackwater.connectors.kafka.playing import Pace, play
from slackwater.connectors.kafka.reading import topic_frames, topic_messages
from slackwater.connectors.log.listing import list_log
from slackwater.connectors.log.writing import LogWriter
from slackwater.tools.cli.main import app
from slackwater.tools.lateness.one_log import measure_topic
from tests.connectors.kafka.topics import Topics, until

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
    assert f"delivered 1,502 records of {tmp_path / 'log'} to {topic}" in played.stdout
    topics.produce(topic, [None], partition=1)  # a tombstone
    out = ["log", "export", str(tmp_path / "back"), "--topic", topic, "--servers", topics.servers]
    exported = CliRunner().invoke(app, out)
    assert exported.exit_code == 0, exported.output
    assert f"wrote 1,502 records of {topic} to {tmp_path / 'back'}; 1 had no value and were skipped" in exported.stdout
    assert lines(tmp_path / "back", "0") == list(range(1_500))
    assert lines(tmp_path / "back", "1") == [5_000, 5_001]


def test_records_of_a_key_go_to_one_partition(topics: Topics, tmp_path: Path) -> None:
    topic = topics.make(partitions=3)
    write(tmp_path / "log", [1, 2, 3, 1, 2, 3], [1, 2])
    play(tmp_path / "log", connection(topics.servers), topic, pace=Pace(), key="id")
    messages = [each for some in topic_messages(connection(topics.servers), [topic]) for each in some]
    places = {(message.key(), message.partition()) for message in messages}
    assert len(messages) == 8
    assert sorted(key for key, _ in places) == [b"1", b"2", b"3"]


def test_pace_is_kept(topics: Topics, tmp_path: Path) -> None:
    topic = topics.make()
    write(tmp_path / "log", list(range(3_000)))
    began = time.monotonic()
    played = play(tmp_path / "log", connection(topics.servers), topic, pace=Pace(rate=2_000))
    assert time.monotonic() - began >= 1.4, "two thousand a second, a hundred at a time"
    assert played.delivered == 3_000
    times = pl.concat(frame for _, frame in topic_frames(connection(topics.servers), [topic]))["timestamp_ms"]
    assert int(times[999]) - int(times[0]) >= 400, "nor is the first thousand sent at once"


def test_interrupted_play_delivers_what_is_queued_and_counts_what_arrived(topics: Topics, tmp_path: Path) -> None:
    topic = topics.make()
    write(tmp_path / "log", list(range(5_000)))
    command = [sys.executable, "-m", "slackwater", "produce", str(tmp_path / "log"), "--topic", topic]
    rate = ["--servers", topics.servers, "--rate", "200"]
    with subprocess.Popen([*command, *rate], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as playing:
        until(lambda: topics.cluster.ends([(topic, 0)])[topic, 0] > 50, "some records")
        playing.send_signal(signal.SIGINT)
        said, _ = playing.communicate(timeout=60)
    assert playing.returncode == 130
    arrived = topics.cluster.ends([(topic, 0)])[topic, 0]
    assert f"stopped: delivered {arrived:,} records of {tmp_path / 'log'} to {topic}" in said
    assert 50 < arrived < 5_000


def test_what_cannot_be_played_or_exported_is_reported(
    topics: Topics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    write(tmp_path / "log", [1])
    with pytest.raises(RunError, match="PLAY_EMPTY"):
        play(tmp_path / "empty", connection(topics.servers), "t", pace=Pace())
    near = topics.make()
    missing = rf"KAFKA_NO_TOPIC.*has no topic `{near}0` \(did you mean `{near}`\?\).*`slackwater kafka topic {near}0 "
    with pytest.raises(RunError, match=missing):
        play(tmp_path / "log", connection(topics.servers), f"{near}0", pace=Pace())
    with pytest.raises(RunError, match=missing):
        export(connection(topics.servers), f"{near}0", tmp_path / "back")
    assert not (tmp_path / "back").exists()
    with pytest.raises(RunError, match=missing):
        measure_topic(topics.servers, f"{near}0", time="ts")
    small = topics.make(max_message_bytes="100")
    topics.produce(small, [b"{}"])
    with LogWriter(tmp_path / "long") as log:
        log.append({"id": 1, "text": "x" * 1_000})
    with pytest.raises(RunError, match=rf"PLAY_UNDELIVERED.*; 0 records of {tmp_path / 'long'} did, then .*too large"):
        play(tmp_path / "long", connection(topics.servers), small, pace=Pace())
    with pytest.raises(RunError, match=rf"KAFKA_REFUSED.*{topics.servers} replied:.*name"):
        CliRunner().invoke(app, ["kafka", "topic", "a b", "--servers", topics.servers], catch_exceptions=False)
    nobody = f"localhost:{broker.free_port()}"
    monkeypatch.setattr(client, "_TIMEOUT_S", 1.0)
    with pytest.raises(RunError, match=rf"KAFKA_UNREACHABLE.*{nobody} does not respond"):
        CliRunner().invoke(app, ["kafka", "topic", "nowhere", "--servers", nobody], catch_exceptions=False)


def test_record_that_is_no_line_is_put_on_one_or_named(topics: Topics, tmp_path: Path) -> None:
    topic, back = topics.make(), tmp_path / "back"
    topics.produce(topic, [b'{\r\n  "id": 1,\n  "s": "a\\nb"\n}\n', b"one\ntwo", b'{"id":2}', b'{"s": "a\nb"}'])
    command = ["log", "export", str(back), "--topic", topic, "--servers", topics.servers]
    with pytest.raises(
        RunError, match=rf"EXPORT_NOT_LINES.*2 records .* exported: {topic}/0 offset 1, {topic}/0 offset 3;"
    ):
        CliRunner().invoke(app, command, catch_exceptions=False)
    [file] = list_log(back)
    first, second = Path(file.path).read_text().splitlines()
    assert (json.loads(first), second) == ({"id": 1, "s": "a\nb"}, '{"id":2}')
    with pytest.raises(RunError, match=r"EXPORT_FOLDER.*already contains 1 file; choose another folder.*--append"):
        CliRunner().invoke(app, command, catch_exceptions=False)
    more = CliRunner().invoke(app, [*command, "--append", "--skip"])
    assert more.exit_code == 0, more.output
    assert (
        f"wrote 2 records of {topic} to {back}; 2 did not fit on one line and were skipped: {topic}/0 offset 1"
        in more.stdout
    )
    assert len(list_log(back)) == 2


def test_lateness_of_a_topic_is_measured_with_and_without_a_pipeline(topics: Topics, tmp_path: Path) -> None:
    topic = topics.make(partitions=2)
    for partition in range(2):
        times = [1_000 * number - (5_000 if number % 10 == 0 else 0) for number in range(100, 200)]
        topics.produce(topic, [{"ts": ts} for ts in times], partition=partition)
    alone = ["lateness", "--kafka", f"{topics.servers}/{topic}", "--time", "ts", "--json", "--quiet"]
    said = CliRunner().invoke(app, alone)
    assert said.exit_code == 0, said.output
    [stream] = json.loads(said.stdout)["streams"]
    assert (stream["name"], stream["records"], stream["max_ms"]) == (topic, 200, 6_000 - 2_000)
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

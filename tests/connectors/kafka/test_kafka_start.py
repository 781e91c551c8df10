"""Where a Kafka source begins, and a cluster that goes away: said before Spark begins, and once each."""

from __future__ import annotations

import json
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition

import slackwater as sw
from slackwater.base.errors import RunError
from slackwater.connectors.intake import StreamPlace
from slackwater.connectors.kafka import broker, client
from slackwater.connectors.kafka.connection import connection
from slackwater.connectors.kafka.playing import Pace, Played, play
from slackwater.connectors.kafka.presence import KafkaWarning
from slackwater.connectors.kafka.source.intake import KafkaIntake
from slackwater.connectors.log.writing import LogWriter
from slackwater.engine.checkpoint.checkpoint import Checkpoint
from tests.connectors.kafka.topics import Topics, until

pytestmark = pytest.mark.kafka


def intake(source: Any, home: Path, read: dict[tuple[str, int], int] | None = None) -> KafkaIntake:  # noqa: ANN401  any Kafka source
    """Return the intake of a job whose only batch, if any, has read up to some offsets."""
    for folder in ("slackwater", "offsets", "commits"):
        (home / folder).mkdir(exist_ok=True)
    for log in (home / "offsets" / "0", home / "commits" / "0"):
        log.unlink(missing_ok=True)
    if read is not None:
        offsets: dict[str, dict[str, int]] = {}
        for (topic, partition), offset in read.items():
            offsets.setdefault(topic, {})[str(partition)] = offset
        (home / "offsets" / "0").write_text(f'v1\n{{"batchTimestampMs":0}}\n{json.dumps(offsets)}\n0')
        (home / "commits" / "0").touch()
    progress = Checkpoint(path=home, incarnation="i", partitions=1)
    place = StreamPlace(pipeline="p", stream="orders", number=0, progress=progress)
    made = source.intake(place)
    assert isinstance(made, KafkaIntake)
    return made


def test_offsets_that_are_not_there_are_reported_before_the_job_starts(topics: Topics, tmp_path: Path) -> None:
    topic = topics.make(partitions=2)
    topics.produce(topic, [b"{}"] * 10, partition=0)

    def check(parts: dict[int, int], processed: dict[tuple[str, int], int] | None = None) -> None:
        source = sw.sources.kafka(topics.servers, topic=topic, start={topic: parts})
        intake(source, tmp_path, processed).check()

    check({0: 10})
    check({1: 0})
    with pytest.raises(
        RunError, match=rf"KAFKA_OFFSETS_PARTITION.*{topics.servers} has no {topic}/2, {topic}/5; correct"
    ):
        check({0: 1, 2: 1, 5: 1})
    beyond = (
        rf"KAFKA_OFFSETS_RANGE.*: 5,700 of {topic}/0, which has 0 to 9 \(the next is 10\), 1 of {topic}/1, which has no"
    )
    with pytest.raises(RunError, match=beyond):
        check({0: 5_700, 1: 1})
    check({0: 5_700}, {(topic, 0): 5})  # an old checkpoint does not begin there
    [deleted] = topics.cluster.admin.delete_records([TopicPartition(topic, 0, 4)]).values()
    deleted.result()
    with pytest.raises(RunError, match=rf"KAFKA_OFFSETS_RANGE.*: 3 of {topic}/0, which has 4 to 9"):
        check({0: 3})


def test_kafkas_own_topics_are_not_among_those_of_a_pattern(topics: Topics) -> None:
    topic = topics.make()
    topics.committed("anybody", topic, 1)  # makes the topic in which groups are kept
    until(lambda: "__consumer_offsets" in topics.cluster.names(), "the topic of groups")
    found = topics.cluster.topics((), ".*")
    assert topic in found
    assert "__consumer_offsets" not in found


def test_cluster_that_goes_away_is_reported_once_and_once_when_it_is_back(
    kafka_parts: None, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = broker.up(tmp_path / "kafka", port=broker.free_port(), heap_mb=256)
    told: list[int] = []
    played: list[Played] = []
    stops: list[bool] = []
    try:
        topics = Topics(servers=own.servers)
        topic = topics.make()
        with LogWriter(tmp_path / "log", roll_after=None) as log:
            for number in range(20_000):
                log.append({"id": number})
        looking = intake(sw.sources.kafka(own.servers, topic=topic), tmp_path)
        looking.open()

        def playing() -> None:
            pace, way = Pace(rate=200), connection(own.servers)
            played.append(
                play(tmp_path / "log", way, topic, pace=pace, on_progress=told.append, is_stopping=lambda: bool(stops))
            )

        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            thread = threading.Thread(target=playing, daemon=True)
            thread.start()
            until(lambda: bool(told and told[-1]), "the first records")
            broker.down(tmp_path / "kafka")
            until(lambda: any("KAFKA_WAITING" in str(each.message) for each in said), "word of the broker")
            away = told[-1]
            monkeypatch.setattr(client, "_TIMEOUT_S", 1.0)
            looking.look(-1, ())
            monkeypatch.undo()
            assert told[-1] == away, "what nobody has acknowledged is not counted"
            broker.up(tmp_path / "kafka", port=own.port, heap_mb=256)
            until(lambda: told[-1] > away, "records after the restart")
            looking.look(-1, ())
            looking.look(-1, ())
            stops.append(True)
            thread.join(60)
        codes = [str(each.message).split("]")[0] for each in said if each.category is KafkaWarning]
        words = " ".join(str(each.message) for each in said)
        assert f"no broker at {own.servers} responds; retrying" in words
        assert f"{own.servers} responds again" in words
        assert sorted(codes) == ["[KAFKA_AWAY", "[KAFKA_BACK", "[KAFKA_BACK", "[KAFKA_WAITING"]
        # By a client that has not seen the broker before it was restarted.
        ends = Topics(servers=own.servers).cluster.ends([(topic, 0)])
        assert played == [Played(delivered=ends[topic, 0], is_stopped=True)]
        assert "rdkafka" not in capfd.readouterr().err
    finally:
        broker.down(tmp_path / "kafka")

"""The Kafka sink in trouble: jobs killed, the broker killed, connections cut, rights taken away."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

from slackwater.base.errors import RunError
from slackwater.base.secrets import Secret
from slackwater.connectors.delivery import SinkWarning
from slackwater.connectors.kafka import broker
from slackwater.connectors.kafka.sink import preparing, transactions, writing
from slackwater.kafka import sasl
from tests.connectors.kafka.proxy import Rough
from tests.connectors.kafka.sinks import Reader, ids, job, rows
from tests.connectors.kafka.topics import Topics, until

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
ROOT = Path(__file__).resolve().parents[3]
BATCHES: Final = 6
ROWS: Final = 400


@pytest.fixture(scope="module")
def rough_home(tmp_path_factory: pytest.TempPathFactory, kafka_parts: None) -> Iterator[Rough]:
    it = Rough(home=tmp_path_factory.mktemp("rough"))
    yield it
    it.close()


@pytest.fixture
def rough(rough_home: Rough) -> Rough:
    """Give the broker, started again if a test has left it dead."""
    rough_home.start()
    return rough_home


def started(topics: Topics, topic: str, notes: Path, **environment: str) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        "-m",
        "tests.connectors.kafka.sink_job",
        topics.servers,
        topic,
        str(notes),
        str(BATCHES),
        str(ROWS),
    ]
    return subprocess.Popen(command, cwd=ROOT, env={**os.environ, **environment})


@pytest.mark.parametrize(
    "point",
    [pytest.param("opened", marks=pytest.mark.long), "written", pytest.param("committed", marks=pytest.mark.long)],
)
def test_reader_sees_each_row_once_though_the_job_dies_at_a_named_point(
    topics: Topics, tmp_path: Path, point: str
) -> None:
    topic = topics.make(partitions=3)
    crash = {"SLACKWATER_CRASH": f"{point}@2", "SLACKWATER_CRASH_ONCE": str(tmp_path / "once")}
    with Reader(servers=topics.servers, topic=topic).reading() as reader:
        assert started(topics, topic, tmp_path / "notes", **crash).wait(60) == -signal.SIGKILL
        assert started(topics, topic, tmp_path / "notes", **crash).wait(60) == 0
        until(lambda: len(reader.seen) >= BATCHES * ROWS, "all rows", patience_s=30)
    assert ids(topics, topic) == list(range(BATCHES * ROWS))
    assert sorted(reader.seen) == list(range(BATCHES * ROWS))
    assert not reader.failed


@pytest.mark.long
def test_reader_sees_each_row_once_though_the_job_dies_at_random_moments(topics: Topics, tmp_path: Path) -> None:
    topic, notes, dice = topics.make(partitions=3), tmp_path / "notes", random.Random(5)
    kills = 0
    with Reader(servers=topics.servers, topic=topic).reading() as reader:
        while kills < 12:
            process = started(topics, topic, notes)
            try:
                code = process.wait(dice.uniform(0.4, 2.0))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                kills += 1
                continue
            assert code == 0
            break
        assert started(topics, topic, notes).wait(60) == 0
        until(lambda: len(reader.seen) >= BATCHES * ROWS, "all rows", patience_s=30)
    assert kills
    assert ids(topics, topic) == list(range(BATCHES * ROWS))
    assert sorted(reader.seen) == list(range(BATCHES * ROWS))
    assert not reader.failed


@dataclass(kw_only=True)
class Trouble:
    """Does something at a moment of the next batch, once."""

    monkeypatch: pytest.MonkeyPatch
    happened: int = 0

    def amid_rows(self, do: Any) -> None:  # noqa: ANN401  any call
        send = transactions.RecordSender.send

        def sent(sender: transactions.RecordSender, records: Any) -> None:  # noqa: ANN401  the sender's own
            send(sender, records)
            self._once(do)

        self.monkeypatch.setattr(transactions.RecordSender, "send", sent)

    def before_the_commit(self, do: Any) -> None:  # noqa: ANN401  any call
        self.monkeypatch.setattr(writing, "crash_point", lambda *_: self._once(do))

    def _once(self, do: Any) -> None:  # noqa: ANN401  any call
        self.happened += 1
        if self.happened == 1:
            do()


@pytest.mark.filterwarnings("ignore::slackwater.connectors.delivery.SinkWarning")
@pytest.mark.parametrize("moment", [pytest.param("amid_rows", marks=pytest.mark.long), "before_the_commit"])
@pytest.mark.parametrize("delivery", ["exactly_once", pytest.param("at_least_once", marks=pytest.mark.long)])
def test_broker_killed_and_started_again_in_mid_batch(
    rough: Rough, monkeypatch: pytest.MonkeyPatch, moment: str, delivery: str
) -> None:
    topic, trouble = rough.topics.make(partitions=2), Trouble(monkeypatch=monkeypatch)
    run = job(rough.topics, topic, delivery=delivery)
    run.deliver(rows(0))
    threads = []

    def killed() -> None:
        rough.kill()
        threads.append(threading.Thread(target=rough.start))
        threads[0].start()

    getattr(trouble, moment)(killed)
    run.deliver(rows(*range(1, 1_000)), rows(*range(1_000, 2_000)))
    threads[0].join()
    run.restart().deliver(rows(*range(1, 2_000)), batch=1) if delivery == "exactly_once" else None
    run.deliver(rows(2_000))
    run.close()
    found = ids(rough.topics, topic)
    assert trouble.happened
    assert set(found) == set(range(2_001))
    assert delivery == "at_least_once" or len(found) == 2_001


@pytest.mark.filterwarnings("ignore::slackwater.connectors.delivery.SinkWarning")
@pytest.mark.long
@pytest.mark.parametrize("moment", ["amid_rows", "before_the_commit"])
def test_connections_cut_in_mid_batch(rough: Rough, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    topic, trouble = rough.topics.make(partitions=2), Trouble(monkeypatch=monkeypatch)
    run = job(rough.topics, topic)
    run.deliver(rows(0))
    before = rough.proxy.cuts
    getattr(trouble, moment)(rough.proxy.cut)
    run.deliver(rows(*range(1, 1_000)), rows(*range(1_000, 2_000)))
    run.restart().deliver(rows(*range(1, 2_000)), batch=1)
    assert rough.proxy.cuts > before
    assert ids(rough.topics, topic) == list(range(2_000))


@pytest.mark.filterwarnings("ignore::slackwater.connectors.delivery.SinkWarning")
@pytest.mark.long
def test_broker_that_stays_away_is_given_up_and_the_batch_is_delivered_later(
    rough: Rough, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = rough.topics.make()
    run = job(rough.topics, topic, retry_for="1s")
    run.deliver(rows(0))
    careless = job(rough.topics, topic, output="careless", delivery="at_most_once")
    careless.start()
    monkeypatch.setattr(transactions, "CALL_S", 1.0)
    monkeypatch.setattr(transactions, "_ABORT_S", 0.1)
    rough.kill()
    with pytest.warns(SinkWarning, match=r"SINK_LOST.*output `careless` failed in batch 0"):
        careless.deliver(rows(9))
    with pytest.raises(RunError, match=r"SINK_GAVE_UP.*Kafka .* did not accept batch 1 for .*transport failure"):
        run.deliver(rows(1))
    rough.start()
    monkeypatch.undo()
    run.restart().deliver(rows(1))
    assert ids(rough.topics, topic) == [0, 1], "what was promised at most once is lost"


def test_transaction_that_takes_too_long_is_not_taken_for_another_jobs(
    rough: Rough, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, trouble = rough.topics.make(), Trouble(monkeypatch=monkeypatch)
    run = job(rough.topics, topic, options={"transaction.timeout.ms": 1_500})
    run.start()
    trouble.before_the_commit(lambda: time.sleep(4))
    with pytest.raises(RunError, match=r"KAFKA_SINK_TOO_SLOW.*`results` took \d+s(\d+ms)? .* after 1s500ms"):
        run.deliver(rows(1))
    assert ids(rough.topics, topic) == []
    run.restart().deliver(rows(1))
    assert ids(rough.topics, topic) == [1]


@pytest.mark.filterwarnings("ignore::slackwater.connectors.delivery.SinkWarning")
@pytest.mark.long
def test_topic_deleted_under_a_job_is_trouble_that_names_it(rough: Rough, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = rough.topics.make()
    run = job(rough.topics, topic, retry_for="3s")
    run.deliver(rows(0))
    monkeypatch.setattr(transactions, "CALL_S", 2.0)
    [gone] = rough.topics.cluster.admin.delete_topics([topic]).values()
    gone.result()
    until(lambda: not rough.topics.cluster.partitions([topic]), "the topic to be gone")
    with pytest.raises(RunError, match=rf"SINK_GAVE_UP.*topic {topic} or one of its partitions does not exist"):
        run.deliver(rows(1))


@dataclass(kw_only=True)
class Guarded:
    topics: Topics
    servers: str
    """Where one has to log in."""


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, kafka_parts: None) -> Iterator[Guarded]:
    home, port, inner = tmp_path_factory.mktemp("guarded"), broker.free_port(), broker.free_port()
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    settings = {
        "listeners": f"OUTER://localhost:{port},INNER://localhost:{inner},CONTROLLER://localhost:{{controller_port}}",
        "advertised.listeners": f"OUTER://localhost:{port},INNER://localhost:{inner}",
        "listener.security.protocol.map": "OUTER:SASL_PLAINTEXT,INNER:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "INNER",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.outer.plain.sasl.jaas.config": f'{module} required user_orders="right";',
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    broker.up(home, port=port, heap_mb=256, settings=settings)
    yield Guarded(topics=Topics(servers=f"localhost:{inner}"), servers=f"localhost:{port}")
    broker.down(home)


def allow(topics: Topics, kind: ResourceType, name: str, *operations: AclOperation) -> None:
    bindings = [
        AclBinding(kind, name, ResourcePatternType.PREFIXED, "User:orders", "*", operation, AclPermissionType.ALLOW)
        for operation in operations
    ]
    for future in topics.cluster.admin.create_acls(bindings).values():
        future.result()


@pytest.mark.long
def test_rights_are_asked_for_at_the_start_one_after_the_other(
    guarded: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORDERS_PASSWORD", "right")
    topic = guarded.topics.make()
    login = sasl("PLAIN", "orders", Secret("ORDERS_PASSWORD"))
    outer = Topics(servers=guarded.servers)
    run = job(outer, topic, sasl=login)

    def denied(words: str) -> None:
        with pytest.raises(RunError, match=rf"KAFKA_SINK_DENIED.*{words}.*grant the user WRITE"):
            run.restart().start()

    denied("Topic authorization failed")
    allow(guarded.topics, ResourceType.TOPIC, topic, AclOperation.DESCRIBE)
    denied(f"denies WRITE on topic `{topic}`")
    allow(guarded.topics, ResourceType.TOPIC, topic, AclOperation.WRITE)
    denied("uthorization failed")
    marks = f"slackwater.marks.test.results.{topic}"
    allow(guarded.topics, ResourceType.TOPIC, marks, AclOperation.CREATE, AclOperation.DESCRIBE)
    denied("Transactional Id authorization failed")
    denied(f"denies WRITE and READ on topic `{marks}`")
    allow(guarded.topics, ResourceType.TOPIC, marks, AclOperation.READ, AclOperation.WRITE)
    denied("Transactional Id authorization failed")
    transactions = (AclOperation.WRITE, AclOperation.DESCRIBE)
    allow(guarded.topics, ResourceType.TRANSACTIONAL_ID, f"test.results.{topic}", *transactions)
    run.restart().deliver(rows(1))
    assert ids(guarded.topics, topic) == [1], "no more rights are needed: not of a group, not of the cluster"
    run.restart().deliver(rows(1), batch=0)
    assert ids(guarded.topics, topic) == [1]


@pytest.mark.long
def test_wrong_password_is_reported_at_the_start_and_not_shown(
    guarded: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORDERS_PASSWORD", "wr0ng")
    monkeypatch.setattr(preparing, "_TIMEOUT_S", 2.0)
    topic = guarded.topics.make()
    login = sasl("PLAIN", "orders", Secret("ORDERS_PASSWORD"))
    with pytest.raises(RunError, match=r"KAFKA_SINK_DENIED.*uthentication failed.*check the password") as said:
        job(Topics(servers=guarded.servers), topic, sasl=login).start()
    assert "wr0ng" not in str(said.value)

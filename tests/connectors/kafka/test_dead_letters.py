"""Dead letters in a topic, and sent to one: each record once, on a real broker."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from confluent_kafka import Producer, TopicPartition
from typer.testing import CliRunner

from slackwater.base.errors import SlackwaterError
from slackwater.formats.dead_letter_json import encode_letters
from slackwater.tools.cli.dead_letters import dead_letters
from slackwater.tools.dead_letters import to_kafka
from slackwater.tools.dead_letters.ledger import Ledger, read_ledger
from slackwater.tools.dead_letters.places import Folder, Topic
from slackwater.tools.dead_letters.reading import scan_letters
from slackwater.tools.dead_letters.to_kafka import RetriesToTopic
from slackwater.tools.dead_letters.topics import ends_of, high_ends_of, read_topic
from tests.connectors.kafka.topics import Topics, until
from tests.tools.dead_letters.letters import deliver, headers, letters

pytestmark = pytest.mark.kafka


class Crash(BaseException):
    """The process dies here."""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty folder: ledgers of topics go there."""
    monkeypatch.chdir(tmp_path)


def run(*arguments: object, code: int = 0) -> str:
    done = CliRunner().invoke(dead_letters, [str(each) for each in arguments], catch_exceptions=False)
    assert done.exit_code == code
    return done.stdout


def url(topics: Topics, topic: str) -> str:
    return f"kafka://{topics.servers}/{topic}"


def held(topics: Topics, topic: str) -> list[Any]:
    """Return the committed records of a topic, by partition and offset.

    A commit is final before readers see it: the broker marks the partitions a moment later.
    """
    place = Topic(connection=topics.cluster.connection, name=topic)
    until(lambda: ends_of(place) == high_ends_of(place), "the end of all transactions")
    return sorted(read_topic(place, {}), key=lambda message: (message.partition(), message.offset()))


def values(topics: Topics, topic: str) -> list[bytes]:
    return [message.value() for message in held(topics, topic)]


def made(topics: Topics, folder: str = "dead") -> tuple[str, str]:
    """Make a topic of two partitions with a record, and a folder of letters of it; returns the topic and its URL."""
    topic = topics.make(partitions=2)
    topics.produce(topic, [b"good"], partition=1)
    given: dict[str, Any] = {"partition": f"{topic}/1", "source": f"{topic}/1"}
    deliver(Path(folder), letters([b"a", b"b"], **given), letters([b"c"], hour=1, **given))
    return topic, url(topics, topic)


def test_letters_of_a_topic_are_listed_shown_and_sent(topics: Topics) -> None:
    dead, target = topics.make(partitions=2), topics.make(partitions=3)
    rows = letters(
        [b"\xff", b"{}", None],
        key=pl.Series([b"k", None, None]),
        headers=headers([("h", b"\xff"), (to_kafka.RETRY_HEADER, b"an/earlier")], None, []),
        partition=pl.Series([f"{target}/2", f"{target}/7", "phones"]),
        reason=pl.Series(["malformed", "wrong_type", "malformed"]),
    )
    for number, value in enumerate(encode_letters(rows)):
        topics.produce(dead, [value.encode()], partition=number % 2)
    said = run("list", url(topics, dead), "--reason", "malformed")
    assert said.count("malformed") == 2
    assert "3 dead letters in kafka://" in run("stats", url(topics, dead))
    first = said.splitlines()[3].split()[0]
    assert "  00000000  ff" in run("show", url(topics, dead), first)
    assert "sent 3 records" in run("retry", url(topics, dead), "--to", url(topics, target), "--yes")
    assert Path(f".slackwater/retried-{dead}.jsonl").exists()
    assert "3 already sent" in run("retry", url(topics, dead), "--to", url(topics, target), "--yes")
    by_value = {message.value(): message for message in held(topics, target)}
    assert set(by_value) == {b"\xff", b"{}", None}
    back = by_value[b"\xff"]
    assert (back.partition(), back.key()) == (2, b"k")
    assert [name for name, _ in back.headers()] == ["h", to_kafka.RETRY_HEADER]
    assert back.headers()[0][1] == b"\xff"
    assert back.headers()[1][1].startswith(first.encode())


def test_letters_of_a_topic_go_to_a_log(topics: Topics) -> None:
    dead = topics.make()
    topics.produce(dead, [value.encode() for value in encode_letters(letters([b"a", b"b"]))])
    Path("log").mkdir()
    for words in ("sent 2 records", "2 already sent"):
        assert words in run("retry", url(topics, dead), "--to", "log", "--ledger", "mine.jsonl", "--yes")
    assert Path("log/phones/00000000000000000000.jsonl").read_bytes() == b"a\nb\n"


def test_record_that_is_no_letter_is_named_by_its_offset_and_one_without_a_value_is_passed_over(topics: Topics) -> None:
    dead = topics.make()
    assert "no matching dead letters" in run("list", url(topics, dead))
    producer = Producer({"bootstrap.servers": topics.servers})
    producer.produce(dead, None, b"key")
    producer.flush(30)
    topics.produce(dead, [encode_letters(letters([b"a"]))[0].encode()])
    assert "1 dead letter in" in run("stats", url(topics, dead))
    topics.produce(dead, [b"nothing"])
    with pytest.raises(SlackwaterError, match=r"DEAD_LETTER_JSON.*offset 2 of partition 0 of kafka://.* is b'nothing'"):
        run("list", url(topics, dead))


def test_topic_that_is_not_there_is_reported(topics: Topics) -> None:
    deliver(Path("dead"), letters([b"a"]))
    words = r"\[DEAD_LETTERS_TOPIC_MISSING\].* has no topic `nowhere`; correct the name, or create it"
    for arguments in (["list", url(topics, "nowhere")], ["retry", "dead", "--to", url(topics, "nowhere"), "--yes"]):
        with pytest.raises(SlackwaterError, match=words):
            run(*arguments)


def then_crash(call: Callable[..., Any]) -> Callable[..., Any]:
    def wrapped(*arguments: Any, **options: Any) -> None:  # noqa: ANN401
        call(*arguments, **options)
        raise Crash

    return wrapped


def produced_but_not_committed(target: RetriesToTopic, intent: Any, rows: pl.DataFrame) -> None:  # noqa: ANN401
    target._producer = target._transactional(target.transaction)
    target._producer.begin_transaction()
    for record in rows.iter_rows(named=True):
        target._produce(record, intent, 2)
    assert target._producer.flush(30) == 0
    raise Crash


CRASHES: dict[str, tuple[object, str, Callable[..., Any]]] = {
    "after 3": (Ledger, "intend", then_crash(Ledger.intend)),
    "within 4, records produced": (RetriesToTopic, "publish", produced_but_not_committed),
    "after 4": (RetriesToTopic, "publish", then_crash(RetriesToTopic.publish)),
    "after 5": (Ledger, "settle", then_crash(Ledger.settle)),
}


def crash(point: str, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(*CRASHES[point])
        with pytest.raises(Crash):
            run("retry", "dead", "--to", topic, "--yes")


@pytest.mark.parametrize("point", CRASHES)
def test_crash_neither_loses_nor_doubles_a_record(topics: Topics, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    topic, target = made(topics)
    crash(point, target, monkeypatch)
    topics.produce(topic, [b"between"], partition=1)
    run("retry", "dead", "--to", target, "--yes")
    assert sorted(values(topics, topic)) == [b"a", b"b", b"between", b"c", b"good"]
    assert {message.partition() for message in held(topics, topic)} == {1}
    book = read_ledger(Path("dead/_retried.jsonl"))
    assert sorted(book.retried["id"]) == sorted(scan_letters(Folder(path=Path("dead"))).collect()["id"])
    assert book.open == ()


def test_batch_behind_an_open_transaction_of_somebody_else_is_not_sent_again(
    topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, target = made(topics)
    other = Producer({"bootstrap.servers": topics.servers, "transactional.id": f"other-{topic}"})
    other.init_transactions(30)
    other.begin_transaction()
    other.produce(topic, b"theirs", partition=1)
    assert other.flush(30) == 0
    crash("after 4", target, monkeypatch)
    words = r"\[RETRY_UNSURE\].*another transaction is open on the topic"
    with monkeypatch.context() as patched:
        patched.setattr(to_kafka, "_PATIENCE_S", 0.3)
        with pytest.raises(SlackwaterError, match=words):
            run("retry", "dead", "--to", target, "--yes")
    other.commit_transaction(30)
    assert "3 already sent" in run("retry", "dead", "--to", target, "--yes")
    assert sorted(values(topics, topic)) == [b"a", b"b", b"c", b"good", b"theirs"]


def test_topic_that_has_forgotten_its_tail_is_unsure(topics: Topics, monkeypatch: pytest.MonkeyPatch) -> None:
    topic, target = made(topics)
    crash("after 4", target, monkeypatch)
    place = Topic(connection=topics.cluster.connection, name=topic)
    until(lambda: ends_of(place)[1] >= 1 + 3, "the commit's marker, which comes after its answer")
    end = ends_of(place)[1]
    [done] = topics.cluster.admin.delete_records([TopicPartition(topic, 1, end)]).values()
    done.result()
    words = r"\[RETRY_UNSURE\].*partition 1 no longer has offset 1; find out"
    with pytest.raises(SlackwaterError, match=words) as caught:
        run("retry", "dead", "--to", target, "--yes")
    ledger = Path("dead/_retried.jsonl")
    advice = re.search(r"add the line `(.*)` to ", str(caught.value))
    assert advice is not None
    ledger.write_text(ledger.read_text() + advice[1] + "\n")
    assert "3 already sent" in run("retry", "dead", "--to", target, "--yes")

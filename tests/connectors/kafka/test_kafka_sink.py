"""The Kafka sink against a real broker: rows as records, each once, whatever is delivered again."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import polars as pl
import pytest

from slackwater.base.errors import DefinitionError, RunError
from slackwater.connectors.kafka.sink import KafkaSink, kafka, marks, preparing, transactions, writing
from slackwater.connectors.kafka.sink.preparing import MARKS_PARTITIONS
from slackwater.formats.dead_letter_columns import DEAD_LETTER_SCHEMA
from slackwater.testing import SinkHarness
from slackwater.tools.dead_letters.places import Topic
from slackwater.tools.dead_letters.reading import scan_letters
from tests.connectors.kafka.sinks import SCHEMA, Crash, ids, job, records, rows, settle
from tests.connectors.kafka.topics import Topics, until
from tests.tools.dead_letters.letters import headers as letter_headers
from tests.tools.dead_letters.letters import letters

pytestmark = pytest.mark.kafka


def marks_topic(run: SinkHarness) -> str:
    assert isinstance(run.sink, KafkaSink)
    return run.sink.marks(run.start().slot)


def delete(topics: Topics, name: str) -> None:
    [gone] = topics.cluster.admin.delete_topics([name]).values()
    gone.result()
    until(lambda: not topics.cluster.partitions([name]), f"{name} to be gone")


def once(monkeypatch: pytest.MonkeyPatch, do: Callable[[], None]) -> None:
    """Do something between a batch's last record and its commit, in the next batch alone."""
    left = [do]

    def crash_point(_name: str, _batch: int) -> None:
        if left:
            left.pop()()

    monkeypatch.setattr(writing, "crash_point", crash_point)


def die() -> None:
    raise Crash


def test_rows_become_records_with_keys_json_and_headers(topics: Topics) -> None:
    topic = topics.make(partitions=2)
    schema = pl.Schema({"who": pl.String(), "at": pl.Datetime("us", "UTC"), "raw": pl.Binary(), "n": pl.Int64()})
    frame = pl.DataFrame(
        [["ann", datetime(2024, 5, 1, 12, tzinfo=UTC), b"\xff", 1], ["bé", None, None, None]],
        schema=schema,
        orient="row",
    )
    headers = {"n": "n", "region": pl.lit("eu"), "twice": pl.col("n") * 2, "raw": "raw"}
    with job(topics, topic, key="who", schema=schema, headers=headers) as run:
        run.deliver(frame)
    settle(topics, topic)
    found = {message.key(): message for message in records(topics, topic)}
    assert json.loads(found[b"ann"].value()) == {"who": "ann", "at": "2024-05-01T12:00:00+00:00", "raw": "/w==", "n": 1}
    assert json.loads(found["bé".encode()].value()) == {"who": "bé", "at": None, "raw": None, "n": None}
    assert found[b"ann"].headers() == [("n", b"1"), ("region", b"eu"), ("twice", b"2"), ("raw", b"\xff")]
    assert found["bé".encode()].headers() == [("n", None), ("region", b"eu"), ("twice", None), ("raw", None)]


def test_keys_land_where_javas_clients_put_them(topics: Topics) -> None:
    # The hashes are those of Kafka's own UtilsTest.
    hashes = {"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536, "abc": 479470107}
    topic = topics.make(partitions=7)
    with job(topics, topic) as run:
        run.deliver(pl.DataFrame({"id": range(4), "name": list(hashes)}, schema=SCHEMA))
    settle(topics, topic)
    found = {message.key().decode(): message.partition() for message in records(topics, topic)}
    assert found == {key: (value & 0x7FFFFFFF) % 7 for key, value in hashes.items()}


def test_rows_of_a_key_stay_in_order_through_a_full_queue(topics: Topics) -> None:
    topic = topics.make(partitions=2)
    frame = rows(*range(30_000)).with_columns(name=pl.col("id").mod(3).cast(pl.String))
    for headers in (None, {"n": "name"}):
        options = {"queue.buffering.max.messages": 700}
        with job(topics, topic, headers=headers, options=options, pipeline=f"full-{headers is None}") as run:
            run.deliver(frame[:20_000], frame[20_000:])
    settle(topics, topic)
    by_key: dict[bytes, list[int]] = {}
    for message in records(topics, topic):
        by_key.setdefault(message.key(), []).append(json.loads(message.value())["id"])
    assert by_key == {str(n).encode(): 2 * list(range(n, 30_000, 3)) for n in range(3)}


def test_death_before_the_commit_leaves_nothing_visible_and_the_repetition_writes_once(
    topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = topics.make(partitions=2)
    run = job(topics, topic)
    run.deliver(rows(1))
    settle(topics, topic)
    once(monkeypatch, die)
    with pytest.raises(Crash):
        run.deliver(rows(2, 3))
    assert len(records(topics, topic, isolation="read_uncommitted")) == 3, "the rows had been sent"
    assert [json.loads(each.value())["id"] for each in records(topics, topic)] == [1]
    run.restart().deliver(rows(2, 3))
    assert ids(topics, topic) == [1, 2, 3]


def test_mark_is_found_behind_many_aborted_ones(topics: Topics, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = topics.make()
    run = job(topics, topic)
    run.deliver(rows(1))
    monkeypatch.setattr(marks, "NEAR", 2)
    for _ in range(4):
        once(monkeypatch, die)
        with pytest.raises(Crash):
            run.restart().deliver(rows(2))
    once(monkeypatch, lambda: None)
    run.restart().deliver(rows(1), batch=0)
    run.deliver(rows(2))
    assert ids(topics, topic) == [1, 2]


def test_zombie_that_commits_later_is_shut_out(topics: Topics, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = topics.make()
    zombie = job(topics, topic)
    zombie.deliver(rows(1))
    other = replace(zombie, _open_slot=None)
    once(monkeypatch, lambda: other.deliver(rows(2)))
    with pytest.raises(RunError, match=r"SINK_FENCED.*opened by another writer for slot 0 of output `results`"):
        zombie.deliver(rows(2))
    other.deliver(rows(3))
    assert ids(topics, topic) == [1, 2, 3]


def test_zombie_that_goes_on_sending_is_shut_out(topics: Topics, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = topics.make()
    zombie = job(topics, topic)
    zombie.deliver(rows(1))
    other = replace(zombie, _open_slot=None)
    send, left = transactions.RecordSender.send, [other]

    def send_between(self: transactions.RecordSender, records: Any) -> None:  # noqa: ANN401  the sender's own
        send(self, records)
        if left:
            left.pop().deliver(rows(2, 3))

    monkeypatch.setattr(transactions.RecordSender, "send", send_between)
    with pytest.raises(RunError, match="SINK_FENCED"):
        zombie.deliver(rows(2), rows(3))
    assert ids(topics, topic) == [1, 2, 3]


def test_topic_that_is_gone_is_not_made_anew(topics: Topics) -> None:
    topic = f"{topics.make()}-made"
    run = job(topics, topic, create=1)
    run.deliver(rows(1))
    delete(topics, topic)
    words = rf"KAFKA_SINK_TOPIC_GONE.*topic `{topic}`, .* no longer exists.*new checkpoint.*--take-over"
    with pytest.raises(RunError, match=words):
        run.restart().deliver(rows(2))
    assert not topics.cluster.partitions([topic])
    run = replace(run, take_over=True, _open_slot=None)
    run.deliver(rows(2))
    replace(run, take_over=False, _open_slot=None).deliver(rows(3))
    assert ids(topics, topic) == [2, 3]


def test_topic_that_was_created_again_is_not_the_one_that_has_the_rows(topics: Topics) -> None:
    topic = topics.make()
    run = job(topics, topic)
    run.deliver(rows(1))
    delete(topics, topic)
    topics.cluster.create_topic(topic)
    until(lambda: bool(topics.cluster.partitions([topic])), f"{topic} to be there again")
    with pytest.raises(RunError, match=r"SINK_MARK_MISSING.*has no mark in slot 0.*wrote batch 0.*--take-over"):
        run.restart().deliver(rows(2))
    assert ids(topics, topic) == []
    replace(run, incarnation="second", marked=[], _open_slot=None).deliver(rows(1))
    assert ids(topics, topic) == [1], "a new checkpoint begins in the new topic"


def test_mark_of_an_earlier_version_without_the_topics_id_is_a_mark(
    topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = topics.make()
    run = job(topics, topic)
    with monkeypatch.context() as earlier:
        earlier.setattr(writing, "mark_record", lambda mark, _: json.dumps(mark.as_dict()))
        run.deliver(rows(1))
    run.restart().deliver(rows(1), batch=0)
    run.restart().deliver(rows(2))
    assert ids(topics, topic) == [1, 2]


def test_slots_have_marks_of_their_own_and_an_open_one_hides_no_other(
    topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = topics.make()
    driver = job(topics, topic)
    far = replace(driver, slot=MARKS_PARTITIONS + 3, _open_slot=None)
    driver.start()
    assert len(topics.cluster.partitions([marks_topic(driver)])) == MARKS_PARTITIONS
    once(monkeypatch, die)
    with pytest.raises(Crash):
        far.deliver(rows(1))
    driver.deliver(rows(2))
    driver.restart().deliver(rows(2), batch=0)
    far.restart().deliver(rows(1))
    far.restart().deliver(rows(1), batch=0)
    assert len(topics.cluster.partitions([marks_topic(driver)])) == MARKS_PARTITIONS + 16
    assert ids(topics, topic) == [1, 2]


def test_marks_topic_can_be_shared_though_one_waits_for_the_other(topics: Topics) -> None:
    topic, marks = topics.make(), topics.make(cleanup_policy="compact")
    jobs = [job(topics, topic, output=output, marks_topic=marks) for output in ("one", "two")]
    for _ in range(2):
        for at, run in enumerate(jobs):
            run.restart().deliver(rows(at), batch=0)
    for run in jobs:
        run.close()
    assert ids(topics, topic) == [0, 1]
    assert len(topics.cluster.partitions([marks])) == MARKS_PARTITIONS, "a user's topic is grown"


def test_at_least_once_writes_again_and_without_marks(topics: Topics) -> None:
    topic = topics.make()
    run = job(topics, topic, delivery="at_least_once", pipeline="plain")
    run.deliver(rows(1, 2))
    run.restart().deliver(rows(1, 2), batch=0)
    run.close()
    assert ids(topics, topic) == [1, 1, 2, 2]
    assert not topics.cluster.partitions([marks_topic(run)])


def test_at_most_once_sends(topics: Topics) -> None:
    topic = topics.make()
    with job(topics, topic, delivery="at_most_once") as run:
        run.deliver(rows(1, 2))
    until(lambda: len(records(topics, topic)) == 2, "records that nobody waited for", patience_s=20)


def test_retractions_become_tombstones_of_the_last_change_of_a_key(topics: Topics) -> None:
    topic = topics.make(cleanup_policy="compact")
    schema = pl.Schema({"name": pl.String(), "n": pl.Int64(), "is_retraction": pl.Boolean()})

    def changes(*given: tuple[str, int, bool]) -> pl.DataFrame:
        return pl.DataFrame(given, schema=schema, orient="row")

    with job(topics, topic, schema=schema, tombstones=True) as run:
        run.deliver(changes(("a", 1, False), ("b", 1, False)))
        run.deliver(changes(("a", 1, True), ("b", 1, True)), changes(("c", 5, False), ("a", 2, False)))
        with pytest.raises(RunError, match=r"SINK_KEY_NULL.*`results` has a row with null in `name`"):
            run.deliver(changes(("d", 1, False)).with_columns(name=None).cast(schema))
    settle(topics, topic)
    found = [(each.key(), each.value() and json.loads(each.value())["n"]) for each in records(topics, topic)]
    assert found == [(b"a", 1), (b"b", 1), (b"b", None), (b"c", 5), (b"a", 2)]


def test_changelog_keeps_retractions_as_rows(topics: Topics) -> None:
    topic = topics.make()
    schema = pl.Schema({"name": pl.String(), "is_retraction": pl.Boolean()})
    with job(topics, topic, schema=schema, changelog=True) as run:
        run.deliver(pl.DataFrame({"name": ["a", "a"], "is_retraction": [False, True]}, schema=schema))
    settle(topics, topic)
    assert [json.loads(each.value())["is_retraction"] for each in records(topics, topic)] == [False, True]


def test_dead_letters_are_read_by_their_own_tools(topics: Topics) -> None:
    topic = topics.make()
    dead = letters([b"\xff", None], headers=letter_headers([("h", b"\xff")], None), key=pl.Series([b"k", None]))
    with job(topics, topic, key=None, schema=DEAD_LETTER_SCHEMA) as run:
        run.deliver(dead)
    settle(topics, topic)
    place = Topic(connection=topics.cluster.connection, name=topic)
    assert scan_letters(place).drop("id", "record").collect().equals(dead)


class Upper:
    """A format that writes one column, and remembers what it was asked for."""

    def encoder(self, schema: pl.Schema, *, subject: str) -> Upper:
        self.asked = (schema, subject)
        return self

    def encode(self, frame: pl.DataFrame) -> pl.Series:
        return frame["name"].str.to_uppercase().cast(pl.Binary)


def test_values_are_written_by_a_format_that_can_encode(topics: Topics) -> None:
    topic, upper = topics.make(), Upper()
    with job(topics, topic, value=upper) as run:
        run.deliver(rows(7))
    settle(topics, topic)
    assert [each.value() for each in records(topics, topic)] == [b"N7"]
    assert upper.asked == (SCHEMA, f"{topic}-value")


def test_missing_topic_is_an_error_with_a_near_miss_or_is_created_when_asked_for(topics: Topics) -> None:
    topic = topics.make()
    with pytest.raises(RunError, match=rf"KAFKA_SINK_TOPIC_MISSING.*no topic `{topic}x` \(did you mean `{topic}`"):
        job(topics, f"{topic}x").start()
    for _ in range(2):
        with job(topics, f"{topic}-made", create=3) as run:
            run.start()
    assert len(topics.cluster.partitions([f"{topic}-made"])) == 3


def test_transaction_longer_than_the_broker_allows_is_reported_at_the_start(
    topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = job(topics, topics.make(), options={"transaction.timeout.ms": 3_600_000})
    with pytest.raises(RunError, match=r"KAFKA_SINK_TIMEOUT.*timeout.ms=3600000, .* allows 900000 ms"):
        run.start()
    monkeypatch.setattr(preparing.Topics, "check_timeout", lambda _: None)
    with pytest.raises(RunError, match=r"KAFKA_SINK_TIMEOUT.*timeout.ms=3600000, .* allows less"):
        run.start()


def test_marks_topic_that_forgets_is_refused(topics: Topics) -> None:
    marks = topics.make()
    with pytest.raises(RunError, match=rf"KAFKA_SINK_MARKS_POLICY.*`{marks}` has cleanup.policy=delete"):
        job(topics, topics.make(), marks_topic=marks).start()


def test_record_too_large_says_which_limit_to_raise(topics: Topics) -> None:
    big = pl.DataFrame({"id": [1], "name": ["x" * 2_000]}, schema=SCHEMA)
    for headers in (None, {"a": pl.lit("a")}):
        with (
            job(topics, topics.make(), key=None, options={"message.max.bytes": 1_500}, headers=headers) as run,
            pytest.raises(
                RunError, match=r"KAFKA_SINK_TOO_LARGE.*than 1500 bytes; raise message.max.bytes in `options`"
            ),
        ):
            run.deliver(big)
    topic = topics.make(max_message_bytes="1000")
    options = {"compression.type": "none"}
    with (
        job(topics, topic, key=None, options=options) as run,
        pytest.raises(RunError, match=r"KAFKA_SINK_TOO_LARGE.*the topic allows; raise the topic's max.message.bytes"),
    ):
        run.deliver(rows(1), big)
    assert ids(topics, topic) == []


def test_record_that_the_topic_does_not_accept_is_an_error(topics: Topics) -> None:
    topic = topics.make(cleanup_policy="compact")
    with (
        job(topics, topic, key=None) as run,
        pytest.raises(RunError, match=r"KAFKA_SINK_RECORD.*rejected one of output `results`.*compacted topic needs"),
    ):
        run.deliver(rows(1))


def test_options_that_librdkafka_does_not_know_are_reported(topics: Topics) -> None:
    with pytest.raises(RunError, match=r"KAFKA_SINK_SETTING.*librdkafka replied: .*lingers.ms"):
        job(topics, topics.make(), options={"lingers.ms": 5}).start()


@pytest.mark.parametrize(
    "wrong, words",
    [
        ({"key": "nam"}, r"`key` .* has no nam \(did you mean `name`\?\); it has id, name"),
        ({"headers": {"h": "nam"}}, r"`headers` .* has no nam \(did you mean"),
        ({"headers": {"h": pl.col("nam") + 1}}, r"`headers` .* has no "),
        ({"headers": {"h": pl.all()}}, r"`headers` .* has no "),
    ],
)
def test_columns_that_are_not_there_are_reported_at_the_start(
    topics: Topics, wrong: dict[str, Any], words: str
) -> None:
    with pytest.raises(DefinitionError, match=rf"KAFKA_SINK_COLUMN.*{words}"):
        job(topics, "any", **wrong).start()


def test_sink_travels_to_executors(topics: Topics) -> None:
    topic = topics.make()
    sink = pickle.loads(pickle.dumps(kafka(topics.servers, topic, key="name", headers={"n": pl.col("id") + 1})))  # noqa: S301  our own
    with SinkHarness(sink=sink, schema=SCHEMA, slot=2) as run:
        run.deliver(rows(1))
    assert ids(topics, topic) == [1]

"""The Kafka sink as it is written down: what is refused, and how its names and records are made."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.base.errors import DefinitionError, RunError
from slackwater.base.secrets import Secret
from slackwater.connectors.kafka.sink import kafka
from slackwater.connectors.kafka.sink.names import identity_of
from slackwater.connectors.kafka.sink.records import Encoded, Records
from slackwater.connectors.sink import SinkBatch, Slot, Unavailable
from slackwater.kafka import sasl

SERVERS = "localhost:9092"


@pytest.mark.parametrize(
    "wrong, words",
    [
        ({"topic": "a b"}, "KAFKA_SINK_TOPIC.*`topic` .*got 'a b'"),
        ({"topic": ".."}, "KAFKA_SINK_TOPIC.*got '..'"),
        ({"topic": None}, "KAFKA_SINK_TOPIC.*`topic` .*got None"),
        ({"marks_topic": "a/b"}, "KAFKA_SINK_TOPIC.*`marks_topic` .*got 'a/b'"),
        ({"marks_topic": "t"}, "KAFKA_SINK_MARKS.*got the topic itself"),
        ({"marks_topic": "m", "delivery": "at_least_once"}, 'KAFKA_SINK_MARKS.*got delivery="at_least_once"'),
        ({"delivery": "twice"}, "SINK_OPTION.*`delivery` .*exactly_once.*'twice'"),
        ({"partitioner": "murmur3"}, "KAFKA_SINK_PARTITIONER.*murmur2_random.*got 'murmur3'"),
        ({"create": 0}, "KAFKA_SINK_CREATE.*got 0"),
        ({"create": True}, "KAFKA_SINK_CREATE.*got True"),
        ({"changelog": True, "tombstones": True, "key": "k"}, "KAFKA_SINK_CHANGES.*both"),
        ({"tombstones": True}, "KAFKA_SINK_TOMBSTONE_KEY.*without `key`"),
        (
            {"tombstones": "no", "key": "k"},
            "SINK_OPTION.*`tombstones` of the Kafka sink must be True or False; got 'no'",
        ),
        ({"changelog": None}, "SINK_OPTION.*`changelog` .*True or False; got None"),
        ({"key": ["a", "a"]}, r"KAFKA_SINK_KEY.*got \['a', 'a'\]"),
        ({"key": []}, "KAFKA_SINK_KEY"),
        ({"key": 7}, "KAFKA_SINK_KEY.*got 7"),
        ({"value": "avro"}, "KAFKA_SINK_VALUE.*got 'avro'"),
        ({"value": object()}, "KAFKA_SINK_VALUE.*got object"),
        ({"headers": {"h": 7}}, "KAFKA_SINK_HEADERS.*got 'h': 7"),
        ({"headers": ["h"]}, "KAFKA_SINK_HEADERS.*got list"),
        ({"options": ["linger.ms"]}, "KAFKA_SINK_OPTION.*got list; give a mapping"),
        ({"options": {"linger.ms": None}}, "KAFKA_SINK_OPTION.*got 'linger.ms'; names must be strings"),
        ({"options": {"acks": 1}}, "KAFKA_SINK_OPTION.*got `acks`; the sink sets it by `delivery`"),
        ({"options": {"enable.idempotence": False}}, "KAFKA_SINK_OPTION.*`enable.idempotence`"),
        ({"options": {"transactional.id": "x"}}, "KAFKA_SINK_OPTION.*`transactional.id`"),
        ({"options": {"sasl.password": "x"}}, "KAFKA_SINK_OPTION.*`sasl.password`; give it as sasl="),
        ({"options": {"ssl.ca.location": "x"}}, "KAFKA_SINK_OPTION.*give it as tls="),
        ({"options": {"bootstrap.servers": "x"}}, "KAFKA_SINK_OPTION.*give them as `servers`"),
        ({"options": {"partitioner": "x"}}, "KAFKA_SINK_OPTION.*give it as `partitioner`"),
        ({"options": {"transaction.timeout.ms": "soon"}}, "KAFKA_SINK_OPTION.*'soon'; it must be 1000 ms or more"),
        (
            {"options": {"transaction.timeout.ms": 9_000}, "delivery": "at_least_once"},
            "KAFKA_SINK_OPTION.*uses transactions",
        ),
        ({"retry_for": "soon"}, "DURATION_UNREADABLE.*retry_for"),
        ({"servers": "nowhere"}, "KAFKA_SERVERS"),
        ({"servers": "me:hush@host:9092"}, "KAFKA_SERVERS.*got '…@host:9092'"),
        ({"options": {"SASL.password": "hush"}}, "KAFKA_SINK_OPTION.*keeps secrets"),
    ],
)
def test_misuse_is_refused_with_words(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(DefinitionError, match=words):
        kafka(**{"servers": SERVERS, "topic": "t", **wrong})


def test_message_of_a_wrong_password_option_does_not_repeat_it() -> None:
    with pytest.raises(DefinitionError) as refused:
        kafka(SERVERS, "t", options={"sasl.password": "pl4nted"})
    assert "pl4nted" not in str(refused.value)


def test_sink_shows_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "pl4nted")
    sink = kafka(SERVERS, "t", sasl=sasl("PLAIN", "orders", Secret("KAFKA_PASSWORD")))
    assert str(sink) == "Kafka t at localhost:9092 (SASL)"
    assert "pl4nted" not in repr(sink)


def test_changes_that_a_topic_takes_follow_from_what_readers_expect() -> None:
    assert kafka(SERVERS, "t").takes == {"append", "update"}
    assert kafka(SERVERS, "t", changelog=True).takes == {"append", "update", "retract"}
    assert kafka(SERVERS, "t", tombstones=True, key="k").takes == {"append", "update", "retract"}


def test_identity_is_plain_where_it_can_be() -> None:
    assert identity_of("orders", "totals", "out.v1") == "orders.totals.out.v1"
    assert re.fullmatch(r"orders\.to_tals\.out-[0-9a-f]{12}", identity_of("orders", "to tals", "out"))


NAMES = st.text(st.sampled_from("ab.-_ é"), min_size=1, max_size=4) | st.just("x" * 249)


@given(one=st.tuples(NAMES, NAMES, NAMES), other=st.tuples(NAMES, NAMES, NAMES))
def test_identities_are_legal_and_differ_if_their_names_do(
    one: tuple[str, str, str], other: tuple[str, str, str]
) -> None:
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,200}", identity_of(*one))
    assert (identity_of(*one) == identity_of(*other)) == (one == other)


def encoded(frame: pl.DataFrame, **sink: Any) -> Encoded:  # noqa: ANN401  the sink's own
    slot = Slot(pipeline="p", output="o", schema=frame.schema)
    batch = SinkBatch(batch=0, schema=frame.schema, rows=frame.height, frames=lambda: iter([frame]))
    [made] = Records.of(kafka(SERVERS, "t", **sink), slot).encoded(batch)
    return made


@pytest.mark.parametrize(
    "column, keys",
    [
        (pl.Series(["é", None, ""]), ["é".encode(), None, b""]),
        (pl.Series([b"\xff", None]), [b"\xff", None]),
        (pl.Series([7, None]), [b"7", None]),
        (pl.Series([True, None]), [b"true", None]),
        (pl.Series([1.5, None]), [b"1.5", None]),
        (pl.Series(["a", "b"], dtype=pl.Categorical), [b"a", b"b"]),
        (pl.Series([{"a": 1, "b": "}"}, None]), [b'{"a":1,"b":"}"}', None]),
        (pl.Series([[1, 2], None]), [b"[1,2]", None]),
        (pl.Series([0], dtype=pl.Datetime("ms", "UTC")), [b'"1970-01-01T00:00:00+00:00"']),
    ],
)
def test_key_of_one_column_is_text_bytes_or_json(column: pl.Series, keys: list[bytes | None]) -> None:
    assert encoded(column.to_frame("k"), key="k").keys == keys


def test_key_of_several_columns_is_a_json_object_in_the_order_given() -> None:
    frame = pl.DataFrame({"a": [1, None], "b": ["x", "y"], "c": [b"\xff", None]})
    made = encoded(frame, key=["b", "a", "c"])
    assert made.keys == [b'{"b":"x","a":1,"c":"/w=="}', b'{"b":"y","a":null,"c":null}']


def test_no_key_and_no_headers_are_none() -> None:
    made = encoded(pl.DataFrame({"a": [1]}))
    assert made == Encoded(keys=None, values=[b'{"a":1}'], headers=None)


@dataclass(kw_only=True)
class Away:
    """A format of which the registry is away, or says no."""

    code: str
    when: str

    def encoder(self, schema: pl.Schema, *, subject: str) -> Away:
        if self.when == "opening":
            self.fail()
        return self

    def encode(self, frame: pl.DataFrame) -> pl.Series:
        self.fail()
        return frame["a"]

    def fail(self) -> None:
        raise RunError(self.code, "words")


@pytest.mark.parametrize("when", ["opening", "writing"])
def test_registry_that_is_away_is_waited_for_and_one_that_says_no_is_not(when: str) -> None:
    with pytest.raises(Unavailable, match="words"):
        encoded(pl.DataFrame({"a": [1]}), value=Away(code="REGISTRY_UNREACHABLE", when=when))
    with pytest.raises(RunError, match="REGISTRY_INCOMPATIBLE"):
        encoded(pl.DataFrame({"a": [1]}), value=Away(code="REGISTRY_INCOMPATIBLE", when=when))


CHANGES = st.lists(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9), st.booleans()), max_size=5), max_size=4
)


@given(frames=CHANGES)
def test_tombstones_keep_the_last_change_of_every_key_in_order(frames: list[list[tuple[str, int, bool]]]) -> None:
    schema = pl.Schema({"k": pl.String(), "n": pl.Int64(), "is_retraction": pl.Boolean()})
    slot = Slot(pipeline="p", output="o", schema=schema)
    made = [pl.DataFrame(rows, schema=schema, orient="row") for rows in frames]
    batch = SinkBatch(batch=0, schema=schema, rows=sum(map(len, frames)), frames=lambda: iter(made))
    found = []
    for each in Records.of(kafka(SERVERS, "t", key="k", tombstones=True), slot).encoded(batch):
        assert each.keys is not None
        found += [(key, value and json.loads(value)["n"]) for key, value in zip(each.keys, each.values, strict=True)]
    rows = [row for frame in frames for row in frame]
    last = {key: at for at, (key, _, _) in enumerate(rows)}
    expected = [(rows[at][0].encode(), None if rows[at][2] else rows[at][1]) for at in sorted(last.values())]
    assert found == expected

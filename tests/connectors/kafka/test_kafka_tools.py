"""What the tools around Kafka decide by themselves: shares, lines, pace, and the words of the progress line."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.base.errors import DefinitionError, RunError
from slackwater.connectors.intake import StreamPlace
from slackwater.connectors.kafka import playing
from slackwater.connectors.kafka.address import cluster_at, topic_at
from slackwater.connectors.kafka.client import Cluster
from slackwater.connectors.kafka.connection import connection
from slackwater.connectors.kafka.exporting import one_line
from slackwater.connectors.kafka.playing import Pace, keys_of
from slackwater.connectors.kafka.reading import equal_shares
from slackwater.connectors.kafka.source.offsets import connector_offsets
from slackwater.connectors.mqtt.definition import KafkaPlace, mqtt_bridge
from slackwater.engine.batch_stats import BatchStats
from slackwater.eventtime.clock import Clock, PartitionTime, StreamTime
from slackwater.observe.metrics.report import BatchReport
from slackwater.tools.cli.progress import line
from slackwater.tools.dead_letters.places import Topic, where_of


def test_share_that_a_small_partition_leaves_goes_to_the_others() -> None:
    sizes = {("t", 0): 0, ("t", 1): 2, ("t", 2): 10_000, ("t", 3): 9_000}
    assert equal_shares(sizes, 5_001) == {("t", 0): 0, ("t", 1): 2, ("t", 3): 2_499, ("t", 2): 2_500}


@given(st.lists(st.integers(0, 50), max_size=8), st.integers(1, 200))
def test_shares_are_as_many_as_wanted_or_all_there_are(sizes: list[int], limit: int) -> None:
    held = {("t", number): size for number, size in enumerate(sizes)}
    shares = equal_shares(held, limit)
    assert sum(shares.values()) == min(limit, sum(sizes))
    assert all(0 <= shares[place] <= size for place, size in held.items())
    full = [share for place, share in shares.items() if share == held[place]]
    cut = [share for place, share in shares.items() if share < held[place]]
    assert not cut or (max(cut) - min(cut) <= 1 and max(full, default=0) <= max(cut))


JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner),
)


@given(JSON, st.sampled_from(["\n", "\r\n"]))
def test_json_on_many_lines_becomes_the_same_json_on_one(value: object, ending: str) -> None:
    text = json.dumps(value, indent=2, ensure_ascii=False).replace("\n", ending) + ending
    written = one_line(text.encode())
    assert written is not None
    assert b"\n" not in written
    assert json.loads(written) == value


@pytest.mark.parametrize(
    "value", [b"a\nb", b'{"s": "a\nb"}', b"\xff\n{}", b"a\r", "{}\n".encode("utf-16"), b"[" * 100_000 + b"\n"]
)
def test_what_no_line_can_hold_has_no_line(value: bytes) -> None:
    assert one_line(value) is None


def test_record_that_is_a_line_stays_as_it_is() -> None:
    assert one_line(b'{"a":  1} ') == b'{"a":  1} '
    assert one_line(b"no json") == b"no json"


def test_rate_is_kept_in_slices_of_a_twentieth_of_a_second() -> None:
    assert [Pace(rate=rate).at_once for rate in (0.5, 20, 2_000, 1e9)] == [1, 1, 100, 1_000]
    assert Pace(rate=200).due_s(100, 0) == 0.5
    assert Pace(speed_up=2).due_s(100, 3_000) == 1.5
    assert Pace(rate=10, speed_up=2).due_s(100, 3_000) == 10.0


def test_partitions_without_an_offset_begin_at_the_earliest() -> None:
    places = [("a", 0), ("a", 1), ("b", 0)]
    assert json.loads(connector_offsets({"a": {1: 7}}, places)) == {"a": {"0": -2, "1": 7}, "b": {"0": -2}}


def test_missing_certificate_is_reported_before_anybody_is_called(tmp_path: Path) -> None:
    way = connection("h:1", tls=sw.kafka.tls(ca=tmp_path / "noca.pem"))
    with pytest.raises(RunError, match=r"KAFKA_PEM.*noca\.pem`: no such file"):
        way.for_librdkafka()


@pytest.mark.parametrize(
    "idle_after_ms, is_bounded, words",
    [
        (None, False, "(set idle_after?)"),
        (10_000, False, "(idle after 10s)"),
        (None, True, "(not read to its end)"),
        (10_000, True, "(not read to its end)"),
    ],
)
def test_partition_that_holds_the_watermark_is_named_with_what_ends_that(
    idle_after_ms: int | None, words: str, *, is_bounded: bool
) -> None:
    partitions = {"orders/3": PartitionTime(max_ts_ms=5_000), "orders/4": PartitionTime()}
    clock = Clock(batch=1, streams={"orders": StreamTime(partitions=partitions, held_by="orders/4")}, now_ms=0)
    report = BatchReport(
        batch=0,
        seconds=1.0,
        stats=BatchStats(),
        clock=clock,
        next_clock=clock,
        rows_out={},
        is_bounded=is_bounded,
        idle_after_ms={"orders": idle_after_ms},
    )
    assert f"held back by orders/4, which has no record yet {words}" in line(report, Counter())


def test_key_of_a_line_is_the_text_of_its_field() -> None:
    lines = [
        b'{"user": "ada"}',
        b'{"user": 7}',
        b'{"user": null}',
        b"{}",
        b"[1]",
        b'{"user": "b',
        b'{"user": {"id": 1}}',
    ]
    assert keys_of(pl.Series(lines), "user") == ["ada", "7", None, None, None, None, '{"id": 1}']


def test_key_that_no_record_has_is_known_before_kafka_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playing, "existing_partitions", asked)
    with sw.LogWriter(tmp_path / "log") as log:
        for record in ('{"user": "ada", "id": 1}', "broken", '{"user": null}'):
            log.append(record)
    with pytest.raises(RunError, match=r"PLAY_KEY.*has `usr` \(did you mean `user`\?\); choose one of user, id, or"):
        playing.play(tmp_path / "log", connection("localhost:9"), "t", pace=Pace(), key="usr")
    with pytest.raises(AskedError):
        playing.play(tmp_path / "log", connection("localhost:9"), "t", pace=Pace(), key="user")


class AskedError(Exception):
    """Raised where Kafka would be asked."""


def asked(*_: object) -> list[int]:
    raise AskedError


def test_topic_that_is_missing_is_offered_the_nearest_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cluster, "topics", lambda *_: {})
    monkeypatch.setattr(Cluster, "names", lambda _: ["orders", "flights"])
    source = sw.sources.kafka("localhost:9", topic="flighst")
    intake = source.intake(StreamPlace(pipeline="p", stream="s", number=0, progress=None))
    with pytest.raises(RunError, match=r"KAFKA_TOPIC_MISSING.*has no `flighst` \(did you mean `flights`\?\)"):
        intake.check()


def test_address_says_how_to_reach_a_secured_listener(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "xyzzy")
    found = cluster_at("a:9093,b:9093?ca=/etc/ca.pem&user=ada&password=KAFKA_PASSWORD&mechanism=SCRAM-SHA-256")
    tls, sasl = sw.kafka.tls(ca="/etc/ca.pem"), sw.kafka.sasl("SCRAM-SHA-256", "ada", sw.secret("KAFKA_PASSWORD"))
    assert found == connection("a:9093,b:9093", tls=tls, sasl=sasl)
    assert cluster_at("a:9093?tls") == connection("a:9093", tls=sw.kafka.tls())
    assert cluster_at("a:9092") == connection("a:9092")


@pytest.mark.parametrize("place", ["a:9093/orders.dead", "a:9093/t?ca=/etc/ca.pem&user=ada&password=KAFKA_PASSWORD"])
def test_address_is_taken_by_every_tool(place: str) -> None:
    letters, found = where_of(f"kafka://{place}", what="WHERE"), topic_at(place)
    bridge = mqtt_bridge("b:1883", topics=["x"], to=f"kafka://{place}")
    assert isinstance(letters, Topic)
    assert isinstance(bridge.to, KafkaPlace)
    assert (letters.connection, letters.name) == found == (bridge.to.connection, bridge.to.topic)
    assert "?" not in f"{letters} {bridge.to}"


@pytest.mark.parametrize("options", ["password=xyzzy&user=ada", "user=ada", "colour=xyzzy1", "key_password=xyzzy"])
def test_address_with_a_password_or_an_unknown_option_is_refused_and_not_repeated(options: str) -> None:
    with pytest.raises(DefinitionError, match="KAFKA_ADDRESS") as raised:
        cluster_at(f"a:9093?{options}")
    assert "xyzzy" not in str(raised.value)


def test_password_in_an_address_is_the_name_of_a_secret() -> None:
    with pytest.raises(DefinitionError, match="; `password` must be the name of a secret, in capitals; write"):
        cluster_at("a:9093?user=ada&password=xyzzy")

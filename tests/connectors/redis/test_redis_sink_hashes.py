"""What is in the hashes of the Redis sink: a row's text, the newest window, and nothing of what was withdrawn."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from slackwater.base.errors import DefinitionError, RunError
from slackwater.base.secrets import secret
from slackwater.connectors.redis.sink import redis
from slackwater.connectors.redis.sink import rows as redis_rows
from slackwater.connectors.sink import SinkBatch, Slot
from slackwater.operators.identity import Identity
from slackwater.testing import SinkHarness
from tests.connectors.redis.deliveries import job, rows, scripts_run
from tests.connectors.redis.servers import RedisServer

WINDOWS = pl.Schema(
    {
        "user": pl.String(),
        "window_start": pl.Datetime("ms", "UTC"),
        "window_end": pl.Datetime("ms", "UTC"),
        "orders": pl.Int64(),
        "pane_index": pl.Int32(),
        "is_retraction": pl.Boolean(),
    }
)


WINDOW = Identity(keys=("user",), bounds=("window_start", "window_end"), version="pane_index")


def panes(*shown: tuple[str, float, int] | tuple[str, float, int, bool]) -> pl.DataFrame:
    """Return rows of (user, second that its window ends at, orders, is it a retraction)."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    ended = [(user, start + timedelta(seconds=end), orders, *(gone or [False])) for user, end, orders, *gone in shown]
    values = [(user, start, end, orders, 0, gone) for user, end, orders, gone in ended]
    return pl.DataFrame(values, schema=WINDOWS, orient="row")


def orders(server: RedisServer) -> dict[str, str]:
    return {key: fields["orders"] for key, fields in server.hashes().items()}


@pytest.mark.parametrize("columns", [None, ["orders", "window_end"]])
def test_hash_of_several_windows_has_the_newest_whenever_it_comes(
    server: RedisServer, columns: list[str] | None
) -> None:
    sink = redis(server.url, key="user", prefix="user", columns=columns)
    with SinkHarness(sink=sink, schema=WINDOWS, identity=WINDOW) as run:
        run.deliver(panes(("ann", 60.5, 1), ("ann", 60, 2), ("bob", 60, 3)))
        assert orders(server) == {"user:ann": "1", "user:bob": "3"}
        run.deliver(panes(("ann", 60, 4), ("bob", 60, 5)))  # a late pane of the older window
        assert orders(server) == {"user:ann": "1", "user:bob": "5"}
        run.deliver(panes(("ann", 60, 4, True), ("bob", 60, 5, True)))
        assert orders(server) == {"user:ann": "1"}, "an older window that is withdrawn leaves the newer one"
        run.deliver(panes(("ann", 120, 6), ("ann", 60, 7)))
        assert orders(server) == {"user:ann": "6"}


def test_newer_window_that_may_not_be_looked_at_is_not_overwritten(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WRITER", "writes")
    with server.client() as client:
        client.acl_setuser(
            "writer", enabled=True, passwords=["+writes"], keys="*", categories=["+@all"], commands=["-hget"]
        )
        client.hset("user:ann", mapping={"orders": "1", "window_end": "2026-01-01T00:01:00+00:00"})
    url = server.url.replace("redis://", "redis://writer@")
    sink = redis(url, key="user", prefix="user", password=secret("WRITER"))
    with pytest.raises(RunError, match=r"REDIS_REFUSED.*the user's ACL"):
        SinkHarness(sink=sink, schema=WINDOWS, identity=WINDOW).deliver(panes(("ann", 30, 2)))
    assert orders(server) == {"user:ann": "1"}


def test_hash_per_window_has_each_window(server: RedisServer) -> None:
    sink = redis(server.url, key=["user", "window_end"])
    with SinkHarness(sink=sink, schema=WINDOWS, identity=WINDOW) as run:
        run.deliver(panes(("ann", 120, 1)), panes(("ann", 60, 2)))
    assert sorted(orders(server).values()) == ["1", "2"]


def test_hash_of_several_windows_needs_the_field_that_tells_them_apart() -> None:
    slot = Slot(pipeline="test", output="results", schema=WINDOWS, identity=WINDOW)
    with pytest.raises(DefinitionError, match=r"REDIS_WINDOWS.*keyed by user alone.*add \"window_end\" to `columns`"):
        redis("redis://localhost", key="user", columns=["orders"]).check(slot)


def test_every_type_has_its_text(server: RedisServer) -> None:
    frame = pl.DataFrame(
        {
            "id": [7],
            "text": ['a "b" ü\n\x00'],
            "whole": [2**63 - 1],
            "fraction": [0.1],
            "flag": [True],
            "money": [Decimal("1.20")],
            "day": [date(2026, 1, 2)],
            "micros": [datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)],
            "millis": pl.Series([datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)], dtype=pl.Datetime("ms", "UTC")),
            "raw": [b"\xff\x00"],
            "list": [[1, None]],
            "struct": [{"a": "x", "b": [b"\xff"], "}": "}"}],
            "nothing": pl.Series([None], dtype=pl.Float64),
        }
    )
    with SinkHarness(sink=redis(server.url, key="id"), schema=frame.schema) as run:
        run.deliver(frame)
    assert server.hashes() == {
        "7": {
            "text": 'a "b" ü\n\x00',
            "whole": "9223372036854775807",
            "fraction": "0.1",
            "flag": "true",
            "money": "1.20",
            "day": "2026-01-02",
            "micros": "2026-01-02T03:04:05.678901+00:00",
            "millis": "2026-01-02T03:04:05+00:00",
            "raw": "/wA=",
            "list": "[1,null]",
            "struct": '{"a":"x","b":["/w=="],"}":"}"}',
        }
    }


def test_last_row_of_a_key_counts_and_a_retraction_deletes(server: RedisServer) -> None:
    with job(server.url) as run:
        run.deliver(rows(("ann", 1), ("bob", 1), ("cleo", 1), ("dan", 1)))
        run.deliver(
            rows(("ann", 1, True), ("bob", 1, True), ("ann", 2), ("eve", 8)),
            rows(("cleo", 5), ("cleo", 5, True), ("eve", 9)),
        )
    assert server.hashes() == {"user:ann": {"orders": "2"}, "user:dan": {"orders": "1"}, "user:eve": {"orders": "9"}}


def test_null_removes_the_field_and_leaves_the_others(server: RedisServer) -> None:
    schema = pl.Schema({"user": pl.String(), "a": pl.Int64(), "b": pl.Int64()})
    with SinkHarness(sink=redis(server.url, key="user"), schema=schema) as run:
        run.deliver(pl.DataFrame([("ann", 1, 2), ("bob", 1, 2)], schema=schema, orient="row"))
        run.deliver(pl.DataFrame([("ann", None, 3), ("bob", None, None)], schema=schema, orient="row"))
    assert server.hashes() == {"ann": {"b": "3"}}


def test_columns_choose_the_fields_and_ttl_ends_the_hash(server: RedisServer) -> None:
    schema = pl.Schema({"user": pl.String(), "a": pl.Int64(), "b": pl.Int64()})
    sink = redis(server.url, key=["user"], columns=["b"], ttl="1h")
    with SinkHarness(sink=sink, schema=schema) as run:
        run.deliver(pl.DataFrame([("ann", 1, 2)], schema=schema, orient="row"))
    assert server.hashes() == {"ann": {"b": "2"}}
    with server.client() as client:
        assert 3_590_000 < client.pttl("ann") <= 3_600_000
        assert client.ttl("slackwater:marks:test:results:0") == -1


PARTS = st.lists(st.sampled_from(["a", ":", "%", "%3A", "%25"]), max_size=3).map("".join)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pairs=st.sets(st.tuples(PARTS, PARTS), min_size=1))
@example(pairs={("a:b", "c"), ("a", "b:c"), ("a%3Ab", "c")})
def test_keys_of_several_columns_never_meet(server: RedisServer, pairs: set[tuple[str, str]]) -> None:
    frame = pl.DataFrame([(*pair, n) for n, pair in enumerate(sorted(pairs))], schema=["a", "b", "n"], orient="row")
    batch = SinkBatch(batch=0, schema=frame.schema, rows=frame.height, frames=lambda: iter([frame]))
    with server.client() as client:
        client.flushall()
    sink = redis(server.url, key=["a", "b"], prefix="p")
    writer = sink.open(Slot(pipeline="test", output="results", schema=frame.schema))
    writer.write(batch, None)
    writer.close()
    assert sorted(int(found["n"]) for found in server.hashes().values()) == list(range(len(pairs)))


def test_many_rows_go_in_chunks(server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_rows, "_CHUNK_BYTES", 2_000)
    with job(server.url) as run:
        run.deliver(rows(*((f"user-{n}", n) for n in range(2_500))))
    assert server.hashes() == {f"user:user-{n}": {"orders": str(n)} for n in range(2_500)}
    assert scripts_run(server) > 20

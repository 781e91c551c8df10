"""The Redis sink against a real server: what is in the hashes, and what is there after everything that can break."""

from __future__ import annotations

import os
import pickle
import shutil
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from slackwater.errors import DefinitionError, RunError
from slackwater.secrets import secret
from slackwater.sinks import delivery
from slackwater.sinks.base import SinkBatch, Slot
from slackwater.sinks.delivery import SinkWarning
from slackwater.sinks.redis import RedisSink, redis
from slackwater.sinks.redis import definition as redis_module
from slackwater.sinks.redis import rows as redis_rows
from slackwater.state.identity import Identity
from slackwater.testing import SinkHarness
from tests.conftest import Needs
from tests.redis.servers import RedisServer, way_to

SCHEMA = pl.Schema({"user": pl.String(), "orders": pl.Int64(), "is_retraction": pl.Boolean()})
MARK = "user:marks:test:results:0"


def rows(*users: tuple[str, int | None] | tuple[str, int | None, bool]) -> pl.DataFrame:
    """Return rows of (user, orders, is it a retraction)."""
    return pl.DataFrame([(*user, False)[:3] for user in users], schema=SCHEMA, orient="row")


ONE, TWO = rows(("ann", 1), ("bob", 2)), rows(("bob", 3), ("cleo", 4))
AFTER_BOTH = {"user:ann": {"orders": "1"}, "user:bob": {"orders": "3"}, "user:cleo": {"orders": "4"}}


def job(url: str, sink: RedisSink | None = None, **run: Any) -> SinkHarness:  # noqa: ANN401  a SinkHarness's own
    return SinkHarness(sink=sink or redis(url, key="user", prefix="user"), schema=SCHEMA, **run)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "FIRST_WAIT_S", 0.01)


def at_written(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Do something once when the sink has all rows of batch 1 ready to be committed."""
    done: list[int] = []

    def point(name: str, batch: int) -> None:
        if (name, batch, done) == ("written", 1, []):
            done.append(batch)
            act()

    monkeypatch.setattr(redis_module, "crash_point", point)


# What is in the hashes


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
    assert server.hashes() == {
        "user:ann": {"orders": "2"},
        "user:dan": {"orders": "1"},
        "user:eve": {"orders": "9"},
    }


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


def scripts_run(server: RedisServer) -> int:
    with server.client() as client:
        return int(client.info("commandstats")["cmdstat_evalsha"]["calls"])


# Exactly once


def test_batch_delivered_again_changes_nothing(server: RedisServer) -> None:
    run = job(server.url)
    run.deliver(ONE)
    run.deliver(TWO)
    with server.client() as client:
        client.hset("user:bob", "orders", "by hand")
    run.restart().deliver(TWO, batch=1)
    assert server.hashes() == AFTER_BOTH | {"user:bob": {"orders": "by hand"}}


CRASHING = """
import polars as pl
from slackwater.sinks.redis import redis
from slackwater.state.identity import Identity
from slackwater.testing import SinkHarness
from tests.redis.test_redis_sink import ONE, TWO, job
from slackwater.sinks.redis import rows as redis_rows
import sys
redis_rows._CHUNK_ROWS = int(sys.argv[2])
run = job(sys.argv[1])
run.deliver(ONE)
run.deliver(TWO)
"""


@pytest.mark.crash
def test_process_killed_between_two_chunks_leaves_no_mark_and_the_repeat_completes_it(
    server: RedisServer, tmp_path: Path
) -> None:
    dies = {"SLACKWATER_CRASH": "written@1", "SLACKWATER_CRASH_ONCE": str(tmp_path / "once")}
    ended = subprocess.run([sys.executable, "-c", CRASHING, server.url, "1"], env=os.environ | dies, check=False)
    assert ended.returncode == -9
    assert server.hashes() == {"user:ann": {"orders": "1"}, "user:bob": {"orders": "3"}}
    with server.client() as client:
        assert client.hget(MARK, "batch") == "0"
    run = job(server.url, marked=[0])
    run.deliver(TWO)
    assert server.hashes() == AFTER_BOTH


@pytest.mark.filterwarnings("ignore::slackwater.sinks.delivery.SinkWarning")
@pytest.mark.parametrize("chunk_rows", [1, 1_000])
def test_server_killed_in_mid_batch_and_started_again(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch, chunk_rows: int
) -> None:
    monkeypatch.setattr(redis_rows, "_CHUNK_ROWS", chunk_rows)
    back = threading.Timer(0.3, server.start)

    def killed() -> None:
        server.kill()
        back.start()

    at_written(monkeypatch, killed)
    with job(server.url) as run:
        run.deliver(ONE)
        run.deliver(TWO)
        back.join()
        assert server.hashes() == AFTER_BOTH
        run.deliver(rows(("ann", 9)))
    assert server.hashes() == AFTER_BOTH | {"user:ann": {"orders": "9"}}


@pytest.mark.filterwarnings("ignore::slackwater.sinks.delivery.SinkWarning")
def test_answer_that_is_lost_does_not_make_the_batch_be_written_again(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with way_to(server.port) as way, job(f"redis://127.0.0.1:{way.port}") as run:
        at_written(monkeypatch, way.loses_next_answer.set)
        run.deliver(ONE)
        before = scripts_run(server)
        run.deliver(TWO)
        assert not way.loses_next_answer.is_set()
    assert server.hashes() == AFTER_BOTH
    assert scripts_run(server) == before + 1


@pytest.mark.filterwarnings("ignore::slackwater.sinks.delivery.SinkWarning")
def test_server_that_is_emptied_under_a_running_job_is_an_error(server: RedisServer) -> None:
    run = job(server.url)
    run.deliver(ONE)
    with server.client() as client:
        client.flushall()
    with pytest.raises(RunError, match="SINK_MARK_MISSING"):
        run.deliver(TWO)
    assert server.hashes() == {}


@pytest.mark.parametrize("promise", ["at_least_once", "at_most_once"])
def test_sink_that_promises_less_keeps_no_mark(server: RedisServer, promise: Any) -> None:  # noqa: ANN401
    with job(server.url, redis(server.url, key="user", prefix="user", delivery=promise)) as run:
        run.deliver(ONE)
        run.deliver(TWO)
        run.deliver(TWO)
    assert server.hashes() == AFTER_BOTH
    with server.client() as client:
        assert not client.exists(MARK)


# What cannot be


def test_server_that_is_not_there_is_said(server: RedisServer) -> None:
    server.kill()
    with pytest.raises(RunError, match=r"SINK_UNREACHABLE.*redis://127\.0\.0\.1.*refused"):
        job(server.url).start()


def test_missing_password_and_wrong_password_are_said_and_no_password_is(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with server.client() as client:
        client.config_set("requirepass", "tide-table")
    with pytest.raises(RunError, match=r"REDIS_REFUSED.*Authentication required.*check the password"):
        job(server.url).start()
    monkeypatch.setenv("REDIS_PASSWORD", "low-tide")
    sink = redis(server.url, key="user", prefix="user", password=secret("REDIS_PASSWORD"))
    with pytest.raises(RunError, match=r"REDIS_REFUSED.*invalid username-password") as refused:
        job(server.url, sink).start()
    monkeypatch.setenv("REDIS_PASSWORD", "tide-table")
    with job(server.url, sink) as run:
        run.deliver(ONE)
    shown = f"{refused.value} {sink} {sink!r} {pickle.dumps(sink)!r} {run!r}"
    assert "low-tide" not in shown
    assert "tide-table" not in shown


def test_user_without_rights_is_told(server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with server.client() as client:
        client.acl_setuser("reader", enabled=True, passwords=["+reads"], keys="*", categories=["+read", "+connection"])
    monkeypatch.setenv("READER", "reads")
    sink = redis(server.url.replace("redis://", "redis://reader@"), key="user", password=secret("READER"))
    with pytest.raises(RunError, match=r"REDIS_REFUSED.*no permissions.*check the password and the user's ACL"):
        job(server.url, sink).start()


def test_key_of_another_type_is_named(server: RedisServer) -> None:
    with server.client() as client:
        client.set("user:bob", "not a hash")
    run = job(server.url)
    with pytest.raises(RunError, match=r"REDIS_WRONG_TYPE.*a value of another type at key `user:bob`"):
        run.deliver(ONE)
    with pytest.raises(RunError, match=r"REDIS_WRONG_TYPE.*`user:bob`"):
        run.deliver(rows(("bob", 1, True)))
    with server.client() as client:
        assert client.get("user:bob") == "not a hash"
        assert not client.exists(MARK)


def test_server_out_of_memory_is_waited_for(server: RedisServer) -> None:
    with server.client() as client, job(server.url) as run:
        run.deliver(ONE)
        client.config_set("maxmemory", 1)
        back = threading.Timer(0.2, client.config_set, ("maxmemory", 0))
        back.start()
        with pytest.warns(SinkWarning, match=r"SINK_WAITING.*out of memory"):
            run.deliver(TWO)
        back.join()
    assert server.hashes() == AFTER_BOTH


def test_read_only_replica_is_said(server: RedisServer, tmp_path: Path) -> None:
    replica = RedisServer(
        program=server.program, home=tmp_path / "replica", settings=("--replicaof", "127.0.0.1", str(server.port))
    )
    replica.start()
    try:
        with pytest.raises(RunError, match=r"SINK_UNREACHABLE.*read-only replica"):
            job(replica.url).start()
    finally:
        replica.kill()


def test_tls_is_spoken_and_the_certificate_checked(server: RedisServer, tmp_path: Path, needs: Needs) -> None:
    needs(shutil.which("openssl"), "the certificate is made with openssl")
    key, certificate = tmp_path / "key.pem", tmp_path / "ca.pem"
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    )
    subprocess.run([*command.split(), "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with way_to(server.port, context=context) as way:
        url = f"rediss://localhost:{way.port}/0"
        with job(url, redis(url, key="user", prefix="user", ca=certificate)) as run:
            run.deliver(ONE)
        with pytest.raises(RunError, match=r"SINK_UNREACHABLE.*CERTIFICATE_VERIFY_FAILED"):
            job(url).start()
        other = url.replace("localhost", "127.0.0.1")
        with pytest.raises(RunError, match=r"SINK_UNREACHABLE.*IP address mismatch"):
            job(other, redis(other, key="user", ca=certificate)).start()
    assert server.hashes() == {"user:ann": {"orders": "1"}, "user:bob": {"orders": "2"}}


def test_null_as_a_key_is_an_error(server: RedisServer) -> None:
    frame = pl.DataFrame([(None, 1, False), ("ann", 1, False)], schema=SCHEMA, orient="row")
    with pytest.raises(RunError, match=r"SINK_KEY_NULL.*`results` has a row with null in `user`.*with_columns"):
        job(server.url).deliver(frame)
    assert server.hashes() == {}


def test_key_where_marks_are_is_an_error(server: RedisServer) -> None:
    with pytest.raises(RunError, match=r"REDIS_KEY_RESERVED.*`user:marks:test:results:0`.*another `prefix`"):
        job(server.url).deliver(rows(("marks:test:results:0", 1)))


@pytest.mark.parametrize(
    "options, words",
    [
        ({"key": "usr"}, r"`key` .*has no column `usr` \(did you mean `user`\?\)"),
        ({"key": "user", "columns": ["orders", "sum"]}, r"`columns` .*has no column `sum`"),
        ({"key": "ratio"}, r"`key` .*has `ratio` of type Float64"),
        ({"key": ["user", "tags"]}, r"`key` .*has `tags` of type List"),
        ({"key": ["user", "orders", "ratio_text", "tags_text"]}, r"has no column `ratio_text`"),
    ],
)
def test_columns_that_the_output_does_not_have_are_an_error(options: dict[str, Any], words: str) -> None:
    schema = pl.Schema({"user": pl.String(), "orders": pl.Int64(), "ratio": pl.Float64(), "tags": pl.List(pl.String())})
    with pytest.raises(DefinitionError, match=rf"REDIS_COLUMN.*{words}"):
        redis("redis://localhost", **options).check(Slot(pipeline="test", output="results", schema=schema))


def test_output_of_keys_alone_is_an_error() -> None:
    slot = Slot(pipeline="test", output="results", schema=pl.Schema({"user": pl.String()}))
    with pytest.raises(DefinitionError, match=r"REDIS_COLUMN.*no column besides the key"):
        redis("redis://localhost", key="user").check(slot)


@pytest.mark.parametrize(
    "url, options, words",
    [
        ("http://host?password=hush", {}, r"a URL without a password; got http://host\?…"),
        ("redis://:hush@host", {}, r"without a password; got redis://.*…@host; write password=sw.secret"),
        ("http://host", {}, "redis://host:6379/0"),
        ("redis://", {}, "redis://host:6379/0"),
        ("redis://host:port", {}, "an invalid URL"),
        (7, {}, "write it as a string"),
        ("redis://host?ssl_cert_reqs=none", {}, "without settings"),
        ("redis://host", {"ca": "ca.pem"}, "write rediss://"),
        ("redis://host", {"key": []}, "at least one column"),
        ("redis://host", {"key": 7}, "a column name, or a list of distinct names; got 7"),
        ("redis://host", {"key": ["a", "a"]}, "each once"),
        ("redis://host", {"columns": ["user"]}, "columns other than the key; got `user` in both"),
        ("redis://host", {"prefix": ""}, "a string; got ''; write, for example, prefix"),
        ("redis://host", {"delivery": "twice"}, "one of exactly_once, at_least_once, at_most_once"),
    ],
)
def test_definition_that_cannot_be_right_is_refused(url: Any, options: dict[str, Any], words: str) -> None:  # noqa: ANN401
    with pytest.raises(DefinitionError, match=rf"SINK_OPTION.*of the Redis sink must be.*{words}") as refused:
        redis(url, **{"key": "user"} | options)
    assert "hush" not in str(refused.value)


def test_password_must_be_a_secret() -> None:
    with pytest.raises(DefinitionError, match=r"SECRET_EXPECTED.*`password`"):
        redis("redis://host", key="user", password="hush")  # type: ignore[arg-type]  # noqa: S106


def test_missing_client_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(RunError, match=r"REDIS_CLIENT_MISSING.*pip install 'slackwater\[redis\]'"):
        job("redis://localhost").start()

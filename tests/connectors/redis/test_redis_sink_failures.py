"""What the Redis sink says of servers that it cannot use, and of keys that it may not write."""

from __future__ import annotations

import pickle
import ssl
import sys
import threading
from pathlib import Path

import polars as pl
import pytest

from slackwater.base.errors import RunError
from slackwater.base.secrets import secret
from slackwater.connectors.delivery import SinkWarning
from slackwater.connectors.redis.sink import redis
from tests.connectors.redis.deliveries import AFTER_BOTH, MARK, ONE, SCHEMA, TWO, job, rows
from tests.connectors.redis.servers import RedisServer, way_to


def test_server_that_is_not_there_is_reported(server: RedisServer) -> None:
    server.kill()
    with pytest.raises(RunError, match=r"SINK_UNREACHABLE.*redis://127\.0\.0\.1.*refused"):
        job(server.url).start()


def test_missing_and_wrong_passwords_are_reported_and_never_shown(
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


def test_user_without_rights_is_reported(server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_read_only_replica_is_reported(server: RedisServer, tmp_path: Path) -> None:
    replica = RedisServer(
        program=server.program, home=tmp_path / "replica", settings=("--replicaof", "127.0.0.1", str(server.port))
    )
    replica.start()
    try:
        with pytest.raises(RunError, match=r"SINK_UNREACHABLE.*read-only replica"):
            job(replica.url).start()
    finally:
        replica.kill()


def test_tls_is_spoken_and_the_certificate_checked(server: RedisServer, tls: tuple[ssl.SSLContext, Path]) -> None:
    context, certificate = tls
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


def test_missing_client_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(RunError, match=r"REDIS_CLIENT_MISSING.*pip install 'slackwater\[redis\]'"):
        job("redis://localhost").start()

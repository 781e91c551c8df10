"""What is peculiar to one store: Redis' other values, Postgres' types, HTTP's statuses, and logins that fail."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import polars as pl
import pytest

import slackwater as sw
from slackwater.base.errors import RunError
from slackwater.engine.enrichment.fitting import FOUND, KEY, MESSAGE, MISSING, STATUS, UNFIT
from slackwater.engine.enrichment.stats import LookupStats
from tests.connectors.lookup_service import Service
from tests.connectors.lookup_stores import PostgresStore, RedisStore, ask, at_work, row


@pytest.fixture
def service() -> Iterator[Service]:
    service = Service().start()
    yield service
    service.stop()


ON_REDIS = pytest.mark.parametrize("store", ["redis"], indirect=True, scope="module")
ON_POSTGRES = pytest.mark.parametrize("store", ["postgres"], indirect=True, scope="module")


def url(service: Service, path: str = "users") -> str:
    return f"http://127.0.0.1:{service.port}/{path}"


def one(frame: pl.DataFrame, key: object) -> dict[str, Any]:
    return frame.row(by_predicate=pl.col(KEY).eq(pl.lit(key)), named=True)


@ON_REDIS
def test_redis_values_can_be_one_column(store: RedisStore) -> None:
    with store.server.client() as client:
        client.mset({"n:a": "17", "n:b": "many", "n:c": "", 'n:d"': '"quoted", text'})
    lookup = sw.lookups.redis(store.server.url, prefix="n", values="text")
    got = ask(at_work(lookup, "visits long"), "a", "b", "x").answers
    assert [one(got, key)[STATUS] for key in "abx"] == [FOUND, UNFIT, MISSING]
    assert one(got, "a")["visits"] == 17
    texts = ask(at_work(lookup, "note string"), "c", 'd"').answers
    assert one(texts, "c")["note"] == ""
    assert one(texts, 'd"')["note"] == '"quoted", text'


@ON_REDIS
def test_a_redis_key_of_another_kind_is_the_error_of_its_key(store: RedisStore) -> None:
    with store.server.client() as client:
        client.set("user:text", "not a hash")
        client.hset("user:hash", "name", "Ada")
    got = ask(at_work(store.lookup(), "name string"), "text", "hash").answers
    assert one(got, "text")[STATUS] == UNFIT
    assert "another type than a hash" in one(got, "text")[MESSAGE]
    assert one(got, "hash")["name"] == "Ada"


@ON_REDIS
def test_what_the_redis_sink_wrote_can_be_looked_up(store: RedisStore) -> None:
    from slackwater.testing import SinkHarness

    frame = pl.DataFrame({"user": ["ada"], "total": [7], "note": ['a "b", c']})
    sink = sw.sinks.redis(store.server.url, key="user", prefix="totals")
    SinkHarness(sink=sink, schema=frame.schema).deliver(frame)
    lookup = sw.lookups.redis(store.server.url, prefix="totals")
    got = one(ask(at_work(lookup, "total long, note string"), "ada").answers, "ada")
    assert (got["total"], got["note"]) == (7, 'a "b", c')


@ON_REDIS
def test_a_redis_that_wants_a_password_ends_the_job(store: RedisStore) -> None:
    with store.server.client() as client:
        client.config_set("requirepass", "secret")
        try:
            with pytest.raises(RunError, match=r"LOOKUP_REFUSED.*of `orders.lookup`.*check the password"):
                ask(at_work(store.lookup(), "name string"), "ada")
        finally:
            client.config_set("requirepass", "")


@ON_REDIS
def test_a_redis_password_is_a_secret(store: RedisStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOKUP_PASSWORD", "secret")
    with store.server.client() as client:
        client.hset("user:safe", "name", "Ada")
        client.config_set("requirepass", "secret")
        try:
            lookup = sw.lookups.redis(store.server.url, prefix="user", password=sw.secret("LOOKUP_PASSWORD"))
            assert one(ask(at_work(lookup, "name string"), "safe").answers, "safe")["name"] == "Ada"
        finally:
            client.config_set("requirepass", "")


def by_url(store: PostgresStore, table: str, key: str) -> Any:  # noqa: ANN401  a lookup
    return sw.lookups.postgres(f"postgresql://postgres@127.0.0.1:{store.gate.port}/postgres", table, key=key)


@ON_POSTGRES
def test_postgres_compares_keys_as_its_own_type(store: PostgresStore) -> None:
    name = f"by_uuid_{uuid.uuid4().hex[:8]}"
    known = uuid.uuid4()
    store.sql(f"CREATE TABLE {name} (id uuid PRIMARY KEY, name text)")
    store.sql(f"INSERT INTO {name} VALUES ('{known}', 'Ada')")  # noqa: S608  the test's own
    keys = [str(known).upper(), str(uuid.uuid4()), "no uuid", "nul\x00"]
    stats = LookupStats()
    got = ask(at_work(by_url(store, name, "id"), "name string"), *keys, stats=stats)
    assert got.failed == {}
    assert [one(got.answers, key)[STATUS] for key in keys] == [FOUND, MISSING, UNFIT, UNFIT]
    assert "invalid input syntax for type uuid" in one(got.answers, "no uuid")[MESSAGE]


@ON_POSTGRES
def test_postgres_types_arrive_as_they_are(store: PostgresStore) -> None:
    name = f"typed_{uuid.uuid4().hex[:8]}"
    store.sql(
        f'CREATE TABLE {name} (id int PRIMARY KEY, price numeric(12,3), tags text[], more jsonb, at timestamp, "odd %s name" real)'  # noqa: E501
    )
    store.sql(
        f"""INSERT INTO {name} VALUES (1, 12345678.901, '{{a,"b,c"}}', '{{"x": [1]}}', '2026-03-01 12:00', 1.5)"""  # noqa: S608  as above
    )
    output = "price decimal(12,3), tags array<string>, more struct<x: array<long>>, at timestamp, `odd %s name` float"
    got = one(ask(at_work(by_url(store, name, "id"), output, pl.Int32()), 1).answers, 1)
    assert got[STATUS] == FOUND, got
    assert (str(got["price"]), got["tags"], got["more"]) == ("12345678.901", ["a", "b,c"], {"x": [1]})
    assert got["at"].isoformat() == "2026-03-01T12:00:00+00:00"
    assert got["odd %s name"] == 1.5


@ON_POSTGRES
def test_two_rows_of_one_key_in_postgres_are_the_error_of_the_key(store: PostgresStore) -> None:
    name = f"twice_{uuid.uuid4().hex[:8]}"
    store.sql(f"CREATE TABLE {name} (id text, name text)")
    store.sql(f"INSERT INTO {name} VALUES ('a', 'x'), ('a', 'y'), ('b', 'z')")  # noqa: S608  the test's own
    got = ask(at_work(by_url(store, name, "id"), "name string"), "a", "b").answers
    assert one(got, "a")[STATUS] == UNFIT
    assert "a key has one row" in one(got, "a")[MESSAGE]
    assert one(got, "b")["name"] == "z"


@pytest.mark.parametrize(
    "table, key, output, said",
    [
        ("nowhere", "id", "name string", "there is no table `public.nowhere` with a column `id`"),
        ("users", "nokey", "name string", "there is no table `public.users` with a column `nokey`"),
        ("users", "key", "nmae string", "column known.nmae does not exist"),
    ],
)
@ON_POSTGRES
def test_a_postgres_table_without_the_columns_ends_the_job(
    store: PostgresStore, table: str, key: str, output: str, said: str
) -> None:
    with pytest.raises(RunError, match="LOOKUP_REFUSED") as ended:
        ask(at_work(by_url(store, table, key), output), "ada")
    assert said in str(ended.value)


@ON_POSTGRES
def test_a_postgres_user_that_does_not_exist_ends_the_job(store: PostgresStore) -> None:
    lookup = sw.lookups.postgres(f"postgresql://nobody@127.0.0.1:{store.gate.port}/postgres", "users", key="key")
    with pytest.raises(RunError, match=r"POSTGRES_LOGIN.*nobody"):
        ask(at_work(lookup, "name string"), "ada")


@ON_POSTGRES
def test_a_connection_that_takes_longer_than_a_request_may_is_made_all_the_same(store: PostgresStore) -> None:
    store.put({"far": row(1)})
    store.gate.connect_delay_s = 0.5
    try:
        step = at_work(store.lookup(), timeout="150ms", retries=100)
        assert one(ask(step, "far").answers, "far")[STATUS] == FOUND
    finally:
        store.gate.connect_delay_s = 0.0


@ON_POSTGRES
def test_a_lookup_cannot_write_to_postgres(store: PostgresStore) -> None:
    name = f"writing_{uuid.uuid4().hex[:8]}"
    store.sql(f"CREATE TABLE {name}_log (id text)")
    store.sql(
        f"CREATE FUNCTION {name}_f() RETURNS text LANGUAGE sql AS 'INSERT INTO {name}_log VALUES (1) RETURNING id'"  # noqa: S608  the test's own
    )
    store.sql(f"CREATE VIEW {name} AS SELECT 'a'::text AS id, {name}_f() AS name")
    got = ask(at_work(by_url(store, name, "id"), "name string"), "a")
    assert "read-only" in got.failed["a"]


@pytest.mark.parametrize("status", [429, 500, 503, 408])
def test_an_http_status_that_may_pass_is_a_failed_request(service: Service, status: int) -> None:
    service.reply = lambda *_: (status, b"busy")
    for path in ("users", "users/{key}"):
        got = ask(at_work(sw.lookups.http(url(service, path)), "name string", retries=1), "ada")
        assert got.failed == {"ada": f"HTTP {status} busy"}


def test_http_without_content_is_missing(service: Service) -> None:
    service.reply = lambda *_: (204, b"")
    got = ask(at_work(sw.lookups.http(url(service, "users/{key}")), "name string"), "ada").answers
    assert one(got, "ada")[STATUS] == MISSING


def test_an_http_status_that_refuses_a_key_is_the_error_of_that_key(service: Service) -> None:
    service.rows = {"ada": {"name": "Ada"}, "eve": {"name": "Eve"}}
    service.reply = lambda method, path, body: (422, b"bad id") if b"bad" in body or "bad" in path else None
    for path in ("users", "users/{key}"):
        got = ask(at_work(sw.lookups.http(url(service, path)), "name string"), "ada", "bad", "eve").answers
        assert [one(got, key)[STATUS] for key in ("ada", "bad", "eve")] == [FOUND, UNFIT, FOUND]
        assert one(got, "bad")[MESSAGE] == "HTTP 422 bad id"


@pytest.mark.parametrize(
    "status, said",
    [(401, "correct the credentials"), (403, "correct the credentials"), (302, "give the lookup the final address")],
)
def test_an_http_status_that_no_request_can_pass_ends_the_job(service: Service, status: int, said: str) -> None:
    service.reply = lambda *_: (status, b"no")
    with pytest.raises(RunError, match=rf"LOOKUP_REFUSED.*HTTP {status} no.*{said}") as ended:
        ask(at_work(sw.lookups.http(url(service)), "name string"), "ada")
    assert "token" not in str(ended.value)


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"{", b'{"ada": 1', b"\xff", b"[" * 100_000])
def test_an_answer_to_a_list_that_is_no_object_is_the_error_of_all_its_keys(service: Service, body: bytes) -> None:
    service.reply = lambda *_: (200, body)
    got = ask(at_work(sw.lookups.http(url(service)), "name string"), "ada", "bob")
    assert got.failed == {}
    assert got.answers[STATUS].to_list() == [UNFIT, UNFIT]


def test_http_keeps_numbers_as_they_are_written(service: Service) -> None:
    service.reply = lambda *_: (200, b'{"ada": {"price": 12345678901234567.89, "id": 9007199254740993}}')
    got = one(ask(at_work(sw.lookups.http(url(service)), "price decimal(20,2), id long"), "ada").answers, "ada")
    assert (str(got["price"]), got["id"]) == ("12345678901234567.89", 9007199254740993)


def test_http_sends_keys_of_their_type_and_secret_headers_that_are_shown_nowhere(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_TOKEN", "Bearer abcdefghijkl")
    bodies = []

    def reply(method: str, path: str, body: bytes) -> tuple[int, bytes]:
        bodies.append(json.loads(body))
        return 500, b"you sent abcdefghijkl"

    service.reply = reply
    lookup = sw.lookups.http(url(service), headers={"Authorization": sw.secret("API_TOKEN")}, batch=2)
    got = ask(at_work(lookup, "name string", pl.Int64(), concurrency=1), 1, 2, 3)
    assert bodies == [[1, 2], [3]]
    assert service.headers[0]["Authorization"] == "Bearer abcdefghijkl"
    assert "abcdefghijkl" not in str(got.failed) + str(lookup) + repr(lookup)


def test_an_endless_http_answer_is_the_error_of_its_key(service: Service) -> None:
    service.reply = lambda *_: (200, b" " * (70 << 20))
    for path in ("users", "users/{key}"):
        got = ask(at_work(sw.lookups.http(url(service, path)), "name string", timeout="20s"), "ada", "bob").answers
        assert got[STATUS].to_list() == [UNFIT, UNFIT], "the job does not wait for an answer that never fits"
        assert "an answer has at most" in one(got, "ada")[MESSAGE]


def test_a_slow_http_service_is_asked_side_by_side(service: Service) -> None:
    service.delay_s = 0.1
    service.rows = {str(at): {"name": str(at)} for at in range(100)}
    stats = LookupStats()
    step = at_work(sw.lookups.http(url(service, "users/{key}")), "name string", concurrency=50, timeout="10s")
    got = ask(step, *service.rows, stats=stats)
    assert got.answers.height == 100
    assert stats.requests == 100
    assert stats.p50_ms >= 90


def test_unknown_hosts_are_named() -> None:
    lookup = sw.lookups.http("http://no-such-host.invalid/users")
    assert "unknown host" in ask(at_work(lookup, "name string", timeout="10s"), "ada").failed["ada"]


@pytest.mark.parametrize(
    "path, refused",
    [
        ("users/{key}", ["", ".", ".."]),
        ("users/{key}/profile", ["", ".", ".."]),
        ("users/{key}?full=1", ["", ".", ".."]),
        ("users/.{key}", ["", "."]),
        ("users/%2e{key}", ["", "."]),
        ("users/id-{key}", []),
        ("users?id={key}", []),
        ("users?next=/{key}", []),
    ],
)
def test_a_key_never_changes_the_path_that_is_requested(service: Service, path: str, refused: list[str]) -> None:
    keys = ["", ".", "..", "...", "a/../b", "..\\", "%2e%2e", ";", "a?b", "#", "\x00", "ada"]
    service.reply = lambda *_: (200, b'{"name": "someone"}')
    step = at_work(sw.lookups.http(url(service, path)), "name string")
    for key in keys:
        service.requests.clear()
        found = one(ask(step, key).answers, key)
        if key in refused:
            assert found[STATUS] == UNFIT
            assert "must not be empty, `.` or `..`" in found[MESSAGE]
            assert service.requests == [], "no address is asked"
        else:
            before, _, after = path.partition("{key}")
            [(_, asked)] = service.requests
            assert asked == f"/{before.replace('%2e', '%2E')}{quote(key, safe='')}{after}"
            assert found[STATUS] == FOUND


def test_the_wire_format_of_an_array_of_keys_keeps_any_key(service: Service) -> None:
    keys = ["", ".", "..", "\x00", "__proto__", "a\nb", "x" * 100_000]
    service.rows = {key: {"name": str(at)} for at, key in enumerate(keys)}
    got = ask(at_work(sw.lookups.http(url(service)), "name string", timeout="10s"), *keys).answers
    assert [one(got, key)["name"] for key in keys] == [str(at) for at in range(len(keys))]

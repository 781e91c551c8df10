"""Every bad lookup and every bad table is refused when the pipeline is built, with its own code and words."""

# ruff: noqa: E501, S106  one definition a line, with its code and words; no real passwords

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from slackwater.connectors.delta.source.definition import DeltaSource
from tests.connectors.table_places import rates
from tests.plan.bad_definition import Bad, check_refused, sw

DDL = "user_id string, code string, amount double, count long, tags array<string>, at timestamp"


async def fetch(key: str) -> dict[str, str]:
    return {"name": key}


STORE = sw.lookups.function(fetch)


def purchases(name: str = "purchases") -> Any:  # noqa: ANN401  as above
    return sw.stream(name, sw.testing.rows_source(DDL)).event_time("at")


def built(stream: Any, *more: Any) -> Any:  # noqa: ANN401
    return sw.Pipeline("p", stream.to(sw.sinks.memory()), stream.dead_letters.drop(), *more)


def looked(**options: Any) -> Any:  # noqa: ANN401
    return built(purchases().lookup(STORE, **{"key": "user_id", "output": "name string", **options}))


def windowed(**options: Any) -> Any:  # noqa: ANN401
    return purchases().key_by("user_id").window(sw.tumbling("1m"), **options).aggregate(n=sw.count())


def retracted(enrich: Callable[[Any], Any]) -> None:
    results = windowed(accumulation="retracting", allowed_lateness="1m")
    stream = enrich(results)
    source = results.origin.inputs["rows"].stream
    sw.Pipeline(
        "p", stream.to(sw.sinks.memory()), stream.dead_letters.drop(), results.late.drop(), source.dead_letters.drop()
    )


def placeless() -> None:
    source = DeltaSource(path="/data/orders", typed=pl.Schema({"user_id": pl.String()}), options=(), start="earliest")
    built(sw.stream("orders", source).lookup(STORE, key="user_id", output="name string"))


def two_lookups() -> None:
    stream = purchases()
    one = stream.lookup(STORE, key="user_id", output="name string")
    other = stream.lookup(STORE, key="code", output="name string")
    sw.Pipeline("p", one.to(sw.sinks.memory()), other.to(sw.sinks.memory()), stream.dead_letters.drop())


LOOKUPS = [
    Bad("a store that is an address", "NOT_A_LOOKUP", "got 'redis://localhost' in stream `purchases`", lambda: purchases().lookup("redis://localhost", key="user_id", output="name string")),
    Bad("a key that is no name", "LOOKUP_OPTION", "`key` of `purchases.lookup` must be the name of a column; got ['user_id']", lambda: looked(key=["user_id"])),
    Bad("a key that the rows do not have", "UNKNOWN_COLUMN", "got `user` in `purchases.lookup` (did you mean `user_id`?)", lambda: looked(key="user")),
    Bad("a key with a fraction", "LOOKUP_KEY_TYPE", "got `amount` of type Float64 in `purchases.lookup`", lambda: looked(key="amount")),
    Bad("a key that is a list", "LOOKUP_KEY_TYPE", "got `tags` of type List(String)", lambda: looked(key="tags")),
    Bad("an output column that is there already", "LOOKUP_COLUMN_TAKEN", "got the output column `code` in `purchases.lookup`", lambda: looked(output="code string")),
    Bad("an output that differs from a column in case", "DUPLICATE_COLUMN", "got `AMOUNT` after `amount` in `purchases.lookup`", lambda: looked(output="AMOUNT string")),
    Bad("an output that cannot be read", "BAD_SCHEMA", "", lambda: looked(output="name strnig")),
    Bad("an output with a hidden name", "RESERVED_COLUMN", "`__x`", lambda: looked(output="__x string")),
    Bad("no concurrency", "LOOKUP_OPTION", "`concurrency` of `purchases.lookup` must be a whole number from 1 to 10,000; got 0", lambda: looked(concurrency=0)),
    Bad("half a retry", "LOOKUP_OPTION", "`retries` of `purchases.lookup` must be a whole number from 0 to 100; got 0.5", lambda: looked(retries=0.5)),
    Bad("a timeout of zero", "DURATION_TOO_SHORT", "`timeout` of a lookup must be longer than zero", lambda: looked(timeout="0s")),
    Bad("a cache that is a number", "DURATION_UNREADABLE", "`cache` of a lookup", lambda: looked(cache=5)),
    Bad("an unknown way with missing keys", "LOOKUP_OPTION", '`missing` of `purchases.lookup` must be one of "null", "dead_letter"; got \'drop\'', lambda: looked(missing="drop")),
    Bad("an unknown way with errors", "LOOKUP_OPTION", '`on_error` of `purchases.lookup` must be one of "wait", "dead_letter", "null"; got \'raise\'', lambda: looked(on_error="raise")),
    Bad("a name with a slash", "BAD_NAME", "a step name", lambda: looked(name="a/b")),
    Bad("two lookups of one name", "ENRICHMENT_NAME_TWICE", 'got `purchases.lookup` twice; add name="…"', two_lookups),
    Bad("a lookup of bytes", "DECODE_MISSING", "got stream `raw` without", lambda: built(sw.stream("raw", sw.sources.log("data/x")).lookup(STORE, key="user_id", output="name string"))),
    Bad("a lookup of rows without places", "LOOKUP_WITHOUT_PLACES", "delta /data/orders from earliest gives rows no stable positions, in `orders.lookup`; read from a log or from Kafka", placeless),
    Bad("a lookup of retractions", "ENRICHED_RETRACTIONS", "got `purchases.window.lookup` on the results of `purchases.window`", lambda: retracted(lambda results: results.lookup(STORE, key="user_id", output="name string"))),
    Bad("a function that is not asynchronous", "LOOKUP_FUNCTION", "write `async def fetch(key): ...`", lambda: sw.lookups.function(len)),
    Bad("a function that is none", "LOOKUP_FUNCTION", "got None", lambda: sw.lookups.function(None)),
    Bad("a function of no keys", "LOOKUP_OPTION", "`batch` of a function lookup must be a whole number from 1 to 100,000; got 0", lambda: sw.lookups.function(fetch, batch=0)),
    Bad("a Redis elsewhere", "LOOKUP_OPTION", "`url` of the Redis lookup must be a URL such as redis://host:6379/0", lambda: sw.lookups.redis("http://localhost")),
    Bad("a Redis password in its address", "LOOKUP_OPTION", "a URL without a password", lambda: sw.lookups.redis("redis://:secret@localhost/0")),
    Bad("a Redis password that is no secret", "SECRET_EXPECTED", "`password` must be a secret", lambda: sw.lookups.redis("redis://localhost/0", password="x")),
    Bad("an empty prefix", "LOOKUP_OPTION", "`prefix` of the Redis lookup must be a string; got ''", lambda: sw.lookups.redis("redis://localhost/0", prefix="")),
    Bad("an unknown kind of Redis values", "LOOKUP_OPTION", '`values` of the Redis lookup must be one of "hash", "json", "text"; got \'list\'', lambda: sw.lookups.redis("redis://localhost/0", values="list")),
    Bad("a nested column in a hash", "LOOKUP_REDIS_NESTED", 'got `all` with values="hash" in `purchases.lookup`', lambda: built(purchases().lookup(sw.lookups.redis("redis://localhost/0"), key="user_id", output="all array<string>"))),
    Bad("two columns in one text", "LOOKUP_REDIS_TEXT", "got a, b in `purchases.lookup`", lambda: built(purchases().lookup(sw.lookups.redis("redis://localhost/0", values="text"), key="user_id", output="a string, b string"))),
    Bad("a Postgres elsewhere", "POSTGRES_URL", "", lambda: sw.lookups.postgres("mysql://host/db", "users")),
    Bad("a Postgres password in its address", "POSTGRES_URL_PASSWORD", "", lambda: sw.lookups.postgres("postgresql://u:secret@host/db", "users")),
    Bad("a Postgres password that is no secret", "SECRET_EXPECTED", "`password`", lambda: sw.lookups.postgres("postgresql://host/db", "users", password="x")),
    Bad("a Postgres table without a name", "POSTGRES_TABLE_NAME", "", lambda: sw.lookups.postgres("postgresql://host/db", "a.b.c")),
    Bad("a Postgres key without a name", "LOOKUP_OPTION", "`key` of the Postgres lookup must be the name of a column; got ''", lambda: sw.lookups.postgres("postgresql://host/db", "users", key="")),
    Bad("a service elsewhere", "LOOKUP_OPTION", "`url` of the HTTP lookup must be a URL such as https://host/path", lambda: sw.lookups.http("ftp://host/users")),
    Bad("a service with a user in its address", "LOOKUP_OPTION", "got https://…@x/{key}; ", lambda: sw.lookups.http("https://u:p@x/{key}")),
    Bad("a service with a token in its address", "LOOKUP_OPTION", "a URL without credentials", lambda: sw.lookups.http("https://host/users?token=abc")),
    Bad("a token that is no secret", "SECRET_EXPECTED", "headers['Authorization']", lambda: sw.lookups.http("https://host/users", headers={"Authorization": "Bearer x"})),
    Bad("a key in the host", "LOOKUP_OPTION", "an address with {key} once, behind the host", lambda: sw.lookups.http("https://{key}.example/users")),
    Bad("a key twice in the address", "LOOKUP_OPTION", "an address with {key} once", lambda: sw.lookups.http("https://host/{key}/{key}")),
    Bad("another word for the key", "LOOKUP_OPTION", "whose only part in braces is {key}; got http://h/{id}; replace {id}", lambda: sw.lookups.http("http://h/{id}")),
    Bad("many keys for an address of one", "LOOKUP_OPTION", "`batch` of the HTTP lookup must be left out if the URL has {key}, as each key is then a request; got 5; remove it", lambda: sw.lookups.http("http://h/{key}", batch=5)),
    Bad("a request for no keys", "LOOKUP_OPTION", "`batch` of the HTTP lookup must be a whole number from 1 to 10,000; got 0", lambda: sw.lookups.http("https://host/users", batch=0)),
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with tables."""
    folder = tmp_path_factory.mktemp("tables")
    rates(("EUR", 1.0, 2)).write_parquet(folder / "rates.parquet")
    rates(("EUR", 1.0, 2)).write_csv(folder / "rates.csv")
    rates(("EUR", 1.0, 2)).select("code").write_parquet(folder / "codes.parquet")
    (folder / "broken.parquet").write_text("no Parquet")
    return folder


def joined(folder: Path, **options: Any) -> Any:  # noqa: ANN401
    return built(purchases().join_table(sw.table(folder / "rates.parquet"), **{"on": "code", **options}))


def two_joins(folder: Path) -> None:
    stream = purchases().join_table(sw.table(folder / "rates.parquet"), on="code", columns=["rate"])
    built(stream.join_table(sw.table(folder / "rates.parquet"), on="code", columns=["digits"]))


TABLES = [
    Bad("a table that is a path", "NOT_A_TABLE", "got 'rates.parquet' in stream `purchases`", lambda _: purchases().join_table("rates.parquet", on="code")),
    Bad("a table of an unknown kind", "TABLE_KIND", "got 'rates.xlsx'", lambda _: sw.table("rates.xlsx")),
    Bad("a table that is a number", "TABLE_KIND", "got 5", lambda _: sw.table(5)),
    Bad("a table in the cloud", "TABLE_KIND", "got 's3://bucket/rates'", lambda _: sw.table("s3://bucket/rates")),
    Bad("a file that is not there", "TABLE_MISSING", "there is no such file", lambda folder: sw.table(folder / "none.parquet")),
    Bad("a folder without a Delta table", "TABLE_MISSING", "there is no Delta table", sw.table),
    Bad("a server that is not there", "TABLE_MISSING", "127.0.0.1:1/db cannot be read", lambda _: sw.table("postgresql://127.0.0.1:1/db", query="SELECT 1 AS x")),
    Bad("a file that is no Parquet", "TABLE_MISSING", "broken.parquet cannot be read: parquet: ", lambda folder: sw.table(folder / "broken.parquet")),
    Bad("a server without a query", "TABLE_QUERY", "got None for host/db", lambda _: sw.table("postgresql://host/db")),
    Bad("a query of a file", "TABLE_QUERY", "got 'SELECT 1'", lambda folder: sw.table(folder / "rates.parquet", query="SELECT 1")),
    Bad("a CSV file without types", "TABLE_SCHEMA", 'schema="code string, rate double"', lambda folder: sw.table(folder / "rates.csv")),
    Bad("a declared column that the file does not have", "TABLE_COLUMN", "has no column `rat` (did you mean `rate`?)", lambda folder: sw.table(folder / "rates.csv", schema="code string, rat double")),
    Bad("a declared type that the file does not have", "TABLE_COLUMN_TYPE", "has Float64 in `rate`, declared String", lambda folder: sw.table(folder / "rates.parquet", schema="code string, rate string")),
    Bad("a refresh of zero", "DURATION_TOO_SHORT", "`refresh` of a table", lambda folder: sw.table(folder / "rates.parquet", refresh="0s")),
    Bad("a password that is no secret", "SECRET_EXPECTED", "`password`", lambda _: sw.table("postgresql://host/db", query="SELECT 1", password="x")),
    Bad("no key", "TABLE_ON", "got [] in stream `purchases`", lambda folder: joined(folder, on=[])),
    Bad("a key twice", "TABLE_ON", "got ['code', 'code']", lambda folder: joined(folder, on=["code", "code"])),
    Bad("a key that is a number", "TABLE_ON", "got 5", lambda folder: joined(folder, on=5)),
    Bad("a key that the rows do not have", "UNKNOWN_COLUMN", "got `cod` in `purchases.join_table`", lambda folder: joined(folder, on={"cod": "code"})),
    Bad("a key that the table does not have", "TABLE_COLUMN", "has no column `user_id`; its columns are code, rate, digits", lambda folder: joined(folder, on="user_id")),
    Bad("keys of different types", "TABLE_KEY_TYPE", "got `count` of type Int64 and the table's `code` of type String in `purchases.join_table`", lambda folder: joined(folder, on={"count": "code"})),
    Bad("a key with a fraction", "TABLE_KEY_TYPE", "neither floating-point nor nested", lambda folder: joined(folder, on={"amount": "rate"})),
    Bad("an unknown join", "TABLE_HOW", "got 'outer'", lambda folder: joined(folder, how="outer")),
    Bad("no columns", "TABLE_COLUMNS", "got []", lambda folder: joined(folder, columns=[])),
    Bad("a column that the table does not have", "TABLE_COLUMN", "has no column `rats` (did you mean `rate`?)", lambda folder: joined(folder, columns=["rats"])),
    Bad("a table of nothing but the key", "TABLE_NO_COLUMNS", "has only the key in `purchases.join_table`", lambda folder: built(purchases().join_table(sw.table(folder / "codes.parquet"), on="code"))),
    Bad("a column that the rows have", "TABLE_COLUMN_TAKEN", "got `code` of parquet", lambda folder: joined(folder, on={"user_id": "code"}, columns=["code"])),
    Bad("a suffix of nothing", "TABLE_SUFFIX", "got ''", lambda folder: joined(folder, suffix="")),
    Bad("two joins of one name", "ENRICHMENT_NAME_TWICE", "got `purchases.join_table` twice", two_joins),
    Bad("a join of retractions", "ENRICHED_RETRACTIONS", "enrich the rows before key_by", lambda folder: retracted(lambda results: results.join_table(sw.table(folder / "rates.parquet"), on={"user_id": "code"}))),
]  # fmt: skip


@pytest.mark.parametrize("bad", LOOKUPS, ids=lambda bad: bad.sentence)
def test_bad_lookup_is_refused(bad: Bad) -> None:
    check_refused(bad)


@pytest.mark.parametrize("bad", TABLES, ids=lambda bad: bad.sentence)
def test_bad_table_is_refused(bad: Bad, folder: Path) -> None:
    check_refused(bad, folder)

"""What becomes of rows: every type there and back, updates and retractions by key."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slackwater.base.errors import RunError
from slackwater.connectors.postgres.sink import writer as writing
from slackwater.testing import SinkHarness
from tests.connectors.postgres.databases import CHANGES, TOTALS, Database, changes, totals

TIME = datetime(2024, 2, 29, 12, 30, 15, 123456, tzinfo=UTC)
TYPES: dict[str, tuple[pl.DataType, str, list[Any]]] = {
    "binary": (pl.Binary(), "bytea", [b"", b"\x00\xff\\", None]),
    "boolean": (pl.Boolean(), "boolean", [True, False, None]),
    "category": (pl.Categorical(), "text", ["a", "b", None]),
    "day": (pl.Date(), "date", [date(1, 1, 1), date(9999, 12, 31), None]),
    "time": (pl.Datetime("us", "UTC"), "timestamp with time zone", [TIME, TIME - timedelta(days=200_000), None]),
    "time_ms": (pl.Datetime("ms", "UTC"), "timestamp with time zone", [TIME.replace(microsecond=1000), None, None]),
    "f32": (pl.Float32(), "real", [0.5, -math.inf, None]),
    "f64": (pl.Float64(), "double precision", [0.1 + 0.2, math.inf, 5e-324]),
    "i8": (pl.Int8(), "smallint", [-128, 127, None]),
    "i16": (pl.Int16(), "smallint", [-(2**15), 2**15 - 1, None]),
    "i32": (pl.Int32(), "integer", [-(2**31), 2**31 - 1, None]),
    "i64": (pl.Int64(), "bigint", [-(2**63), 2**63 - 1, None]),
    "u8": (pl.UInt8(), "smallint", [0, 255, None]),
    "u16": (pl.UInt16(), "integer", [0, 2**16 - 1, None]),
    "u32": (pl.UInt32(), "bigint", [0, 2**32 - 1, None]),
    "u64": (pl.UInt64(), "numeric(20,0)", [0, 2**64 - 1, None]),
    "money": (pl.Decimal(38, 2), "numeric(38,2)", [Decimal("-0.01"), Decimal("9" * 36 + ".99"), None]),
    "tags": (pl.List(pl.String()), "jsonb", [["a", None, 'q"\\'], [], None]),
    "place": (
        pl.Struct({"at": pl.Float64(), "raw": pl.Binary()}),
        "jsonb",
        [{"at": 1.5, "raw": b"\xff"}, {"at": None, "raw": None}, None],
    ),
    "text": (pl.String(), "text", ["", 'a "quoted"\r\n\\.\tline, é ☃', None]),
    'Odd % "name"': (pl.String(), "text", ["\\N", "\\.", "NULL"]),
}  # fmt: skip
AS_STORED = {"place": [{"at": 1.5, "raw": "/w=="}, {"at": None, "raw": None}, None]}


def rows_of(database: Database, table: str = "totals") -> list[tuple[Any, ...]]:
    return sorted(database.sql(f"SELECT * FROM {table}"), key=repr)  # noqa: S608  the test's own name


@pytest.mark.parametrize("options", [{}, {"upsert_on": ["id"]}], ids=["append", "upsert"])
def test_every_type_comes_back_as_it_was(database: Database, options: dict[str, Any]) -> None:
    schema = pl.Schema({"id": pl.Int32(), **{name: dtype for name, (dtype, _, _) in TYPES.items()}})
    rows = pl.DataFrame({"id": [0, 1, 2], **{name: values for name, (_, _, values) in TYPES.items()}}, schema=schema)
    database.job(schema, table="types", **options).deliver(rows)
    stored = database.sql("SELECT * FROM types ORDER BY id")
    for number, (name, (_, _, values)) in enumerate(TYPES.items(), start=1):
        assert [row[number] for row in stored] == AS_STORED.get(name, values), name
    described = dict(
        database.sql(
            "SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = 'types'::regclass AND attnum > 0"
        )
    )
    assert described == {"id": "integer", **{name: declared for name, (_, declared, _) in TYPES.items()}}


@pytest.mark.parametrize("server_style", ["SQL, DMY", "German", "Postgres, MDY"])
def test_times_do_not_depend_on_the_server_s_settings(database: Database, server_style: str) -> None:
    database.sql(f"ALTER DATABASE {database.name} SET datestyle = '{server_style}'")
    database.sql(f"ALTER DATABASE {database.name} SET timezone = 'Pacific/Apia'")
    schema = pl.Schema({"day": pl.Date(), "time": pl.Datetime("us", "UTC")})
    database.job(schema).deliver(pl.DataFrame({"day": [date(2024, 2, 3)], "time": [TIME]}, schema=schema))
    assert database.sql("SELECT day = DATE '2024-02-03', extract(epoch FROM time)::text FROM totals") == [
        (True, "1709209815.123456")
    ]


def test_years_before_1_and_after_9999_are_kept(database: Database) -> None:
    schema = pl.Schema({"day": pl.Date(), "time": pl.Datetime("us", "UTC")})
    days = [-719_529, 2_932_897, -1_000_000, 0, None]  # 0000-12-31 is of 1 BC
    micros = [None if day is None else day * 86_400_000_000 + 1 for day in days]
    frame = pl.DataFrame({"day": days, "time": micros}).cast(schema)
    database.job(schema).deliver(frame)
    stored = database.sql("SELECT day - DATE '1970-01-01', (extract(epoch FROM time) * 1000000)::bigint FROM totals")
    assert stored == list(zip(days, micros, strict=True))


@pytest.mark.parametrize("days", [-2_440_589, 95_026_237, -(2**31) + 1, 2**31 - 1])
def test_time_that_postgres_cannot_hold_is_an_error_that_names_the_column(database: Database, days: int) -> None:
    schema = pl.Schema({"id": pl.String(), "day": pl.Date()})
    frame = pl.DataFrame({"id": ["fine", "none", "odd"], "day": [0, None, days]}).cast(schema)
    with pytest.raises(RunError, match=r"POSTGRES_TIME.*column `day` has one outside that range"):
        database.job(schema).deliver(frame)


@pytest.mark.parametrize("days", [-2_440_588, 95_026_236])
def test_first_and_last_day_go_through(database: Database, days: int) -> None:
    schema = pl.Schema({"day": pl.Date(), "time": pl.Datetime("us", "UTC")})
    frame = pl.DataFrame({"day": [days], "time": [days * 86_400_000_000]}).cast(schema)
    database.job(schema).deliver(frame)
    stored = "SELECT day - DATE '1970-01-01', (extract(epoch FROM time) / 86400)::bigint FROM totals"
    assert database.sql(stored) == [(days, days)]


def test_null_alone_in_a_row_is_a_null(database: Database) -> None:
    schema = pl.Schema({"text": pl.String()})
    database.job(schema).deliver(pl.DataFrame({"text": [None, "", None]}, schema=schema))
    assert rows_of(database) == [("",), (None,), (None,)]


def test_float_that_json_has_no_word_for_is_null_inside_json(database: Database) -> None:
    schema = pl.Schema({"values": pl.List(pl.Float64())})
    database.job(schema).deliver(pl.DataFrame({"values": [[math.nan, 1.0, math.inf]]}, schema=schema))
    assert rows_of(database) == [([None, 1.0, None],)]


NUL = pl.Schema({"text": pl.String(), "tags": pl.List(pl.String())})


@pytest.mark.parametrize(
    "column, row", [("text", {"text": "a\x00b", "tags": []}), ("tags", {"text": "ok", "tags": ["a\x00b"]})]
)
def test_nul_character_is_an_error_that_names_the_column(database: Database, column: str, row: dict[str, Any]) -> None:
    frame = pl.DataFrame([{"text": "fine", "tags": ["\\u0000"]}, row], schema=NUL)
    with pytest.raises(RunError, match=rf"POSTGRES_NUL.*column `{column}` contains one; .*replace_nul="):
        database.job(NUL).deliver(frame)
    assert rows_of(database) == []


def test_nul_character_is_replaced_where_that_was_asked_for(database: Database) -> None:
    frame = pl.DataFrame({"text": ["a\x00\x00b", None], "tags": [["\x00\x00", "\\u0000", "\\\x00"], None]}, schema=NUL)
    database.job(NUL, replace_nul='"').deliver(frame)
    assert rows_of(database) == [('a""b', ['""', "\\u0000", '\\"']), (None, None)]


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(
            st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])) | st.none(),
            st.floats() | st.none(),
            st.lists(st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]))),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_any_text_float_and_json_comes_back(fuzzed: Database, rows: list[tuple[Any, ...]]) -> None:
    schema = pl.Schema({"text": pl.String(), "number": pl.Float64(), "tags": pl.List(pl.String())})
    fuzzed.sql("DROP TABLE IF EXISTS totals, slackwater_ledger")
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    with SinkHarness(sink=fuzzed.sink(), schema=schema) as job:
        job.deliver(frame)
    stored = fuzzed.sql("SELECT * FROM totals")
    assert json.dumps(stored) == json.dumps(rows)


def test_last_row_of_a_key_in_a_batch_counts(database: Database) -> None:
    job = database.job(upsert_on=["user"])
    job.deliver(totals(("ann", 1), ("bob", 1), ("ann", 2)), totals(("bob", 5), ("ann", 3)))
    assert rows_of(database) == [("ann", 3), ("bob", 5)]
    job.deliver(totals(("bob", None)))
    assert rows_of(database) == [("ann", 3), ("bob", None)]


@pytest.mark.parametrize("chunk", [1, 2, 100])
def test_order_of_changes_counts_across_frames_and_chunks(
    database: Database, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(writing, "CHUNK_ROWS", chunk)
    job = database.job(CHANGES, upsert_on=["user"])
    job.deliver(changes(("ann", 1, False), ("bob", 1, False), ("cid", 1, False), ("dee", 1, False)))
    job.deliver(
        changes(("ann", 1, True), ("bob", 1, True), ("eve", 1, False)),
        changes(("ann", 2, False), ("eve", 1, True)),
        changes(("cid", 1, True), ("fay", 1, False)),
    )
    assert rows_of(database) == [("ann", 2), ("dee", 1), ("fay", 1)]


def test_table_made_for_updates_leaves_room_for_them(database: Database) -> None:
    database.job(upsert_on=["user"]).start()
    database.job(table="log", run={"output": "log"}).start()
    fill = "SELECT reloptions FROM pg_class WHERE relname = '{}'"
    assert database.sql(fill.format("totals")) == [(["fillfactor=70"],)]
    assert database.sql(fill.format("log")) == [(None,)]


def test_retraction_is_carried_out_not_stored(database: Database) -> None:
    job = database.job(CHANGES, upsert_on=["user"])
    job.deliver(changes(("ann", 1, False), ("bob", 2, False)))
    job.deliver(changes(("ann", 1, True)))
    assert database.sql("SELECT * FROM totals") == [("bob", 2)]


def test_retraction_is_a_row_of_a_changelog(database: Database) -> None:
    job = database.job(CHANGES, changelog=True)
    job.deliver(changes(("ann", 1, False)))
    job.deliver(changes(("ann", 1, True), ("ann", 2, False)))
    assert rows_of(database) == [("ann", 1, False), ("ann", 1, True), ("ann", 2, False)]


def test_table_of_keys_alone_has_each_once(database: Database) -> None:
    job = database.job(upsert_on=["user", "total"])
    job.deliver(totals(("ann", 1)))
    job.deliver(totals(("ann", 1), ("ann", 2)))
    assert rows_of(database) == [("ann", 1), ("ann", 2)]


def test_columns_are_chosen_and_renamed(database: Database) -> None:
    database.sql('CREATE SCHEMA "My Shop"')
    database.sql('CREATE TABLE "My Shop"."Totals 100%" (who text PRIMARY KEY, sum bigint, note text DEFAULT \'new\')')
    options: dict[str, Any] = {"create": False, "columns": {"total": "sum", "user": "who"}, "upsert_on": ["user"]}
    job = database.job(CHANGES, table="My Shop.Totals 100%", **options)
    job.deliver(changes(("ann", 1, False), ("bob", 2, False)))
    job.deliver(changes(("ann", 1, True), ("bob", 5, False)))
    assert rows_of(database, '"My Shop"."Totals 100%"') == [("bob", 5, "new")]
    assert database.sql('SELECT sink, batch FROM "My Shop".slackwater_ledger') == [("My Shop.Totals 100%", 1)]


def test_percent_sign_in_a_schema_is_a_percent_sign(database: Database) -> None:
    database.sql('CREATE SCHEMA "100%s"')
    database.job(table="100%s.totals").deliver(totals(("ann", 1)))
    assert rows_of(database, '"100%s".totals') == [("ann", 1)]


def test_batch_larger_than_a_chunk_is_one_transaction(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "CHUNK_ROWS", 1_000)
    users = pl.DataFrame({"user": [f"u{n % 1_500}" for n in range(5_000)], "total": range(5_000)}, schema=TOTALS)
    database.job(upsert_on=["user"]).deliver(*users.iter_slices(700))
    assert database.sql("SELECT count(*), min(total), count(DISTINCT xmin::text) FROM totals") == [(1_500, 3_500, 1)]


def test_big_text_goes_through(database: Database) -> None:
    long = "snow ☃ " * 1_000_000
    database.job().deliver(totals((long, 1)))
    assert database.sql('SELECT length("user") FROM totals') == [(len(long),)]


def test_table_that_is_there_is_written_to_and_left_as_it_is(database: Database) -> None:
    database.sql(
        "CREATE DOMAIN amount AS numeric CHECK (VALUE >= 0);"
        "CREATE TYPE mood AS ENUM ('sad', 'ok');"
        'CREATE TABLE totals (id bigint GENERATED ALWAYS AS IDENTITY, total amount, "user" varchar(9) NOT NULL, '
        'at timestamp, ref uuid, mood mood, doc json, UNIQUE ("user", at))'
    )
    schema = pl.Schema(
        {**TOTALS, "at": pl.Datetime("us", "UTC"), "ref": pl.String(), "mood": pl.String(), "doc": pl.List(pl.Int8())}
    )
    ref = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
    job = database.job(schema, create=False)
    job.deliver(pl.DataFrame([("ann", 1, TIME, ref, "ok", [1, 2])], schema=schema, orient="row"))
    stored = database.sql('SELECT id, total::text, "user", at::text, ref::text, mood::text, doc FROM totals')
    assert stored == [(1, "1", "ann", "2024-02-29 12:30:15.123456", ref, "ok", [1, 2])]

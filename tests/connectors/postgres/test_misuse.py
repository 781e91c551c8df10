"""Everything that can be wrong with a server or a table has an error that says what to do."""

from __future__ import annotations

import re
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from slackwater.base.errors import RunError
from slackwater.connectors import delivery
from slackwater.connectors.delivery import SinkWarning
from slackwater.connectors.postgres import connection as connecting
from slackwater.connectors.postgres.sink import postgres
from slackwater.connectors.postgres.sink.ledger import LEDGER
from slackwater.connectors.sink import Slot
from slackwater.testing import SinkHarness
from tests.connectors.postgres.databases import CHANGES, TOTALS, Database, changes, totals

KEYED: dict[str, Any] = {"create": False, "upsert_on": ["user"]}


def start(database: Database, schema: pl.Schema = TOTALS, **options: Any) -> None:  # noqa: ANN401  those of `postgres`
    database.job(schema, **{"create": False, **options}).start()


def test_server_that_is_not_there_is_reported_at_the_start(tmp_path: Path) -> None:
    sink = postgres(f"postgresql://me@/shop?host={tmp_path}", "totals")
    with pytest.raises(
        RunError, match=r"SINK_UNREACHABLE.*connection to server on socket.*No such file or directory; start it"
    ):
        SinkHarness(sink=sink, schema=TOTALS).start()


def test_option_that_libpq_does_not_know_is_reported(database: Database) -> None:
    sink = postgres(database.url + "&sslmod=require", "totals")
    with pytest.raises(RunError, match=r"POSTGRES_URL.*sslmod"):
        SinkHarness(sink=sink, schema=TOTALS).start()


def test_server_that_is_read_only_is_waited_for(database: Database) -> None:
    database.sql(f"ALTER DATABASE {database.name} SET default_transaction_read_only = on")
    with pytest.raises(RunError, match=r"SINK_UNREACHABLE.*read-only transaction"):
        start(database, create=True)


def test_missing_table_is_an_error_that_shows_how_to_make_it(database: Database) -> None:
    with pytest.raises(RunError, match=r"POSTGRES_TABLE_MISSING.*`public.totals` .*; set create=True, or run") as said:
        start(database, **KEYED)
    database.sql(str(said.value).rpartition(", or run ")[2])
    start(database, **KEYED)


def test_missing_schema_is_an_error(database: Database) -> None:
    with pytest.raises(RunError, match=r'POSTGRES_SCHEMA_MISSING.*no schema `shop`; run CREATE SCHEMA "shop"'):
        start(database, table="shop.totals", create=True)


def test_everything_unfit_about_a_table_is_in_one_error(database: Database) -> None:
    database.sql(
        'CREATE TABLE totals ("user" text, totl bigint, n integer, day text, '
        "at timestamptz GENERATED ALWAYS AS ('2024-01-01 00:00+00') STORED, must text NOT NULL, "
        "may text NOT NULL DEFAULT '')"
    )
    schema = pl.Schema({**TOTALS, "n": pl.Int64(), "day": pl.Date(), "at": pl.Datetime("us", "UTC")})
    with pytest.raises(RunError, match=r"POSTGRES_TABLE_UNFIT.*`public.totals` cannot:") as said:
        start(database, schema, **KEYED)
    for problem in (
        "key column `user` may be null, and null equals no other null (ALTER TABLE",
        'ALTER COLUMN "user" SET NOT NULL)',
        "column `total` (bigint) is missing (did you mean `totl`?)",
        "column `n` is integer, and Int64 needs bigint",
        "column `day` is text, and Date needs date",
        "column `at` is generated always",
        "column `must` is NOT NULL, has no default, and gets no value",
        'it has no unique index on exactly user (CREATE UNIQUE INDEX ON "public"."totals" ("user")); alter',
    ):
        assert problem in str(said.value)


def test_statements_that_an_error_shows_make_a_table_fit_for_replacing(database: Database) -> None:
    database.sql('CREATE TABLE totals ("user" text, total bigint)')
    with pytest.raises(RunError, match="POSTGRES_TABLE_UNFIT") as said:
        start(database, **KEYED)
    statements = re.findall(r"\(((?:ALTER|CREATE) [^;]*)\)(?:;|$)", str(said.value))
    assert len(statements) == 2
    for statement in statements:
        database.sql(statement)
    start(database, **KEYED)


def test_table_without_a_key_column_lacks_the_index_as_well(database: Database) -> None:
    database.sql("CREATE TABLE totals (total bigint)")
    with pytest.raises(RunError, match=r"`user` \(text\) is missing; it has no unique index on exactly user"):
        start(database, **KEYED)


def test_table_that_is_appended_to_needs_no_index(database: Database) -> None:
    database.sql("CREATE TABLE totals (total bigint)")
    with pytest.raises(RunError, match=r"`user` .* is missing") as said:
        start(database)
    assert "index" not in str(said.value)


def test_view_is_no_table(database: Database) -> None:
    database.sql("CREATE VIEW totals AS SELECT ''::text AS \"user\", 0::bigint AS total")
    with pytest.raises(RunError, match=r"POSTGRES_TABLE_UNFIT.*it is a view"):
        start(database)


@pytest.mark.parametrize(
    "index",
    [
        None,
        'CREATE INDEX ON totals ("user")',
        'CREATE UNIQUE INDEX ON totals ("user", total)',
        'CREATE UNIQUE INDEX ON totals ("user") WHERE total > 0',
        'CREATE UNIQUE INDEX ON totals (lower("user"))',
        'ALTER TABLE totals ADD UNIQUE ("user") DEFERRABLE',
    ],
)
def test_table_whose_key_is_not_unique_is_an_error_that_shows_the_index(database: Database, index: str | None) -> None:
    database.sql('CREATE TABLE totals ("user" text NOT NULL, total bigint)')
    if index is not None:
        database.sql(index)
    with pytest.raises(RunError, match=r"POSTGRES_NOT_UNIQUE.*has none on user; run CREATE UNIQUE INDEX") as said:
        start(database, **KEYED)
    database.sql(str(said.value).partition("; run ")[2].partition(", or omit")[0])
    start(database, **KEYED)


def test_unique_index_may_have_its_columns_in_any_order(database: Database) -> None:
    database.sql(
        'CREATE TABLE totals ("user" text, note text, total bigint, PRIMARY KEY (total, "user") INCLUDE (note))'
    )
    job = database.job(create=False, upsert_on=["user", "total"])
    job.deliver(totals(("ann", 1)))
    assert database.sql("SELECT total FROM totals") == [(1,)]


@pytest.mark.parametrize("options", [{}, {"upsert_on": ["user"]}, {"delivery": "at_least_once"}])
@pytest.mark.parametrize("has_table", [True, False])
def test_what_a_user_may_not_do_is_an_error_whose_statements_mend_it(
    database: Database, clerk: str, options: dict[str, Any], *, has_table: bool
) -> None:
    database.sql(f"REVOKE TEMPORARY ON DATABASE {database.name} FROM PUBLIC")
    database.sql("CREATE SCHEMA shop")
    if has_table:
        database.sql('CREATE TABLE shop.totals ("user" text PRIMARY KEY, total bigint)')
    sink = postgres(database.server.url(user=clerk, database=database.name), "shop.totals", create=True, **options)
    with pytest.raises(
        RunError, match=f"POSTGRES_NO_PERMISSION.*`{clerk}` lacks privileges on table `shop.totals`"
    ) as said:
        SinkHarness(sink=sink, schema=TOTALS).start()
    for statement in str(said.value).partition("owner to run: ")[2].split("; "):
        database.sql(statement)
    with SinkHarness(sink=sink, schema=TOTALS) as job:
        job.deliver(totals(("ann", 1)))
    assert database.sql("SELECT total FROM shop.totals") == [(1,)]


def test_right_on_the_written_columns_is_enough_to_append(database: Database, clerk: str) -> None:
    database.sql('CREATE TABLE totals ("user" text, total bigint, secret text)')
    database.sql(f'GRANT INSERT ("user", total) ON totals TO {clerk}')
    url = database.server.url(user=clerk, database=database.name)
    with SinkHarness(sink=postgres(url, "totals", delivery="at_least_once"), schema=TOTALS) as job:
        job.deliver(totals(("ann", 1)))
    assert database.sql("SELECT total FROM totals") == [(1,)]


def test_ledger_that_may_not_be_written_is_an_error(database: Database, clerk: str) -> None:
    database.job().deliver(totals(("ann", 1)))
    database.sql(f"GRANT INSERT ON totals TO {clerk}")
    sink = postgres(database.server.url(user=clerk, database=database.name), "totals")
    with pytest.raises(RunError, match=f'GRANT SELECT, INSERT, UPDATE ON "public"."{LEDGER}" TO "{clerk}"'):
        SinkHarness(sink=sink, schema=TOTALS, output="other").start()


@pytest.mark.parametrize(
    "table, options, rows, words",
    [
        (
            '"user" text PRIMARY KEY, total bigint',
            {},
            [("ann", 1), ("ann", 2)],
            r'violates unique constraint "totals_pkey".*Key \("user"\)=\(ann\) already exists.*set upsert_on to the',
        ),
        (
            '"user" text, total bigint CHECK (total > 0)',
            {},
            [("ann", 0)],
            'violates check constraint "totals_total_check".*Failing row contains.*fix them in the pipeline',
        ),
        (
            '"user" text PRIMARY KEY, total bigint NOT NULL',
            {"upsert_on": ["user"]},
            [("ann", None)],
            'null value in column "total".*alter the table to accept these rows',
        ),
        (
            '"user" varchar(2), total bigint',
            {},
            [("ann", 1)],
            r"value too long for type character varying\(2\).*column user",
        ),
        ('"user" uuid, total bigint', {}, [("ann", 1)], "invalid input syntax for type uuid.*column user"),
        (
            '"user" uuid PRIMARY KEY, total bigint',
            {"upsert_on": ["user"]},
            [("A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", 1), ("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", 1)],
            "cannot affect row a second time.*treats two of the keys as equal",
        ),
    ],
)
def test_row_that_the_table_refuses_stops_the_job_and_nothing_of_the_batch_is_written(
    database: Database, table: str, options: dict[str, Any], rows: list[tuple[str, int | None]], words: str
) -> None:
    database.sql(f"CREATE TABLE totals ({table})")
    job = database.job(create=False, **options)
    with pytest.raises(RunError, match=f"POSTGRES_REFUSED.*rejected batch 0: .*{words}.*none of it was written"):
        job.deliver(totals(*rows))
    assert database.sql("SELECT total FROM totals") == []
    assert database.sql("SELECT batch FROM slackwater_ledger") == [(None,)]


def test_null_in_a_key_has_an_error_of_its_own_with_its_column(database: Database) -> None:
    job = database.job(upsert_on=["user"], columns={"user": "who", "total": "total"})
    with pytest.raises(RunError, match=r"POSTGRES_NULL_KEY.*null in key column `who` in batch 0: .*; filter out"):
        job.deliver(totals(("ann", 1), (None, 1)))
    assert database.sql("SELECT total FROM totals") == []
    assert database.sql("SELECT batch FROM slackwater_ledger") == [(None,)]


def test_batch_that_was_refused_is_delivered_when_the_table_is_mended(database: Database) -> None:
    database.sql('CREATE TABLE totals ("user" text, total bigint CHECK (total > 0))')
    job = database.job(create=False)
    with pytest.raises(RunError, match="POSTGRES_REFUSED"):
        job.deliver(totals(("ann", 0)))
    database.sql("ALTER TABLE totals DROP CONSTRAINT totals_total_check")
    job.restart().deliver(totals(("ann", 0)))
    assert database.sql("SELECT total FROM totals") == [(0,)]


@pytest.mark.parametrize(
    "change, words",
    [
        ("DROP TABLE totals", 'relation "public.totals" does not exist'),
        ("ALTER TABLE totals DROP COLUMN total", 'column "total" of relation "totals" does not exist'),
    ],
)
def test_table_that_changes_while_the_job_runs_stops_it(database: Database, change: str, words: str) -> None:
    job = database.job()
    job.deliver(totals(("ann", 1)))
    database.sql(change)
    with pytest.raises(RunError, match=f"POSTGRES_REFUSED.*{words}"):
        job.deliver(totals(("ann", 1)))


def test_table_that_is_gone_when_a_slot_is_opened_is_reported(database: Database) -> None:
    job = database.job(run={"slot": 1})
    open_slot = job.start()
    open_slot.close()
    database.sql("DROP TABLE totals")
    with pytest.raises(RunError, match=r"POSTGRES_TABLE_GONE.*`public.totals` no longer exists"):
        job.deliver(totals(("ann", 1)))


@pytest.mark.parametrize("create", [True, False])
def test_table_that_went_between_two_starts_is_not_made_anew(database: Database, *, create: bool) -> None:
    sink = database.sink(create=create)
    slot = Slot(pipeline="p", output="o", schema=TOTALS, delivered_before=True)
    with pytest.raises(RunError, match=r"POSTGRES_TABLE_GONE.*`public.totals` no longer exists.*--take-over"):
        sink.prepare(slot)
    assert database.sql("SELECT relname FROM pg_class WHERE relname IN ('totals', 'slackwater_ledger')") == []
    database.sql('CREATE TABLE totals ("user" text, total bigint)')
    sink.prepare(slot)


def test_right_that_is_taken_away_while_the_job_runs_stops_it(database: Database, clerk: str) -> None:
    database.sql(f"GRANT CREATE ON SCHEMA public TO {clerk}")
    database.sql('CREATE TABLE totals ("user" text, total bigint)')
    database.sql(f"GRANT INSERT ON totals TO {clerk}")
    sink = postgres(database.server.url(user=clerk, database=database.name), "totals")
    with SinkHarness(sink=sink, schema=TOTALS) as job:
        job.deliver(totals(("ann", 1)))
        database.sql(f"REVOKE INSERT ON totals FROM {clerk}")
        with pytest.raises(RunError, match=r"POSTGRES_REFUSED.*permission denied for table totals.*grant the user"):
            job.deliver(totals(("ann", 1)))


def test_table_that_is_locked_is_waited_for(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "_TRANSACTION", connecting._TRANSACTION.replace(b"'30s'", b"'50ms'"))
    monkeypatch.setattr(delivery, "BACKOFF", replace(delivery.BACKOFF, first_s=0.05))
    job = database.job()
    job.deliver(totals(("ann", 1)))
    other = database.server.connect(database=database.name)
    other.execute("BEGIN")
    other.execute("LOCK TABLE totals")
    unlocking = threading.Timer(0.5, other.close)
    unlocking.start()
    with pytest.warns(SinkWarning, match=r"SINK_WAITING.*canceling statement due to lock timeout"):
        job.deliver(totals(("bob", 1)))
    unlocking.join()
    assert database.sql("SELECT count(*) FROM totals") == [(2,)]


def test_writer_that_froze_in_a_transaction_does_not_keep_the_slot(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert b"'20s'" in connecting._TRANSACTION
    monkeypatch.setattr(connecting, "_TRANSACTION", connecting._TRANSACTION.replace(b"'20s'", b"'200ms'"))
    frozen, new = database.job(), database.job(run={"marked": [0]})
    frozen.deliver(totals(("ann", 1)))
    writer: Any = database.opened[0]
    writer.connection.execute("BEGIN")
    writer.connection.execute(connecting._TRANSACTION)
    writer.connection.execute("UPDATE slackwater_ledger SET batch = 7")
    new.deliver(totals(("bob", 1)))
    assert database.sql("SELECT count(*) FROM totals") == [(2,)]


def test_durable_means_durable_where_the_server_would_not_wait(database: Database) -> None:
    database.sql(f"ALTER DATABASE {database.name} SET synchronous_commit = off")
    job = database.job()
    job.start()
    writer: Any = database.opened[0]
    with connecting.transaction(writer.connection, sink="", doing=""):
        assert writer.connection.execute("SHOW synchronous_commit").fetchone() == ("on",)


def test_two_jobs_that_make_the_same_table_do_not_get_in_each_other_s_way(database: Database) -> None:
    jobs = [database.job(CHANGES, upsert_on=["user"], run={"pipeline": f"p{number}"}) for number in range(6)]
    failed: list[BaseException] = []

    def run(job: SinkHarness) -> None:
        try:
            job.deliver(changes((job.pipeline, 1, False)))
        except BaseException as error:  # noqa: BLE001  shown below
            failed.append(error)

    threads = [threading.Thread(target=run, args=[job]) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert database.sql("SELECT count(*) FROM totals") == [(6,)]

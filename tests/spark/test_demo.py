"""The demo in short: a few seconds of the stream, and the account that must balance, or say why not."""

from __future__ import annotations

import io
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest
from rich.console import Console

from slackwater.demo import show
from slackwater.demo.account import Account, Outcome, settle
from slackwater.demo.definition import ACTIVE, PURCHASES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A demo that has ended."""

    folder: Path
    account: Account
    text: str


@pytest.fixture(scope="module")
def shown(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    folder = tmp_path_factory.mktemp("demo") / "demo-run"
    out = io.StringIO()
    console = Console(file=out, width=300)  # wide enough for any path of a test
    account = show.run_demo(folder=folder, seconds=8, rate=500, seed=5, spark=spark, console=console)
    yield Shown(folder=folder, account=account, text=out.getvalue())
    shutil.rmtree(folder)


def counts_of(account: Account) -> dict[str, Counter[str]]:
    return {step.step: Counter(on_time=step.on_time, refired=step.refired) for step in account.steps}


def settle_again(shown: Shown, folder: Path) -> Account:
    dead = shown.account.steps[0].dead
    return settle(
        Outcome(folder=folder), counts_of(shown.account), written=shown.account.records, damaged=Counter(all=dead)
    )


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
    dead = Outcome(folder=shown.folder).dead
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
    assert f"{lost} records cannot be read and are no dead letters" in settle_again(shown, tampered).complaints


def test_window_that_is_there_twice_too_often_is_found(shown: Shown, tampered: Path) -> None:
    part = part_of(tampered, ACTIVE)
    rows = pl.read_parquet(part)
    extra = rows.head(1).with_columns(pl.col("country").str.replace_all(".", "?"))
    pl.concat([rows, extra]).write_parquet(part)
    assert not settle_again(shown, tampered).is_balanced

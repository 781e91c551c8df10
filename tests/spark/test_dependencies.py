"""The driver and what a batch needs from outside: tables are read as a batch begins, and a batch waits for stores."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import slackwater as sw
from slackwater.base.backoff import Backoff
from slackwater.base.errors import RunError, fault
from slackwater.connectors.delivery import StoppedWaitingError
from slackwater.connectors.intake import RETAIN
from slackwater.engine.checkpoint.checkpoint import Checkpoint, open_checkpoint
from slackwater.engine.enrichment.answers import Span
from slackwater.engine.next_clock import next_clock
from slackwater.engine.outputs.evaluated import EvaluatedBatch
from slackwater.eventtime.clock import Clock, TableVersion
from slackwater.plan.plan import Plan
from slackwater.spark import dependencies as module
from slackwater.spark.dependencies import DependencyWait, OutsideWarning
from slackwater.testing import rows_source
from tests.sealing import content_of, reseal

STEP = "orders.join_table"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BACKOFF", Backoff(first_s=0.001, longest_s=0.001))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "rates.parquet"
    rate(path, 1.0)
    return path


def rate(path: Path, value: float) -> None:
    pl.DataFrame({"code": ["EUR"], "rate": [value]}).write_parquet(path)


def planned(path: Path, refresh: str | None = "1m") -> Plan:
    orders = sw.stream("orders", rows_source("code string, ts long")).event_time("ts")
    stream = orders.join_table(sw.table(path, refresh=refresh), on="code")
    return sw.Pipeline("p", stream.to(sw.sinks.memory()), stream.dead_letters.drop()).plan()


def opened(tmp_path: Path, plan: Plan) -> Checkpoint:
    return open_checkpoint(tmp_path / "checkpoint", plan, partitions=1)


def outside(plan: Plan, checkpoint: Checkpoint, is_stopping: Callable[[], bool] = lambda: False) -> DependencyWait:
    return DependencyWait(plan=plan, checkpoint=checkpoint, is_stopping=is_stopping)


def begun(checkpoint: Checkpoint, batch: int, now_ms: int) -> Clock:
    """Let Spark begin a batch, and return its clock as the driver reads it."""
    folder = checkpoint.path / "offsets"
    folder.mkdir(exist_ok=True)
    (folder / str(batch)).write_text(f'v1\n{{"batchTimestampMs": {now_ms}}}\n{{}}\n')
    return checkpoint.begun_clock(batch)


def committed(plan: Plan, checkpoint: Checkpoint, clock: Clock) -> None:
    from slackwater.engine.batch_stats import BatchStats

    checkpoint.write_clock(next_clock(plan, clock, BatchStats(now_ms=clock.now), backlog={}))
    folder = checkpoint.path / "commits"
    folder.mkdir(exist_ok=True)
    (folder / str(clock.batch)).write_text("v1\n{}")


def seen(checkpoint: Checkpoint, clock: Clock) -> float:
    value: float = checkpoint.snapshots.load(STEP, clock.tables[STEP].version)["rate"][0]
    return value


def test_the_first_batch_reads_its_table_and_writes_down_which_version(tmp_path: Path, table: Path) -> None:
    plan = planned(table)
    checkpoint = opened(tmp_path, plan)
    clock = outside(plan, checkpoint).completed(begun(checkpoint, 0, 5_000))
    assert seen(checkpoint, clock) == 1.0
    assert checkpoint.clock(0).tables == clock.tables
    assert checkpoint.clock(0).now_ms is None, "the batch's time stays Spark's to tell"


def test_a_batch_that_is_run_again_sees_the_version_it_saw(tmp_path: Path, table: Path) -> None:
    plan = planned(table, "1ms")
    checkpoint = opened(tmp_path, plan)
    outside(plan, checkpoint).completed(begun(checkpoint, 0, 5_000))
    rate(table, 2.0)
    again = outside(plan, checkpoint)
    clock = again.completed(begun(checkpoint, 0, 5_000))
    assert seen(checkpoint, clock) == 1.0
    committed(plan, checkpoint, clock)
    assert seen(checkpoint, again.completed(begun(checkpoint, 1, 5_001))) == 2.0


def test_a_batch_that_had_not_come_so_far_reads_its_table(tmp_path: Path, table: Path) -> None:
    plan = planned(table)
    checkpoint = opened(tmp_path, plan)
    begun(checkpoint, 0, 5_000)
    rate(table, 2.0)
    assert seen(checkpoint, outside(plan, checkpoint).completed(begun(checkpoint, 0, 5_000))) == 2.0


def test_a_table_is_read_again_after_refresh_by_the_time_of_batches(tmp_path: Path, table: Path) -> None:
    plan = planned(table)
    checkpoint = opened(tmp_path, plan)
    driver = outside(plan, checkpoint)
    rates = []
    for batch, now_ms in enumerate([0, 30_000, 59_999, 60_000, 90_000]):
        clock = driver.completed(begun(checkpoint, batch, now_ms))
        rates.append(seen(checkpoint, clock))
        rate(table, batch + 2.0)
        committed(plan, checkpoint, clock)
    assert rates == [1.0, 1.0, 1.0, 4.0, 4.0]


def test_a_start_reads_every_table_for_its_first_new_batch(tmp_path: Path, table: Path) -> None:
    plan = planned(table, None)
    checkpoint = opened(tmp_path, plan)
    clock = outside(plan, checkpoint).completed(begun(checkpoint, 0, 0))
    committed(plan, checkpoint, clock)
    rate(table, 2.0)
    driver = outside(plan, checkpoint)
    clock = driver.completed(begun(checkpoint, 1, 1))
    assert seen(checkpoint, clock) == 2.0
    committed(plan, checkpoint, clock)
    rate(table, 3.0)
    assert seen(checkpoint, driver.completed(begun(checkpoint, 2, 2))) == 2.0


def test_a_table_that_cannot_be_read_is_waited_for_with_a_notice(tmp_path: Path, table: Path) -> None:
    plan = planned(table)
    checkpoint = opened(tmp_path, plan)
    table.rename(tmp_path / "away.parquet")
    looks = []

    def is_stopping() -> bool:
        looks.append(1)
        if len(looks) == 5:
            (tmp_path / "away.parquet").rename(table)
        return False

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        clock = outside(plan, checkpoint, is_stopping).completed(begun(checkpoint, 0, 0))
    assert seen(checkpoint, clock) == 1.0
    assert [str(each.message).partition("]")[0] for each in said] == ["[TABLE_WAITING", "[STORE_BACK"]
    assert "there is no such file; retrying (Ctrl-C stops)" in str(said[0].message)


def test_a_job_that_is_stopped_while_it_waits_for_a_table_has_decided_nothing(tmp_path: Path, table: Path) -> None:
    plan = planned(table)
    checkpoint = opened(tmp_path, plan)
    table.unlink()
    with pytest.warns(OutsideWarning, match="TABLE_WAITING"), pytest.raises(StoppedWaitingError):
        outside(plan, checkpoint, lambda: True).completed(begun(checkpoint, 0, 0))
    assert checkpoint.clock(0).tables == {}


def test_a_table_with_a_key_twice_ends_the_job(tmp_path: Path, table: Path) -> None:
    plan = planned(table)
    checkpoint = opened(tmp_path, plan)
    pl.DataFrame({"code": ["EUR", "EUR"], "rate": [1.0, 2.0]}).write_parquet(table)
    with pytest.raises(RunError, match="TABLE_KEY_TWICE"):
        outside(plan, checkpoint).completed(begun(checkpoint, 0, 0))


def test_versions_that_no_kept_clock_names_are_deleted(
    tmp_path: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slackwater.engine.checkpoint.checkpoint.RETAIN", 3)
    plan = planned(table, "1ms")
    checkpoint = opened(tmp_path, plan)
    driver = outside(plan, checkpoint)
    for batch in range(10):
        rate(table, float(batch))
        clock = driver.completed(begun(checkpoint, batch, batch * 10))
        kept = {path.stem for path in (checkpoint.home / "tables" / STEP).iterdir()}
        clocks = [checkpoint.clock(int(path.name)) for path in (checkpoint.home / "clock").iterdir()]
        assert kept == {each.tables[STEP].version for each in clocks}
        assert len(kept) == min(batch + 1, 4)
        committed(plan, checkpoint, clock)


def test_a_version_that_was_deleted_by_hand_is_named(tmp_path: Path, table: Path) -> None:
    checkpoint = opened(tmp_path, planned(table))
    with pytest.raises(RunError, match=r"CHECKPOINT_DAMAGED.*abc\.arrow` is damaged: it is missing"):
        checkpoint.snapshots.load(STEP, "abc")


def test_answers_of_old_batches_go_with_their_clocks(tmp_path: Path, table: Path) -> None:
    plan = planned(table)
    checkpoint = opened(tmp_path, plan)
    answers = pl.DataFrame({"__key": ["a"]})
    for batch in (0, 1):
        checkpoint.answers.write("s", batch, Span(partition="0", first=0, last=1), answers)
    checkpoint.write_clock(replace(checkpoint.clock(0), batch=RETAIN + 1))
    assert [path.name for path in (checkpoint.home / "lookups" / "s").iterdir()] == ["1"]


def test_a_clock_from_before_there_were_tables_has_none(tmp_path: Path, table: Path) -> None:
    checkpoint = opened(tmp_path, planned(table))
    path = checkpoint.home / "clock" / "0"
    reseal(path, {name: fact for name, fact in content_of(path).items() if name != "tables"})
    assert "tables" not in path.read_text()
    assert checkpoint.clock(0).tables == {}


def test_a_clock_keeps_its_tables_in_its_file_and_on_its_way_to_tasks() -> None:
    clock = Clock(batch=1, streams={}, now_ms=5, tables={"s": TableVersion(version="v", read_at_ms=3)})
    assert Clock.from_json(clock.to_json()) == clock
    assert Clock.from_property(clock.to_property()).tables["s"].version == "v"


def evaluating(monkeypatch: pytest.MonkeyPatch, *outcomes: Exception | str) -> list[int]:
    """Let batches end one after another as told, and return where their numbers are noted."""
    given, numbers = list(outcomes), []

    def evaluate(frame: Any, number: int) -> Any:  # noqa: ANN401  a batch
        numbers.append(number)
        outcome = given.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(EvaluatedBatch, "evaluate", evaluate)
    return numbers


def unavailable() -> Exception:
    """Return what Spark raises when a task has waited for a store in vain."""
    told = fault("LOOKUP_UNAVAILABLE", lookup="redis", step="orders.lookup", count="1 key", why="refused")
    return RuntimeError(f"Traceback …\nslackwater.base.errors.RunError: {told}\n at org.apache.spark…")


def test_a_batch_whose_lookup_waits_is_evaluated_again_with_one_notice(
    tmp_path: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned(table)
    numbers = evaluating(monkeypatch, unavailable(), unavailable(), unavailable(), "done")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        done: Any = outside(plan, opened(tmp_path, plan)).evaluated(None, 7)  # type: ignore[arg-type]  # not looked at
    assert done == "done"
    assert numbers == [7, 7, 7, 7]
    assert [str(each.message).partition("]")[0] for each in said] == ["[LOOKUP_WAITING", "[STORE_BACK"]
    assert "batch 7 is waiting for a lookup, 0s so far: " in str(said[0].message)
    assert "redis of `orders.lookup` did not answer for 1 key, last error: refused" in str(said[0].message)


def test_a_batch_that_waits_for_a_store_can_be_stopped(
    tmp_path: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned(table)
    evaluating(monkeypatch, unavailable())
    with pytest.warns(OutsideWarning, match="LOOKUP_WAITING"), pytest.raises(StoppedWaitingError):
        outside(plan, opened(tmp_path, plan), lambda: True).evaluated(None, 0)  # type: ignore[arg-type]  # not looked at


def test_any_other_failure_of_a_batch_is_not_waited_out(
    tmp_path: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned(table)
    evaluating(monkeypatch, ValueError("a bug"))
    with pytest.raises(ValueError, match="a bug"):
        outside(plan, opened(tmp_path, plan)).evaluated(None, 0)  # type: ignore[arg-type]  # not looked at

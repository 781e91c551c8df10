"""A machine's clock that is set back or forward: processing time neither goes backwards nor stands still."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import slackwater as sw
from slackwater.engine.batch_stats import BatchStats
from slackwater.engine.checkpoint.checkpoint import open_checkpoint
from slackwater.engine.enrichment.table_versions import due_tables
from slackwater.engine.next_clock import first_clock, next_clock
from slackwater.eventtime.clock import Clock
from slackwater.plan.plan import Plan
from slackwater.spark.clock_steps import ClockSteps
from slackwater.testing import rows_source
from tests.observe.checker.pipelines import rows, windowed

HOUR_MS = 3_600_000
START_MS = 1_800_000_000_000


def planned(tmp_path: Path) -> Plan:
    pl.DataFrame({"code": ["EUR"], "rate": [1.0]}).write_parquet(tmp_path / "rates.parquet")
    orders = sw.stream("orders", rows_source("code string, ts long")).event_time("ts", idle_after="1m")
    stream = orders.join_table(sw.table(tmp_path / "rates.parquet", refresh="1m"), on="code")
    return sw.Pipeline("p", stream.to(sw.sinks.memory()), stream.dead_letters.drop()).plan()


def batches(plan: Plan, logged_ms: list[int]) -> list[Clock]:
    """Return the clocks of batches that began at these times of the machine's clock."""
    clock, found = first_clock(plan), []
    for at_ms in logged_ms:
        found.append(clock.begun(at_ms))
        clock = next_clock(plan, found[-1], BatchStats(now_ms=found[-1].now), backlog={})
        clock = Clock.from_json(clock.to_json())  # as after a restart
    return found


def every(seconds: int, first_ms: int, count: int) -> list[int]:
    return [first_ms + 1_000 * seconds * number for number in range(count)]


@pytest.mark.parametrize("step_ms", [-HOUR_MS, -1_500, HOUR_MS, -24 * HOUR_MS])
def test_processing_time_never_goes_backwards_and_never_stands_still(step_ms: int) -> None:
    logged = every(1, START_MS, 10) + every(1, START_MS + 10_000 + step_ms, 50)
    now = [clock.now for clock in batches(windowed(rows()).plan(), logged)]
    assert now[:10] == logged[:10]
    assert all(later - earlier >= 500 for earlier, later in itertools.pairwise(now[10:]))
    assert all(at >= real for at, real in zip(now, logged, strict=True))
    assert now[10] >= now[9]


def test_processing_time_is_the_machine_s_again_once_that_has_caught_up() -> None:
    logged = every(10, START_MS, 3) + every(10, START_MS - HOUR_MS, 800)
    now = [clock.now for clock in batches(windowed(rows()).plan(), logged)]
    assert now[3] > logged[3]
    assert now[-1] == logged[-1]


def test_a_clock_that_is_set_back_and_put_right_leaves_nothing_behind() -> None:
    logged = every(1, START_MS, 3) + every(1, START_MS + 3_000 - HOUR_MS, 5) + every(1, START_MS + 8_000, 5)
    now = [clock.now for clock in batches(windowed(rows()).plan(), logged)]
    assert now[-3:] == pytest.approx(logged[-3:], abs=31_000)
    assert now[-1] - logged[-1] < 31_000, "one step forward counts as a minute at most, at half the speed"


def test_a_batch_run_again_has_the_time_it_had() -> None:
    plan = windowed(rows()).plan()
    [*_, before, again] = batches(plan, [START_MS, START_MS + 1_000, START_MS - HOUR_MS])
    assert before.now == START_MS + 1_000
    assert replace(again, now_ms=None, logged_ms=None).begun(START_MS - HOUR_MS) == again


def test_a_table_is_refreshed_and_a_partition_becomes_idle_after_a_step_back(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    logged = [START_MS, *every(10, START_MS - HOUR_MS, 20)]
    clocks = batches(plan, logged)
    first = clocks[0]
    from slackwater.eventtime.clock import TableVersion

    read = {"orders.join_table": TableVersion(version="v", read_at_ms=first.now)}
    due = [bool(due_tables(plan, replace(clock, tables=read))) for clock in clocks]
    assert not due[0]
    assert due[-1], "two minutes of batches are at least one of processing time"


def test_spark_s_log_of_a_batch_gives_its_time(tmp_path: Path) -> None:
    plan = windowed(rows()).plan()
    checkpoint = open_checkpoint(tmp_path / "checkpoint", plan, partitions=1)
    (tmp_path / "checkpoint" / "offsets").mkdir(exist_ok=True)
    times = []
    for batch, logged_ms in enumerate([START_MS, START_MS - HOUR_MS]):
        path = tmp_path / "checkpoint" / "offsets" / str(batch)
        path.write_text(f'v1\n{{"batchTimestampMs": {logged_ms}}}\n{{}}\n')
        clock = checkpoint.begun_clock(batch)
        times.append(clock.now)
        checkpoint.write_clock(next_clock(plan, clock, BatchStats(now_ms=clock.now), backlog={}))
    assert times == [START_MS, START_MS]


def test_a_step_back_of_the_machine_s_clock_is_noticed_once() -> None:
    wall, steady = [1_000.0], [5.0]
    steps = ClockSteps(wall=lambda: wall[0], steady=lambda: steady[0])

    def later(wall_s: float, steady_s: float = 0.2) -> bool:
        wall[0] += wall_s
        steady[0] += steady_s
        return steps.is_set_back()

    assert not later(0.2)
    assert later(-3_600)
    assert not later(0.2)
    assert not later(3_600), "a step forward only makes Spark's wait shorter"
    assert not any(later(0.199) for _ in range(10_000)), "a clock that is slewed"

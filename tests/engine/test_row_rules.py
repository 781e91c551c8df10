"""The rules about rows and their order, without Spark."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import slackwater as sw
from slackwater.base.errors import RunError
from slackwater.engine.checkpoint.checkpoint import open_checkpoint
from slackwater.engine.keyed.stage import Stage
from slackwater.engine.memory import MemoryEngine
from slackwater.eventtime.clock import Clock
from slackwater.operators.state.packets import Packet
from slackwater.plan.plan import Plan
from slackwater.testing import Harness, run
from tests.engine.pipelines import built, events, row, send

MINUTE = 60_000


class ShuffledEngine(MemoryEngine):
    """An engine whose shuffle delivers packets in another order every time, as Spark's does."""

    dice = random.Random(1)

    def _stage(self, stage: Stage, packets: list[Packet], clock: Clock) -> list[Packet]:
        self.dice.shuffle(packets)
        return super()._stage(stage, packets, clock)


class Joined(sw.Accumulator):
    """An accumulator that shows in which order its parts were merged."""

    output = pl.String()

    def create(self) -> Any:  # noqa: ANN401  whatever an accumulator holds
        return ""

    def add(self, acc: Any, value: Any) -> Any:  # noqa: ANN401  the same
        return f"{acc} {value:.1f}"

    def merge(self, a: Any, b: Any) -> Any:  # noqa: ANN401  the same
        return a + b

    def result(self, acc: Any) -> Any:  # noqa: ANN401
        return acc


def everything_that_depends_on_order() -> sw.Pipeline:
    results = (
        events()
        .key_by("k")
        .window(sw.tumbling("1h"))
        .aggregate(
            first=sw.first("v"),
            last=sw.last("v"),
            total=sw.sum("v"),
            all=sw.collect_list("v"),
            spread=sw.stddev("v"),
            decaying=sw.ewma("v", half_life="1m"),
            joined=sw.accumulator(Joined, "v"),
        )
    )
    return built(results, key_groups=2)


def ties(plan: Plan, engine: type[MemoryEngine]) -> pl.DataFrame:
    """Run three batches of four partitions whose rows all have the same event time."""
    harness = Harness(everything_that_depends_on_order())
    harness.engine = engine(plan=plan)
    for batch in range(3):
        for partition in "abcd":
            values = [0.1 * (batch + 1) * (number + ord(partition)) for number in range(5)]
            send(harness, *[row("k", 1_000, value) for value in values], partition=partition)
        harness.run_batch()
    return harness.finish()["events.window"]


def test_rule_07_order_in_which_the_shuffle_delivers_does_not_matter() -> None:
    plan = everything_that_depends_on_order().plan()
    expected = ties(plan, MemoryEngine)
    for _ in range(4):
        assert_frame_equal(ties(plan, ShuffledEngine), expected, check_exact=True)


def test_rule_07_ties_in_time_are_broken_by_partition_and_offset() -> None:
    harness = Harness(everything_that_depends_on_order())
    send(harness, row("k", 1_000, 3.0), row("k", 1_000, 4.0), partition="b")
    send(harness, row("k", 1_000, 1.0), row("k", 1_000, 2.0), partition="a")
    shown = harness.finish()["events.window"]
    assert shown.select("first", "last").rows() == [(1.0, 4.0)]


@given(
    values=st.lists(st.floats(-1e6, 1e6).filter(lambda v: abs(v) > 1e-6), min_size=2, max_size=40),
    seed=st.integers(0, 1_000),
)
def test_rule_08_sketches_are_the_same_in_any_order(values: list[float], seed: int) -> None:
    results = (
        events()
        .key_by("k")
        .window(sw.tumbling("1h"))
        .aggregate(
            p95=sw.quantile("v", 0.95), many=sw.quantiles("v", [0.1, 0.5]), distinct=sw.approx_distinct("v", k=16)
        )
    )
    shuffled = random.Random(seed).sample(values, len(values))
    in_order, in_disorder = ([row("k", 1_000, value) for value in order] for order in (values, shuffled))
    expected = run(built(results), {"events": in_order})[results]
    harness = Harness(built(results))
    cut = seed % len(values)
    send(harness, *in_disorder[:cut], partition="1").run_batch()
    send(harness, *in_disorder[cut:], partition="0").run_batch()
    assert_frame_equal(harness.finish()[results.name], expected, check_exact=True)


class Fickle(sw.Accumulator):
    """An accumulator that gives another result every time it is asked."""

    output = pl.Int64()
    asked = itertools.count()

    def create(self) -> Any:  # noqa: ANN401  whatever an accumulator holds
        return 0

    def add(self, acc: Any, value: Any) -> Any:  # noqa: ANN401  the same
        return acc + 1

    def merge(self, a: Any, b: Any) -> Any:  # noqa: ANN401  the same
        return a + b

    def result(self, acc: Any) -> Any:  # noqa: ANN401
        return next(self.asked)


def test_rule_09_retraction_repeats_the_stored_row() -> None:
    results = (
        events()
        .key_by("k")
        .window(sw.tumbling("1m"), allowed_lateness="10m", accumulation="retracting")
        .aggregate(fickle=sw.accumulator(Fickle, "v"), total=sw.sum("v"))
    )
    harness = Harness(built(results))
    send(harness, row("k", 1_000, 0.1), row("k", 2_000, 0.2), row("k", MINUTE, 1.0)).run_batch()
    [shown] = harness.run_batch()[results.name].to_dicts()
    harness.restart()
    withdrawn, corrected = send(harness, row("k", 3_000, 0.3)).run_batch()[results.name].to_dicts()
    kept = ("k", "window_start", "window_end", "fickle", "total", "pane_index")
    assert withdrawn["is_retraction"]
    assert {name: withdrawn[name] for name in kept} == {name: shown[name] for name in kept}
    assert (corrected["is_retraction"], corrected["pane_index"]) == (False, 1)


def visits() -> tuple[sw.Pipeline, Any]:
    results = events().key_by("k").window(sw.session("10s"), allowed_lateness="0s").aggregate(n=sw.count())
    return built(results), results


@pytest.mark.parametrize("order", list(itertools.permutations([0, 9_000, 18_000])), ids=str)
def test_rule_10_sessions_are_judged_after_merging_whatever_the_order(order: tuple[int, ...]) -> None:
    """The rows at 0 and 9 s are forgotten by themselves at 20 s, but not the session that 18 s keeps alive.

    0 s ─────────┤10
         9 s ─────────┤19
               18 s ───────│─┤28
                       watermark 20
    """
    pipeline, results = visits()
    harness = Harness(pipeline)
    send(harness, row("other", 20_000)).run_batch()
    for place, ts in enumerate(order):
        send(harness, row("k", ts), partition=str(place))
    harness.finish()
    shown = harness.output(results).filter(k="k")
    assert shown["n"].to_list() == [3]
    assert harness.output(results.late).is_empty()


def test_rule_10_row_whose_whole_session_is_forgotten_is_late() -> None:
    pipeline, results = visits()
    harness = Harness(pipeline)
    send(harness, row("other", 60_000)).run_batch()
    send(harness, row("k", 0), row("k", 9_000), row("k", 45_000)).run_batch()
    assert sorted(harness.output(results.late)["ts"]) == [0, 9_000, 45_000]


def filtered(predicate: str, factor: int = 1) -> Plan:
    source = events().where(predicate).map(lambda frame: frame.with_columns(pl.col("v") * factor + 0))
    results = source.key_by("k").window(sw.tumbling("1m")).aggregate(n=sw.count())
    return built(results).plan()


def half_delivered(path: Path, *, committed: bool) -> None:
    """Leave a checkpoint behind whose batch 0 was begun to be delivered by the code `v > 0`."""
    plan = filtered("v > 0")
    open_checkpoint(path, plan, partitions=2).begin_delivery(0, plan.fingerprint, {})
    for log in ("offsets", "commits") if committed else ("offsets",):
        (path / log).mkdir()
        (path / log / "0").touch()


def test_rule_11_half_delivered_batch_is_not_run_again_by_other_code(tmp_path: Path) -> None:
    half_delivered(tmp_path, committed=False)
    with pytest.raises(RunError, match=r"BATCH_HALF_DELIVERED.*batch 0.*--accept-changes"):
        open_checkpoint(tmp_path, filtered("v > 1"), partitions=2)


def test_rule_11_half_delivered_batch_is_finished_by_the_same_code(tmp_path: Path) -> None:
    half_delivered(tmp_path, committed=False)
    open_checkpoint(tmp_path, filtered("v > 0"), partitions=2)


def test_rule_11_half_delivered_batch_is_run_by_other_code_with_a_word_from_the_user(tmp_path: Path) -> None:
    half_delivered(tmp_path, committed=False)
    open_checkpoint(tmp_path, filtered("v > 1"), partitions=2, accept_changes=True)


def test_rule_11_other_code_may_go_on_after_a_batch_that_was_committed(tmp_path: Path) -> None:
    half_delivered(tmp_path, committed=True)
    open_checkpoint(tmp_path, filtered("v > 1"), partitions=2)

"""Interval joins against all pairs of rows, compared one by one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.operators.joins.step import How
from slackwater.operators.late_rows import Late
from slackwater.plan.streams import Results
from tests.property.join_streams import Arrival, Batch, Row, batches, pipeline, run, source

Pair = tuple[int | None, int | None]


@dataclass(frozen=True)
class Setup:
    """One interval join."""

    lower_ms: int
    width_ms: int
    how: How = "inner"
    late: Late = "output"
    has_condition: bool = False
    of_itself: bool = False
    key_groups: Literal[1, 4] = 4

    def pipeline(self) -> tuple[sw.Pipeline, Results]:
        left = source("left")
        right = left if self.of_itself else source("right")
        results = left.key_by("key").join(
            right.key_by("key"),
            between=(f"{self.lower_ms}ms", f"{self.lower_ms + self.width_ms}ms"),
            how=self.how,
            on_match="right.x <= left.x" if self.has_condition else None,
            late=self.late,
            name="joined",
        )
        return pipeline(results, has_late=self.late == "output", key_groups=self.key_groups), results

    def matches(self, left: Row, right: Row) -> bool:
        apart = right.ts_ms - left.ts_ms
        is_near = self.lower_ms <= apart <= self.lower_ms + self.width_ms
        return (
            left.key is not None and left.key == right.key and is_near and (not self.has_condition or right.x <= left.x)
        )

    def pads(self, side: str) -> bool:
        return self.how in ("full", side)


setups = st.builds(
    Setup,
    lower_ms=st.integers(-40, 30),
    width_ms=st.sampled_from([0, 1, 10, 60]),
    how=st.sampled_from(["inner", "left", "right", "full"]),
    has_condition=st.booleans(),
    of_itself=st.booleans(),
    key_groups=st.sampled_from([1, 4]),
)


def on_time(setup: Setup, arrivals: list[Arrival]) -> tuple[list[Row], list[Row]]:
    """Return the rows of each side that were not late; of a stream joined with itself they are both sides'."""
    rows = [each.row for each in arrivals if each.row.ts_ms >= each.watermark_ms]
    left = [row for row in rows if row.side == "left"]
    return left, left if setup.of_itself else [row for row in rows if row.side == "right"]


def all_pairs(setup: Setup, arrivals: list[Arrival]) -> Counter[Pair]:
    left, right = on_time(setup, arrivals)
    pairs: list[Pair] = [(mine.id, other.id) for mine in left for other in right if setup.matches(mine, other)]
    if setup.pads("left"):
        pairs += [(mine.id, None) for mine in left if not any(setup.matches(mine, other) for other in right)]
    if setup.pads("right"):
        pairs += [(None, other.id) for other in right if not any(setup.matches(mine, other) for mine in left)]
    return Counter(pairs)


@given(setups, batches())
def test_results_are_all_pairs_of_rows_on_time_and_the_rows_that_met_none(setup: Setup, stream: list[Batch]) -> None:
    done = run(setup, stream)
    arrivals = [each for each in done.arrivals if each.row.side in done.harness.watermark]
    assert Counter(done.results.select("id", "id_right").rows()) == all_pairs(setup, arrivals)


@given(setups, batches())
def test_a_result_has_the_time_of_its_later_row_and_its_key(setup: Setup, stream: list[Batch]) -> None:
    done = run(setup, stream)
    rows = {each.row.id: each.row for each in done.arrivals}
    for row in done.results.iter_rows(named=True):
        both = [rows[number] for number in (row["id"], row["id_right"]) if number is not None]
        assert round(row["event_time"].timestamp() * 1000) == max(each.ts_ms for each in both)
        assert {row["key"]} == {each.key for each in both}


@given(setups, batches())
def test_every_row_is_in_exactly_one_account(setup: Setup, stream: list[Batch]) -> None:
    done = run(setup, stream)
    sides = 2 if setup.of_itself else 1
    arrivals = [each for each in done.arrivals if each.row.side in done.harness.watermark]
    late = [each.row for each in arrivals if each.row.ts_ms < each.watermark_ms]
    kept, others = on_time(setup, arrivals)
    lost = [
        row
        for side, rows in (("left", kept), ("right", others))
        if not setup.pads(side)
        for row in rows
        if row.key is None
    ]
    assert sorted(done.harness.output("joined.late")["id"].to_list()) == sorted(row.id for row in late * sides)
    assert done.counts["late"] == len(late) * sides
    assert done.counts["unmatched"] == len(lost)
    assert done.counts["on_time"] == len(kept) + len(others) - len(lost)

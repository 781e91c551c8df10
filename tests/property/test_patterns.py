"""Patterns show what a slow matcher finds in all rows at once, in any batches, with any restarts and late rows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.operators.state.bucket_sizes import tiny_buckets
from tests.property.pattern_model import Row, Sought
from tests.property.pattern_runs import Batch, ids_of, run
from tests.property.pattern_strategies import absences, optional_starts, sought


@st.composite
def streams(draw: st.DrawFn) -> list[Batch]:
    """Draw rows that are somewhat out of order, a few of them late, in batches that the watermark moves on between."""
    found: list[Batch] = []
    at_ms, number = 0, 0
    for _ in range(draw(st.integers(1, 8))):
        part = []
        for _ in range(draw(st.integers(0, 4))):
            at_ms += draw(st.sampled_from([0, 1, 1, 3]))
            key, v = draw(st.sampled_from(["a", "a", "a", None])), draw(st.sampled_from([0, 1, 2, 3, None]))
            part.append(Row(key, at_ms - draw(st.sampled_from([0, 0, 1, 3, 5])), v, draw(st.integers(0, 1)), number))
            number += 1
        found.append(Batch(tuple(part), restart=draw(st.booleans())))
    return found


@st.composite
def single_rows(draw: st.DrawFn) -> list[Batch]:
    """Draw rows of one key in the order of time, each in a batch of its own that the watermark follows."""
    found: list[Batch] = []
    at_ms = 0
    for number in range(draw(st.integers(3, 9))):
        at_ms += draw(st.sampled_from([1, 1, 2]))
        row = Row("a", at_ms, draw(st.sampled_from([2, 2, 0, 1, 3])), draw(st.integers(0, 1)), number)
        found.append(Batch((row,), restart=draw(st.booleans())))
    return found


def check(wanted: Sought, stream: list[Batch]) -> None:
    with tiny_buckets():
        done = run(wanted, stream)
    assert sorted(done.late) == sorted(done.judged_late)
    assert done.counts["on_time"] == len(done.accepted)
    assert done.counts["late"] == len(done.late)
    expected = sorted(ids_of(wanted, match) for match in wanted.matches(done.accepted))
    assert sorted(match for match, _, _ in done.shown) == expected
    assert done.pieces_left == 0
    for _, at_ms, before_ms in done.shown:
        assert at_ms >= before_ms - done.delay_ms, "a step that follows would take it for late"


@given(sought(), streams())
def test_matches_do_not_depend_on_batches_and_restarts(wanted: Sought, stream: list[Batch]) -> None:
    check(wanted, stream)


@given(sought(has_ties=True), streams())
def test_conditions_that_refer_to_rows_of_earlier_batches_hold_as_in_one(wanted: Sought, stream: list[Batch]) -> None:
    check(wanted, stream)


@given(optional_starts(), single_rows())
def test_rows_one_by_one_make_the_matches_that_they_make_at_once(wanted: Sought, stream: list[Batch]) -> None:
    check(wanted, stream)
    check(wanted, [Batch(tuple(row for batch in stream for row in batch.rows))])


@given(absences(), streams())
def test_absences_do_not_depend_on_batches_and_restarts(wanted: Sought, stream: list[Batch]) -> None:
    check(wanted, stream)

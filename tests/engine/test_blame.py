"""Blame: which rows are found guilty when a computation fails on many."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.base.errors import RunError, fault
from slackwater.engine import blame
from slackwater.engine.blame import I64, blamed_rows


def hashes(*keys: int) -> np.ndarray:
    return np.array(keys, np.uint64)


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=40))
def test_rows_that_fail_alone_are_found_and_no_others(rows: list[tuple[int, bool]]) -> None:
    bad = [number for number, (_, is_bad) in enumerate(rows) if is_bad]

    def attempt(chosen: I64) -> None:
        assert (np.diff(chosen) > 0).all(), "rows are given in order"
        if found := sorted({*bad} & {*chosen.tolist()}):
            raise ValueError(f"row {found[0]}")

    found = blamed_rows(hashes(*(key for key, _ in rows)), attempt)
    assert found == {number: f"ValueError: row {number}" for number in bad}


def test_of_two_rows_that_fail_together_the_later_one_is_to_blame() -> None:
    def attempt(chosen: I64) -> None:
        if {1, 4} <= {*chosen.tolist()}:
            raise ValueError("together")

    assert blamed_rows(hashes(7, 8, 7, 7, 8), attempt) == {4: "ValueError: together"}


def test_a_key_whose_rows_keep_failing_does_not_cost_an_attempt_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blame, "_MOST_PER_KEY", 3)
    attempts = []

    def attempt(chosen: I64) -> None:
        attempts.append(len(chosen))
        if (chosen % 2).any():
            raise ValueError("odd")

    found = blamed_rows(np.zeros(1_000, np.uint64), attempt)
    assert {*range(1, 1_000, 2)} <= {*found}
    assert len(attempts) < 60


def test_an_error_that_no_row_is_to_blame_for_is_raised() -> None:
    def attempt(_: I64) -> None:
        raise fault("STATE_OF_ANOTHER_STEP", step="a", got="b")

    with pytest.raises(RunError, match="STATE_OF_ANOTHER_STEP"):
        blamed_rows(hashes(1, 2), attempt)

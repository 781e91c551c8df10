"""What a place holds beside what was recomputed: every kind of difference is seen, and named."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from slackwater.tools.demo.comparison import ROWS, PlaceAccount, ReadBack, compare_place

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def row(user: str, purchases: int, *, pane: int = 0, minute: int = 0) -> dict[str, object]:
    start = NOON + timedelta(minutes=minute)
    return {
        "user_id": user,
        "window_start": start,
        "window_end": start + timedelta(minutes=1),
        "purchases": purchases,
        "cents": 100 * purchases,
        "pane_index": pane,
    }


def frame(*rows: dict[str, object]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=ROWS)


RECOMPUTED = frame(row("ada", 2), row("ada", 1, minute=1), row("bob", 1)).drop("pane_index")
RIGHT = (row("ada", 2, pane=1), row("ada", 1, minute=1), row("bob", 1))


def compared(*rows: dict[str, object], keeps_panes: bool = False) -> PlaceAccount:
    return compare_place(RECOMPUTED, ReadBack(title="table t", rows=frame(*rows), keeps_panes=keeps_panes))


def faults(account: PlaceAccount) -> dict[str, int]:
    assert account.is_right == (not any((account.missing, account.doubled, account.wrong, account.foreign)))
    found = {name: getattr(account, name) for name in ("missing", "doubled", "wrong", "foreign")}
    return {name: number for name, number in found.items() if number}


def test_rows_as_recomputed_are_right() -> None:
    account = compared(*RIGHT)
    assert faults(account) == {}
    assert str(account) == "table t: 3 rows, each as recomputed"


def test_missing_row_is_seen() -> None:
    account = compared(*RIGHT[:2])
    assert faults(account) == {"missing": 1}
    assert str(account) == "table t: of 2 rows for 3 windows, 1 missing"


def test_empty_place_misses_every_window() -> None:
    assert faults(compared()) == {"missing": 3}


def test_doubled_row_is_seen() -> None:
    account = compared(*RIGHT, RIGHT[2])
    assert faults(account) == {"doubled": 1}
    assert str(account) == "table t: of 4 rows for 3 windows, 1 duplicated"


def test_earlier_pane_beside_the_newest_is_a_double_where_rows_are_replaced() -> None:
    assert faults(compared(*RIGHT, row("ada", 1))) == {"doubled": 1}


@pytest.mark.parametrize("column", ["purchases", "cents", "window_end"])
def test_wrong_row_is_seen_whichever_value_it_is(column: str) -> None:
    other = {**RIGHT[2], column: NOON if column == "window_end" else 7}
    account = compared(*RIGHT[:2], other)
    assert faults(account) == {"wrong": 1}
    assert str(account) == "table t: of 3 rows for 3 windows, 1 wrong"


def test_value_that_is_null_is_wrong() -> None:
    assert faults(compared(*RIGHT[:2], {**RIGHT[2], "cents": None})) == {"wrong": 1}


def test_earlier_pane_in_place_of_the_newest_is_wrong() -> None:
    assert faults(compared(row("ada", 1), *RIGHT[1:])) == {"wrong": 1}


def test_row_of_no_window_is_seen() -> None:
    account = compared(*RIGHT, row("eve", 1))
    assert faults(account) == {"foreign": 1}
    assert str(account) == "table t: of 4 rows for 3 windows, 1 for no window in the log"


def test_several_faults_are_all_named() -> None:
    account = compared(RIGHT[0], RIGHT[0], {**RIGHT[1], "cents": 7})
    assert faults(account) == {"missing": 1, "doubled": 1, "wrong": 1}
    assert str(account) == "table t: of 3 rows for 3 windows, 1 missing, 1 duplicated, 1 wrong"


def test_panes_that_are_kept_are_right_if_the_newest_is() -> None:
    account = compared(RIGHT[0], row("ada", 1), *RIGHT[1:], keeps_panes=True)
    assert faults(account) == {}
    assert str(account) == "table t: 4 panes of 3 windows, the newest of each as recomputed"


def test_pane_that_is_kept_twice_is_seen() -> None:
    assert faults(compared(row("ada", 1), row("ada", 1), *RIGHT, keeps_panes=True)) == {"doubled": 1}


def test_pane_that_is_skipped_is_seen_though_the_newest_is_right() -> None:
    assert faults(compared(*RIGHT, keeps_panes=True)) == {"missing": 1}

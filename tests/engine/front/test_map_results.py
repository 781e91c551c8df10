"""What a map function returns: a frame with the declared columns, or dead letters that say what it was instead."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

import slackwater as sw

Answer = Callable[[pl.DataFrame], Any]


def ran(function: Answer, output: str | None = None) -> tuple[list[dict[str, Any]], list[str]]:
    """Send three rows through a map; return what came through, and the messages of the dead letters."""
    stream = sw.stream("s", sw.testing.rows_source("id long, v long"))
    mapped = stream.map(function, output=output)
    pipeline = sw.Pipeline("p", mapped.to(sw.sinks.memory()), stream.dead_letters.to(sw.sinks.memory()))
    results = sw.testing.run(pipeline, {"s": [{"id": number, "v": 10 * number} for number in (1, 2, 3)]})
    letters = results[stream.dead_letters]
    assert letters["reason"].unique().to_list() in ([], ["failed"])
    return results[mapped].to_dicts(), letters["message"].to_list()


def on_row_two(answer: Answer) -> Answer:
    """Return a function that gives its rows back, but `answer` where row 2 is among them."""
    return lambda rows: answer(rows) if 2 in rows["id"] else rows


MUST = "MapResultError: a map function must return a Polars DataFrame with the declared columns; got "
NO_CAST = "conversion from `str` to `i64` failed in column 'v' for 1 out of 1 values: [\"x\"]"


@pytest.mark.parametrize(
    "answer, message",
    [
        (lambda rows: rows.lazy(), f"{MUST}LazyFrame"),
        (lambda _: None, f"{MUST}NoneType"),
        (lambda rows: rows.drop("v"), f"{MUST}one without v (it has id)"),
        (lambda rows: rows.with_columns(v=pl.lit("x")), f"{MUST}a column of another type: {NO_CAST}"),
        (lambda _: sys.exit(3), "SystemExit: 3"),
    ],
    ids=["a LazyFrame", "nothing", "a column less", "another type", "an exit"],
)
def test_row_for_which_a_map_gives_no_frame_with_its_columns_is_a_dead_letter(answer: Answer, message: str) -> None:
    rows, messages = ran(on_row_two(answer))
    assert [row["id"] for row in rows] == [1, 3]
    assert messages == [message]


def test_every_row_of_a_map_that_only_works_on_the_empty_frame_is_a_dead_letter() -> None:
    rows, messages = ran(lambda rows: rows.lazy() if rows.height else rows)
    assert rows == []
    assert messages == [f"{MUST}LazyFrame"] * 3


def test_map_that_fails_without_rows_too_is_no_end_of_the_job() -> None:
    def failing(rows: pl.DataFrame) -> pl.DataFrame:
        raise ValueError(f"no model for {rows.height} rows")

    rows, messages = ran(failing, output="zz long")
    assert rows == []
    assert messages == ["ValueError: no model for 1 rows"] * 3


def test_map_that_makes_its_rows_anew_has_no_columns_without_rows_and_is_taken_with_its_columns_declared() -> None:
    rows, messages = ran(lambda rows: pl.DataFrame([{"zz": v} for v in rows["v"]]), output="zz long")
    assert (rows, messages) == ([{"zz": 10}, {"zz": 20}, {"zz": 30}], [])


def test_columns_that_a_map_does_not_give_for_rows_are_named_in_the_dead_letters() -> None:
    rows, messages = ran(lambda rows: pl.DataFrame([{"z": v} for v in rows["v"]]), output="zz long")
    assert rows == []
    assert messages == [f"{MUST}one without zz (it has z)"] * 3


def test_expression_with_a_function_that_exits_makes_a_dead_letter() -> None:
    stream = sw.stream("s", sw.testing.rows_source("id long"))
    made = stream.with_columns(
        z=pl.col("id").map_batches(lambda ids: sys.exit(3) if 2 in ids else ids, return_dtype=pl.Int64)
    )
    pipeline = sw.Pipeline("p", made.to(sw.sinks.memory()), stream.dead_letters.to(sw.sinks.memory()))
    results = sw.testing.run(pipeline, {"s": [{"id": 1}, {"id": 2}]})
    assert results[made]["z"].to_list() == [1]
    assert "SystemExit" in results[stream.dead_letters]["message"][0]


def test_interrupt_from_the_keyboard_is_no_dead_letter() -> None:
    def interrupted(_: pl.DataFrame) -> pl.DataFrame:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ran(on_row_two(interrupted))

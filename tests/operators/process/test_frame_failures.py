"""A process of frames that fails, or returns what does not fit: which rows are lost, and what is said of them."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import slackwater as sw
from tests.operators.process.totals import Frames, Totals, event, harness, rows_of


def test_keys_on_which_it_fails_are_dead_letters_and_keep_their_state() -> None:
    test, results = harness(Totals())
    test.send("events", [event(key, 1) for key in "abcde"]).run_batch()
    sent = [event("a", 2), event("b", 2, -1), event("c", 2), event("b", 3), event("e", 3, -5)]
    test.send("events", sent).run_batch()
    dead = test.output("events.dead_letters").sort("offset")
    assert dead["offset"].to_list() == [6, 8, 9]
    assert set(dead["reason"]) == {"failed"}
    assert dead["message"][0].startswith("ValueError: below zero | totals.py:")
    test.send("events", [event(key, 4) for key in "abcde"]).run_batch()
    assert sorted(row[:2] for row in rows_of(test, results)[7:]) == [("a", 3), ("b", 2), ("c", 3), ("d", 2), ("e", 2)]


def test_in_the_order_of_event_time_a_key_that_fails_keeps_its_state_too() -> None:
    test, results = harness(Totals(), order="event_time")
    test.send("events", [event("a", 1), event("b", 1)]).run_batch()
    test.advance_watermark(2)
    test.send("events", [event("a", 3, -1), event("b", 3)]).run_batch()
    test.advance_watermark(5)
    test.send("events", [event("a", 6), event("b", 6)]).finish()
    assert sorted(row[:2] for row in rows_of(test, results)) == [("a", 1), ("a", 2), ("b", 1), ("b", 2), ("b", 3)]
    assert test.output("events.dead_letters")["offset"].to_list() == [2]


NEW = pl.DataFrame({"key": ["a"], "total": [1], "seen": [1]})


class Returns(Totals):
    """Returns what it is given."""

    def __init__(self, made: Any) -> None:  # noqa: ANN401  anything
        self.made = made

    def on_rows(self, rows: pl.DataFrame, state: pl.DataFrame, ctx: sw.FrameContext) -> Frames:
        made: Frames = self.made
        return made


@pytest.mark.parametrize(
    "made, words",
    [
        (NEW, "on_rows must return two frames, the results and the new state; got DataFrame"),
        ((NEW, NEW, NEW), "on_rows must return two frames, the results and the new state; got 3 of them"),
        ((NEW, None), "the new state must be a Polars DataFrame; got NoneType"),
        ((NEW.lazy(), NEW), "results must be a Polars DataFrame; got LazyFrame; collect it first"),
        ((NEW.rename({"total": "totl"}), NEW), "results must have a column `total` (did you mean `totl`?)"),
        ((NEW.drop("key"), NEW), "results must have a column `key`"),
        ((NEW, NEW.drop("seen")), "the new state must have a column `seen`; its columns: key, total"),
        ((NEW.with_columns(total=pl.lit(1.5)), NEW), "column `total` of results takes bigint; got Float64: cast it"),
        ((NEW, NEW.with_columns(total=pl.lit("1"))), "column `total` of the new state takes bigint; got String"),
        (
            (NEW, NEW.with_columns(seen=pl.lit(2**64 - 1, dtype=pl.UInt64))),
            "column `seen` of the new state takes bigint",
        ),
        ((NEW, pl.concat([NEW, NEW])), "the new state must have one row for each key; got two for key='a'"),
        ((NEW, NEW.with_columns(key=pl.lit("z"))), "the new state must have keys of the rows only; got key='z'"),
        ((NEW.with_columns(key=pl.lit("z")), NEW), "results must have keys of the rows only; got key='z'"),
        ((NEW.with_columns(event_time=None), NEW), "column `event_time` of results takes"),
    ],
)
def test_frames_that_do_not_fit_are_reported_in_the_dead_letter(made: Any, words: str) -> None:  # noqa: ANN401  anything
    test, results = harness(Returns(made))
    test.send("events", [event("a", 1)]).run_batch()
    assert words in test.output("events.dead_letters")["message"][0]
    assert test.output(results).is_empty()
    assert test.pieces == 0

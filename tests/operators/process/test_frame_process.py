"""A process of frames, one behaviour at a time."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import slackwater as sw
from slackwater.operators.state.pieces import StepState
from slackwater.testing import Harness
from tests.operators.process.totals import Frames, Totals, added_up, event, harness, rows_of, totalled


class Calls(Totals):
    """Notes what it is called with."""

    seen: list[tuple[pl.DataFrame, pl.DataFrame, sw.FrameContext]]

    def __init__(self) -> None:
        self.seen = []

    def on_rows(self, rows: pl.DataFrame, state: pl.DataFrame, ctx: sw.FrameContext) -> Frames:
        self.seen.append((rows, state, ctx))
        return super().on_rows(rows, state, ctx)


def test_it_is_called_once_for_all_keys_of_a_group_with_their_state() -> None:
    process = Calls()
    test, _ = harness(process)
    test.send("events", [event("a", 1), event("b", 2), event("a", 3)]).run_batch()
    test.send("events", [event("c", 4), event("a", 5)]).run_batch()
    (first, nothing, ctx), (second, known, later) = process.seen
    assert first.select("key", "ts", pl.col("event_time").dt.epoch("ms")).rows() == [
        ("a", 1, 1),
        ("b", 2, 2),
        ("a", 3, 3),
    ]
    assert first.columns == ["key", "ts", "x", "event_time"]
    assert dict(nothing.schema) == {"key": pl.String(), "total": pl.Int64(), "seen": pl.Int64()}
    assert (nothing.height, ctx.watermark, ctx.processing_time.timestamp()) == (0, None, 0)
    assert second["key"].to_list() == ["c", "a"]
    assert known.rows() == [("a", 2, 2)]
    assert later.watermark is not None
    assert later.watermark.timestamp() == 0.003


def test_a_result_without_a_time_has_the_latest_of_its_key() -> None:
    test, results = harness(Totals())
    test.send("events", [event("a", 7), event("a", 3), event(None, 2)]).run_batch()
    assert rows_of(test, results) == [("a", 2, 2, 7), (None, 1, 1, 2)]


class Each(Totals):
    """Shows every row, at its own time."""

    def on_rows(self, rows: pl.DataFrame, state: pl.DataFrame, ctx: sw.FrameContext) -> Frames:
        shown = rows.with_columns(total=pl.col("x").cum_sum().over("key"), seen=pl.lit(1, dtype=pl.Int8))
        return shown, added_up(rows, state)


def test_further_columns_are_left_out_and_whole_numbers_widened() -> None:
    test, results = harness(Each())
    test.send("events", [event("a", 7), event("a", 3)]).run_batch()
    assert test.output(results).columns == ["key", "total", "seen", "event_time"]
    assert sorted(rows_of(test, results)) == [("a", 1, 1, 7), ("a", 2, 1, 3)]


class Silent(Totals):
    """Shows nothing, and forgets a key that sends a zero."""

    def on_rows(self, rows: pl.DataFrame, state: pl.DataFrame, ctx: sw.FrameContext) -> Frames:
        gone = rows.filter(pl.col("x") == 0)["key"]
        return None, added_up(rows, state).filter(~pl.col("key").is_in(gone.implode()))


def test_a_key_that_is_not_returned_is_forgotten() -> None:
    test, results = harness(Silent())
    test.send("events", [event("a", 1), event("b", 1)]).run_batch()
    assert test.last.state["events.process"]["rows"] == 2
    test.send("events", [event("a", 2, 0), event("b", 2, 0)]).run_batch()
    assert test.pieces == 0
    assert test.output(results).is_empty()


def test_state_lives_for_its_ttl_after_it_was_last_returned() -> None:
    """
    time       1    5              15 16
    event      a    a   (ttl 10)    a  a
    """
    for at, total in ((15, 3), (16, 1)):
        test, results = harness(Totals())
        test.send("events", [event("a", 5), event("a", 1)]).run_batch()
        test.advance_watermark(at)
        test.send("events", [event("a", at)]).run_batch()
        assert rows_of(test, results)[-1][1] == total


def test_state_of_rows_behind_the_watermark_lives_from_the_watermark_on() -> None:
    test, results = harness(Totals())
    test.advance_watermark(50)
    test.send("events", [event("a", 5)]).run_batch()
    test.advance_watermark(60)
    test.send("events", [event("a", 6)]).run_batch()
    test.advance_watermark(71)
    test.send("events", [event("a", 7)]).run_batch()
    assert [total for _, total, _, _ in rows_of(test, results)] == [1, 2, 1]


def test_as_they_arrive_state_is_judged_at_the_first_row_of_its_key_or_the_watermark() -> None:
    test, results = harness(Totals())
    for ts in (0, 10, 21):
        test.send("events", [event("a", ts), event("a", ts + 1)])
        test.run_batch()
    assert [row[1] for row in rows_of(test, results) if row[0] == "a"] == [2, 4, 6]
    test.send("events", [event("a", 33)])
    test.run_batch()
    assert rows_of(test, results)[-1] == ("a", 1, 1, 33)


def test_nothing_is_left_when_the_watermark_is_past_the_ttl() -> None:
    test, _ = harness(Totals())
    test.send("events", [event("a", 5)]).run_batch()
    test.advance_watermark(15)
    assert test.pieces == 1
    test.advance_watermark(16)
    assert test.pieces == 0


def test_in_the_order_of_event_time_state_is_judged_at_the_first_row_of_its_key() -> None:
    test, results = harness(Totals(), order="event_time")
    test.send("events", [event("a", 1), event("b", 6)]).run_batch()
    test.advance_watermark(8)
    test.send("events", [event("a", 12), event("b", 12)]).run_batch()
    test.advance_watermark(40)
    assert sorted(rows_of(test, results)) == [("a", 1, 1, 1), ("a", 1, 1, 12), ("b", 1, 1, 6), ("b", 2, 2, 12)]
    assert test.pieces == 0


def test_in_the_order_of_event_time_rows_are_sorted_and_what_comes_later_is_late() -> None:
    process = Calls()
    test, results = harness(process, order="event_time")
    test.send("events", [event("a", 9), event("b", 3), event("a", 5)]).run_batch()
    assert process.seen == []
    test.advance_watermark(9)
    test.send("events", [event("a", 4)]).run_batch()
    test.finish()
    assert [rows["ts"].to_list() for rows, _, _ in process.seen] == [[3, 5], [9]]
    assert test.output(results.late)["ts"].to_list() == [4]


class ByClock(Totals):
    """Forgets by processing time."""

    clock = "processing"


def test_state_may_be_forgotten_by_processing_time() -> None:
    test, results = harness(ByClock())
    test.send("events", [event("a", 1)]).run_batch()
    test.now_ms += 10
    test.send("events", [event("a", 900)]).run_batch()
    test.now_ms += 11
    test.send("events", [event("a", 901)]).run_batch()
    assert [total for _, total, _, _ in rows_of(test, results)] == [1, 2, 1]
    test.now_ms += 11
    test.run_batch()
    assert test.pieces == 0


class Kept(Totals):
    """Forgets nothing."""

    ttl = sw.FOREVER


def test_forever_survives_the_end() -> None:
    test, _ = harness(Kept())
    test.send("events", [event("a", 1)]).finish()
    assert test.pieces == 1


def test_a_quiet_bucket_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    test, _ = harness(Kept())
    test.send("events", [event(f"k{number}" * 40, 1) for number in range(2_000)]).run_batch()
    read: list[int] = []
    original = StepState.read

    def counted(self: StepState, pieces: Any) -> list[pl.DataFrame]:  # noqa: ANN401  an iterable of pieces
        taken = list(pieces)
        read.append(sum(piece.rows for piece in taken))
        return original(self, taken)

    monkeypatch.setattr(StepState, "read", counted)
    test.advance_watermark(100)
    assert sum(read) == 0
    test.send("events", [event("k7" * 40, 101)]).run_batch()
    assert 0 < sum(read) < 1_000


def continued(test: Harness, process: Any) -> tuple[Harness, Any]:  # noqa: ANN401  anything
    """Return a harness of a changed process that goes on from the state of `test`."""
    after, results = harness(process)
    after.engine.state, after.clock = test.engine.state, test.clock
    return after, results


class Wider(Totals):
    """The same with a new column, and another that is gone."""

    state = pl.Schema({"total": pl.Int64, "note": pl.String})

    def on_rows(self, rows: pl.DataFrame, state: pl.DataFrame, ctx: sw.FrameContext) -> Frames:
        new = state.select("key", "total", seen=pl.when(pl.col("note").is_null()).then(1).otherwise(2))
        return new, state.with_columns(note=pl.lit("x"))


def test_columns_of_the_state_may_come_and_go() -> None:
    test, _ = harness(Totals())
    test.send("events", [event("a", 1, 5)]).run_batch()
    after, results = continued(test, Wider())
    after.send("events", [event("a", 2)]).run_batch()
    after.send("events", [event("a", 3)]).run_batch()
    assert [row[:3] for row in rows_of(after, results)] == [("a", 5, 1), ("a", 5, 2)]


class Changed(Totals):
    """The same with another type."""

    state = "total string, seen long"


class Events(sw.Process):
    """A process of events, with a field of the same name."""

    total = sw.value_state("long", ttl="1h")

    def on_event(self, event: dict[str, Any], ctx: sw.Context) -> None:
        self.total.set(1)


@pytest.mark.parametrize(
    "before, after, part",
    [
        (Totals(), Wider(), None),
        (Totals(), Changed(), "state `total`"),
        (Totals(), ByClock(), "frames"),
        (Totals(), Events(), "frames"),
        (Events(), Totals(), "frames"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, sw.Process | sw.FrameProcess) else None,
)
def test_what_state_may_become_is_known_before_the_start(before: Any, after: Any, part: str | None) -> None:  # noqa: ANN401  anything
    def spec(process: Any) -> Any:  # noqa: ANN401  anything
        events, results = totalled(process)
        plan = sw.Pipeline("p", results.to(sw.sinks.memory()), events.dead_letters.drop()).plan()
        return plan.steps[0].spec

    found = spec(after).difference(spec(before).layout)
    assert (None if found is None else found.part) == part


def test_another_process_may_follow_and_sees_the_time_of_the_results() -> None:
    process = Calls()
    events, results = totalled(Totals())
    renamed = results.select("key", "event_time", x="total", ts="seen")
    again = renamed.key_by("key").process(process, output="total long", name="again")
    ends = [again.to(sw.sinks.memory()), events.dead_letters.drop(), results.dead_letters.drop()]
    sw.testing.run(sw.Pipeline("p", *ends), {"events": [event("a", 7), event("a", 3)]})
    [(rows, _, _)] = process.seen
    assert rows.select("x", "ts", pl.col("event_time").dt.epoch("ms")).rows() == [(2, 2, 7)]


def test_explain_tells_the_state_and_how_long_it_is_kept() -> None:
    test, _ = harness(Totals())
    lines = [line.strip() for line in test.pipeline.explain().splitlines()]
    assert "runs      Totals, in the order of arrival" in lines
    assert "state     total bigint, seen bigint, event time, kept for 10ms" in lines

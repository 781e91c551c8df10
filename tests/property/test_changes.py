"""A step whose lateness, trigger or semantics change on an old checkpoint: nothing is shown twice, nothing anew."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.testing import Harness, rows_source
from tests.property.accounts import Run, check_accounts, ids, place
from tests.property.model import Model, Place, windows_of
from tests.property.streams import ALIGNED, SESSIONS, T0, Batch, Setup, batches, send, setups


def layout(setup: Setup) -> dict[str, dict[str, str]]:
    return setup.pipeline()[0].plan().layout


@st.composite
def changes(draw: st.DrawFn) -> tuple[Setup, Setup]:
    """Draw a step, and what it is changed into; a checkpoint takes the one for the other."""
    before = draw(setups(ALIGNED | SESSIONS))
    after = draw(setups(st.just(before.window)))
    after = replace(after, accumulation=before.accumulation)
    assume(layout(before) == layout(after))
    return before, after


@given(changes(), batches(), st.integers(1, 7))
def test_a_changed_step_shows_no_window_as_if_it_were_new(
    setups: tuple[Setup, Setup], stream: list[Batch], at: int
) -> None:
    before, after = setups
    pipeline, _, _ = before.pipeline()
    changed, _events, results = after.pipeline()
    harness = Harness(pipeline, now=T0)
    for number, batch in enumerate(stream):
        if number == at:
            harness.pipeline = changed
            harness.restart()
        harness.now_ms += batch.later_ms
        send(harness, batch)
        harness.run_batch()
    harness.finish()
    shown, late = harness.output(results.name), harness.output(f"{results.name}.late")
    setup = before if len(stream) <= at else replace(after, on_close="discard")  # what was discarded stays so
    records, model = [record for batch in stream for record in batch.records], Model(setup)
    if isinstance(before.window, sw.windows.HoppingWindow):
        model.no_window = [record.id for record in records if not windows_of(before.window, record.ts_ms)]
    run = Run(setup=setup, model=model, results=shown, late=late, dead=harness.output("events.dead_letters"))
    check_accounts(run, records)
    if before.accumulation == "discarding":
        assert len(ids(shown)) == len(set(ids(shown))) or not isinstance(before.window, sw.windows.TumblingWindow)
    if isinstance(before.window, sw.windows.SessionWindow):
        return
    panes: dict[Place, list[dict[str, Any]]] = {}
    for row in shown.filter(~pl.col("is_retraction")).iter_rows(named=True):
        panes.setdefault(place(row), []).append(row)
    for rows in panes.values():
        indexes = [row["pane_index"] for row in rows]
        assert indexes == sorted(set(indexes)), "a window that was forgotten is shown as new"
        if before.accumulation != "discarding":
            sizes = [len(row["ids"]) for row in rows]
            assert sizes == sorted(sizes), "a window that was shown has lost rows"
    assert harness.pieces == 0


@pytest.mark.parametrize(
    "lateness, changed",
    [
        ("0s", "60s"),
        ("60s", "0s"),
        ("60s", "5s"),
        pytest.param("0s", "5s", marks=pytest.mark.long),
        pytest.param("5s", "0s", marks=pytest.mark.long),
        pytest.param("5s", "60s", marks=pytest.mark.long),
    ],
)
def test_a_changed_lateness_neither_doubles_nor_loses_rows_of_a_chain(lateness: str, changed: str) -> None:
    def chain(allowed: str) -> sw.Pipeline:
        events = sw.stream("events", rows_source("k string, ts long")).event_time("ts")
        first = (
            events.key_by("k")
            .window(sw.tumbling("1s"), allowed_lateness=allowed, accumulation="discarding", name="first")
            .aggregate(n=sw.count())
        )
        second = first.key_by("k").window(sw.tumbling("4s"), name="second").aggregate(n=sw.sum("n"))
        ended = [out.to(sw.sinks.memory()) for out in (first.late, second, second.late)]
        return sw.Pipeline("chain", *ended, events.dead_letters.drop())

    harness, sent = Harness(chain(lateness)), 0
    for at in range(0, 100_000, 500):
        if at == 50_000:
            harness.pipeline = chain(changed)
            harness.restart()
        times = [at, at - 700, at - 4_300, at - 20_000]
        sent += len(times)
        harness.send("events", [{"k": "a", "ts": ts} for ts in times])
        harness.run_batch()
    harness.finish()
    counted = harness.output("second")
    assert counted["window_start"].is_unique().all(), "a window of the second step was shown again"
    assert harness.output("second.late").is_empty()
    assert int(counted["n"].sum()) + harness.output("first.late").height == sent
    assert harness.pieces == 0


def test_a_window_that_was_forgotten_stays_so_when_more_lateness_is_allowed() -> None:
    def step(allowed: str) -> sw.Pipeline:
        events = sw.stream("events", rows_source("k string, ts long")).event_time("ts")
        counted = events.key_by("k").window(sw.tumbling("1s"), allowed_lateness=allowed).aggregate(n=sw.count())
        ended = [out.to(sw.sinks.memory()) for out in (counted, counted.late)]
        return sw.Pipeline("step", *ended, events.dead_letters.drop())

    harness = Harness(step("0s"))
    harness.send("events", [{"k": "a", "ts": ts} for ts in range(1_000)]).run_batch()
    harness.advance_watermark(1_200)
    harness.pipeline = step("1m")
    harness.restart()
    harness.send("events", [{"k": "a", "ts": 500}, {"k": "a", "ts": 1_500}]).run_batch()
    harness.advance_watermark(2_000)
    harness.send("events", [{"k": "a", "ts": 1_600}]).run_batch()
    assert harness.output("events.window")["n"].to_list() == [1_000, 1, 2]
    assert harness.output("events.window.late").height == 1

"""Every record ends in exactly one account, whatever the window, the trigger, the batches and the restarts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import get_args

import polars as pl
from hypothesis import given

from slackwater.eventtime.times import EPOCH
from slackwater.testing import Harness
from slackwater.windows import SessionWindow
from tests.property.model import Model, Place
from tests.property.streams import ALIGNED, SESSIONS, SLIDING, T0, Batch, Fate, Setup, batches, send, setups


@dataclass
class Run:
    """A stream that went through a pipeline to its end, and what the model says of it."""

    setup: Setup
    model: Model
    harness: Harness
    results: pl.DataFrame
    late: pl.DataFrame
    dead: pl.DataFrame
    counts: Counter[str] = field(default_factory=Counter)
    stream: Counter[str] = field(default_factory=Counter)


def run(setup: Setup, stream: list[Batch]) -> Run:
    pipeline, events, results = setup.pipeline()
    harness, model = Harness(pipeline, now=T0), Model(setup)
    counts: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    for batch in stream:
        if batch.restart:
            harness.restart()
        harness.now_ms += batch.later_ms
        send(harness, batch)
        good = [record for record in batch.records if record.fate == "good"]
        model.batch(good, harness.watermark["events"])
        harness.run_batch()
        counts.update(harness.last.counts.get(results.name, {}))
        for known in harness.last.streams.values():
            seen.update(rows=known.rows, filtered=known.filtered, dead=known.dead)
    harness.finish()
    model.finish()
    return Run(
        setup=setup,
        model=model,
        harness=harness,
        results=harness.output(results),
        late=harness.output(results.late),
        dead=harness.output(events.dead_letters),
        counts=counts,
        stream=seen,
    )


def ids(frame: pl.DataFrame) -> list[int]:
    return [item for row in frame["ids"].to_list() for item in row]


def place(row: dict[str, object]) -> Place:
    """Return the window of a result row, in milliseconds."""
    start, end = row["window_start"], row["window_end"]
    bounds = [None if moment is None else round((moment - EPOCH).total_seconds() * 1000) for moment in (start, end)]  # type: ignore[operator]
    return (row["key"], *bounds)  # type: ignore[return-value]


@given(setups(), batches())
def test_every_record_ends_in_exactly_one_account(setup: Setup, stream: list[Batch]) -> None:
    done = run(setup, stream)
    records = [record for batch in stream for record in batch.records]
    by_fate = {fate: [record for record in records if record.fate == fate] for fate in get_args(Fate)}
    buried = by_fate["broken"] + by_fate["no_time"] + by_fate["ahead"]
    late, shown = done.late["id"].to_list(), set(ids(done.results))
    reasons = Counter(done.dead["reason"].to_list())

    assert sorted(done.dead["payload"].to_list()) == sorted(record.payload for record in buried)
    assert reasons["no_event_time"] == len(by_fate["no_time"])
    assert reasons["ahead_of_clock"] == len(by_fate["ahead"])
    assert len(late) == len(set(late))
    assert not shown & set(late)
    assert shown | set(late) <= {record.id for record in by_fate["good"]}
    missing = {record.id for record in by_fate["good"]} - shown - set(late) - set(done.model.no_window)
    assert not (missing and setup.shows_all), f"neither shown nor late: {missing}"


@given(setups(), batches())
def test_the_engines_own_counts_add_up_to_the_input(setup: Setup, stream: list[Batch]) -> None:
    done = run(setup, stream)
    fates = Counter(record.fate for batch in stream for record in batch.records)
    assert done.stream["rows"] == fates.total()
    assert done.stream["filtered"] == fates["filtered"]
    assert done.stream["dead"] == fates["broken"] + fates["no_time"] + fates["ahead"]
    counts = done.counts
    assert counts["on_time"] + counts["refired"] + counts["late"] + counts["no_window"] == fates["good"]
    assert counts["late"] == done.late.height


@given(setups(ALIGNED | SESSIONS | SLIDING), batches())
def test_rows_are_judged_as_the_model_judges_them(setup: Setup, stream: list[Batch]) -> None:
    done = run(setup, stream)
    assert sorted(done.late["id"].to_list()) == sorted(done.model.late)
    for account in ("late", "on_time", "refired", "no_window"):
        assert done.counts[account] == len(getattr(done.model, account)), account


@given(setups(ALIGNED | SESSIONS | SLIDING).filter(lambda setup: setup.shows_all), batches())
def test_what_stands_in_the_end_is_what_every_window_took(setup: Setup, stream: list[Batch]) -> None:
    done = run(setup, stream)
    expected = {place: sorted(found) for place, found in done.model.windows.items()}
    rows = done.results.to_dicts()
    if setup.accumulation == "discarding":
        if isinstance(setup.window, SessionWindow):
            assert sorted(ids(done.results)) == sorted(done.model.accepted)
            return
        taken: dict[Place, list[int]] = {}
        for row in rows:
            taken.setdefault(place(row), []).extend(row["ids"])
        assert {at: sorted(found) for at, found in taken.items()} == expected
        return
    stands: dict[Place, list[int]] = {}
    for row in rows:
        assert row["n"] == len(row["ids"])
        if row["is_retraction"]:
            assert stands.pop(place(row)) == sorted(row["ids"])
        else:
            if setup.accumulation == "retracting":
                assert place(row) not in stands
            stands[place(row)] = sorted(row["ids"])
    if isinstance(setup.window, SessionWindow) and setup.accumulation == "accumulating":
        # What a session showed before it grew is never withdrawn in this mode.
        stands = {at: found for at, found in stands.items() if at in expected}
    assert stands == expected


@given(setups(), batches())
def test_nothing_is_remembered_after_the_end(setup: Setup, stream: list[Batch]) -> None:
    done = run(setup, stream)
    assert done.harness.pieces == 0
    assert not any(done.harness.engine.state.values())

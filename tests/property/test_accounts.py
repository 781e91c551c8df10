"""Every record ends in exactly one account, whatever the window, the trigger, the batches and the restarts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from hypothesis import given

from slackwater.testing import Harness
from tests.property.accounts import ACCOUNTS, Run, check_accounts, check_standing, ids
from tests.property.model import Model
from tests.property.streams import ALIGNED, SESSIONS, SLIDING, T0, Batch, Setup, batches, send, setups


@dataclass(kw_only=True)
class MemoryRun(Run):
    """A run of the engine in memory."""

    harness: Harness


def run(setup: Setup, stream: list[Batch]) -> MemoryRun:
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
    return MemoryRun(
        setup=setup,
        model=model,
        harness=harness,
        results=harness.output(results),
        late=harness.output(results.late),
        dead=harness.output(events.dead_letters),
        counts=counts,
        stream=seen,
    )


@given(setups(), batches())
def test_every_record_ends_in_exactly_one_account(setup: Setup, stream: list[Batch]) -> None:
    done = run(setup, stream)
    check_accounts(done, [record for batch in stream for record in batch.records])


@given(setups(), batches())
def test_the_engines_own_counts_add_up_to_the_input(setup: Setup, stream: list[Batch]) -> None:
    done = run(setup, stream)
    fates = Counter(record.fate for batch in stream for record in batch.records)
    assert done.stream["rows"] == fates.total()
    assert done.stream["filtered"] == fates["filtered"]
    assert done.stream["dead"] == fates["broken"] + fates["no_time"] + fates["ahead"]
    counts = done.counts
    assert sum(counts[account] for account in ACCOUNTS) == fates["good"]
    assert all(counts[account] >= 0 for account in ACCOUNTS)
    assert counts["late"] == done.late.height


@given(setups(ALIGNED | SESSIONS | SLIDING), batches())
def test_rows_are_judged_as_the_model_judges_them(setup: Setup, stream: list[Batch]) -> None:
    done = run(setup, stream)
    assert sorted(done.late["id"].to_list()) == sorted(done.model.late)
    for account in ("late", "no_window"):
        assert done.counts[account] == len(getattr(done.model, account)), account
    if not setup.may_finish:
        for account in ("on_time", "refired"):
            assert done.counts[account] == len(getattr(done.model, account)), account


@given(setups(ALIGNED | SESSIONS).filter(lambda setup: setup.may_finish and setup.on_close == "flush"), batches())
def test_rows_that_are_ignored_are_those_that_no_pane_shows(setup: Setup, stream: list[Batch]) -> None:
    done = run(setup, stream)
    hidden = done.model.accepted - set(ids(done.results))
    if done.counts["unshown"]:
        # Of a session that was merged with a finished one, rows were on time and yet are not shown.
        assert done.counts["ignored"] <= len(hidden) <= done.counts["ignored"] + done.counts["unshown"]
    else:
        assert done.counts["ignored"] == len(hidden)


@given(setups(ALIGNED | SESSIONS | SLIDING).filter(lambda setup: setup.shows_all), batches())
def test_what_stands_in_the_end_is_what_every_window_took(setup: Setup, stream: list[Batch]) -> None:
    check_standing(run(setup, stream))


@given(setups(), batches())
def test_nothing_is_remembered_after_the_end(setup: Setup, stream: list[Batch]) -> None:
    harness = run(setup, stream).harness
    assert harness.pieces == 0
    assert not any(harness.engine.state.values())

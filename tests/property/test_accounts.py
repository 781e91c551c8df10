"""Every record ends in exactly one account, whatever the window, the trigger, the batches and the restarts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from hypothesis import given

from slackwater.testing import Harness
from tests.property.accounts import ACCOUNTS, Run, check_accounts
from tests.property.model import Model
from tests.property.streams import T0, Batch, Setup, batches, send, setups


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

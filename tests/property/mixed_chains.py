"""Mixed chains run in memory, in any batches, each batch run again; and what the model says of them."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import polars as pl
from polars.testing import assert_frame_equal

import slackwater as sw
from slackwater.engine.next_clock import final_clock
from slackwater.plan.streams import Ended, Results, Stream
from slackwater.testing import Harness, rows_source
from tests.property.mixed_late import as_shown, depends_on_arrival
from tests.property.mixed_model import model
from tests.property.mixed_steps import COLUMNS, Dedup, Step, Windows
from tests.property.mixed_values import KEY_TYPES, T0, KeyKind, Row, canonical, shown_rows
from tests.property.run_again import ShufflingEngine, as_text, copied, rows_as_text

MOST_ROWS: Final = 300
"""Chains whose steps show more rows are left out: joins of joins grow fast."""


@dataclass(frozen=True)
class Arrival:
    """A row of a source."""

    source: int
    partition: str
    tag: str
    a: Any
    b: int | None
    v: int | None
    at: int


@dataclass(frozen=True)
class Batch:
    """Rows that come together; the processing time that passed before, and whether the job restarted."""

    arrivals: tuple[Arrival, ...]
    later_ms: int = 0
    restart: bool = False


@dataclass(frozen=True)
class Chain:
    """Sources and steps; a step reads sources and steps before it."""

    kind: KeyKind
    steps: tuple[Step, ...]
    sources: int = 1
    out_of_orderness: int = 5
    idle_after: int | None = None
    advances: bool = False
    """Whether the watermark follows the clock while everything is silent."""

    def pipeline(self) -> tuple[sw.Pipeline, list[Results]]:
        """Return the pipeline, in which everything ends in memory, and the results of its steps."""
        known = KEY_TYPES[self.kind]
        schema = {"tag": pl.String(), "a": known.physical, "b": pl.Int64(), "v": pl.Int64()}
        idle = None if self.idle_after is None else f"{self.idle_after}ms"
        sources: list[Stream] = [
            sw.stream(f"source{number}", rows_source(pl.Schema(schema | {"at": pl.Int64()})))
            .event_time(
                "at",
                out_of_orderness=f"{self.out_of_orderness}ms",
                idle_after=idle,
                when_all_idle="advance" if self.advances else "wait",
            )
            .with_columns(a=pl.col("a").cast(known.dtype))
            for number in range(self.sources)
        ]
        streams, steps = [*sources], list[Results]()
        ends: list[Ended] = [source.dead_letters.to(sw.sinks.memory()) for source in sources]
        for number, step in enumerate(self.steps):
            results = step.results([streams[at] for at in step.inputs], f"step{number}")
            rows = step.rows(results, self.kind)
            ends += [rows.to(sw.sinks.memory()), results.dead_letters.to(sw.sinks.memory())]
            if step.has_late:
                ends.append(results.late.to(sw.sinks.memory()))
            if isinstance(step, Dedup):
                ends.append(results.output("duplicates").to(sw.sinks.memory()))
            streams.append(rows)
            steps.append(results)
        return sw.Pipeline("mixed", *ends, key_groups=2), steps


@dataclass
class Outcome:
    """What came out of a run: the rows of each step, late rows and dead letters."""

    shown: list[Counter[Any]] = field(default_factory=list)
    late: list[Counter[Any]] = field(default_factory=list)
    dead: Counter[Any] = field(default_factory=Counter)
    counts: dict[str, Counter[str]] = field(default_factory=dict)


class Run:
    """One run of a chain; each batch is run twice, the second time with its packets in another order."""

    def __init__(self, chain: Chain, built: tuple[sw.Pipeline, list[Results]], dice: random.Random) -> None:
        self.chain, self.dice = chain, dice
        pipeline, self.results = built
        self.harness = Harness(pipeline, now=T0)
        self.counts: dict[str, Counter[str]] = {}

    def batch(self, batch: Batch) -> None:
        """Run one batch."""
        if batch.restart:
            self.harness.restart()
        self.harness.now_ms += batch.later_ms
        known = KEY_TYPES[self.chain.kind]
        for source, partition in sorted({(each.source, each.partition) for each in batch.arrivals}):
            mine = [each for each in batch.arrivals if (each.source, each.partition) == (source, partition)]
            columns = {name: [getattr(each, name) for each in mine] for name in COLUMNS}
            schema = {"tag": pl.String(), "a": known.physical, "b": pl.Int64(), "v": pl.Int64(), "at": pl.Int64()}
            frame = pl.DataFrame(columns, schema=schema)
            self.harness.send(f"source{source}", frame, partition=partition)
        self._twice()

    def finish(self) -> Outcome:
        """End the input."""
        self._twice()
        self.harness.clock = final_clock(self.harness.clock)
        self._twice()
        return self._outcome()

    def _twice(self) -> None:
        """Run the pending batch, and before it a copy of it that must give the same rows in the same order."""
        harness, dice = self.harness, self.dice
        harness._read_tables()
        again = ShufflingEngine(plan=harness.plan, state=copied(harness.engine.state))
        again.dice = dice
        chunks = {name: dice.sample(sent, len(sent)) for name, sent in harness._sent.items()}
        second = again.run(chunks, replace(harness.clock, now_ms=harness.now_ms))
        first = harness.run_batch()
        for name, frame in first.items():
            other = second.outputs[name]
            if name.endswith(".rows"):
                assert_frame_equal(frame, other, check_exact=True)
            else:
                assert rows_as_text(frame) == rows_as_text(other), name
        assert as_text(harness.engine.state) == as_text(again.state)
        for name, counts in harness.last.counts.items():
            self.counts.setdefault(name, Counter()).update(counts)

    def _outcome(self) -> Outcome:
        out, harness = Outcome(counts=self.counts), self.harness
        for step, results in zip(self.chain.steps, self.results, strict=True):
            frame = harness.output(f"{results.name}.rows")
            rows = Counter(shown_rows(frame))
            if "is_retraction" in frame.columns:
                rows = Counter(shown_rows(frame.filter(~pl.col("is_retraction"))))
                rows.subtract(Counter(shown_rows(frame.filter("is_retraction"))))
                rows = Counter({row: number for row, number in rows.items() if number})
            out.shown.append(rows)
            out.late.append(Counter(shown_rows(harness.output(results.late))) if step.has_late else Counter())
        letters = [name for name in harness._outputs if name.endswith(".dead_letters")]
        for letter in pl.concat([harness.output(name) for name in letters]).iter_rows(named=True):
            what = letter["offset"]
            if letter["reason"] != "timer_failed":
                what = json.loads(letter["payload"]).get("tag")
            out.dead[letter["step"], letter["reason"], what] += 1
        return out


@dataclass
class Expected:
    """What the model says."""

    shown: list[list[Row]] = field(default_factory=list)
    dead: Counter[Any] = field(default_factory=Counter)
    taken: list[int] = field(default_factory=list)
    """The number of rows of each step that were not late."""
    is_too_large: bool = False


def expected(chain: Chain, arrivals: Sequence[Arrival], got: Outcome | None = None) -> Expected:
    """Return what the model says of all rows but those that were late in `got`."""
    out = Expected()
    streams: list[list[Row]] = [[] for _ in range(chain.sources)]
    offsets: Counter[tuple[int, str]] = Counter()
    for each in arrivals:
        place = (each.partition, offsets[each.source, each.partition])
        offsets[each.source, each.partition] += 1
        streams[each.source].append(Row(each.tag, canonical(each.a), each.b, each.v, each.at, place))
    for number, step in enumerate(chain.steps):
        inputs = [streams[at] for at in step.inputs]
        if got is not None and got.late[number]:
            inputs = _on_time(inputs, Counter(got.late[number]))
        shown = model(step, inputs, chain.kind, f"step{number}")
        out.taken.append(sum(map(len, inputs)))
        out.dead.update((f"step{number}", *dead) for dead in shown.dead)
        if got is not None and depends_on_arrival(step):
            shown.rows = as_shown(step, f"step{number}", inputs, chain.kind, got.shown[number])
        streams.append(shown.rows)
        out.shown.append(shown.rows)
        if len(shown.rows) > MOST_ROWS:
            out.is_too_large = True
            break
    return out


def _on_time(inputs: list[list[Row]], late: Counter[Any]) -> list[list[Row]]:
    """Return the rows of each input without those that were late."""
    found = []
    for rows in inputs:
        kept = []
        for row in rows:
            if late[row.shown] > 0:
                late[row.shown] -= 1
            else:
                kept.append(row)
        found.append(kept)
    assert not +late, f"late rows that never came: {+late}"
    return found


def check_late(chain: Chain, batches: Sequence[Batch], dice: random.Random) -> int:
    """Run a chain in which rows may be late, and compare it with what the model says of the others."""
    arrivals = [each for batch in batches for each in batch.arrivals]
    if expected(chain, arrivals).is_too_large:
        return 0
    got = run(chain, chain.pipeline(), batches, dice)
    wanted = expected(chain, arrivals, got)
    if wanted.is_too_large:
        return 0
    # A stream that was set aside, because it was silent, may come back behind the steps after it; and what a process
    # shows in the order of arrival may be as late as its events.
    may_lag = chain.idle_after is not None or any(getattr(step, "order", "") == "arrival" for step in chain.steps)
    for step, late in zip(chain.steps, got.late, strict=True):
        assert may_lag or min(step.inputs) < chain.sources or not late, f"results are late: {late}"
    compare(chain, got, wanted)
    accounts(chain, got, wanted)
    return len(batches) + 2


def run(
    chain: Chain, built: tuple[sw.Pipeline, list[Results]], batches: Sequence[Batch], dice: random.Random
) -> Outcome:
    """Run a chain to its end."""
    run = Run(chain, built, dice)
    for batch in batches:
        run.batch(batch)
    return run.finish()


def check(chain: Chain, rows: Sequence[Arrival], batchings: Sequence[Sequence[Batch]], dice: random.Random) -> int:
    """Run a chain in which no row is late in several batchings, and compare it with the model; return the batches."""
    wanted = expected(chain, rows)
    if wanted.is_too_large:
        return 0
    built = chain.pipeline()
    for batches in batchings:
        got = run(chain, built, batches, dice)
        assert not any(got.late), f"late rows: {got.late}"
        compare(chain, got, wanted)
        accounts(chain, got, wanted)
    return sum(len(batches) + 2 for batches in batchings)


def compare(chain: Chain, got: Outcome, wanted: Expected) -> None:
    """Compare what a chain showed with what the model says."""
    for number, rows in enumerate(wanted.shown):
        step = chain.steps[number]
        if isinstance(step, Windows) and step.own == "picky":
            continue  # which of its rows are to blame depends on batches; it must not be stuck
        _assert_equal(got.shown[number], Counter(row.shown for row in rows), f"step{number}")
    picky = {f"step{at}" for at, step in enumerate(chain.steps) if getattr(step, "own", "") == "picky"}
    found, known = (
        Counter({what: n for what, n in each.items() if what[0] not in picky}) for each in (got.dead, wanted.dead)
    )
    _assert_equal(found, known, "dead letters")


def _assert_equal(got: Counter[Any], wanted: Counter[Any], what: str) -> None:
    assert got == wanted, f"{what}: more {got - wanted}, missing {wanted - got}"


def accounts(chain: Chain, got: Outcome, wanted: Expected) -> None:
    """Check that every row of every step is in exactly one account: used, late or dead."""
    for number, step in enumerate(chain.steps):
        if getattr(step, "own", "") == "picky":
            continue
        counts = got.counts.get(f"step{number}", Counter())
        used = sum(counts[name] for name in ("on_time", "refired", "unmatched", "superseded", "expired"))
        mine = {(f"step{number}", reason) for reason in ("failed", "out_of_range")}
        dead = sum(n for (*which, _), n in got.dead.items() if tuple(which) in mine)
        assert used + dead == wanted.taken[number], f"step{number}: {counts}, {dead} dead of {wanted.taken[number]}"
        assert counts["late"] == got.late[number].total(), f"step{number}: {counts}"

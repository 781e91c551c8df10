"""Chains of two and three windowed steps, run in memory beside the model, batch by batch."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

import polars as pl

import slackwater as sw
from slackwater.base.times import EPOCH
from slackwater.operators.windows import triggers
from slackwater.plan.streams import Results
from slackwater.testing import Harness, rows_source
from tests.property.accounts import ACCOUNTS
from tests.property.chain_definitions import BEGINNING, END, Row, Step, Trigger, Window
from tests.property.chain_model import Late, Model, Pane, Time
from tests.property.limited_sessions import LimitedSessions
from tests.property.streams import T0, Batch, Record

COUNTS: Final = (*ACCOUNTS, "partly_ignored", "unshown")


@dataclass(frozen=True)
class Chain:
    """The steps, and what each is keyed by: the key of the rows, or how many rows a result of the step before has."""

    steps: tuple[Step, ...]
    by_size: tuple[bool, ...]
    out_of_orderness: int = 10

    def key(self, number: int) -> str:
        """Return the key column of a step: that of the step before, or its number of rows."""
        if number == 0:
            return "key"
        return f"size{number - 1}" if self.by_size[number] else self.key(number - 1)

    def pipeline(self) -> tuple[sw.Pipeline, list[Results]]:
        """Return the pipeline and the results of each step."""
        events = sw.stream("events", rows_source("tag string, key string, ts long"))
        rows = events = events.event_time("ts", out_of_orderness=f"{self.out_of_orderness}ms")
        steps: list[Results] = []
        for number, step in enumerate(self.steps):
            results = (
                rows.key_by(self.key(number))
                .window(
                    window_of(step.window),
                    allowed_lateness=f"{step.lateness}ms",
                    trigger=trigger_of(step.trigger),
                    accumulation=step.accumulation,
                    semantics=sw.Semantics(on_close=step.on_close),
                    name=f"step{number}",
                )
                .aggregate(tags=sw.collect_list("tag"), **{f"size{number}": sw.count()})
            )
            steps.append(results)
            rows = results.with_columns(tag=_TAG)
        outputs = [output for results in steps for output in (results, results.late)]
        outputs += [events.dead_letters, *(results.dead_letters for results in steps[:-1])]
        pipeline = sw.Pipeline("chain", *(output.to(sw.sinks.memory()) for output in outputs), key_groups=2)
        return pipeline, steps


_TAG: Final = pl.format(
    "[{}..{} #{}: {}]",
    pl.col("window_start").dt.epoch("ms") - T0,
    pl.col("window_end").dt.epoch("ms") - T0,
    "pane_index",
    pl.col("tags").list.sort().list.join(" "),
)
"""The name of a result as a row of the next step: its window, pane and rows."""


def window_of(window: Window) -> sw.windows.Window:
    """Return a window as users write it."""
    match window.kind:
        case "tumbling":
            return sw.tumbling(f"{window.size}ms", offset=f"{window.offset}ms")
        case "hopping":
            return sw.hopping(f"{window.size}ms", every=f"{window.every}ms", offset=f"{window.offset}ms")
        case "cumulative":
            return sw.cumulative(f"{window.size}ms", every=f"{window.every}ms", offset=f"{window.offset}ms")
        case "sliding":
            return sw.sliding(f"{window.size}ms")
        case "session":
            longest = f"{window.max_length}ms" if window.max_length else None
            return sw.session(f"{window.gap}ms", max_length=longest, touching=window.touching)
        case "global":
            return sw.global_window()


def trigger_of(trigger: Trigger) -> triggers.Trigger:
    """Return a trigger as users write it."""
    parts: list[Any] = []
    if trigger.early_count is not None:
        parts.append(sw.after_count(trigger.early_count, once=trigger.once))
    if trigger.early_every is not None:
        parts.append(sw.every(f"{trigger.early_every}ms"))
    if trigger.early_event_time is not None:
        parts.append(sw.every_event_time(f"{trigger.early_event_time}ms"))
    early = sw.any_of(*parts) if len(parts) > 1 else parts[0] if parts else None
    stands_alone = replace(trigger, repeat_unchanged=True, late_count=1, is_final=False) == trigger
    if not trigger.on_time or (trigger.early_event_time is not None and stands_alone):
        return early or sw.never()  # `every_event_time` has a pane at the end, and late ones, of its own
    if trigger.is_final:
        late = None
    else:
        late = sw.never() if trigger.late_count is None else sw.after_count(trigger.late_count)
    return sw.after_watermark(early=early, late=late, repeat_unchanged=trigger.repeat_unchanged)


class Run:
    """A chain that runs in memory, and a model of each step that gets what the step before really showed."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        pipeline, self.steps = chain.pipeline()
        self.harness = Harness(pipeline, now=T0)
        self.models = [LimitedSessions(step) if step.window.max_length else Model(step) for step in chain.steps]
        self.watermark = self.previous = BEGINNING
        self.newest: dict[str, int] = {}
        self.shown: list[list[dict[str, Any]]] = [[] for _ in chain.steps]

    def batch(self, batch: Batch, files: random.Random | None = None) -> None:
        """Run one batch, and compare each step with its model.

        With `files` each partition's rows come in two files, and all files are read in any order.
        """
        harness = self.harness
        if batch.restart:
            harness.restart()
        harness.now_ms += batch.later_ms
        arrived = sorted(batch.records, key=lambda record: record.partition)
        for partition, found in itertools.groupby(arrived, lambda record: record.partition):
            mine = [_typed(record) for record in found]
            half = files.randint(0, len(mine)) if files else 0
            for part in (mine[:half], mine[half:]):
                harness.send("events", part, partition=partition)
        if files:
            files.shuffle(harness._sent.setdefault("events", []))
        self._compare(harness.run_batch(), [Row(r.key, r.ts_ms, _typed(r)["tag"]) for r in arrived])
        for record in batch.records:
            self.newest[record.partition] = max(self.newest.get(record.partition, BEGINNING), record.ts_ms)
        self.previous = self.watermark
        if self.newest:
            self.watermark = max(self.watermark, min(self.newest.values()) - self.chain.out_of_orderness)
            assert harness.watermark["events"] == self.watermark

    def finish(self) -> None:
        """End the input; every window has come to its end, and nothing is remembered."""
        self.batch(Batch(()))
        self.previous, self.watermark = self.watermark, END
        self._compare(self.harness.finish(), [])
        assert self.harness.pieces == 0, "state after the end"
        assert not any(self.harness.engine.state.values())
        for model, shown, step in zip(self.models, self.shown, self.chain.steps, strict=True):
            panes = [_pane(row, self.chain.key(self.models.index(model))) for row in shown]
            if isinstance(model, LimitedSessions):
                model.check(panes)
            else:
                assert not model.open
            if step.accumulation == "retracting":
                _check_retractions(shown)

    def _compare(self, outputs: dict[str, pl.DataFrame], rows: list[Row]) -> None:
        delay = 0
        for number, (step, model) in enumerate(zip(self.chain.steps, self.models, strict=True)):
            time = Time(
                previous=self.previous if self.previous in (BEGINNING, END) else self.previous - delay,
                watermark=self.watermark if self.watermark in (BEGINNING, END) else self.watermark - delay,
                now=self.harness.now_ms,
                is_first=number == 0,
            )
            where = f"step {number} at {time}"
            results = outputs[f"step{number}"].to_dicts()
            late = [_late(row) for row in outputs[f"step{number}.late"].to_dicts()]
            assert number == 0 or not late, f"a result is late: {where}"
            assert all(row[f"size{number}"] == len(row["tags"]) for row in results)
            counts = Counter(self.harness.last.counts.get(f"step{number}", {}))
            assert sum(counts[account] for account in ACCOUNTS) == len(rows), f"a row in no account or two: {where}"
            if isinstance(model, LimitedSessions):
                model.batch(rows, {row.tag for row in late}, time)
            else:
                shown = model.batch(rows, time)
                panes = [_pane(row, self.chain.key(number)) for row in results]
                assert Counter(panes) == Counter(shown.panes), where
                assert Counter(late) == Counter(shown.late), where
                for name in COUNTS:
                    assert counts[name] == shown.counts[name], f"{name}: {where}"
            self.shown[number] += results
            if number + 1 < len(self.chain.steps):
                ordered = sorted(results, key=lambda row: (row["window_start"], row["window_end"]))
                key = self.chain.key(number + 1)
                rows = [Row(row[key], _ms(row["window_end"]) - 1, _tag(row)) for row in ordered]
            delay += step.lateness


def _check_retractions(shown: list[dict[str, Any]]) -> None:
    """Check that each retraction repeats a row that stands, and that no window stands twice."""
    stands: list[dict[str, Any]] = []
    columns = [name for name in (shown[0] if shown else {}) if name not in ("pane", "watermark", "is_retraction")]
    for row in shown:
        facts = {name: row[name] for name in columns}
        if row["is_retraction"]:
            assert facts in stands, f"{row} withdraws what does not stand"
            stands.remove(facts)
        else:
            place = (row["window_start"], row["window_end"], facts[columns[0]])
            assert place not in [(was["window_start"], was["window_end"], was[columns[0]]) for was in stands], str(row)
            stands.append(facts)


def _typed(record: Record) -> dict[str, Any]:
    return {"tag": f"{record.id:03d}", "key": record.key, "ts": record.ts_ms}


def _pane(row: dict[str, Any], key: str) -> Pane:
    return Pane(
        row[key],
        BEGINNING if row["window_start"] is None else _ms(row["window_start"]),
        END if row["window_end"] is None else _ms(row["window_end"]),
        tuple(sorted(row["tags"])),
        row["pane"],
        row["is_retraction"],
    )


def _late(row: dict[str, Any]) -> Late:
    windows = tuple(sorted((_ms(missed["start"]), _ms(missed["end"])) for missed in row["windows"]))
    return Late(row["tag"], row["late_by_ms"], windows)


def _tag(row: dict[str, Any]) -> str:
    start, end = _ms(row["window_start"]) - T0, _ms(row["window_end"]) - T0
    return f"[{start}..{end} #{row['pane_index']}: {' '.join(sorted(row['tags']))}]"


def _ms(moment: datetime) -> int:
    return round((moment - EPOCH).total_seconds() * 1000)


def run(chain: Chain, stream: Sequence[Batch], files: random.Random | None = None) -> Run:
    """Run a chain to its end, compared with its model all the way."""
    done = Run(chain)
    for batch in stream:
        done.batch(batch, files)
    done.finish()
    return done

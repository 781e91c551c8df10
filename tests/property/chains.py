"""Chains of two and three windowed steps, run in memory beside the model, batch by batch."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

import polars as pl
from hypothesis import strategies as st

import slackwater as sw
from slackwater.eventtime.times import EPOCH
from slackwater.streams import Results
from slackwater.testing import Harness, rows_source
from tests.property.chain_model import BEGINNING, END, Late, Model, Pane, Row, Shown, Step, Time, Trigger, Window
from tests.property.streams import OUT_OF_ORDERNESS_MS, T0, Batch, batches

ACCOUNTS: Final = ("on_time", "refired", "late", "no_window", "ignored")


@dataclass(frozen=True)
class Chain:
    """The steps, and what each is keyed by: the key of the rows, or how many rows a result of the step before has."""

    steps: tuple[Step, ...]
    by_size: tuple[bool, ...]

    def key(self, number: int) -> str:
        """Return the key column of a step: that of the step before, or its number of rows."""
        if number == 0:
            return "key"
        return f"size{number - 1}" if self.by_size[number] else self.key(number - 1)

    def pipeline(self) -> tuple[sw.Pipeline, list[Results]]:
        """Return the pipeline and the results of each step."""
        events = sw.stream("events", rows_source("tag string, key string, ts long"))
        rows = events = events.event_time("ts", out_of_orderness=f"{OUT_OF_ORDERNESS_MS}ms")
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


def trigger_of(trigger: Trigger) -> sw.triggers.Trigger:
    """Return a trigger as users write it."""
    parts: list[Any] = []
    if trigger.early_count is not None:
        parts.append(sw.after_count(trigger.early_count, once=trigger.once))
    if trigger.early_every is not None:
        parts.append(sw.every(f"{trigger.early_every}ms"))
    if trigger.early_event_time is not None:
        parts.append(sw.every_event_time(f"{trigger.early_event_time}ms"))
    early = sw.any_of(*parts) if len(parts) > 1 else parts[0] if parts else None
    if not trigger.on_time:
        return early or sw.never()
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
        self.models = [Model(step) for step in chain.steps]
        self.watermark = self.previous = BEGINNING
        self.newest: dict[str, int] = {}
        self.panes: list[list[Pane]] = [[] for _ in chain.steps]

    def batch(self, batch: Batch, files: random.Random | None = None) -> None:
        """Run one batch, and compare each step with its model; `files` shuffles the order in which they are read."""
        harness = self.harness
        if batch.restart:
            harness.restart()
        harness.now_ms += batch.later_ms
        for partition in sorted({record.partition for record in batch.records}):
            mine = [record for record in batch.records if record.partition == partition]
            for part in (mine[::2], mine[1::2]) if files else (mine,):
                rows = [{"tag": f"{record.id:03d}", "key": record.key, "ts": record.ts_ms} for record in part]
                harness.send("events", rows, partition=partition)
        if files:
            files.shuffle(harness._sent.setdefault("events", []))
        arrived = sorted(batch.records, key=lambda record: record.partition)
        if files:
            arrived = [r for p in "01" for half in (0, 1) for r in [x for x in arrived if x.partition == p][half::2]]
        outputs = harness.run_batch()
        self._compare(outputs, [Row(record.key, record.ts_ms, f"{record.id:03d}") for record in arrived])
        for record in batch.records:
            self.newest[record.partition] = max(self.newest.get(record.partition, BEGINNING), record.ts_ms)
        reached = min(self.newest.values(), default=BEGINNING) - OUT_OF_ORDERNESS_MS
        self.previous, self.watermark = self.watermark, max(self.watermark, reached if self.newest else BEGINNING)
        assert self.newest == {} or harness.watermark["events"] == self.watermark

    def finish(self) -> None:
        """End the input; nothing may be remembered afterwards."""
        self.batch(Batch(()))
        self.previous, self.watermark = self.watermark, END
        self._compare(self.harness.finish(), [])
        assert self.harness.pieces == 0, "state after the end"
        assert not any(model.open for model in self.models)

    def _compare(self, outputs: dict[str, pl.DataFrame], rows: list[Row]) -> None:
        delay = 0
        for number, (step, model) in enumerate(zip(self.chain.steps, self.models, strict=True)):
            time = Time(
                previous=self.previous if self.previous in (BEGINNING, END) else self.previous - delay,
                watermark=self.watermark if self.watermark in (BEGINNING, END) else self.watermark - delay,
                now=self.harness.now_ms,
                is_first=number == 0,
            )
            shown = model.batch(rows, time)
            results = outputs[f"step{number}"].to_dicts()
            found = [_pane(row, self.chain.key(number)) for row in results]
            late = [_late(row) for row in outputs[f"step{number}.late"].to_dicts()]
            counts = self.harness.last.counts.get(f"step{number}", {})
            where = f"step {number} at {time}"
            assert Counter(found) == Counter(shown.panes), where
            assert Counter(late) == Counter(shown.late), where
            for account in ACCOUNTS:
                if self.watermark != END or account == "ignored":
                    assert counts.get(account, 0) == shown.counts[account], f"{account}: {where}"
            assert number == 0 or not late, "a result is late for the next step"
            self.panes[number] += found
            if number + 1 < len(self.chain.steps):
                ordered = sorted(results, key=lambda row: (row["window_start"], row["window_end"]))
                key = self.chain.key(number + 1)
                rows = [Row(row[key], _ms(row["window_end"]) - 1, _tag(row)) for row in ordered]
            delay += step.lateness


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


def run(chain: Chain, stream: Sequence[Batch]) -> Run:
    """Run a chain to its end, compared with its model all the way."""
    done = Run(chain)
    for batch in stream:
        done.batch(batch)
    done.finish()
    return done


_SIZES: Final = st.sampled_from([10, 20, 50])
ALIGNED: Final = st.one_of(
    st.builds(lambda size, offset: Window(kind="tumbling", size=size, offset=offset), _SIZES, st.sampled_from([0, -7])),
    st.builds(lambda every: Window(kind="hopping", size=20, every=every), st.sampled_from([7, 20, 30])),
    st.builds(lambda every: Window(kind="cumulative", size=40, every=every), st.sampled_from([10, 40])),
)
SESSIONS: Final = st.builds(
    lambda gap, touching: Window(kind="session", gap=gap, touching=touching),
    st.sampled_from([8, 20]),
    st.sampled_from(["merge", "separate"]),
)
SLIDING: Final = st.builds(lambda size: Window(kind="sliding", size=size), st.sampled_from([1, 25]))
ANY: Final = ALIGNED | SESSIONS | SLIDING


@st.composite
def _triggers(draw: st.DrawFn) -> Trigger:
    early_count = draw(st.sampled_from([None, None, 1, 2, 3]))
    early_every = draw(st.sampled_from([None, None, 5, 15, 40]))
    early_event_time = draw(st.sampled_from([None, None, None, 5, 15]))
    early: dict[str, Any] = {
        "early_count": early_count,
        "early_every": early_every,
        "early_event_time": early_event_time,
    }
    match draw(st.sampled_from(["after_watermark", "after_watermark", "alone", "once"])):
        case "after_watermark":
            late = draw(st.sampled_from([1, 1, 2, None, "final"]))
            repeat = draw(st.booleans())
            if late == "final":
                return Trigger(**early, repeat_unchanged=repeat, late_count=None, is_final=True)
            return Trigger(**early, repeat_unchanged=repeat, late_count=late)
        case "once":
            count = early_count or 2
            return Trigger(early_count=count, on_time=False, late_count=count, once=True)
    # A trigger that stands alone asks after the end as before it; `every_event_time` adds the pane at the end itself.
    if early_event_time is not None:
        return Trigger(**early, late_count=1)
    return Trigger(**early, on_time=False, late_count=early_count)


@st.composite
def steps(draw: st.DrawFn, *, is_last: bool, may_tick: bool = True, windows: st.SearchStrategy[Window] = ANY) -> Step:
    """Draw a step that the planner accepts where it stands."""
    if is_last and draw(st.integers(0, 7)) == 0:
        windows = st.just(Window(kind="global"))
    window = draw(windows)
    lateness = draw(st.sampled_from([0, 0, 15, 60]))
    accumulations = ["discarding", "accumulating", "retracting"]
    if window.kind == "sliding":
        lateness = lateness if is_last else 0
        return Step(window=window, lateness=lateness, accumulation=draw(st.sampled_from(accumulations[1:])))
    trigger = draw(_triggers())
    if not may_tick:
        trigger = replace(trigger, early_event_time=None)
    if window.kind == "global":
        lateness = 0
        trigger = Trigger(early_count=2) if trigger == Trigger() else trigger
    step = Step(
        window=window,
        trigger=trigger,
        lateness=lateness,
        accumulation=draw(st.sampled_from(accumulations)),
        on_close=draw(st.sampled_from(["flush", "flush", "discard"])),
    )
    return replace(step, accumulation="discarding") if step.may_update and not is_last else step


@st.composite
def chains(draw: st.DrawFn, windows: st.SearchStrategy[Window] = ANY) -> Chain:
    """Draw a chain of two or three steps, or a single one, which is the simplest."""
    length = draw(st.sampled_from([2, 2, 2, 3, 3, 1]))
    by_size = [False, *(draw(st.integers(0, 3)) == 0 for _ in range(length - 1))]
    # Which of several rows came first to a step that has other keys is the engine's affair, and decides the first tick.
    drawn = [
        draw(steps(is_last=number == length - 1, may_tick=not any(by_size[: number + 1]), windows=windows))
        for number in range(length)
    ]
    return Chain(tuple(drawn), tuple(by_size))


def streams(most: int = 6) -> st.SearchStrategy[list[Batch]]:
    """Draw a stream of good rows."""
    return batches(most=most, fates=st.just("good"))

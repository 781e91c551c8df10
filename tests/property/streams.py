"""Made-up streams and steps for the property tests: out of order, late, broken, ahead of the clock, in any batches."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Final, Literal

import polars as pl
from hypothesis import strategies as st

import slackwater as sw
from slackwater.connectors.source import Source
from slackwater.operators.windows.spec import Accumulation
from slackwater.operators.windows.triggers import AfterCount, AfterWatermark, Trigger
from slackwater.plan.streams import Results, Stream
from slackwater.testing import Harness
from slackwater.windows import GlobalWindow, SlidingWindow, Window

T0: Final = 1_700_000_000_000
"""Processing time at the start; event times lie around it."""
OUT_OF_ORDERNESS_MS: Final = 10
Fate = Literal["good", "broken", "no_time", "ahead", "filtered"]


@dataclass(frozen=True)
class Record:
    """One record of the log: what it holds, and what must become of it before it reaches a window."""

    id: int
    key: str | None
    ts_ms: int
    fate: Fate
    partition: str

    @property
    def payload(self) -> bytes:
        if self.fate == "broken":
            return f'{{"id": {self.id}, "key":'.encode()
        ts = {"no_time": None, "ahead": self.ts_ms + 3_600_000}.get(self.fate, self.ts_ms)
        return json.dumps({"id": self.id, "key": self.key, "ts": ts, "keep": self.fate != "filtered"}).encode()


@dataclass(frozen=True)
class Batch:
    """The records of one micro-batch; the processing time that passed before it; whether the job restarted."""

    records: tuple[Record, ...]
    later_ms: int = 0
    restart: bool = False


@dataclass(frozen=True)
class Setup:
    """One windowed step."""

    window: Window
    lateness_ms: int = 0
    trigger: Trigger = field(default_factory=sw.after_watermark)
    accumulation: Accumulation = "accumulating"
    on_close: Literal["flush", "discard"] = "flush"
    spread: int = 1

    @property
    def may_finish(self) -> bool:
        """Whether the trigger may finish a window before it is forgotten."""
        trigger = self.trigger
        return (isinstance(trigger, AfterCount) and trigger.once) or (
            isinstance(trigger, AfterWatermark) and trigger.late is None
        )

    @property
    def shows_all(self) -> bool:
        """Whether every row that a window takes must be shown."""
        return self.on_close == "flush" and not self.may_finish

    def results(self, events: Stream, name: str | None = None) -> Results:
        """Return the step's results; the ids of each window's rows are the witness."""
        return (
            events.key_by("key", spread=self.spread)
            .window(
                self.window,
                allowed_lateness=f"{self.lateness_ms}ms",
                trigger=self.trigger,
                accumulation=self.accumulation,
                semantics=sw.Semantics(on_close=self.on_close),
                name=name,
            )
            .aggregate(ids=sw.collect_list("id"), n=sw.count())
        )

    def pipeline(self) -> tuple[sw.Pipeline, Stream, Results]:
        """Return the pipeline, its stream and its results."""
        events = stream_of(sw.sources.log("nowhere"))
        results = self.results(events)
        pipeline = sw.Pipeline(
            "accounts",
            results.to(sw.sinks.memory()),
            results.late.to(sw.sinks.memory()),
            events.dead_letters.to(sw.sinks.memory()),
            key_groups=4,
        )
        return pipeline, events, results


def stream_of(source: Source) -> Stream:
    """Return the stream of a log of records."""
    return (
        sw.stream("events", source)
        .decode(sw.formats.json("id long, key string, ts long, keep boolean"))
        .event_time("ts", out_of_orderness=f"{OUT_OF_ORDERNESS_MS}ms", max_ahead="1m")
        .where("keep")
    )


def send(harness: Harness, batch: Batch) -> None:
    """Put a batch's records into the log, each partition's in order."""
    for partition in sorted({record.partition for record in batch.records}):
        payloads = [record.payload for record in batch.records if record.partition == partition]
        harness.send("events", payloads, partition=partition)


_ms = "{}ms".format
ALIGNED: Final = st.one_of(
    st.builds(sw.tumbling, st.sampled_from(["20ms", "50ms"]), offset=st.sampled_from(["0s", "-7ms"])),
    st.builds(sw.hopping, st.just("20ms"), every=st.sampled_from(["7ms", "20ms", "30ms"])),
    st.builds(sw.cumulative, st.just("40ms"), every=st.sampled_from(["10ms", "40ms"])),
)
SESSIONS: Final = st.builds(
    sw.session, st.sampled_from(["8ms", "20ms"]), touching=st.sampled_from(["merge", "separate"])
)
SLIDING: Final = st.builds(sw.sliding, st.sampled_from(["1ms", "25ms"]))
ANY: Final = st.one_of(
    ALIGNED, SESSIONS, SLIDING, st.just(sw.global_window()), st.just(sw.session("8ms", max_length="30ms"))
)

_EARLY: Final = st.one_of(
    st.none(),
    st.builds(sw.after_count, st.integers(1, 3)),
    st.builds(sw.every, st.sampled_from(["5ms", "40ms"])),
    st.builds(sw.every_event_time, st.sampled_from(["5ms", "15ms"])),
    st.just(sw.any_of(sw.after_count(3), sw.every("10ms"))),
)
_LATE: Final = st.one_of(st.builds(sw.after_count, st.integers(1, 2)), st.just(sw.never()), st.none())
TRIGGERS: Final = st.one_of(
    st.builds(sw.after_watermark, early=_EARLY, late=_LATE, repeat_unchanged=st.booleans()),
    st.builds(sw.after_count, st.integers(1, 3), once=st.booleans()),
    st.builds(sw.every, st.sampled_from(["5ms", "40ms"])),
    st.just(sw.any_of(sw.every_event_time("10ms"), sw.every("20ms"))),
)


@st.composite
def setups(draw: st.DrawFn, windows: st.SearchStrategy[Window] = ANY) -> Setup:
    """Draw a step that the planner accepts."""
    window = draw(windows)
    if isinstance(window, SlidingWindow):
        return Setup(
            window=window,
            lateness_ms=draw(st.sampled_from([0, 15, 60])),
            accumulation=draw(st.sampled_from(["accumulating", "retracting"])),
        )
    trigger = draw(TRIGGERS)
    if isinstance(window, GlobalWindow) and trigger == sw.after_watermark():
        trigger = sw.after_count(2)
    return Setup(
        window=window,
        lateness_ms=0 if isinstance(window, GlobalWindow) else draw(st.sampled_from([0, 15, 60])),
        trigger=trigger,
        accumulation=draw(st.sampled_from(["discarding", "accumulating", "retracting"])),
        on_close=draw(st.sampled_from(["flush", "discard"])),
    )


@st.composite
def batches(draw: st.DrawFn, *, most: int = 8, fates: st.SearchStrategy[Fate] | None = None) -> list[Batch]:
    """Draw a stream, cut into batches; event time moves on with the batches, with rows far behind it."""
    fates = st.sampled_from(["good"] * 6 + ["broken", "no_time", "ahead", "filtered"]) if fates is None else fates
    drawn, next_id = [], 0
    for number in range(draw(st.integers(1, most))):
        records = []
        for _ in range(draw(st.integers(0, 5))):
            ts_ms = T0 + 20 * number - draw(st.integers(0, 25) | st.integers(0, 200))
            key, partition = draw(st.sampled_from(["a", "b", None])), draw(st.sampled_from(["0", "0", "1"]))
            records.append(Record(next_id, key, ts_ms, draw(fates), partition))
            next_id += 1
        drawn.append(Batch(tuple(records), draw(st.integers(0, 15)), draw(st.integers(0, 4)) == 0))
    return drawn


def shown_ids(results: pl.DataFrame) -> list[int]:
    """Return the ids in panes that were shown, once per pane."""
    return results.filter(~pl.col("is_retraction"))["ids"].list.explode(empty_as_null=False).to_list()

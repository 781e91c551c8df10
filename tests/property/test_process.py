"""A process against its model: state, timers, failures, and every event in one account, whatever the batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.base.times import EPOCH
from slackwater.plan.streams import Ended, Results, Stream
from slackwater.testing import Harness
from tests.operators.process.chunk_sizes import tiny_chunks
from tests.operators.state.bucket_sizes import tiny_buckets
from tests.property.accounts import Counted
from tests.property.process_model import END, OPS, Event, Model

T0 = 1_700_000_000_000
MS = sw.duration("1ms")


class Probe(sw.Process):
    """Does what its events say, and shows all it knows."""

    value = sw.value_state(pl.Int64, ttl="20ms")
    items = sw.list_state("long", ttl="20ms")
    members = sw.set_state("string", ttl="20ms", clock="processing")
    table = sw.map_state("string", "long", ttl="20ms")
    alerts = sw.side_output("id long")

    def on_event(  # noqa: C901, PLR0912  one branch for each thing that can be done
        self, event: dict[str, Any], ctx: sw.Context
    ) -> Iterator[dict[str, Any]]:
        op, n, name = event["op"], event["n"], str(event["n"] % 3)
        match op:
            case "set":
                self.value.set(n)
            case "clear":
                self.value.clear()
            case "push":
                self.items.add(n)
            case "join":
                self.members.add(name)
            case "leave":
                self.members.remove(name)
            case "put":
                self.table.set(name, n)
            case "drop":
                self.table.remove(name)
            case "replace":
                self.items.set([*self.items, n])
            case "timer":
                ctx.set_timer(ctx.event_time + n * MS)
            case "named":
                ctx.set_timer(ctx.event_time + n * MS, name="t")
            case "later":
                ctx.set_timer(ctx.processing_time + n * MS, clock="processing")
            case "untimer":
                ctx.delete_timer(ctx.event_time + n * MS)
            case "unname":
                ctx.delete_timer(name="t")
            case "emit":
                ctx.emit("alerts", {"id": event["id"]})
            case "fail" | "mistype":
                yield from self._spoil(event, ctx)
        yield {"what": str(event["id"]), "known": self._known()}

    def on_timer(self, when: Any, ctx: sw.Context) -> Iterator[dict[str, Any]]:  # noqa: ANN401  a datetime
        if self.value.get() == 3:
            raise ValueError("three")
        self.items.add(-1)
        if (value := self.value.get()) is not None:
            self.value.set(value + 1)
        if ctx.timer == "t":
            ctx.set_timer(when + 7 * MS, name="u")
        at = (when - EPOCH) // MS
        yield {"what": f"timer {ctx.timer} {at}", "known": self._known()}

    def _spoil(self, event: dict[str, Any], ctx: sw.Context) -> Iterator[dict[str, Any]]:
        """Change everything there is, and fail."""
        self.value.set(99)
        self.items.add(99)
        self.items.set([1, 2])
        self.items.add(99)
        self.members.add("99")
        self.members.clear()
        self.table.set("0", 99)
        self.table.remove("1")
        self.table.clear()
        ctx.set_timer(ctx.event_time, name="t")
        ctx.set_timer(ctx.event_time)
        ctx.delete_timer(ctx.event_time + event["n"] * MS)
        ctx.emit("alerts", {"id": event["id"]})
        try:
            yield {"what": "never", "known": None}
            if event["op"] == "fail":
                raise ValueError("on purpose")
            yield {"what": 5, "known": None}
        finally:
            self.value.set(98)
            self.table.set("2", 98)
            ctx.set_timer(ctx.event_time, name="u")
            ctx.emit("alerts", {"id": event["id"]})

    def _known(self) -> str:
        return f"{self.value.get()} {self.items.get()} {sorted(self.members)} {sorted(self.table.items())}"


class Elephant(Probe):
    """Forgets nothing."""

    value = sw.value_state(pl.Int64, ttl=sw.FOREVER)
    items = sw.list_state("long", ttl=sw.FOREVER)
    members = sw.set_state("string", ttl=sw.FOREVER, clock="processing")
    table = sw.map_state("string", "long", ttl=sw.FOREVER)


@dataclass(frozen=True)
class Setup:
    """One process."""

    order: Any
    forgets: bool = True
    is_crowded: bool = False
    chunk_rows: int = 0

    @contextmanager
    def stored(self) -> Iterator[None]:
        """Store state as if there was much more of it."""
        with ExitStack() as sizes:
            if self.is_crowded:
                sizes.enter_context(tiny_buckets())
            if self.chunk_rows:
                sizes.enter_context(tiny_chunks(self.chunk_rows))
            yield

    def pipeline(self) -> tuple[sw.Pipeline, Stream, Results]:
        source = sw.testing.rows_source("id long, key string, ts long, op string, n long")
        events = sw.stream("events", source).event_time("ts", out_of_orderness="10ms")
        process = Probe() if self.forgets else Elephant()
        results = events.key_by("key").process(process, output="what string, known string", order=self.order)
        ends: list[Ended] = [out.to(sw.sinks.memory()) for out in (results, results.output("alerts"))]
        ends += [events.dead_letters.to(sw.sinks.memory())]
        ends += [results.late.to(sw.sinks.memory())] if self.order == "event_time" else []
        return sw.Pipeline("probed", *ends, key_groups=4), events, results


SETUPS = st.builds(
    Setup, st.sampled_from(["arrival", "event_time"]), st.booleans(), st.booleans(), st.sampled_from([0, 2, 4])
)


@dataclass(frozen=True)
class Batch:
    """The events of one micro-batch, and what happens before it."""

    events: tuple[Event, ...]
    later_ms: int
    restart: bool


@st.composite
def batches(draw: st.DrawFn, *, most: int = 8) -> list[Batch]:
    drawn, next_id = [], 0
    for number in range(draw(st.integers(1, most))):
        events = []
        for _ in range(draw(st.integers(0, 6))):
            ts = T0 + 12 * number - draw(st.integers(0, 12) | st.integers(0, 60))
            key, partition = draw(st.sampled_from(["a", "b", None])), draw(st.sampled_from(["0", "0", "1"]))
            op, n = draw(st.sampled_from(OPS)), draw(st.integers(-5, 30))
            events.append(Event(next_id, key, ts, op, n, partition))
            next_id += 1
        drawn.append(Batch(tuple(events), draw(st.integers(0, 15)), draw(st.integers(0, 4)) == 0))
    return drawn


def send(harness: Harness, batch: Batch) -> None:
    for partition in sorted({event.partition for event in batch.events}):
        rows = [event._asdict() for event in batch.events if event.partition == partition]
        harness.send("events", pl.DataFrame(rows).drop("partition"), partition=partition)


@dataclass
class Run:
    """A stream that went through a process to its end, and what the model makes of it."""

    harness: Counted
    events: Stream
    results: Results
    model: Model

    def of_key(self, output: Stream, key: str | None) -> pl.DataFrame:
        return self.harness.output(output).filter(pl.col("key").eq_missing(pl.lit(key)))


def run(setup: Setup, stream: list[Batch]) -> Run:
    pipeline, events, results = setup.pipeline()
    harness = Counted(pipeline, now=T0)
    model = Model(20 if setup.forgets else None, setup.order == "event_time")
    with setup.stored():
        for batch in stream:
            if batch.restart:
                harness.restart()
            harness.now_ms += batch.later_ms
            send(harness, batch)
            model.batch(list(batch.events), harness.watermark["events"], harness.now_ms)
            harness.run_batch()
        model.batch([], harness.watermark["events"], harness.now_ms)
        harness.finish()
    model.batch([], END, harness.now_ms)
    return Run(harness, events, results, model)


@given(SETUPS, batches())
def test_every_event_and_timer_sees_the_state_that_the_model_sees(setup: Setup, stream: list[Batch]) -> None:
    done = run(setup, stream)
    for key in ("a", "b", None):
        found = done.of_key(done.results, key).select("what", "known", pl.col("event_time").dt.epoch("ms"))
        assert found.rows() == done.model.shown.get(key, [])


@given(SETUPS, batches())
def test_every_event_is_shown_a_dead_letter_or_late(setup: Setup, stream: list[Batch]) -> None:
    done = run(setup, stream)
    dead = done.harness.output(done.events.dead_letters)
    failed = dead.filter(pl.col("reason") == "failed")["payload"].cast(pl.String).str.json_path_match("$.id")
    late = done.harness.output(done.results.late)["id"].to_list() if setup.order == "event_time" else []
    assert sorted(map(int, failed)) == sorted(done.model.failed)
    assert sorted(late) == sorted(done.model.late)
    shown = [what for what in done.harness.output(done.results)["what"] if not what.startswith("timer")]
    accounts = [*map(int, shown), *map(int, failed), *late]
    assert sorted(accounts) == sorted(event.id for batch in stream for event in batch.events)
    counts = done.harness.counts.get("events.process", Counter())
    assert [counts[what] for what in ("on_time", "dead", "late")] == [len(shown), len(failed), len(late)]
    assert counts["failed_timers"] == len(done.model.failed_timers)


@given(SETUPS, batches())
def test_a_timer_that_fails_is_a_dead_letter_of_its_key(setup: Setup, stream: list[Batch]) -> None:
    done = run(setup, stream)
    dead = done.harness.output(done.events.dead_letters).filter(pl.col("reason") == "timer_failed")
    found = dead.select(key=pl.col("payload").cast(pl.String).str.json_path_match("$.key"), at="offset")
    assert sorted(found.rows(), key=str) == sorted(done.model.failed_timers, key=str)
    counts = done.harness.last.counts.get("events.process", Counter())
    assert counts["dropped_timers"] == done.model.dropped


@given(SETUPS, batches())
def test_rows_for_other_outputs_are_those_of_events_that_did_not_fail(setup: Setup, stream: list[Batch]) -> None:
    done = run(setup, stream)
    for key in ("a", "b", None):
        assert done.of_key(done.results.output("alerts"), key)["id"].to_list() == done.model.emitted.get(key, [])


@given(SETUPS, batches())
def test_nothing_is_remembered_after_the_end_but_what_is_kept_forever(setup: Setup, stream: list[Batch]) -> None:
    harness = run(setup, stream).harness
    if setup.forgets:
        assert harness.pieces == 0
        assert not any(harness.engine.state.values())


def cut_again(stream: list[Batch], cuts: list[int]) -> list[list[Event]]:
    """Return the events of a stream in other batches, each partition in its order."""
    events = [event for batch in stream for event in batch.events]
    ends = sorted({min(cut, len(events)) for cut in cuts} | {len(events)})
    return [events[start:end] for start, end in zip([0, *ends], ends, strict=False)]


@given(batches(), st.lists(st.integers(0, 40), max_size=5))
def test_in_the_order_of_event_time_the_cut_into_batches_does_not_matter(stream: list[Batch], cuts: list[int]) -> None:
    """The watermark stays behind every event, so that none is late; processing time stands still.

    Timers of processing time are left out: they fire with the next batch, wherever that begins.
    """

    def shown(parts: list[list[Event]]) -> list[list[tuple[Any, ...]]]:
        source = sw.testing.rows_source("id long, key string, ts long, op string, n long")
        events = sw.stream("events", source).event_time("ts", out_of_orderness="1h")
        results = events.key_by("key").process(Probe(), output="what string, known string", order="event_time")
        ends = [results, results.output("alerts"), results.late, events.dead_letters]
        harness = Harness(sw.Pipeline("cut", *(end.to(sw.sinks.memory()) for end in ends), key_groups=4), now=T0)  # type: ignore[attr-defined]  # streams and outputs
        for number, part in enumerate(parts):
            send(harness, Batch(tuple(part), 0, restart=False))
            harness.run_batch()
            # As far as no later event is behind it.
            if later := [event.ts for rest in parts[number + 1 :] for event in rest]:
                harness.advance_watermark(min(later))
        # At the end of time, timers that timers set are dropped; before it, they fire.
        harness.advance_watermark(T0 + 60_000)
        harness.finish()
        found = harness.output(results).sort("key", maintain_order=True)
        return [found.filter(pl.col("key").eq_missing(pl.lit(key))).rows() for key in ("a", "b", None)]

    stream = [
        Batch(tuple(event for event in batch.events if event.op != "later"), batch.later_ms, restart=batch.restart)
        for batch in stream
    ]
    every = [event for batch in stream for event in batch.events]
    assert shown(cut_again(stream, cuts)) == shown([every])

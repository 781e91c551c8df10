"""Every bad definition of a deduplication or a process is refused, with its own code and words."""

# ruff: noqa: E501  one definition a line, with its code and words

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from slackwater.operators.process import FrameProcess, Process
from tests.plan.bad_definition import Bad, built, check_refused, purchases, sw, windowed


def deduplicated(**options: Any) -> Any:  # noqa: ANN401  half of these definitions are wrong in their types
    """Return deduplicated purchases."""
    return purchases().key_by("user_id").deduplicate(**{"within": "24h"} | options)


def ended(results: Any, *more: Any, sink: Any = None) -> Any:  # noqa: ANN401
    """Build a pipeline of deduplicated purchases whose outputs all end somewhere."""
    return built(results, results.duplicates.drop(), *more, sink=sink)


def chained(first: Any) -> Any:  # noqa: ANN401
    """Build a pipeline with a window on the results of `first`."""
    second = first.key_by("user_id").window(sw.tumbling("1h"), name="hourly").aggregate(n=sw.count())
    return built(second, first.late.drop(), first.duplicates.drop())


def without(output: str) -> Any:  # noqa: ANN401
    """Build a pipeline in which one output of a deduplication has no end."""
    rows = purchases()
    kept = rows.key_by("user_id").deduplicate(within="24h")
    ends = {"results": kept.to(sw.sinks.memory()), "duplicates": kept.duplicates.drop(), "late": kept.late.drop()}
    return sw.Pipeline("p", *(end for name, end in ends.items() if name != output), rows.dead_letters.drop())


BY_COUNTRY = sw.sinks.postgres("postgresql://localhost/db", table="t", upsert_on=["amount"])

DEDUPLICATION = [
    Bad("no time to remember a key for", "DEDUPLICATE_WITHIN", 'step `purchases.deduplicate`; add within="24h"', lambda: purchases().key_by("user_id").deduplicate()),
    Bad("a time that is a word", "DURATION_UNREADABLE", "`within`", lambda: deduplicated(within="long")),
    Bad("a time below zero", "DURATION_TOO_SHORT", "`within` must be zero or longer", lambda: deduplicated(within="-1s")),
    Bad("a row to keep that there is not", "DEDUPLICATE_KEEP", "got 'last' in step `purchases.deduplicate`", lambda: deduplicated(keep="last")),
    Bad("a fate of late rows that there is not", "DEDUPLICATE_LATE", "got 'drop'", lambda: deduplicated(late="drop")),
    Bad("duplicates left unhandled", "SIDE_UNHANDLED", 'add .output("duplicates").to(sink)', lambda: without("duplicates")),
    Bad("late rows of a deduplication left unhandled", "LATE_UNHANDLED", "step `purchases.deduplicate`", lambda: without("late")),
    Bad("an output that a step has not", "SIDE_UNKNOWN", "got `duplicate` of step `purchases.deduplicate` (did you mean `duplicates`?)", lambda: ended(kept := deduplicated(), kept.output("duplicate").drop())),
    Bad("an output of a window", "SIDE_UNKNOWN", "got `panes` of step `purchases.window`, which declares none; declare it", lambda: built(results := windowed().aggregate(n=sw.count()), results.output("panes").drop())),
    Bad("late rows where there are none", "LATE_NEVER", "so it has no late output; got `.late`", lambda: ended(deduplicated(late="process"))),
    Bad("a column of late rows", "LATE_COLUMN_TAKEN", "already have a column `watermark`", lambda: ended(purchases().with_columns(watermark="amount").key_by("user_id").deduplicate(within="1h"))),
    Bad("a column of retractions", "RETRACTION_COLUMN_TAKEN", "step `purchases.deduplicate`", lambda: ended(purchases().with_columns(is_retraction="amount > 1").key_by("user_id").deduplicate(within="1h", keep="last_by_time"))),
    Bad("a step on rows that are withdrawn", "CHAIN_RETRACTIONS", "step `hourly` on the results of `purchases.deduplicate`", lambda: chained(deduplicated(keep="last_by_time"))),
    Bad("retractions into files", "SINK_CANNOT_TAKE", "emits retractions", lambda: ended(deduplicated(keep="last_by_time"), sink=sw.sinks.files("out"))),
    Bad("a table of another key than the rows", "SINK_KEY_RETRACTED", "also retracts by user_id, and", lambda: ended(deduplicated(keep="last_by_time"), sink=BY_COUNTRY)),
]  # fmt: skip


def spread(define: Any, **options: Any) -> Any:  # noqa: ANN401
    """Build a pipeline of a step on purchases whose users are spread over key groups."""
    return built(define(purchases().key_by("user_id", **{"spread": 4} | options)))


def counts(keyed: Any, window: Any, **options: Any) -> Any:  # noqa: ANN401
    """Return how many rows a window has."""
    return keyed.window(window, **options).aggregate(n=sw.count())


EARLY = sw.after_watermark(early=sw.every_event_time("1s"))

SPREAD = [
    Bad("no group", "KEY_SPREAD", "got 0 on stream `purchases`", lambda: spread(counts, spread=0)),
    Bad("half a group", "KEY_SPREAD", "got 1.5", lambda: spread(counts, spread=1.5)),
    Bad("true groups", "KEY_SPREAD", "got True", lambda: spread(counts, spread=True)),
    Bad("sessions of parts of a key", "KEY_SPREAD_STEP", "step `purchases.window`, whose windows depend on the rows: session gap 1m; remove", lambda: spread(lambda keyed: counts(keyed, sw.session("1m")))),
    Bad("the first row among parts", "KEY_SPREAD_STEP", "whose trigger depends on the first row", lambda: spread(lambda keyed: counts(keyed, sw.tumbling("1m"), trigger=EARLY))),
    Bad("rows that must come one by one", "KEY_SPREAD_STEP", "which needs the rows of a key one by one", lambda: spread(lambda keyed: keyed.match(sw.times(large="amount > 1", n=2, within="1m")))),
]  # fmt: skip


class Silent(Process):
    """A process without a method."""


class Last(Process):
    """A process as it should be."""

    last = sw.value_state("double", ttl="1h")

    def on_event(self, event: dict[str, Any], ctx: Any) -> Any:  # noqa: ANN401  as users write it
        self.last.set(event["amount"])
        yield {"n": 1}


class Overwritten(Last):
    """A process whose object hides its state."""

    def __init__(self) -> None:
        self.last = 5


class Loud(Last):
    """A process with an output that every step may have."""

    late = sw.side_output("n long")


class Declares(Last):
    """Declares state too late to be known."""

    def __init__(self) -> None:
        self.own = sw.value_state("long", ttl="1h")


class Uses(Last):
    """Does something with its state where there is no key."""

    all = sw.list_state("long", ttl="1h")
    by = sw.map_state("long", "long", ttl="1h")

    def __init__(self, use: Callable[[Uses], object]) -> None:
        use(self)


class Awaited(Process):
    """A process that would have to be awaited."""

    async def on_event(self, event: Any, ctx: Any) -> Any:  # type: ignore[override]  # noqa: ANN401  as some write it
        """Do nothing."""


class Streaming(Last):
    """A process whose timers would have to be awaited."""

    async def on_timer(self, when: Any, ctx: Any) -> Any:  # noqa: ANN401  as some write it
        yield {"n": 1}


class Few(Process):
    """A process that takes the event alone."""

    def on_event(self, event: Any) -> Any:  # type: ignore[override]  # noqa: ANN401  as some write it
        yield {"n": 1}


class Many(Last):
    """A process whose timers take too much."""

    def on_timer(self, when: Any, name: Any, ctx: Any) -> Any:  # type: ignore[override]  # noqa: ANN401  as some write it
        yield {"n": 1}


class Open(Process):
    """A process whose methods take what comes."""

    def on_event(self, *given: Any) -> Any:  # noqa: ANN401  as some write it
        yield {"n": 1}

    @staticmethod
    def on_timer(when: Any, ctx: Any, more: int = 0) -> Any:  # noqa: ANN401  as some write it
        yield {"n": more}


class Sums(FrameProcess):
    """A process of frames as it should be."""

    state: Any = "total double"
    ttl: Any = "1h"

    def on_rows(self, rows: Any, state: Any, ctx: Any) -> Any:  # noqa: ANN401  as users write it
        return rows, state


class Idle(FrameProcess):
    """A process of frames without a method."""

    state = "total double"
    ttl = "1h"


class Stateless(Sums):
    """A process of frames that does not take its state."""

    def on_rows(self, rows: Any, ctx: Any) -> Any:  # type: ignore[override]  # noqa: ANN401  as some write it
        return rows, None


class AwaitedFrames(Sums):
    """A process of frames that would have to be awaited."""

    async def on_rows(self, rows: Any, state: Any, ctx: Any) -> Any:  # type: ignore[override]  # noqa: ANN401  as some write it
        return rows, state


class Timed(Sums):
    """A process of frames with a method of events."""

    def on_timer(self, when: Any, ctx: Any) -> Any:  # noqa: ANN401  as users write it
        yield {"n": 1}


class Mixed(Sums):
    """A process of frames with state of events."""

    last = sw.value_state("double", ttl="1h")


class Sided(Sums):
    """A process of frames with a further output."""

    alerts = sw.side_output("n long")


def sums(**attributes: Any) -> Sums:  # noqa: ANN401
    """Return a process of frames that declares something else."""
    made: Sums = type("Other", (Sums,), attributes)()
    return made


def timed(rows: Any, process: Any, **options: Any) -> Any:  # noqa: ANN401
    """Build a pipeline that processes other rows."""
    results = rows.key_by("user_id").process(process, **{"output": "n long"} | options)
    return sw.Pipeline("p", results.to(sw.sinks.memory()), rows.dead_letters.drop())


def processed(process: Any, **options: Any) -> Any:  # noqa: ANN401
    """Build a pipeline that processes purchases."""
    rows = purchases()
    results = rows.key_by("user_id").process(process, **{"output": "n long"} | options)
    return sw.Pipeline("p", results.to(sw.sinks.memory()), rows.dead_letters.drop())


PROCESS = [
    Bad("a process that is none", "NOT_A_PROCESS", "sw.Process or sw.FrameProcess; got 5", lambda: processed(5)),
    Bad("a class instead of an object", "PROCESS_CLASS", "write .process(Last(), ...)", lambda: processed(Last)),
    Bad("a process that does nothing", "PROCESS_ON_EVENT", "has no method on_event", lambda: processed(Silent())),
    Bad("a process to be awaited", "PROCESS_ASYNC", "got async def on_event in class Awaited; write def on_event(self, event, ctx)", lambda: processed(Awaited())),
    Bad("timers to be awaited", "PROCESS_ASYNC", "got async def on_timer in class Streaming", lambda: processed(Streaming())),
    Bad("a process without a context", "PROCESS_PARAMETERS", "got on_event(event) besides self in class Few; write def on_event(self, event, ctx)", lambda: processed(Few())),
    Bad("timers with too many parameters", "PROCESS_PARAMETERS", "write def on_timer(self, when, ctx)", lambda: processed(Many())),
    Bad("a method that is none", "PROCESS_PARAMETERS", "got on_event = 5 in class Other", lambda: processed(type("Other", (Last,), {"on_event": 5})())),
    Bad("an order that there is not", "PROCESS_ORDER", "got 'random'", lambda: processed(Last(), order="random")),
    Bad("a process without columns", "PROCESS_OUTPUT", "got no `output`", lambda: processed(Last(), output=None)),
    Bad("an output beside added columns", "PROCESS_OUTPUT_TWICE", "got both in step `purchases.process`; remove one", lambda: processed(Last(), adds="m long")),
    Bad("an added column that events have", "PROCESS_ADDED_COLUMN", "got `amount`, which the events of step `purchases.process` have", lambda: processed(Last(), output=None, adds="n long, amount double")),
    Bad("an added column that frames have", "PROCESS_ADDED_COLUMN", "got `amount`", lambda: processed(Sums(), output=None, adds="amount double")),
    Bad("an added time", "PROCESS_OUTPUT_COLUMN", "`event_time` is added by the step", lambda: processed(Last(), output=None, adds="event_time timestamp")),
    Bad("added columns to events with a time of their own", "PROCESS_ROWS_COLUMN", "already have a column of that name", lambda: timed(purchases().with_columns(event_time="amount"), Last(), output=None, adds="n long")),
    Bad("a result column of its own", "PROCESS_OUTPUT_COLUMN", "`event_time` is added by the step; the output or the key", lambda: processed(Last(), output="event_time timestamp")),
    Bad("a result column that differs from the key in case", "DUPLICATE_COLUMN", "got `User_Id` after `user_id` in the rows of step `purchases.process`", lambda: processed(Last(), output="User_Id string")),
    Bad("an output with a step's own name", "PROCESS_SIDE_NAME", "got `late` in class Loud", lambda: processed(Loud())),
    Bad("state that an object hides", "STATE_OVERWRITTEN", "has its own attribute `last`", lambda: processed(Overwritten())),
    Bad("state that an object declares", "STATE_ON_OBJECT", "got self.own = ... in an object of Declares", lambda: processed(Declares())),
    Bad("state that is used in __init__", "STATE_UNBOUND", "got a use of Last.last outside of them", lambda: Uses(lambda self: self.last.set(1.0))),
    Bad("a list that is used in __init__", "STATE_UNBOUND", "got a use of Uses.all outside of them", lambda: Uses(lambda self: self.all.add(1))),
    Bad("a map that is read in __init__", "STATE_UNBOUND", "got a use of Uses.by outside of them", lambda: Uses(lambda self: 1 in self.by)),
    Bad("state without an end", "STATE_TTL", 'add ttl="24h", or ttl=sw.FOREVER', lambda: sw.value_state("double")),
    Bad("state of no type", "STATE_TYPE", "got 'colour'", lambda: sw.value_state("colour", ttl="1h")),
    Bad("a clock that there is not", "STATE_CLOCK", "got 'wall'", lambda: sw.value_state("double", ttl="1h", clock="wall")),
    Bad("a set of lists", "STATE_KEY_TYPE", "must be plain values", lambda: sw.set_state("array<string>", ttl="1h")),
]  # fmt: skip

FRAMES = [
    Bad("a class of frames instead of an object", "PROCESS_CLASS", "write .process(Sums(), ...)", lambda: processed(Sums)),
    Bad("a process of frames that does nothing", "PROCESS_ON_ROWS", "class Idle has no method on_rows", lambda: processed(Idle())),
    Bad("frames without their state", "PROCESS_PARAMETERS", "class Stateless; write def on_rows(self, rows, state, ctx)", lambda: processed(Stateless())),
    Bad("frames to be awaited", "PROCESS_ASYNC", "got async def on_rows in class AwaitedFrames", lambda: processed(AwaitedFrames())),
    Bad("a timer of frames", "PROCESS_OF_FRAMES", "class Timed has `on_timer`; remove it", lambda: processed(Timed())),
    Bad("state of events in frames", "PROCESS_OF_FRAMES", "class Mixed has `last`", lambda: processed(Mixed())),
    Bad("a further output of frames", "PROCESS_OF_FRAMES", "class Sided has `alerts`", lambda: processed(Sided())),
    Bad("frames without state", "PROCESS_STATE", "class Other has no `state`", lambda: processed(sums(state=None))),
    Bad("frames with state of no type", "BAD_SCHEMA", "colour", lambda: processed(sums(state="total colour"))),
    Bad("frames with a reserved column", "RESERVED_COLUMN", "got `__at`", lambda: processed(sums(state="__at long"))),
    Bad("frames with state without an end", "STATE_TTL", "got no `ttl` in class Other", lambda: processed(sums(ttl=None))),
    Bad("frames with a ttl that is a word", "DURATION_UNREADABLE", "`ttl`", lambda: processed(sums(ttl="long"))),
    Bad("frames with a clock that there is not", "STATE_CLOCK", "got 'wall' in class Other", lambda: processed(sums(clock="wall"))),
    Bad("frames without columns", "PROCESS_OUTPUT", "got no `output`", lambda: processed(Sums(), output=None)),
    Bad("frames in an order that there is not", "PROCESS_ORDER", "got 'random'", lambda: processed(Sums(), order="random")),
    Bad("frames with a result column of their own", "PROCESS_OUTPUT_COLUMN", "`event_time` is added by the step", lambda: processed(Sums(), output="event_time timestamp")),
    Bad("frames whose key becomes another type", "PROCESS_OUTPUT_COLUMN", "`user_id` is added by the step", lambda: processed(Sums(), output="user_id long")),
    Bad("state with the name of a key", "PROCESS_STATE_COLUMN", "got `user_id` in both", lambda: processed(sums(state="user_id long"))),
    Bad("rows with a time of their own", "PROCESS_ROWS_COLUMN", "the rows of step `purchases.process` already have a column of that name; rename it", lambda: timed(purchases().with_columns(event_time="amount"), Sums())),
]  # fmt: skip

BAD = [*DEDUPLICATION, *SPREAD, *PROCESS, *FRAMES]


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.sentence)
def test_bad_definition_is_refused_with_its_code_and_words(bad: Bad) -> None:
    check_refused(bad)


@pytest.mark.parametrize("keep", ["first", "first_by_time", "last_by_time"])
def test_the_same_deduplication_without_the_mistake_is_built(keep: str) -> None:
    by_user = sw.sinks.postgres("postgresql://localhost/db", table="t", upsert_on=["user_id"])
    assert ended(deduplicated(keep=keep), sink=by_user).name == "p"
    assert chained(deduplicated(within=sw.FOREVER)).name == "p"


def test_methods_that_take_what_they_are_given_are_built() -> None:
    assert processed(Open()).name == "p"


def test_the_same_process_of_frames_without_the_mistake_is_built() -> None:
    assert processed(Sums(), output="user_id string, n long").name == "p"
    assert processed(sums(ttl=sw.FOREVER, state={"total": pl.Float64}, clock="processing")).name == "p"

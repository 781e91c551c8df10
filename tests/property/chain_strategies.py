"""Made-up chains of windowed steps that the planner accepts, and streams for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from hypothesis import strategies as st

from tests.property.chain_definitions import Step, Trigger, Window
from tests.property.chains import Chain
from tests.property.streams import T0, Batch, Record

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
LIMITED: Final = st.builds(
    lambda gap, longest, touching: Window(kind="session", gap=gap, max_length=longest, touching=touching),
    st.sampled_from([8, 20]),
    st.sampled_from([20, 30]),
    st.sampled_from(["merge", "separate"]),
)
SLIDING: Final = st.builds(lambda size: Window(kind="sliding", size=size), st.sampled_from([1, 25]))
ANY: Final = ALIGNED | SESSIONS | LIMITED | SLIDING


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
            late, repeat = draw(st.sampled_from([1, 1, 2, None, 0])), draw(st.booleans())
            return Trigger(**early, repeat_unchanged=repeat, late_count=late or None, is_final=late == 0)
        case "once":
            count = early_count or 2
            return Trigger(early_count=count, on_time=False, late_count=count, once=True)
    # A trigger that stands alone asks after the end as before it.
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
    return Chain(tuple(drawn), tuple(by_size), draw(st.sampled_from([10, 10, 60])))


@st.composite
def streams(draw: st.DrawFn, *, most: int = 7) -> list[Batch]:
    """Draw a stream in batches: event time moves on with them, at times by a leap, and some rows are far behind."""
    drawn, number, newest = [], 0, T0
    for _ in range(draw(st.integers(1, most))):
        records = []
        newest += draw(st.sampled_from([0, 5, 20, 20, 70]))
        for _ in range(draw(st.integers(0, 5))):
            behind = draw(st.integers(0, 25) | st.integers(0, 100))
            key, partition = draw(st.sampled_from(["a", "a", "a", "b", None])), draw(st.sampled_from(["0", "0", "1"]))
            records.append(Record(number, key, newest - behind, "good", partition))
            number += 1
        drawn.append(Batch(tuple(records), draw(st.sampled_from([0, 3, 15])), draw(st.integers(0, 4)) == 4))
    return drawn

"""Made-up cases in the form of the conformance cases, with the reference model's answers as expectation."""

from __future__ import annotations

import copy
from typing import Any, Final

from hypothesis import strategies as st

from tests.conformance.reference import DEFAULTS, WindowAgg

Case = dict[str, Any]
_MODEL: Any = WindowAgg  # plain Python, without types

KEYS: Final = ("a", "b", None)
_SIZES: Final = st.sampled_from([7, 10, 20])
_COUNTS: Final = st.fixed_dictionaries({"type": st.just("count"), "n": st.integers(1, 3)})
_EARLY: Final = st.one_of(
    st.none(),
    _COUNTS,
    st.just({"type": "never"}),
    st.fixed_dictionaries({"type": st.just("processing_time"), "delay_ms": st.sampled_from([3, 10])}),
)
_LATE: Final = st.one_of(_COUNTS, st.none(), st.just({"type": "never"}))

ALIGNED: Final = st.one_of(
    st.builds(lambda size, off: {"type": "tumbling", "size_ms": size, "offset_ms": off}, _SIZES, st.integers(-6, 6)),
    st.builds(
        lambda size, slide, off: {"type": "hopping", "size_ms": size, "slide_ms": slide, "offset_ms": off},
        _SIZES,
        st.sampled_from([4, 10, 15]),
        st.integers(-3, 3),
    ),
    st.builds(
        lambda slide, many, off: {
            "type": "cumulate", "size_ms": slide * many, "slide_ms": slide, "offset_ms": off
        },
        st.sampled_from([4, 5]),
        st.integers(1, 4),
        st.integers(-3, 3),
    ),
    st.just({"type": "global"}),
)  # fmt: skip
SESSIONS: Final = st.builds(lambda gap: {"type": "session", "gap_ms": gap}, st.sampled_from([5, 10]))
TRIGGERS: Final = st.one_of(
    st.none(),
    st.fixed_dictionaries({"type": st.just("after_watermark"), "early": _EARLY, "late": _LATE}),
    st.fixed_dictionaries({"type": st.just("count"), "n": st.integers(1, 3), "repeat": st.booleans()}),
    st.fixed_dictionaries({"type": st.just("continuous_event_time"), "interval_ms": st.sampled_from([3, 7])}),
)
SWITCHES: Final = st.fixed_dictionaries(
    {},
    optional={
        "session_touch": st.sampled_from(["merge", "separate"]),
        "session_lateness": st.sampled_from(["after_merge", "before_merge"]),
        "on_time_pane": st.sampled_from(["always", "if_new_data"]),
        "empty_on_time_pane": st.sampled_from(["skip", "emit"]),
        "retract_unchanged": st.sampled_from(["skip", "emit"]),
        "on_close": st.sampled_from(["discard", "flush"]),
    },
)


@st.composite
def cases(draw: st.DrawFn, windows: st.SearchStrategy[Case], *, most_rows: int = 4) -> Case:
    """Draw a case without expectations: a window, a trigger, switches, and a stream in steps."""
    window = draw(windows)
    params: Case = {
        "window": window,
        "allowed_lateness_ms": draw(st.sampled_from([0, 3, 10, 1000])),
        "trigger": draw(TRIGGERS),
        "accumulation": draw(st.sampled_from(["discarding", "accumulating", "accumulating_retracting"])),
        "agg": draw(st.sampled_from(["count", "sum", "max", "min", "avg", "list", "count_sum"])),
        "semantics": draw(SWITCHES),
    }
    ticks = (params["trigger"] or {}).get("type") == "continuous_event_time"
    # The model takes a next event-time pane at 0 for none when it merges sessions, so those stay clear of it.
    base = 100 if ticks and window["type"] == "session" else 0
    if draw(st.booleans()):
        params["initial_watermark_ms"] = base + draw(st.integers(-10, 10))
    has_gaps = window["type"] == "session" and draw(st.booleans())
    # Never back, whatever a step says. To the model a watermark said twice has moved, but only event-time panes see it.
    least = 1 if ticks else -5
    watermark, now, steps = params.get("initial_watermark_ms", base - 20), 0, []
    for _ in range(draw(st.integers(1, 8))):
        step: dict[str, Any] = {"events": draw(st.lists(_events(base, has_gaps=has_gaps), max_size=most_rows))}
        step["watermark_ms"] = None
        if draw(st.booleans()):
            step["watermark_ms"] = watermark + draw(st.integers(least, 15))
            watermark = max(watermark, step["watermark_ms"])
        if draw(st.booleans()):
            now += draw(st.integers(0, 12))
            step["processing_time_ms"] = now
        if draw(st.integers(0, 4)) == 0:
            step["restart"] = True
        steps.append(step)
    return {"id": "generated", "operator": "window_agg", "params": params, "steps": steps}


def _events(base: int, *, has_gaps: bool) -> st.SearchStrategy[dict[str, Any]]:
    fields: dict[str, st.SearchStrategy[Any]] = {
        "key": st.sampled_from(KEYS),
        "ts_ms": st.integers(base - 12, base + 45),
        "value": st.one_of(st.integers(-3, 9), st.none()) if not has_gaps else st.integers(-3, 9),
    }
    return st.fixed_dictionaries(fields, optional={"gap_ms": st.integers(1, 12)} if has_gaps else {})


def expected(case: Case) -> Case:
    """Return `case` with what the reference model shows in each step."""
    case = copy.deepcopy(case)
    params = case["params"]
    model = _MODEL(copy.deepcopy(params), DEFAULTS | params["semantics"])
    if "initial_watermark_ms" in params:
        model.advance(params["initial_watermark_ms"])
    for step in case["steps"]:
        model.out, model.late = [], []
        model.batch(copy.deepcopy(step["events"]))
        if step.get("processing_time_ms") is not None:
            model.tick(step["processing_time_ms"])
        if step["watermark_ms"] is not None:
            model.advance(step["watermark_ms"])
        step["expect"], step["late"] = model.out, model.late
    return case


def judged_last(case: Case) -> Case:
    """Return `case` with the rows whose own session is forgotten at the end of their step, latest end first.

    The model judges row by row, the engine a whole batch at once: there an old row is kept if anything in
    the batch keeps its session alive. In this order the model sees what the engine knows.
    """
    case = copy.deepcopy(case)
    params = case["params"]
    watermark, kept_ms = params.get("initial_watermark_ms"), params["allowed_lateness_ms"]

    def end(event: Case) -> int:
        gap: int = event.get("gap_ms", params["window"]["gap_ms"])
        return int(event["ts_ms"]) + gap

    for step in case["steps"]:
        if watermark is not None:
            alive = [event for event in step["events"] if end(event) + kept_ms > watermark]
            old = [event for event in step["events"] if end(event) + kept_ms <= watermark]
            step["events"] = alive + sorted(old, key=end, reverse=True)
        said = [moment for moment in (watermark, step["watermark_ms"]) if moment is not None]
        watermark = max(said, default=None)
    return case

"""Made-up cases of joins in the form of the conformance cases, with the reference model's answers as expectation."""

from __future__ import annotations

import copy
from typing import Any, Final

from hypothesis import strategies as st

from tests.conformance.generated_cases import KEYS, Case
from tests.conformance.reference_rows import IntervalJoin, TemporalJoin

_MODELS: Final[dict[str, Any]] = {"interval_join": IntervalJoin, "temporal_join": TemporalJoin}
_DEFAULTS: Final = {"late_join_rows": "drop", "late_probe": "drop"}


@st.composite
def interval_joins(draw: st.DrawFn) -> Case:
    """Draw an interval join without expectations: bounds on either side of zero, any kind, and a stream in steps."""
    lower, width = draw(st.integers(-12, 9)), draw(st.integers(2, 14))
    join = {
        "type": draw(st.sampled_from(["inner", "left", "right", "full"])),
        "lower_ms": lower,
        "upper_ms": lower + width,
        "lower_inclusive": draw(st.booleans()),
        "upper_inclusive": draw(st.booleans()),
    }
    late = draw(st.sampled_from(["drop", "process"]))
    return _case(draw, "interval_join", {"join": join, "semantics": {"late_join_rows": late}}, {})


@st.composite
def temporal_joins(draw: st.DrawFn) -> Case:
    """Draw a temporal join without expectations, with versions that end."""
    join = {"type": draw(st.sampled_from(["inner", "left"]))}
    # To the model a null is a key like any other here; the property tests have rows without keys.
    return _case(draw, "temporal_join", {"join": join}, {"op": st.just("delete")}, keys=("a", "b"))


def _case(
    draw: st.DrawFn,
    operator: str,
    params: Case,
    optional: dict[str, st.SearchStrategy[Any]],
    keys: tuple[str | None, ...] = KEYS,
) -> Case:
    if draw(st.booleans()):
        params["initial_watermark_ms"] = draw(st.integers(-10, 10))
    fields: dict[str, st.SearchStrategy[Any]] = {
        "key": st.sampled_from(keys),
        "ts_ms": st.integers(-12, 45),
        "value": st.integers(0, 99),
        "side": st.sampled_from(["left", "right"]),
    }
    events = st.lists(st.fixed_dictionaries(fields, optional=optional), max_size=6)
    watermark, steps = params.get("initial_watermark_ms", -20), []
    for _ in range(draw(st.integers(1, 8))):
        step: Case = {"events": draw(events), "watermark_ms": None}
        if draw(st.booleans()):
            step["watermark_ms"] = watermark + draw(st.integers(-5, 15))
            watermark = max(watermark, step["watermark_ms"])
        if draw(st.integers(0, 4)) == 0:
            step["restart"] = True
        steps.append(step)
    return {"id": "generated", "operator": operator, "params": params, "steps": steps}


def expected(case: Case) -> Case:
    """Return `case` with what the reference model shows in each step."""
    case = copy.deepcopy(case)
    params = case["params"]
    model = _MODELS[case["operator"]](copy.deepcopy(params), _DEFAULTS | params.get("semantics", {}))
    if "initial_watermark_ms" in params:
        model.advance(params["initial_watermark_ms"])
    for step in case["steps"]:
        model.out, model.late = [], []
        model.batch(copy.deepcopy(step["events"]))
        if step["watermark_ms"] is not None:
            model.advance(step["watermark_ms"])
        step["expect"], step["late"] = model.out, model.late
    return case

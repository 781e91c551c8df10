"""Made-up cases of deduplication, with the reference model's answers as expectation."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

from tests.conformance.generated_cases import KEYS, Case
from tests.conformance.reference import DEFAULTS, OPS

_MODEL: Any = OPS["dedup"]  # plain Python, without types


@st.composite
def dedup_cases(draw: st.DrawFn) -> Case:
    """Draw a deduplication and a stream in steps, with what the reference model shows in each."""
    mode = draw(st.sampled_from(["first_arrival", "first_by_time", "last_by_time"]))
    dedup: Case = {"mode": mode}
    if mode == "first_arrival" and draw(st.booleans()):
        dedup["expire_after_ms"] = draw(st.sampled_from([0, 3, 20]))
    for switch in ("key_includes_time", "drop_late"):
        if draw(st.booleans()):
            dedup[switch] = draw(st.booleans())
    model = _MODEL({"dedup": dedup}, DEFAULTS)
    watermark, steps = -20, []
    events = st.fixed_dictionaries(
        {"key": st.sampled_from(KEYS), "ts_ms": st.integers(-12, 45), "value": st.integers(0, 9) | st.none()}
    )
    for _ in range(draw(st.integers(1, 8))):
        step: Case = {"events": draw(st.lists(events, max_size=4)), "watermark_ms": None}
        if draw(st.booleans()):
            # Forwards: to the model, a watermark that it is told twice has moved.
            step["watermark_ms"] = watermark = watermark + draw(st.integers(1, 15))
        if draw(st.integers(0, 4)) == 0:
            step["restart"] = True
        model.out, model.late = [], []
        model.batch(copy.deepcopy(step["events"]))
        if step["watermark_ms"] is not None:
            model.advance(step["watermark_ms"])
        steps.append({**step, "expect": model.out, "late": model.late})
    return {"id": "generated", "operator": "dedup", "params": {"dedup": dedup}, "steps": steps}

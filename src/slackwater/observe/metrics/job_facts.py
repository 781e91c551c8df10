"""Facts about a job's definition, stored in the history's folder so that the page needs no pipeline file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from slackwater.connectors.sink import Drop
from slackwater.connectors.sink_names import named
from slackwater.eventtime.measured_lateness import LatenessSketch
from slackwater.plan.described import describe
from slackwater.plan.drawing import draw
from slackwater.plan.plan import Plan

_P99: Final = 0.99
_MOST_POINTS: Final = 400
Facts = dict[str, Any]
Lateness = Mapping[str, Mapping[str, LatenessSketch]]
"""The measured lateness of a run's rows, per stream and partition."""


def job_facts(plan: Plan) -> Facts:
    """Return the streams with their slack, steps with their windows, outputs with their sinks, and two drawings."""
    steps = []
    for step in plan.steps:
        size_ms, offset_ms = step.spec.band or (None, 0)
        known = {"name": step.name, "size_ms": size_ms, "offset_ms": offset_ms, "lateness_ms": step.spec.lateness_ms}
        steps.append({**known, "gap_ms": step.spec.gap_ms})
    described = describe(plan)
    slack_ms = {each.name: 0 if each.time is None else each.time.out_of_orderness_ms for each in plan.sources}
    return {
        "pipeline": plan.name,
        "streams": [{"name": name, "slack_ms": slack} for name, slack in slack_ms.items()],
        "steps": steps,
        "outputs": {each.name: " and ".join(map(str, each.sinks)) for each in plan.outputs},
        "sinks": _sinks(plan),
        "svg": draw(described),
        "svg_upright": draw(described, is_upright=True),
    }


def _sinks(plan: Plan) -> Facts:
    return {
        name: {"output": output.name, "sink": str(sink), "promise": "" if isinstance(sink, Drop) else sink.promise}
        for output in plan.outputs
        for name, sink in named(output.name, output.sinks).items()
    }


def lateness_facts(measured: Lateness) -> Facts:
    """Return, for each stream, the share of rows later than each duration, and the duration that covers 99 %."""
    return {stream: _curve(LatenessSketch.merged(sketches.values())) for stream, sketches in measured.items()}


def _curve(sketch: LatenessSketch) -> Facts:
    ends, shares = sketch.curve()
    every = max(1, len(ends) // _MOST_POINTS)
    points: list[list[float]] = [[0, sketch.share_later_than(0)]]
    points += [[int(end), float(share)] for end, share in zip(ends[::every], shares[::every], strict=True)]
    return {"points": points, "p99_ms": sketch.covering(_P99), "rows": sketch.count}


def write_facts(path: Path, facts: Facts) -> None:
    """Write facts for later readers; the job ignores errors, because it does not need them."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}")
        temporary.write_text(json.dumps(facts), encoding="utf-8")
        temporary.replace(path)


def read_facts(path: Path) -> Facts:
    """Return the stored facts; empty if there are none or they cannot be read."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}

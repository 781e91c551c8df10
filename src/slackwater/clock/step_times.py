"""The time each keyed step works by: its sources' watermarks, less the delays of the steps before it."""

from __future__ import annotations

from collections.abc import Mapping

from slackwater.clock.clock import Clock, Reached
from slackwater.ground.times import MAX_MS, MIN_MS
from slackwater.planning.plan import Plan, StepPlan
from slackwater.state.step_time import StepTime


def step_time(step: StepPlan, clock: Clock) -> StepTime:
    """Return the time `step` works by in the batch of `clock`.

    It never goes back behind what the step has reached, whatever lateness or delay it was reached with.
    """
    reached = clock.steps.get(step.name, Reached())
    before, lateness = _previous_ms(step, clock), step.spec.lateness_ms
    return StepTime(
        previous_ms=before,
        watermark_ms=_watermark_ms(step, clock),
        now_ms=clock.now,
        fire_first=step.is_first,
        forgotten_ms=reached.forgotten_ms,
        keeps_too_much=step.name in clock.steps and reached.forgotten_ms < before - lateness,
    )


def reached(plan: Plan, clock: Clock) -> dict[str, Reached]:
    """Return what every step of `plan` has reached once the batch of `clock` is over."""
    found = {}
    for step in plan.steps:
        watermark_ms = _watermark_ms(step, clock)
        forgotten_ms = max(clock.steps.get(step.name, Reached()).forgotten_ms, watermark_ms - step.spec.lateness_ms)
        found[step.name] = Reached(watermark_ms=watermark_ms, forgotten_ms=forgotten_ms)
    return found


def _previous_ms(step: StepPlan, clock: Clock) -> int:
    return _slowest_ms(step, clock, {name: time.previous_ms for name, time in clock.streams.items()})


def _watermark_ms(step: StepPlan, clock: Clock) -> int:
    return _slowest_ms(step, clock, {name: time.watermark_ms for name, time in clock.streams.items()})


def _slowest_ms(step: StepPlan, clock: Clock, streams_ms: Mapping[str, int]) -> int:
    """Return the smallest of the streams' watermarks, each less its delay, and never back.

    The end of time is the end for every step.
    """
    known = [(streams_ms[name], delay_ms) for name, delay_ms in step.behind_ms.items()]
    slowest = min(at_ms if at_ms >= MAX_MS else at_ms - delay_ms for at_ms, delay_ms in known)
    return max(clock.steps.get(step.name, Reached()).watermark_ms, MIN_MS, slowest)

"""The time that each keyed step works by: the watermarks of its sources, minus the delays of the steps before it."""

from __future__ import annotations

from collections.abc import Mapping

from slackwater.clock.clock import Clock, Reached
from slackwater.ground.times import MAX_MS, MIN_MS
from slackwater.planning.plan import Plan, StepPlan
from slackwater.state.step_time import StepTime


def step_time(step: StepPlan, clock: Clock) -> StepTime:
    """Return the time that `step` works by in the batch of `clock`.

    It never moves backwards, even if the allowed lateness or the delay has changed.
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
    """Return the progress of every step of `plan` after the batch of `clock`."""
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
    """Return the smallest watermark of the streams, each minus its delay, but never less than the step has reached.

    No delay is subtracted from the final watermark.
    """
    known = [(streams_ms[name], delay_ms + step.spec.trails_ms) for name, delay_ms in step.behind_ms.items()]
    slowest = min(at_ms if at_ms >= MAX_MS else at_ms - delay_ms for at_ms, delay_ms in known)
    return max(clock.steps.get(step.name, Reached()).watermark_ms, MIN_MS, slowest)

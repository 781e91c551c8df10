"""The time that each keyed step works by: the watermarks of its sources, minus the delays of the steps before it."""

from __future__ import annotations

from slackwater.base.times import MIN_MS
from slackwater.eventtime.clock import Clock, Reached
from slackwater.eventtime.step_time import StepTime
from slackwater.eventtime.watermark import delayed_ms, slowest_ms
from slackwater.plan.plan import Plan, StepPlan


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
    """Return the watermark of the step in the batch before: as reached or, for a new step, that of its streams."""
    trails_ms = step.spec.trails_ms
    before = (delayed_ms(clock.streams[name].previous_ms, ms + trails_ms) for name, ms in step.behind_ms.items())
    return _at_least(step, clock, min(before))


def _watermark_ms(step: StepPlan, clock: Clock) -> int:
    trails_ms = step.spec.trails_ms
    streams, delays_ms = (clock.streams[name] for name in step.behind_ms), step.behind_ms.values()
    return _at_least(step, clock, slowest_ms(streams, (ms + trails_ms for ms in delays_ms)))


def _at_least(step: StepPlan, clock: Clock, slowest: int) -> int:
    """Return the watermark of a step, which is never less than it has reached."""
    reached = clock.steps.get(step.name)
    return max(MIN_MS, slowest) if reached is None else max(reached.watermark_ms, MIN_MS, slowest)

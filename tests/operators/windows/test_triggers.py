"""Triggers taken apart into the questions that the operator asks of each window."""

from __future__ import annotations

import pytest

import slackwater as sw
from slackwater.base.errors import DefinitionError
from slackwater.operators.windows.triggers import Schedule, Trigger, schedule, written


@pytest.mark.parametrize(
    "trigger,expected",
    [
        (sw.after_watermark(), Schedule()),
        (sw.after_watermark(late=sw.never()), Schedule(late_count=None)),
        (sw.after_watermark(late=None), Schedule(late_count=None, finish_on_time=True)),
        (sw.after_watermark(repeat_unchanged=False), Schedule(repeat_unchanged=False)),
        (sw.after_watermark(early=sw.never()), Schedule()),
        (sw.after_watermark(early=sw.after_count(3), late=sw.after_count(2)), Schedule(early_count=3, late_count=2)),
        (sw.after_watermark(early=sw.every("10s")), Schedule(early_every_ms=10_000)),
        (sw.after_watermark(early=sw.every_event_time("1m")), Schedule(early_event_time_ms=60_000)),
        (
            sw.after_watermark(early=sw.any_of(sw.after_count(5), sw.every("1s")), late=None),
            Schedule(early_count=5, early_every_ms=1_000, late_count=None, finish_on_time=True),
        ),
        (sw.after_count(4), Schedule(early_count=4, on_time=False, late_count=4)),
        (sw.after_count(4, once=True), Schedule(early_count=4, on_time=False, late_count=4, once=True)),
        (sw.every("10s"), Schedule(early_every_ms=10_000, on_time=False, late_count=None)),
        (sw.every_event_time("1m"), Schedule(early_event_time_ms=60_000)),
        (
            sw.any_of(sw.every_event_time("1m"), sw.after_count(2)),
            Schedule(early_count=2, early_event_time_ms=60_000),
        ),
        (
            sw.any_of(sw.every("1s"), sw.after_count(2)),
            Schedule(early_count=2, early_every_ms=1_000, on_time=False, late_count=2),
        ),
        (sw.never(), Schedule(on_time=False, late_count=None)),
    ],
    ids=str,
)
def test_a_trigger_becomes_its_schedule(trigger: Trigger, expected: Schedule) -> None:
    assert schedule(trigger) == expected


@pytest.mark.parametrize(
    "text",
    [
        "after_watermark()",
        "after_watermark(early=after_count(3), late=after_count(2))",
        'after_watermark(early=any_of(after_count(5), every("1m30s"), every_event_time("1h")), late=None)',
        'after_watermark(early=every_event_time("100ms"), late=never(), repeat_unchanged=False)',
        "after_count(4)",
        "after_count(4, once=True)",
        'every("10s")',
        'any_of(after_count(2), every("1s"))',
        "never()",
    ],
)
def test_a_schedule_is_written_as_the_trigger_that_has_it(text: str) -> None:
    assert written(schedule(eval(text, vars(sw)))) == text  # noqa: S307  our own text


@pytest.mark.parametrize(
    "trigger,is_lazy",
    [
        (sw.after_watermark(), True),
        (sw.after_watermark(late=None), True),
        (sw.never(), True),
        (sw.after_watermark(early=sw.after_count(100)), False),
        (sw.every("1h"), False),
        (sw.every_event_time("1h"), False),
    ],
    ids=str,
)
def test_a_schedule_is_lazy_if_nothing_fires_before_the_end(trigger: Trigger, *, is_lazy: bool) -> None:
    assert schedule(trigger).is_lazy is is_lazy


def test_a_schedule_says_its_panes_in_words() -> None:
    trigger = sw.after_watermark(early=sw.any_of(sw.after_count(5), sw.every("10s")), late=sw.after_count(2))
    assert str(schedule(trigger)) == (
        "early panes every 5 rows, early panes every 10s of processing time, a pane at the window's end, "
        "late panes every 2 rows"
    )


@pytest.mark.parametrize(
    "build,code",
    [
        (lambda: sw.after_count(0), "TRIGGER_COUNT"),
        (lambda: sw.after_count(True), "TRIGGER_COUNT"),  # noqa: FBT003  a truth value is no number of rows
        (lambda: sw.any_of(sw.after_count(1)), "TRIGGER_ANY_OF"),
        (lambda: sw.any_of(sw.every("1s"), sw.every("2s")), "TRIGGER_ANY_OF"),
        (lambda: sw.any_of(sw.every("1s"), sw.after_count(1, once=True)), "TRIGGER_ANY_OF"),
        (lambda: sw.after_watermark(early=sw.after_count(1, once=True)), "TRIGGER_EARLY"),
        (lambda: sw.after_watermark(late=sw.every("1s")), "TRIGGER_LATE"),  # type: ignore[arg-type]
        (lambda: sw.after_watermark(late=sw.after_count(1, once=True)), "TRIGGER_LATE"),
    ],
)
def test_a_trigger_that_makes_no_sense_is_refused(build: object, code: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        build()  # type: ignore[operator]
    assert refused.value.code == code

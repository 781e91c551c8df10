"""Rules about time: which clock results follow, and how long they wait."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from slackwater.base.durations import render_ms, roughly
from slackwater.observe.checker.facts import Facts
from slackwater.observe.checker.rule import Rule, Violation, rule
from slackwater.plan.plan import Plan, SourcePlan

_DAY_MS: Final = 86_400_000


def _keyed(plan: Plan) -> Iterator[SourcePlan]:
    """Yield the streams whose rows reach a keyed step: only there does time matter."""
    for source in plan.sources:
        if any(source.name in step.behind_ms for step in plan.steps):
            yield source


@rule(
    "SW101",
    "warning",
    title="Results follow processing time",
    why="The same events give different results when they are processed later: after an outage, or in a backfill.",
    fix="use event_time(...), or ingestion_time() where events have no time of their own",
)
def processing_time(plan: Plan, _facts: Facts) -> Iterator[Violation]:
    """Look for keyed steps that use processing time."""
    for source in _keyed(plan):
        if source.time is not None and source.time.clock == "processing":
            steps = ", ".join(f"`{step.name}`" for step in plan.steps if source.name in step.behind_ms)
            yield Violation(f"stream `{source.name}`", f"processing time decides the results of {steps}")


@rule(
    "SW102",
    "warning",
    title="No guard against clocks that run ahead",
    why="One event from a fast clock moves the watermark ahead, and correct events behind it become late.",
    fix='add max_ahead, such as event_time(..., max_ahead="1m")',
)
def max_ahead(plan: Plan, _facts: Facts) -> Iterator[Violation]:
    """Look for event times without `max_ahead` that a keyed step uses."""
    for source in _keyed(plan):
        if source.time is not None and source.time.clock == "event" and source.time.max_ahead_ms is None:
            yield Violation(f"stream `{source.name}`", "its event time has no max_ahead")


@rule(
    "SW103",
    "note",
    title="A silent partition holds back the watermark",
    why="A partition without events keeps the watermark where it is: windows stay open and results stop.",
    fix='add idle_after, such as event_time(..., idle_after="1m")',
)
def idle_after(plan: Plan, facts: Facts) -> Iterator[Violation]:
    """Look for streams with several partitions, known or likely, but no `idle_after`."""
    for source in _keyed(plan):
        if source.time is None or source.time.clock == "processing" or source.time.idle_after_ms is not None:
            continue
        number = facts.partitions.get(source.name)
        if number is None and source.source.is_partitioned:
            yield Violation(
                f"stream `{source.name}`", "it reads Kafka, where topics have several partitions, without idle_after"
            )
        elif number is not None and number > 1:
            yield Violation(f"stream `{source.name}`", f"it has {number} partitions and no idle_after")


@rule(
    "SW104",
    "warning",
    title="Out-of-orderness below the measured lateness",
    why="More than one event in a hundred is behind the watermark: its window fires again, or the event is late.",
    fix="raise out_of_orderness; `slackwater lateness FILE` shows what each value costs",
)
def out_of_orderness(plan: Plan, facts: Facts) -> Iterator[Violation]:
    """Compare each stream's out-of-orderness with the measured p99, if there is one."""
    for source in _keyed(plan):
        p99_ms = facts.p99_ms.get(source.name)
        if source.time is not None and p99_ms is not None and source.time.out_of_orderness_ms < p99_ms:
            slack = render_ms(source.time.out_of_orderness_ms)
            yield Violation(
                f"stream `{source.name}`", f"out_of_orderness is {slack}, the measured p99 is {roughly(p99_ms)}"
            )


@rule(
    "SW105",
    "warning",
    title="Allowed lateness beyond the retention",
    why="Windows are kept for events that the log or topic no longer has when a backfill needs them.",
    fix="lower allowed_lateness, or keep records for longer",
)
def retention(plan: Plan, facts: Facts) -> Iterator[Violation]:
    """Compare the allowed lateness of each step with the retention of its sources, if known."""
    for step in plan.steps:
        for stream in step.behind_ms:
            kept_ms = facts.retention_ms.get(stream)
            if kept_ms is not None and step.spec.lateness_ms > kept_ms:
                allowed = render_ms(step.spec.lateness_ms)
                what = f"it allows {allowed} of lateness, stream `{stream}` keeps records for {render_ms(kept_ms)}"
                yield Violation(f"step `{step.name}`", what)


@rule(
    "SW106",
    "warning",
    title="A chained step waits for more than a day",
    why="A step uses the watermark minus the time its input may still take: results are delayed by the same amount.",
    fix="lower allowed_lateness, the bounds of outer joins, or `within` of patterns in the steps before it",
)
def delay(plan: Plan, _facts: Facts) -> Iterator[Violation]:
    """Add up the delays of the steps before each step."""
    for step in plan.steps:
        stream, behind_ms = max(step.behind_ms.items(), key=lambda each: each[1])
        if behind_ms > _DAY_MS:
            yield Violation(f"step `{step.name}`", f"its watermark is {render_ms(behind_ms)} behind stream `{stream}`")


RULES: Final[tuple[Rule, ...]] = (processing_time, max_ahead, idle_after, out_of_orderness, retention, delay)

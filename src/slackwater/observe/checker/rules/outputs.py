"""Rules about outputs: what sinks promise, and what is discarded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Final

from slackwater.connectors.console.sink import ConsoleSink
from slackwater.connectors.sink import Drop, Sink
from slackwater.observe.checker.facts import Facts
from slackwater.observe.checker.rule import Rule, Violation, rule
from slackwater.plan.plan import OutputPlan, Plan


@rule(
    "SW401",
    "warning",
    title="A sink that may repeat or lose rows",
    why="After a crash, a batch is delivered again: at least once repeats its rows, at most once may lose them.",
    fix='use delivery="exactly_once", or a sink that can; accept it where readers recognize repeated rows',
)
def weak_delivery(plan: Plan, _facts: Facts) -> Iterator[Violation]:
    """Look for sinks that are not exactly once; a console, which people only look at, need not be."""
    for output in plan.outputs:
        for sink in output.sinks:
            if sink.delivery != "exactly_once" and not isinstance(sink, Drop | ConsoleSink):
                could = ", although it could be exactly once" if _can_once(sink) else ""
                yield Violation(f"output `{output.name}`", f"{sink} is {sink.delivery.replace('_', ' ')}{could}")


def _can_once(sink: Sink) -> bool:
    """Return whether sinks of this kind are exactly once by default."""
    return any(each.name == "delivery" and each.default == "exactly_once" for each in fields(sink))


@rule(
    "SW402",
    "warning",
    title="Late rows are discarded",
    why="They are counted, but you cannot tell which events are missing from the results, or repair them afterwards.",
    fix='write them to a sink; sw.Pipeline(..., late=sw.sinks.files("out/late")) takes those of all steps',
)
def late_dropped(plan: Plan, _facts: Facts) -> Iterator[Violation]:
    """Look for late outputs that end in `.drop()`."""
    for output in _dropped(plan, "late"):
        yield Violation(f"step `{output.name.removesuffix('.late')}`", "its late rows are dropped")


@rule(
    "SW403",
    "warning",
    title="Dead letters are discarded",
    why="Unusable records are counted, but cannot be inspected, or sent again once the cause is fixed.",
    fix='write them to a sink; sw.Pipeline(..., dead_letters=sw.sinks.files("out/dead_letters")) takes them all',
)
def dead_letters_dropped(plan: Plan, _facts: Facts) -> Iterator[Violation]:
    """Look for dead letters that end in `.drop()`."""
    for output in _dropped(plan, "dead_letters"):
        owner = output.name.removesuffix(".dead_letters")
        what = "step" if owner in plan.by_name else "stream"
        yield Violation(f"{what} `{owner}`", "its dead letters are dropped")


def _dropped(plan: Plan, kind: str) -> Iterator[OutputPlan]:
    for output in plan.outputs:
        if output.kind == kind and output.sinks and all(isinstance(sink, Drop) for sink in output.sinks):
            yield output


RULES: Final[tuple[Rule, ...]] = (weak_delivery, late_dropped, dead_letters_dropped)

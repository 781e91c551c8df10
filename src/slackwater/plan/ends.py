"""Checks of a plan's outputs: each must have a destination, and its sinks must accept what it emits."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final, get_args

from slackwater.base.call_sites import blame, blamed
from slackwater.base.errors import near_miss, refuse
from slackwater.base.folders import lies_in
from slackwater.connectors.sink import EVERYTHING, Change, Delivery, Sink, Slot
from slackwater.plan.plan import OutputPlan, Plan, StepPlan

_CHANGES: Final[dict[Change, str]] = {"append": "new rows", "update": "updates", "retract": "retractions"}


def check_ends(
    plan: Plan, outputs: Collection[OutputPlan], ended: Mapping[str, Sequence[object]], owners: Mapping[str, object]
) -> None:
    """Reject outputs that have no sink, that their sink does not accept, or that would be written to the same place.

    Outputs are checked in the order of their definition. `ended` has, for each sink of an output, the definition that
    an error points at; `owners` has the definition of the stream or step that an output belongs to.
    """
    for output in outputs:
        owner = output.name.rsplit(".", 1)[0]
        if not output.sinks and output.kind == "late":
            raise blamed(refuse("LATE_UNHANDLED", step=owner), owners.get(owner))
        if not output.sinks and output.kind == "dead_letters":
            raise blamed(refuse("DEAD_LETTERS_UNHANDLED", stream=owner), owners.get(owner))
        steps = [step for step in plan.steps if output.name in step.results.all_outputs]
        slot = plan.slot(output)
        for step in steps:
            for number, sink in enumerate(output.sinks):
                with blame(ended[output.name][number]):
                    _check_takes(step, replace(slot, identity=step.spec.identity), sink)
        for number, sink in enumerate(output.sinks):
            with blame(ended[output.name][number]):
                _check_promise(sink, output.name)
                sink.check(slot)
                others = output.sinks[:number]
                if sink.uses_marks and str(sink) in map(str, others):
                    raise refuse("SINK_TWICE", sink=sink, output=output.name)
    _check_places(plan, outputs, ended)


def _check_takes(step: StepPlan, slot: Slot, sink: Sink) -> None:
    """Reject results that a sink does not accept."""
    output = slot.output
    need = step.spec.emits
    if need not in sink.takes:
        takes = " and ".join(_CHANGES[change] for change in _CHANGES if change in sink.takes)
        how = f" ({sink.for_retractions})" if need == "retract" and sink.for_retractions else ""
        raise refuse("SINK_CANNOT_TAKE", output=output, sink=sink, need=_CHANGES[need], takes=takes, how=how)
    if replaced_by := sink.replaced_by(slot):
        step.spec.check_replaces(replaced_by, output=output, sink=sink, key=", ".join(replaced_by))


def _check_places(plan: Plan, outputs: Collection[OutputPlan], ended: Mapping[str, Sequence[object]]) -> None:
    """Reject outputs that would be written to the same place, inside one another, or into a source of the pipeline."""
    read = [(source.source.place, f"stream `{source.name}`") for source in plan.sources]
    taken: list[tuple[str, str]] = [(place, whose) for place, whose in read if place is not None]
    for output in outputs:
        for number, place in enumerate(sink.place for sink in output.sinks):
            if place is None:
                continue
            mine = (place, f"output `{output.name}`")
            with blame(ended[output.name][number]):
                for other in taken:
                    _check_apart(mine, other)
            taken.append(mine)


def _check_apart(mine: tuple[str, str], other: tuple[str, str]) -> None:
    """Reject two places, each given with its owner, that are the same or nested."""
    is_inside, is_around = lies_in(mine[0], other[0]), lies_in(other[0], mine[0])
    if is_inside and is_around and other[1].startswith("output "):
        first, second = (whose.removeprefix("output ") for _, whose in (other, mine))
        raise refuse("SINK_SHARED", place=mine[0], first=first, second=second)
    if is_inside or is_around:
        (inner, who), (outer, whose) = (mine, other) if is_inside else (other, mine)
        how = "is the same folder as" if is_inside and is_around else "is inside"
        raise refuse("FOLDERS_NESTED", inner=inner, who=who, how=how, outer=outer, other=whose)


def _check_promise(sink: Sink, output: str) -> None:
    """Reject a sink whose class declares an unknown `delivery` or an unknown kind of change in `takes`."""
    if sink.delivery not in get_args(Delivery):
        hint = near_miss(str(sink.delivery), get_args(Delivery))
        raise refuse("SINK_PROMISE", sink=sink, output=output, what="delivery", got=f"{sink.delivery!r}{hint}")
    if unknown := sorted(map(repr, set(sink.takes) - EVERYTHING)):
        raise refuse("SINK_PROMISE", sink=sink, output=output, what="takes", got=", ".join(unknown))

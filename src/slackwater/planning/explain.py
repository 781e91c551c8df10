"""`explain`: a plan as a graph that people can read."""

from __future__ import annotations

from slackwater.formats.schemas import shown
from slackwater.ground.durations import render_ms
from slackwater.lookups.definition import LookUp
from slackwater.planning.plan import Feed, Plan, RowNode, SourcePlan
from slackwater.planning.row_functions import Decode, Map, RowOp, Select, TakeTime, Validate, Where, WithColumns
from slackwater.tables.definition import JoinTable


def explain(plan: Plan) -> str:
    """Return the plan as text: sources, steps with their stable names, outputs, sinks and delivery."""
    text = _Text(plan)
    lines = [f"pipeline {plan.name}   {plan.key_groups} key groups   fingerprint {plan.fingerprint}"]
    for source in plan.sources:
        lines += ["", f"source {source.name}: {source.source}", *_watermark(source)]
        lines += text.tree(source.rows, indent="  ")
        lines += text.output(source.dead_letters, "  ", "dead letters")
    return "".join(f"{_printable(line)}\n" for line in lines)


class _Text:
    """The lines of a plan; a step that several streams feed is explained where the first of them does."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.explained: set[str] = set()

    def tree(self, node: RowNode, indent: str) -> list[str]:
        lines = []
        if node.op is not None:
            lines.append(f"{indent}└ {node.step}: {_op(node.op)}")
            indent += "  "
        for name in node.outputs:
            kind = self.plan.output_by_name[name].kind
            lines += self.output(name, indent, "rows" if node.op is not None else kind)
        for feed in node.feeds:
            lines += self.step(feed, indent)
        for child in node.children:
            lines += self.tree(child, indent)
        return lines

    def step(self, feed: Feed, indent: str) -> list[str]:
        step, inner = self.plan.by_name[feed.step], indent + "    "
        port = f", {feed.port}" if len(step.spec.ports) > 1 else ""
        if step.name in self.explained:
            return [f"{indent}└ step {step.name}{port}: see above"]
        self.explained.add(step.name)
        spread = f", each key spread over {step.spread} key groups of stage {step.stage - 1}" if step.spread > 1 else ""
        lines = [f"{indent}└ step {step.name}{port}   [stage {step.stage}{spread}]"]
        lines += [f"{inner}{label:<9} {text}" for label, text in step.spec.describe()]
        if delayed := [(name, delay) for name, delay in step.behind_ms.items() if delay]:
            behind = ", ".join(f"{name} by {render_ms(delay)}" for name, delay in delayed)
            lines.append(f"{inner}watermark behind {behind}")
        for root in step.roots:
            lines += self.tree(root, inner)
        if step.late is not None:
            lines += self.output(step.late, inner, "late")
        if step.dead_letters not in {source.dead_letters for source in self.plan.sources}:
            lines += self.output(step.dead_letters, inner, "dead letters")
        return lines

    def output(self, name: str, indent: str, label: str) -> list[str]:
        lines = []
        for sink in self.plan.output_by_name[name].sinks:
            promise = "" if str(sink).startswith("dropped") else f"   {sink.promise}"
            lines.append(f"{indent}→ {label} {name}: {sink}{promise}")
            lines += [f"{indent}    chosen: {words}"] if (words := sink.chosen()) else []
        return lines or [f"{indent}→ {label} {name}: feeds the next step"]


def _printable(line: str) -> str:
    """Return a line with what cannot be printed, as in names with line breaks, written as escapes."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in line)


def _watermark(source: SourcePlan) -> list[str]:
    time = source.time
    if time is None:
        return ["  no event time: rows pass through, no state is kept"]
    if time.clock == "processing":
        return ["  watermark: processing time"]
    slack = render_ms(time.out_of_orderness_ms)
    said = f"  watermark: largest {time.clock} time - {slack}, per partition, the slowest live one decides"
    idle = render_ms(time.idle_after_ms) if time.idle_after_ms is not None else "never"
    lines = [said, f"    a partition is idle after: {idle}"]
    if time.max_ahead_ms is not None:
        lines.append(f"    more than {render_ms(time.max_ahead_ms)} ahead of the clock: dead letter")
    if time.max_drift_ms is not None:
        lines.append(f"    more than {render_ms(time.max_drift_ms)} ahead of a stream it meets: waits, unread")
    return lines


def _op(op: RowOp) -> str:
    match op:
        case Decode(format=form):
            return f"{form}: {shown(form.schema)}"
        case TakeTime():
            return op.said or op.clock
        case Map(function=function):
            return getattr(function, "__name__", "function")
        case Where() | WithColumns() | Select() | Validate() | LookUp() | JoinTable():
            return op.said

"""`explain`: a plan as a graph that people can read."""

from __future__ import annotations

from slackwater.formats.schemas import shown
from slackwater.ground.durations import render_ms
from slackwater.planning.plan import OutputPlan, Plan, RowNode, SourcePlan, StepPlan
from slackwater.planning.row_functions import Decode, Map, RowOp, Select, TakeTime, Validate, Where, WithColumns


def explain(plan: Plan) -> str:
    """Return the plan as text: sources, steps with their stable names, outputs, sinks and delivery."""
    outputs = {output.name: output for output in plan.outputs}
    lines = [f"pipeline {plan.name}   {plan.key_groups} key groups   fingerprint {plan.fingerprint}"]
    for source in plan.sources:
        lines += ["", f"source {source.name}: {source.source}", *_watermark(source)]
        lines += _tree(source.rows, plan, outputs, indent="  ")
        lines += _output(outputs[source.dead_letters], "  ", "dead letters")
    return "".join(f"{_printable(line)}\n" for line in lines)


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
    return lines


def _tree(node: RowNode, plan: Plan, outputs: dict[str, OutputPlan], indent: str) -> list[str]:
    lines = []
    if node.op is not None:
        lines.append(f"{indent}└ {node.step}: {_op(node.op)}")
        indent += "  "
    for name in node.outputs:
        lines += _output(outputs[name], indent, "rows" if node.op is not None else outputs[name].kind)
    for name, _ in node.feeds:
        lines += _step(plan.by_name[name], plan, outputs, indent)
    for child in node.children:
        lines += _tree(child, plan, outputs, indent)
    return lines


def _step(step: StepPlan, plan: Plan, outputs: dict[str, OutputPlan], indent: str) -> list[str]:
    inner = indent + "    "
    lines = [f"{indent}└ step {step.name}   [stage {step.stage}]"]
    lines += [f"{inner}{label:<9} {text}" for label, text in step.spec.describe()]
    if step.delay_ms:
        lines.append(f"{inner}watermark behind the sources by {render_ms(step.delay_ms)}")
    lines += _tree(step.results, plan, outputs, inner)
    lines += _output(outputs[step.late], inner, "late")
    if step.dead_letters not in {source.dead_letters for source in plan.sources}:
        lines += _output(outputs[step.dead_letters], inner, "dead letters")
    return lines


def _output(output: OutputPlan, indent: str, label: str) -> list[str]:
    lines = []
    for sink in output.sinks:
        promise = "" if str(sink).startswith("dropped") else f"   {sink.promise}"
        lines.append(f"{indent}→ {label} {output.name}: {sink}{promise}")
        lines += [f"{indent}    chosen: {words}"] if (words := sink.chosen()) else []
    return lines or [f"{indent}→ {label} {output.name}: feeds the next step"]


def _op(op: RowOp) -> str:
    match op:
        case Decode(format=form):
            return f"{form}: {shown(form.schema)}"
        case TakeTime():
            return op.said or op.clock
        case Map(function=function):
            return getattr(function, "__name__", "function")
        case Where() | WithColumns() | Select() | Validate():
            return op.said

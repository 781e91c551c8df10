"""`explain`: a plan as a readable tree of text."""

from __future__ import annotations

from slackwater.plan.described import FeedText, PlanText, RowsText


def explain(plan: PlanText) -> str:
    """Return the plan as text: sources, steps with their stable names, outputs, sinks and delivery."""
    text = _Text(plan)
    lines = [f"pipeline {plan.pipeline}   {plan.key_groups} key groups   fingerprint {plan.fingerprint}"]
    for source in plan.sources:
        first, *more = source.watermark
        lines += ["", f"source {source.name}: {source.source}", f"  {first}", *(f"    {line}" for line in more)]
        lines += text.tree(source.rows, indent="  ")
        lines += text.output(source.dead_letters, "  ", "dead letters")
    return "".join(f"{printable(line)}\n" for line in lines)


class _Text:
    """The lines of a plan; a step fed by several streams is explained at the first of them."""

    def __init__(self, plan: PlanText) -> None:
        self.plan = plan
        self.explained: set[str] = set()

    def tree(self, node: RowsText, indent: str) -> list[str]:
        lines = []
        if node.function:
            lines.append(f"{indent}└ {node.name}: {node.text}")
            indent += "  "
        for name in node.outputs:
            lines += self.output(name, indent, "rows" if node.function else self.plan.output(name).kind)
        for feed in node.feeds:
            lines += self.step(feed, indent)
        for child in node.children:
            lines += self.tree(child, indent)
        return lines

    def step(self, feed: FeedText, indent: str) -> list[str]:
        step, inner = self.plan.step(feed.step), indent + "    "
        port = f", {feed.port}" if feed.port else ""
        if step.name in self.explained:
            return [f"{indent}└ step {step.name}{port}: see above"]
        self.explained.add(step.name)
        spread = f", each key spread over {step.spread} key groups of stage {step.stage - 1}" if step.spread > 1 else ""
        lines = [f"{indent}└ step {step.name}{port}   [stage {step.stage}{spread}]"]
        lines += [f"{inner}{fact.label:<9} {fact.text}" for fact in step.facts]
        if step.behind:
            lines.append(f"{inner}watermark behind " + ", ".join(f"{each.stream} by {each.by}" for each in step.behind))
        for root in step.results:
            lines += self.tree(root, inner)
        if step.late is not None:
            lines += self.output(step.late, inner, "late")
        if step.dead_letters is not None:
            lines += self.output(step.dead_letters, inner, "dead letters")
        return lines

    def output(self, name: str, indent: str, label: str) -> list[str]:
        lines, output = [], self.plan.output(name)
        name = "(default)" if output.is_default else name
        for sink in output.sinks:
            promise = f"   {sink.promise}" if sink.promise else ""
            lines.append(f"{indent}→ {label} {name}: {sink.sink}{promise}")
            lines += [f"{indent}    chosen: {sink.chosen}"] if sink.chosen else []
        return lines or [f"{indent}→ {label} {name}: feeds the next step"]


def printable(line: str) -> str:
    """Return a line with unprintable characters, such as line breaks in names, escaped."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in line)

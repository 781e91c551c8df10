"""The boxes and arrows of a plan's drawing: sources, row functions, steps and sinks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from slackwater.plan.described import PlanText, RowsText, SourceText, StepText

Kind = Literal["source", "functions", "step", "sink"]
_ARROW: Final = "→"


class Line(NamedTuple):
    """A line of a box: a label and its text."""

    label: str
    text: str


@dataclass(kw_only=True)
class Box:
    """One box: a title, lines of text and, below a rule, the outputs that end here."""

    name: str
    kind: Kind
    title: str
    lines: list[Line] = field(default_factory=list)
    ends: list[Line] = field(default_factory=list)

    @property
    def spoken(self) -> str:
        """The full text of the box, for screen readers and tooltips."""
        head = self.title if self.kind == "functions" else f"{self.kind} {self.title}"
        texts = [f"{line.label}: {line.text}" if line.label else line.text for line in (*self.lines, *self.ends)]
        return "\n".join([head, *texts])


class Arrow(NamedTuple):
    """An arrow for the rows that go from one box to another; its label names a port or a side output."""

    start: str
    end: str
    label: str = ""


@dataclass(kw_only=True)
class Graph:
    """All boxes by name, in plan order, and the arrows between them."""

    boxes: dict[str, Box] = field(default_factory=dict)
    arrows: list[Arrow] = field(default_factory=list)


def graph_of(plan: PlanText) -> Graph:
    """Return the boxes and arrows of a plan.

    Consecutive row functions share one box. Late rows and dead letters are lines of the box they come from, because
    separate boxes for them would hide the main flow of the pipeline.
    """
    graph = Graph()
    for source in plan.sources:
        graph.boxes[f"source {source.name}"] = _source(plan, source)
    for step in plan.steps:
        graph.boxes[f"step {step.name}"] = _step(plan, step)
    for source in plan.sources:
        _follow(plan, graph, source.rows, f"source {source.name}", "")
    for step in plan.steps:
        for number, root in enumerate(step.results):
            _follow(plan, graph, root, f"step {step.name}", root.name.rpartition(".")[2] if number else "")
    return graph


def _follow(plan: PlanText, graph: Graph, node: RowsText, start: str, label: str) -> None:
    """Add the boxes and arrows after `node`, whose rows come from the box `start`."""
    chain = [node] if node.function else []
    while not node.outputs and not node.feeds and len(node.children) == 1:
        node = node.children[0]
        chain.append(node)
    if chain:
        name = f"functions {len(graph.boxes)}"
        lines = [Line(each.function.replace("_", " "), each.text) for each in chain]
        graph.boxes[name] = Box(name=name, kind="functions", title="", lines=lines)
        graph.arrows.append(Arrow(start, name, label))
        start, label = name, ""
    for output in node.outputs:
        for end in _sinks(plan, graph, output):
            graph.arrows.append(Arrow(start, end, label))
    for feed in node.feeds:
        graph.arrows.append(Arrow(start, f"step {feed.step}", feed.port or label))
    for child in node.children:
        _follow(plan, graph, child, start, label)


def _sinks(plan: PlanText, graph: Graph, output: str) -> list[str]:
    """Return the names of the boxes of an output's sinks; the streams of a union share them."""
    names = []
    for number, sink in enumerate(plan.output(output).sinks):
        name = f"sink {output} {number}"
        lines = [Line("", sink.sink), *([Line("", sink.promise)] if sink.promise else [])]
        lines += [Line("", sink.chosen)] if sink.chosen else []
        graph.boxes.setdefault(name, Box(name=name, kind="sink", title=output, lines=lines))
        names.append(name)
    return names


def _source(plan: PlanText, source: SourceText) -> Box:
    first, *more = source.watermark
    label, _, text = first.rpartition("watermark: ")
    lines = [Line("reads", source.source), Line("watermark", label + text), *(Line("", line) for line in more)]
    ends = _ends(plan, "dead letters", source.dead_letters)
    return Box(name=f"source {source.name}", kind="source", title=source.name, lines=lines, ends=ends)


def _step(plan: PlanText, step: StepText) -> Box:
    """Return the box of a step; its aggregates are listed by name only."""
    lines = [Line(fact.label, fact.text) for fact in step.facts if fact.label != "computes"]
    if computed := [fact.text.partition(":")[0] for fact in step.facts if fact.label == "computes"]:
        lines.append(Line("computes", ", ".join(computed)))
    lines += [Line("behind", f"{each.stream} by {each.by}") for each in step.behind]
    ends = [*_ends(plan, "late", step.late), *_ends(plan, "dead letters", step.dead_letters)]
    return Box(name=f"step {step.name}", kind="step", title=step.name, lines=lines, ends=ends)


def _ends(plan: PlanText, label: str, output: str | None) -> list[Line]:
    sinks = [] if output is None else plan.output(output).sinks
    lines = []
    for sink in sinks:
        lines.append(Line(label, f"{_ARROW} {sink.sink}"))
        lines += [Line("", text) for text in (sink.promise, sink.chosen) if text]
    return lines

"""A plan as an SVG drawing: for light and dark mode, with tooltips, and readable by screen readers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple
from xml.sax.saxutils import escape, quoteattr

from slackwater.plan.boxes import Box, Line, graph_of
from slackwater.plan.described import PlanText
from slackwater.plan.explain import printable
from slackwater.plan.layout import Layout, Placed, Size, lay_out, lay_out_upright

_PAD: Final = 12.0
_MARGIN: Final = 20.0
_HEAD: Final = 44.0
_ROW: Final = 15.5
_TITLE: Final = 20.0
_LABEL: Final = 76.0
_WIDEST: Final = {"source": 290.0, "functions": 290.0, "step": 310.0, "sink": 240.0}
"""The maximum width of a box's text; longer text is wrapped, then cut."""
_NARROWEST: Final = 96.0
_MOST_ROWS: Final = {"source": 2, "functions": 1, "step": 2, "sink": 2}
"""The maximum number of rows of one text."""
_CHARS: Final = {**dict.fromkeys("iljtfI.,:;'|!()[] ·", 0.36), **dict.fromkeys("mwMW@→…=<>+%", 0.9)}
_STYLE: Final = """
  .sw-plan { color-scheme: light dark; max-width: 100%; height: auto }
  .sw-plan text { font: 11px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, "DejaVu Sans", sans-serif }
  .sw-plan text { fill: #1f2328 }
  .sw-plan .title { font-weight: 600; font-size: 13px } .sw-plan .head { font-weight: 600; font-size: 15px }
  .sw-plan tspan { font-weight: 400; font-size: 11px }
  .sw-plan .soft { fill: #59636e } .sw-plan .paper { fill: #ffffff }
  .sw-plan .box { stroke-width: 1.2; rx: 6px } .sw-plan .rule { stroke: #d1d9e0 }
  .sw-plan .source .box { fill: #ddf4ff; stroke: #54aeff } .sw-plan .step .box { fill: #fff8e5; stroke: #d4a72c }
  .sw-plan .sink .box { fill: #dafbe1; stroke: #4ac26b }
  .sw-plan .functions .box { fill: #f6f8fa; stroke: #afb8c1; stroke-dasharray: 4 3 }
  .sw-plan .arrow { fill: none; stroke: #818b98; stroke-width: 1.4 } .sw-plan .tip { fill: #818b98 }
  @media (prefers-color-scheme: dark) {
    .sw-plan text { fill: #e6edf3 } .sw-plan .soft { fill: #9198a1 } .sw-plan .paper { fill: #0d1117 }
    .sw-plan .rule { stroke: #3d444d } .sw-plan .source .box { fill: #0c2d4d; stroke: #388bfd }
    .sw-plan .step .box { fill: #33270b; stroke: #bb8009 } .sw-plan .sink .box { fill: #0f2f1b; stroke: #2ea043 }
    .sw-plan .functions .box { fill: #161b22; stroke: #3d444d }
    .sw-plan .arrow { stroke: #768390 } .sw-plan .tip { fill: #768390 }
  }
"""


_TIP: Final = (
    '<defs><marker id="sw-tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path class="tip" d="M0 0 L8 4 L0 8 z"/></marker></defs>'
)
_EAST_ASIAN: Final = "\u2e80"
"""The first character of the range whose characters are as wide as they are high."""


class _Row(NamedTuple):
    """One row of a box's text, as drawn."""

    label: str
    text: str
    is_end: bool = False


def draw(plan: PlanText, *, is_upright: bool = False) -> str:
    """Return the drawing of a plan as SVG: from left to right or, for narrow places, from top to bottom."""
    graph = graph_of(plan)
    rows = {name: _rows(box) for name, box in graph.boxes.items()}
    sizes = {name: _size(box, rows[name]) for name, box in graph.boxes.items()}
    layout = lay_out_upright(sizes, graph.arrows) if is_upright else lay_out(sizes, graph.arrows)
    head, about = plan.pipeline, f"{plan.key_groups} key groups"
    width = max(layout.width, _wide(head, 17) + _wide(about, 11) + 12) + 2 * _MARGIN
    height = layout.height + _HEAD + _MARGIN
    size = f'width="{width:.0f}" height="{height:.0f}"'
    label = _attribute(f"plan of {head}")
    opened = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="sw-plan" role="img" aria-label={label} {size} '
        f'viewBox="0 0 {width:.0f} {height:.0f}">'
    )
    parts = [
        opened,
        f"<title>plan of {_text(head)}</title>",
        f"<style>{_STYLE}</style>",
        _TIP,
        f'<rect class="paper" width="{width:.0f}" height="{height:.0f}"/>',
        # One text, because only the renderer knows how wide the name is.
        f'<text class="head" x="{_MARGIN:.0f}" y="26">{_text(head)}',
        f'<tspan class="soft" dx="8">{_text(about)}</tspan></text>',
        f'<g transform="translate({_MARGIN:.0f} {_HEAD:.0f})">',
        *_arrows(layout, [arrow.label for arrow in graph.arrows], is_upright=is_upright),
    ]
    for name, box in graph.boxes.items():
        parts += _drawn(box, rows[name], layout.places[name], sizes[name])
    return "\n".join([*parts, "</g>", "</svg>"]) + "\n"


def _arrows(layout: Layout, labels: Sequence[str], *, is_upright: bool) -> Iterator[str]:
    for points, label in zip(layout.routes, labels, strict=True):
        path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
        for at, (x, y) in enumerate(points[1:], 1):
            before_x, before_y = points[at - 1]
            # The arrow bends between layers and is straight within one.
            if at % 2 == 0:
                path += f" L{x:.1f} {y:.1f}"
            elif is_upright:
                middle = (before_y + y) / 2
                path += f" C{before_x:.1f} {middle:.1f} {x:.1f} {middle:.1f} {x:.1f} {y:.1f}"
            else:
                middle = (before_x + x) / 2
                path += f" C{middle:.1f} {before_y:.1f} {middle:.1f} {y:.1f} {x:.1f} {y:.1f}"
        yield f'<path class="arrow" d="{path}" marker-end="url(#sw-tip)"/>'
        if label:
            x, y = points[-1]
            # Arrows that meet have their labels on the sides they come from.
            is_right = is_upright and points[0][0] >= x
            left, anchor = (x + 6, "start") if is_right else (x - 8, "end")
            yield f'<text class="soft" x="{left:.1f}" y="{y - 5:.1f}" text-anchor="{anchor}">{_text(label)}</text>'


def _drawn(box: Box, rows: Sequence[_Row], place: Placed, size: Size) -> Iterator[str]:
    spoken = box.spoken.replace("\n", ", ") if box.title else "row functions " + box.spoken.strip().replace("\n", ", ")
    yield f'<g class="{box.kind}" role="group" aria-label={_attribute(spoken)}>'
    yield f"<title>{'&#10;'.join(map(_text, box.spoken.strip().splitlines()))}</title>"
    yield (
        f'<rect class="box" x="{place.x:.1f}" y="{place.y:.1f}" width="{place.width:.1f}" height="{size.height:.1f}" '
        'rx="6"/>'
    )
    x, y = place.x + _PAD, place.y + _PAD + 2
    if box.title:
        y += 9
        yield f'<text class="title" x="{x:.1f}" y="{y:.1f}">{_text(_cut(box.title, _WIDEST[box.kind], 13))}</text>'
        y += _TITLE - 9
    y += 7
    labelled = any(row.label for row in rows)
    for at, row in enumerate(rows):
        if row.is_end and not rows[at - 1].is_end:
            yield f'<path class="rule" d="M{place.x:.1f} {y - 7:.1f} h{place.width:.1f}"/>'
            y += 8
        if row.label:
            yield f'<text class="soft" x="{x:.1f}" y="{y:.1f}">{_text(row.label)}</text>'
        yield f'<text x="{x + (_LABEL if labelled else 0):.1f}" y="{y:.1f}">{_text(row.text)}</text>'
        y += _ROW
    yield "</g>"


def _rows(box: Box) -> list[_Row]:
    labelled = any(line.label for line in (*box.lines, *box.ends))
    widest = _WIDEST[box.kind] - (_LABEL if labelled else 0)
    found = [row for line in box.lines for row in _wrapped(line, widest, _MOST_ROWS[box.kind], is_end=False)]
    return found + [row for line in box.ends for row in _wrapped(line, widest, 2, is_end=True)]


def _wrapped(line: Line, widest: float, most: int, *, is_end: bool) -> Iterator[_Row]:
    """Yield the rows of a line; the last one is cut if there would be more than `most`."""
    words, label = [_fitting(printable(word), widest) for word in line.text.split()] or [""], line.label
    for number in range(most):
        row = words.pop(0)
        while words and (_wide(f"{row} {words[0]}", 11) <= widest):
            row += f" {words.pop(0)}"
        is_last = number == most - 1
        yield _Row(label, _cut(" ".join([row, *words]) if is_last else row, widest, 11), is_end)
        label = ""
        if not words:
            return


def _size(box: Box, rows: Sequence[_Row]) -> Size:
    labels = _LABEL if any(row.label for row in rows) else 0
    widths = [labels + _wide(row.text, 11) for row in rows] + [_wide(_cut(box.title, _WIDEST[box.kind], 13), 13.8)]
    height = 2 * _PAD + len(rows) * _ROW + (_TITLE if box.title else 0) - 2
    height += 8 if any(row.is_end for row in rows) and not rows[0].is_end else 0
    return Size(max(_NARROWEST, *widths) + 2 * _PAD, height)


def _wide(text: str, size: float) -> float:
    """Return the approximate width of a text in the widest of the fonts, without font metrics."""
    usual = {char: 0.7 if char.isupper() else 1.0 if char >= _EAST_ASIAN else 0.61 for char in text}
    return size * sum(_CHARS.get(char, usual[char]) for char in text)


def _cut(text: str, widest: float, size: float) -> str:
    text = printable(text)
    if _wide(text, size) <= widest:
        return text
    while text and _wide(f"{text}…", size) > widest:
        text = text[:-1]
    return f"{text.rstrip()}…"


def _fitting(word: str, widest: float) -> str:
    """Return a word; for a path that is too wide, its last parts, because those distinguish paths."""
    while _wide(word, 11) > widest and word.count("/") > 1:
        word = "…/" + word.removeprefix("…/").partition("/")[2]
    return word


def _text(text: str) -> str:
    return escape(printable(text))


def _attribute(text: str) -> str:
    return quoteattr(printable(text))

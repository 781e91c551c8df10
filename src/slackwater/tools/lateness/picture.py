"""The report as an SVG picture: the share of events behind the watermark for each out-of-orderness.

Both axes are logarithmic: what matters is whether one event in a hundred is behind or one in a thousand, and whether
results wait for seconds or for hours. The picture follows the reader's light or dark mode.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal
from xml.sax.saxutils import escape

from slackwater.base.durations import render_ms
from slackwater.base.errors import counted, fault
from slackwater.eventtime.measured_lateness import LatenessSketch
from slackwater.tools.lateness.ladder import COARSE_MS, round_down_ms, round_up_ms, rungs
from slackwater.tools.lateness.report import Candidate, LatenessReport, StreamReport
from slackwater.tools.lateness.text import percent

_WIDTH, _HEIGHT = 820, 442
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 28, 98, 62
_TICKS: Final = (4, 12)
"""The minimum and maximum number of ticks on the time axis."""
_DECADES: Final = (2, 6)
_SHOWN: Final = 3
_HALF_LABEL: Final = 205
_VISIBLE: Final = 0.6
"""The smallest step of a curve that is drawn, in pixels."""
_STYLE: Final = """
  .paper { fill: #ffffff } .ink { fill: #1f2328 } .soft { fill: #59636e } .grid { stroke: #d8dee4 }
  .curve { stroke: #0969da } .area { fill: #0969da; fill-opacity: .10 } .part { stroke: #8250df }
  .best { stroke: #bc4c00 } .dot { fill: #bc4c00 } .advice { fill: #bc4c00 } .now { stroke: #59636e }
  .name { fill: #8250df }
  text { font-family: system-ui, -apple-system, "Segoe UI", Helvetica, Arial, "DejaVu Sans", sans-serif }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #0d1117 } .ink { fill: #e6edf3 } .soft { fill: #9198a1 } .grid { stroke: #2b3139 }
    .curve { stroke: #4493f8 } .area { fill: #4493f8; fill-opacity: .16 } .part { stroke: #ab7df8 }
    .best { stroke: #f0883e } .dot { fill: #f0883e } .advice { fill: #f0883e } .now { stroke: #9198a1 }
    .name { fill: #ab7df8 }
  }
"""


def check_picture(path: Path) -> None:
    """Reject a picture that cannot be drawn, before anything is measured."""
    if path.suffix.lower() != ".svg":
        raise fault("LATENESS_PICTURE", path=path, svg=path.with_suffix(".svg"), png=path.with_suffix(".png"))
    if not path.parent.is_dir():
        raise fault("LATENESS_PICTURE_UNWRITTEN", path=path, cause=f"there is no folder {path.parent}")


def write_picture(report: LatenessReport, path: Path) -> None:
    """Draw the report to a file."""
    check_picture(path)
    try:
        path.write_text(draw(report), encoding="utf-8")
    except OSError as error:
        raise fault("LATENESS_PICTURE_UNWRITTEN", path=path, cause=error.strerror or error) from error


def draw(report: LatenessReport) -> str:
    """Return the report as an SVG document, with one panel per stream."""
    height = _HEIGHT * len(report.streams)
    shown = "; ".join(_summary(stream) for stream in report.streams)
    size = f'viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="title desc">',
        '<title id="title">Events behind the watermark, by out-of-orderness</title>',
        f'<desc id="desc">{_escaped(shown)}</desc>',
        f"<style>{_STYLE}</style>",
        f'<rect class="paper" width="{_WIDTH}" height="{height}" rx="8"/>',
    ]
    for number, stream in enumerate(report.streams):
        lines.append(f'<g transform="translate(0 {number * _HEIGHT})">')
        lines += _panel(stream)
        lines.append("</g>")
    return "\n".join([*lines, "</svg>"]) + "\n"


@dataclass(frozen=True, kw_only=True)
class _Scale:
    """Maps durations and shares to coordinates; values off the axes are placed at their ends."""

    least_ms: int
    most_ms: int
    least_share: float

    def x(self, milliseconds: int) -> float:
        within = min(max(milliseconds, self.least_ms), self.most_ms)
        part = math.log(within / self.least_ms) / math.log(self.most_ms / self.least_ms)
        return round(_LEFT + part * (_WIDTH - _LEFT - _RIGHT), 1)

    def y(self, share: float) -> float:
        part = math.log(max(share, self.least_share)) / math.log(self.least_share)
        return round(_TOP + part * (_HEIGHT - _TOP - _BOTTOM), 1)


def _summary(stream: StreamReport) -> str:
    best = stream.recommended
    return (
        f"{stream.name}: recommended out_of_orderness {render_ms(best.out_of_orderness_ms)}, "
        f"which leaves {percent(best.share_behind)} of {counted(stream.events, 'event')} behind the watermark"
    )


def _panel(stream: StreamReport) -> Iterator[str]:
    scale = _scale(stream)
    yield _text(_LEFT, 34, f"{stream.name}: events behind the watermark", "ink", size=18, weight=600)
    number = len(stream.partitions)
    shown = f"{counted(stream.events, 'event')} in {counted(number, 'partition')}"
    yield _text(_LEFT, 56, shown + ("" if stream.max_ms else ", all of them in order"), "soft", size=13)
    yield from _axes(scale)
    yield from _curves(stream, scale)
    yield from _marks(stream, scale)


def _scale(stream: StreamReport) -> _Scale:
    whole, chosen = stream.whole, [stream.recommended.out_of_orderness_ms]
    if stream.configured is not None:
        chosen.append(stream.configured.out_of_orderness_ms)
    # Where the curve starts to fall: the least late hundredth of the late events may fall off the axis.
    in_order = whole.zeros / whole.count
    begin = min([whole.covering(in_order + 0.01 * (1 - in_order)) or 1, *(value for value in chosen if value)])
    least = round_down_ms(begin - 1)
    most = max(round_up_ms(whole.max_ms), whole.max_ms, *chosen, 10 * least)
    decades = min(max(math.ceil(math.log10(whole.count)), _DECADES[0]), _DECADES[1])
    return _Scale(least_ms=least, most_ms=most, least_share=10.0**-decades)


def _axes(scale: _Scale) -> Iterator[str]:
    bottom = _HEIGHT - _BOTTOM
    for power in range(round(-math.log10(scale.least_share)) + 1):
        y = scale.y(10.0**-power)
        yield f'<line class="grid" x1="{_LEFT}" y1="{y}" x2="{_WIDTH - _RIGHT}" y2="{y}"/>'
        label = f"{100 / 10**power:.12g} %" if y < bottom else "0"
        yield _text(_LEFT - 10, y + 4, label, "soft", size=12, anchor="end")
    ticks = [step for step in COARSE_MS if scale.least_ms <= step <= scale.most_ms]
    if len(ticks) < _TICKS[0]:
        ticks = [step for step in rungs(scale.least_ms, scale.most_ms, at_most=_TICKS[1]) if step <= scale.most_ms]
    for step in ticks:
        x = scale.x(step)
        yield f'<line class="grid" x1="{x}" y1="{_TOP}" x2="{x}" y2="{bottom}" stroke-dasharray="2 4"/>'
        yield _text(x, bottom + 20, render_ms(step), "soft", size=12, anchor="middle")
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    yield _text(middle, _HEIGHT - 16, "out-of-orderness = delay of results", "soft", size=13, anchor="middle")


def _curves(stream: StreamReport, scale: _Scale) -> Iterator[str]:
    path, end = _path(stream.whole, scale)
    bottom = _HEIGHT - _BOTTOM
    yield f'<path class="area" d="{path} V{bottom} H{_LEFT} Z"/>'
    worse = [part.name for part in stream.partitions if part.is_far_worse][:_SHOWN]
    for name in worse:
        own, _ = _path(stream.sketches[name], scale)
        yield f'<path class="part" d="{own}" fill="none" stroke-width="1.5" stroke-dasharray="5 3"/>'
    if worse:
        words = f"dashed: partition {', '.join(worse)}"
        yield _text(_WIDTH - _RIGHT, 56, words, "name", size=13, anchor="end")
    yield f'<path class="curve" d="{path}" fill="none" stroke-width="2.5" stroke-linejoin="round"/>'
    if end < _WIDTH - _RIGHT:
        yield f'<line class="curve" x1="{end}" y1="{bottom}" x2="{_WIDTH - _RIGHT}" y2="{bottom}" stroke-width="2.5"/>'


def _path(sketch: LatenessSketch, scale: _Scale) -> tuple[str, float]:
    """Return the steps of a sketch's curve that are large enough to see, and where it ends."""
    ends, shares = sketch.curve()
    points = [(scale.x(int(end)), scale.y(float(share))) for end, share in zip(ends, shares, strict=True)]
    x, y = float(_LEFT), scale.y(sketch.share_later_than(0))
    steps = [f"M{x},{y}"]
    for next_x, next_y in points:
        if next_x - x >= _VISIBLE or next_y - y >= _VISIBLE:
            x, y = next_x, next_y
            steps.append(f"H{x}V{y}")
    return " ".join(steps), x


def _marks(stream: StreamReport, scale: _Scale) -> Iterator[str]:
    now, best = stream.configured, stream.recommended
    if now is not None and now is not best:
        yield from _mark(now, scale, "now", f"now: {render_ms(now.out_of_orderness_ms)}")
    yield from _mark(best, scale, "best", f'recommended: out_of_orderness="{render_ms(best.out_of_orderness_ms)}"')
    x, y = scale.x(best.out_of_orderness_ms), scale.y(best.share_behind)
    yield f'<circle class="dot" cx="{x}" cy="{y}" r="5"/>'


def _mark(row: Candidate, scale: _Scale, kind: Literal["now", "best"], label: str) -> Iterator[str]:
    """Yield a line across the panel and its label: above the panel, or at the bottom on the side with more room."""
    x, bottom = scale.x(row.out_of_orderness_ms), _HEIGHT - _BOTTOM
    yield f'<line class="{kind}" x1="{x}" y1="{_TOP}" x2="{x}" y2="{bottom}" stroke-width="1.5"/>'
    words = f"{label}, {percent(row.share_behind)} behind"
    if kind == "best":
        middle = min(max(x, _LEFT + _HALF_LABEL), _WIDTH - _RIGHT - _HALF_LABEL)
        yield _text(middle, _TOP - 8, words, "advice", size=13, anchor="middle", weight=600)
    else:
        is_left = x < (_LEFT + _WIDTH - _RIGHT) / 2
        at = x + 8 if is_left else x - 8
        yield _text(at, bottom - 10, words, "soft", size=12, anchor="start" if is_left else "end")


def _text(x: float, y: float, words: str, ink: str, *, size: int, anchor: str = "start", weight: int = 400) -> str:
    place = f'x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}"'
    bold = f' font-weight="{weight}"' if weight != 400 else ""  # noqa: PLR2004  the weight of normal text
    return f'<text class="{ink}" {place}{bold}>{_escaped(words)}</text>'


def _escaped(words: str) -> str:
    """Return text that is valid in XML; the name of a folder can contain anything."""
    return escape("".join(sign if sign.isprintable() else "\ufffd" for sign in words))

"""A sweep as an SVG picture: what becomes of the events, and the delay of results.

It follows the viewer's light or dark mode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

from slackwater.base.durations import render_ms
from slackwater.base.errors import fault
from slackwater.tools.lateness.picture import check_picture
from slackwater.tools.lateness.text import percent
from slackwater.tools.simulator.sweep import Sweep, Swept
from slackwater.tools.simulator.text import shown_ms

_WIDTH, _HEIGHT = 820, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 76, 92, 58
_LINES: Final = 4
_STYLE: Final = """
  .paper { fill: #ffffff } .ink { fill: #16202c } .soft { fill: #5b6878 } .grid { stroke: #dfe4ea }
  .late { fill: #d55e00 } .corrected { fill: #e69f00 } .delay { stroke: #0072b2 } .dot { fill: #0072b2 }
  .area { fill-opacity: .6 } .late.area { fill-opacity: .9 }
  text { font-family: system-ui, -apple-system, "Segoe UI", Helvetica, Arial, "DejaVu Sans", sans-serif }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #10151b } .ink { fill: #e8edf2 } .soft { fill: #9aa7b5 } .grid { stroke: #2a3541 }
    .late { fill: #ff8a3d } .corrected { fill: #f0b43c } .delay { stroke: #56b4e9 } .dot { fill: #56b4e9 }
  }
"""


def write_sweep(sweep: Sweep, points: Sequence[Swept], path: Path) -> None:
    """Write the picture of a sweep to a file."""
    check_picture(path)
    try:
        path.write_text(draw_sweep(sweep, points), encoding="utf-8")
    except OSError as error:
        raise fault("LATENESS_PICTURE_UNWRITTEN", path=path, cause=error.strerror or error) from error


def draw_sweep(sweep: Sweep, points: Sequence[Swept]) -> str:
    """Return a sweep as an SVG document."""
    size = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}"'
    ends = [
        f"{render_ms(point.value_ms)}: {percent(point.account.share('late'))} late" for point in (points[0], points[-1])
    ]
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="title desc">',
        f'<title id="title">What {sweep.control.name} does</title>',
        f'<desc id="desc">{escape("; ".join(ends))}</desc>',
        f"<style>{_STYLE}</style>",
        f'<rect class="paper" width="{_WIDTH}" height="{_HEIGHT}" rx="8"/>',
        _text(_LEFT, 34, f"What {sweep.control.name} does to {points[0].account.events:,} events", "ink", size=18),
        *_legend(),
        *_panel(sweep, points),
    ]
    return "\n".join([*lines, "</svg>"]) + "\n"


def _legend() -> Iterator[str]:
    for x, name, shown in ((_LEFT, "late", "late"), (_LEFT + 80, "corrected", "correct a result")):
        yield f'<rect class="{name} area" x="{x}" y="50" width="14" height="12"/>'
        yield _text(x + 20, 61, shown, "soft")
    yield f'<line class="delay" x1="{_LEFT + 230}" y1="56" x2="{_LEFT + 252}" y2="56" stroke-width="2.5"/>'
    yield _text(_LEFT + 260, 61, "delay of results, p50 (right)", "soft")


def _panel(sweep: Sweep, points: Sequence[Swept]) -> Iterator[str]:
    accounts = [point.account for point in points]
    most = max(account.share("late") + account.share("corrected") for account in accounts) * 1.08 or 0.01
    slowest = max((account.delay_ms[0] or 0 for account in accounts), default=0) * 1.08 or 1_000
    first, last = points[0].value_ms, points[-1].value_ms

    def x(value_ms: int) -> float:
        return round(_LEFT + (value_ms - first) / (last - first) * (_WIDTH - _LEFT - _RIGHT), 1)

    def y(part: float) -> float:
        return round(_HEIGHT - _BOTTOM - part * (_HEIGHT - _TOP - _BOTTOM), 1)

    for number in range(_LINES + 1):
        part = number / _LINES
        yield f'<line class="grid" x1="{_LEFT}" y1="{y(part)}" x2="{_WIDTH - _RIGHT}" y2="{y(part)}"/>'
        yield _text(_LEFT - 8, y(part) + 4, percent(most * part), "soft", anchor="end")
        yield _text(_WIDTH - _RIGHT + 8, y(part) + 4, shown_ms(round(slowest * part)), "soft")
    late = [(x(point.value_ms), y(point.account.share("late") / most)) for point in points]
    both = [
        (x(point.value_ms), y((point.account.share("late") + point.account.share("corrected")) / most))
        for point in points
    ]
    floor = [(x(last), y(0)), (x(first), y(0))]
    yield f'<polygon class="late area" points="{_points([*late, *floor])}"/>'
    yield f'<polygon class="corrected area" points="{_points([*both, *reversed(late)])}"/>'
    yield from _delays(points, x, lambda delay: y(delay / slowest))
    for point in points[:: max(1, -(-len(points) // 9))]:
        yield _text(x(point.value_ms), _HEIGHT - _BOTTOM + 20, render_ms(point.value_ms), "soft", anchor="middle")
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    yield _text(middle, _HEIGHT - 14, sweep.control.name, "soft", size=13, anchor="middle")


def _delays(points: Sequence[Swept], x: Callable[[int], float], y: Callable[[int], float]) -> Iterator[str]:
    known = [(x(point.value_ms), y(delay)) for point in points if (delay := point.account.delay_ms[0]) is not None]
    yield f'<polyline class="delay" points="{_points(known)}" fill="none" stroke-width="2.5" stroke-linejoin="round"/>'
    for across, up in known:
        yield f'<circle class="dot" cx="{across}" cy="{up}" r="3.5"/>'


def _points(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{across},{up}" for across, up in places)


def _text(x: float, y: float, shown: str, ink: str, *, size: int = 12, anchor: str = "start") -> str:
    return f'<text class="{ink}" x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}">{escape(shown)}</text>'

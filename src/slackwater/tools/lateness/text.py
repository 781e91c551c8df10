"""The report as text, for a terminal or a file."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Final

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from slackwater.base.durations import render_ms
from slackwater.base.errors import counted
from slackwater.base.times import render_time
from slackwater.tools.lateness.ladder import shortened
from slackwater.tools.lateness.report import Candidate, LatenessReport, StreamReport

_WIDTH: Final = 100
_BAR: Final = 32
_EIGHTHS: Final = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")
_PARTITIONS: Final = 10
_LEAST_PERCENT: Final = 0.001


def print_report(report: LatenessReport, console: Console) -> None:
    """Print the report, one stream after another."""
    for number, stream in enumerate(report.streams):
        if number:
            console.print()
        for part in _stream(stream, report.target):
            console.print(part, highlight=False)
    if report.unmeasured:
        console.print()
    for name, why in report.unmeasured.items():
        console.print(f"Stream {name} is not measured: it {why}.", highlight=False, markup=False)


def report_text(report: LatenessReport) -> str:
    """Return the report as plain text, without colours."""
    out = io.StringIO()
    print_report(report, Console(file=out, width=_WIDTH, color_system=None))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def percent(share: float) -> str:
    """Return a share as a percentage, rounded for display: 0.0431 gives "4.3 %"."""
    value = 100 * share
    if 0 < value < _LEAST_PERCENT:
        return f"<{_LEAST_PERCENT} %"
    for least, digits in ((9.95, 1), (0.995, 1), (0.0995, 2)):
        if value >= least:
            return f"{value:.{digits}f} %"
    return f"{value:.3f} %" if value else "0 %"


def _stream(stream: StreamReport, target: float) -> Iterator[RenderableType]:
    yield _head(stream)
    yield ""
    yield _histogram(stream)
    known = (*stream.quantiles_ms.items(), ("max", stream.max_ms))
    yield Text("   ".join(f"{name} {shortened(value)}" for name, value in known) + "\n")
    yield _candidates(stream)
    if len(stream.partitions) > 1:
        yield _partitions(stream, target)
    yield _advice(stream, target)
    for remark in stream.remarks:
        yield Text(f"! {remark}", style="yellow")


def _head(stream: StreamReport) -> Text:
    number = len(stream.partitions)
    text = Text().append(stream.name, style="bold")
    text.append(f": {counted(stream.events, 'event')} in {counted(number, 'partition')}, ")
    text.append(f"{render_time(stream.first_ms)[:19]} to {render_time(stream.last_ms)[:19]}")
    lost = [f"{count:,} {reason}" for reason, count in stream.left_out.items()]
    lost += [f"{stream.filtered:,} filtered before event_time"] * bool(stream.filtered)
    if lost:
        text.append(f"\nnot measured, of {counted(stream.records, 'record')}: {', '.join(lost)}", style="yellow")
    return text


def _histogram(stream: StreamReport) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title="How late events arrive", title_justify="left", title_style="bold")
    table.add_column("late by")
    table.add_column("events", justify="right")
    table.add_column("", justify="right")
    table.add_column("")
    most = max(row.rows for row in stream.histogram)
    for row in stream.histogram:
        eighths = -(-8 * _BAR * row.rows // most)
        bar = "█" * (eighths // 8) + _EIGHTHS[eighths % 8]
        label = f"up to {shortened(row.up_to_ms)}" if row.up_to_ms else "in order"
        table.add_row(label, f"{row.rows:,}", percent(row.share), Text(bar, style="cyan"))
    return table


def _candidates(stream: StreamReport) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD, title="What each out-of-orderness costs", title_justify="left", title_style="bold"
    )
    table.add_column("out-of-orderness,\nthe delay of results", justify="right")
    table.add_column("events behind\nthe watermark", justify="right")
    table.add_column("", justify="right", vertical="bottom")
    table.add_column("")
    for row in stream.candidates:
        style = "bold green" if row is stream.recommended else "default"
        shown = Text(", ".join(row.labels), style=style if row is stream.recommended else "dim")
        delay = Text(render_ms(row.out_of_orderness_ms), style=style)
        table.add_row(delay, percent(row.share_behind), f"{row.rows_behind:,}", shown)
    return table


def _partitions(stream: StreamReport, target: float) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title="By partition", title_justify="left", title_style="bold")
    for name in ("partition", "events", "p50", f"{100 * target:.12g} % within", "max"):
        table.add_column(name, justify="left" if name == "partition" else "right")
    for row in stream.partitions[:_PARTITIONS]:
        style = "yellow" if row.is_far_worse else "default"
        lengths = (shortened(row.p50_ms), shortened(row.target_ms), shortened(row.max_ms))
        table.add_row(Text(row.name or "(the folder itself)"), f"{row.events:,}", *lengths, style=style)
    left = len(stream.partitions) - _PARTITIONS
    if left > 0:
        table.add_row(Text(f"… and {left:,} more, none of them worse", style="dim"))
    return table


def _advice(stream: StreamReport, target: float) -> Text:
    text = Text("Recommended: ", style="default")
    text.append(f'out_of_orderness="{render_ms(stream.recommended.out_of_orderness_ms)}"', style="bold green")
    text.append(f" for a target of {100 * target:.12g} %: {_left(stream.recommended)}.")
    now = stream.configured
    if now is not None and now is not stream.recommended:
        text.append(f" Currently, it is {render_ms(now.out_of_orderness_ms)}: {_left(now)}.")
    elif now is not None:
        text.append(" The pipeline uses this value.")
    return text


def _left(row: Candidate) -> str:
    if not row.rows_behind:
        return "no event falls behind the watermark"
    return f"{percent(row.share_behind)} of the events ({row.rows_behind:,}) fall behind the watermark"

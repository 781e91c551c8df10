"""The status of a job as text for a terminal."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Final, Literal

from rich import box
from rich.console import Console, ConsoleRenderable, Group
from rich.table import Table
from rich.text import Text

from slackwater.base.durations import render_ms, roughly
from slackwater.base.errors import counted
from slackwater.base.times import render_time
from slackwater.observe.metrics.failing import FailingBatch
from slackwater.observe.metrics.job_status import JobStatus, State, StepStatus, StreamStatus
from slackwater.observe.metrics.record import Quantiles

_COLOURS: Final = {"running": "green", "finished": "cyan", "stopped": "yellow", "dead": "red", "new": "white"}
_UNITS: Final = ("B", "kB", "MB", "GB", "TB")
_THOUSAND: Final = 1000
_SHOWN: Final = 5
_MOST_RANGES: Final = 20
_WORTH_SAYING_MS: Final = 1_000
_NAMED: Final = ("on_time", "refired", "late", "ignored")


def print_status(statuses: Iterable[JobStatus], console: Console) -> None:
    """Print the status of several jobs, one below the other."""
    console.print(together(statuses), highlight=False)


def together(statuses: Iterable[JobStatus]) -> ConsoleRenderable:
    """Return the status of several jobs, one below the other."""
    parts: list[ConsoleRenderable] = []
    for status in statuses:
        parts += [Text(""), rendered(status)] if parts else [rendered(status)]
    return Group(*parts)


def rendered(status: JobStatus) -> ConsoleRenderable:
    """Return the status of one job: a line about its state, one about its run, and tables."""
    parts: list[ConsoleRenderable] = [_head(status)]
    parts += [Text(f"warning: {status.history_loss}", style="yellow")] if status.history_loss else []
    parts += _failing(status.failing) if status.failing is not None else []
    if status.batch is not None:
        parts += [Text(line) for line in _run(status)]
        parts += [_streams(status), *_remarks(status)]
        parts += [_steps(status)] if status.steps else []
        parts += [_outputs(status), _sinks(status)]
        parts += [_dead(status)] if status.dead else []
    return Group(*parts)


def _head(status: JobStatus) -> Text:
    since = "" if status.since_ms is None else f" since {render_time(status.since_ms)[:19]} UTC"
    starts = f", {counted(status.starts, 'start')}" if status.starts else ""
    owner = f", {status.owner}" if status.state in {"running", "dead"} and status.owner else ""
    shown = Text(f"{status.pipeline}  ", style="bold")
    shown.append(status.state, style=_COLOURS[status.state])
    return shown.append(f"{since}{starts}{owner}  ({status.checkpoint})", style="not bold")


def _run(status: JobStatus) -> list[str]:
    phases = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in status.phases_s.items())
    assert status.batch_at_ms is not None, "a batch was delivered"
    ago = ""
    if status.state == "running":
        ago = f" ({roughly(max(0, round(time.time() * 1_000) - status.batch_at_ms))} ago)"
    batches = f"{status.batches:,} batch{'es' * (status.batches != 1)}"
    rows = f"{counted(status.rows, 'row')} in, {status.rows_out:,} out"
    return [
        f"batch {status.batch:,} at {render_time(status.batch_at_ms)[:19]} UTC{ago}; this run {batches}, {rows}",
        f"last minute {counted(round(status.rows_per_s), 'row')}/s, {status.batch_s:.2f} s a batch"
        + (phases and f" ({phases})"),
    ]


def _failing(failing: FailingBatch) -> list[Text]:
    """Return a line about a batch that fails, and one for each partition with the rows it reads."""
    times = f"{counted(failing.failures, 'time')}, last at {render_time(failing.at_ms)[:19]} UTC with {failing.code}"
    lines = [f"batch {failing.batch:,} has failed {times}" + "; it reads" * bool(failing.rows)]
    lines += [f"  {rows}" for rows in failing.rows[:_MOST_RANGES]]
    more = failing.more + len(failing.rows[_MOST_RANGES:])
    lines += [f"  and {counted(more, 'more range')}"] if more else []
    return [Text(line, style="red") for line in lines]


def _streams(status: JobStatus) -> Table:
    table = _table(
        "stream",
        **{
            "rows": "right",
            "rows/s": "right",
            "watermark": "left",
            "behind": "right",
            "lateness p99, worst batch": "right",
        },
        allowed="right",
        waiting="right",
    )
    for name, each in status.streams.items():
        table.add_row(
            Text(name),
            f"{each.rows:,}",
            f"{each.rows_per_s:,.0f}",
            _watermark(each, status.state),
            "" if each.watermark_lag_ms is None else roughly(max(0, each.watermark_lag_ms)),
            _p99(each.lateness_s),
            "" if each.out_of_orderness_ms is None else render_ms(each.out_of_orderness_ms),
            _waiting(each),
        )
    return table


def _watermark(stream: StreamStatus, state: State) -> str:
    if stream.watermark_ms is None:
        return "end of time" if state == "finished" else "none yet"
    return render_time(stream.watermark_ms)[:19]


def _waiting(stream: StreamStatus) -> str:
    if stream.lag is None:
        return ""
    return f"{stream.lag:,} ({stream.lag_per_s:+,.0f}/s)" if stream.lag_per_s else f"{stream.lag:,}"


def _remarks(status: JobStatus) -> list[Text]:
    """Return a line for everything unusual about the streams."""
    shown = []
    for name, each in status.streams.items():
        if each.held_back_ms > 0 and each.is_held_by_none:
            shown.append(f"{name}: held back by {each.held_by}, which has had no usable record")
        elif each.held_back_ms >= _WORTH_SAYING_MS and each.held_since_ms is not None:
            since = render_time(each.held_since_ms)[:19]
            shown.append(f"{name}: held back by {each.held_by}, {roughly(each.held_back_ms)} behind, since {since}")
        if each.aside and len(status.streams) > 1 and status.state != "finished":
            shown.append(f"{name}: set aside: {each.aside}")
        if each.waits_for:
            shown.append(f"{name}: waiting, {roughly(each.waits_ms)} ahead of {each.waits_for}")
        if each.idle:
            more = ", …" if len(each.idle) > _SHOWN else ""
            shown.append(f"{name}: {len(each.idle):,} idle: {', '.join(each.idle[:_SHOWN])}{more}")
        if each.ahead_of_clock:
            shown.append(f"{name}: {counted(each.ahead_of_clock, 'row')} ahead of the clock")
    return [Text(f"  {line}") for line in shown]


def _steps(status: JobStatus) -> Table:
    columns = dict.fromkeys((*_NAMED, "state", "rows held", "keys (est.)", "growth/h"), "right")
    table = _table("step", **columns, **{"largest key": "left"})
    for name, each in status.steps.items():
        counts = [f"{each.counts.get(what, 0):,}" for what in _NAMED]
        growth = "" if each.bytes_per_hour is None else _signed(each.bytes_per_hour)
        keys = "" if each.state_keys is None else f"{each.state_keys:,}"
        held = (size(each.state_bytes), f"{each.state_rows:,}", keys)
        table.add_row(Text(name), *counts, *held, growth, _largest(each))
    return table


def _largest(step: StepStatus) -> Text:
    return Text("" if step.largest_share is None else f"{step.largest_key} ({step.largest_share:.0%})")


def _outputs(status: JobStatus) -> Table:
    latency = {"event p50": "right", "p95": "right", "p99": "right", "ingestion p99": "right"}
    table = _table("output", **{"rows": "right", "rows/s": "right"}, **latency)
    for name, each in status.outputs.items():
        event = [_duration(each.event_s.get(q)) for q in ("0.5", "0.95", "0.99")]
        table.add_row(Text(name), f"{each.rows:,}", f"{each.rows_per_s:,.0f}", *event, _p99(each.ingestion_s))
    return table


def _sinks(status: JobStatus) -> Table:
    columns = dict.fromkeys(("rows", "seconds", "waited", "retries", "last batch"), "right")
    table = _table("sink", **columns)
    for name, each in status.sinks.items():
        batch = "" if each.last_batch is None else f"{each.last_batch:,}"
        waited = roughly(round(each.waited_s * 1_000))
        table.add_row(Text(name), f"{each.rows:,}", f"{each.seconds:.3f}", waited, f"{each.retries:,}", batch)
    return table


def _dead(status: JobStatus) -> Table:
    table = _table("dead letters of", reason="left", rows="right")
    for name, reasons in status.dead.items():
        for reason, count in reasons.items():
            table.add_row(Text(name), Text(reason), f"{count:,}")
    return table


def _table(first: str, **columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column(first, justify="left")
    for name, side in columns.items():
        justify: Literal["left", "right"] = "right" if side == "right" else "left"
        table.add_column(name, justify=justify)
    return table


def _p99(quantiles: Quantiles) -> str:
    return _duration(quantiles.get("0.99"))


def _duration(seconds: float | None) -> str:
    return "" if seconds is None else roughly(round(seconds * 1_000))


def size(number: float) -> str:
    """Return a number of bytes with its unit."""
    for unit in _UNITS[:-1]:
        if abs(number) < _THOUSAND:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= _THOUSAND
    return f"{number:.1f} {_UNITS[-1]}"


def _signed(number: float) -> str:
    return f"{'+' if number > 0 else ''}{size(number)}"

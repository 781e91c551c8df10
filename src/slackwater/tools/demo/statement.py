"""The statement at the end of the demo: the account, samples of each output, and where everything is."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import polars as pl
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from slackwater.tools.demo.account import DemoAccount, DemoOutcome
from slackwater.tools.demo.comparison import last_panes
from slackwater.tools.demo.definition import ACTIVE, PURCHASES
from slackwater.tools.demo.places import Place

_TITLES: Final = {PURCHASES: "purchases per\nuser per minute", ACTIVE: "active users,\nlast 5 minutes"}
_WIDE: Final = 62
_ROWS: Final = (
    ("counted on time", "on_time"),
    ("counted by a late re-firing", "refired"),
    ("late output", "late"),
    ("dead letters", "dead"),
)


def print_statement(
    console: Console, account: DemoAccount, outcome: DemoOutcome, *, took_s: float, place: Place | None = None
) -> None:
    """Print everything, the account first; `place` is the other place that rows went to, and is stopped by now."""
    console.print()
    console.print(_account(account))
    if account.place is not None and account.place.is_right:
        console.print(Text("✓ ", style="bold green") + Text(f"{account.place}\n"), soft_wrap=True)
    _print_samples(console, outcome)
    _print_places(console, outcome.folder, place)
    console.print()
    if account.is_balanced:
        words = f"Every record is accounted for, every window is right. ({took_s:.0f} s)"
        console.print(Text("✓ " + words, style="bold green"))
    else:
        console.print(Text("✗ The account does not balance:", style="bold red"))
        for complaint in account.complaints:
            console.print(f"  {complaint}")


def _account(account: DemoAccount) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title="The account", title_justify="left", title_style="bold")
    table.add_column("records")
    for step in account.steps:
        table.add_column(_TITLES[step.step], justify="right")
    table.add_row("read from the log", *[f"{account.records:,}"] * len(account.steps), end_section=True)
    for label, name in _ROWS:
        table.add_row(label, *(f"{getattr(step, name):,}" for step in account.steps))
    left = [account.records - step.total for step in account.steps]
    table.add_row("unaccounted for", *(_verdict(number) for number in left), end_section=True)
    table.add_row("windows recomputed", *(f"{step.windows:,}" for step in account.steps))
    table.add_row("differences", *(_verdict(step.differences) for step in account.steps))
    return table


def _verdict(number: int) -> Text:
    return Text(f"{number:,}", style="bold green" if number == 0 else "bold red")


def _print_samples(console: Console, outcome: DemoOutcome) -> None:
    results = outcome.output(PURCHASES)
    if not results.is_empty():
        corrected = last_panes(results, keys=["user_id", "window_start"]).filter(pl.col("pane_index") > 0).head(1)
        chosen = results.join(corrected.select("user_id", "window_start"), on=["user_id", "window_start"], how="semi")
        _print_sample(
            console,
            "A window and its correction",
            chosen.sort("pane_index").select("user_id", *_span(), "purchases", "cents", "pane", "pane_index"),
        )
    late = outcome.output(f"{PURCHASES}.late")
    if not late.is_empty():
        behind = (pl.col("late_by_ms") // 60_000).cast(pl.String) + " min"
        seen = late.sort("late_by_ms")[[0, late.height // 2, late.height - 1]]
        columns = ("event_id", "user_id", "cents", _time("event_time"), behind.alias("behind the watermark by"))
        _print_sample(console, "Late rows, as they arrived", seen.select(columns))
    if not outcome.dead.is_empty():
        each = outcome.dead.unique("reason", keep="first", maintain_order=True).sort("reason")
        place = pl.col("partition") + "/" + pl.col("offset").cast(pl.String)
        message = (
            pl.when(pl.col("message").str.len_chars() > _WIDE)
            .then(pl.col("message").str.slice(0, _WIDE - 1) + "…")
            .otherwise("message")
            .alias("message")
        )
        rows = each.select(place.alias("position"), "reason", message)
        _print_sample(console, "Dead letters, one of each kind", rows)


def _span() -> list[pl.Expr]:
    return [_time("window_start"), _time("window_end")]


def _time(column: str) -> pl.Expr:
    return pl.col(column).dt.strftime("%H:%M:%S")


def _print_sample(console: Console, title: str, rows: pl.DataFrame) -> None:
    if rows.is_empty():
        return
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", pad_edge=True)
    for name, dtype in rows.schema.items():
        table.add_column(name, justify="right" if dtype.is_numeric() else "left", no_wrap=True, style="default")
    for row in rows.rows():
        table.add_row(*(Text(f"{value:,}" if isinstance(value, int) else str(value)) for value in row))
    console.print(table)


def _print_places(console: Console, folder: Path, place: Place | None) -> None:
    grid = Table.grid(padding=(0, 3))
    grid.add_column()
    grid.add_column(style="cyan")
    out = folder / "out"
    for what, path in (
        ("results", out / PURCHASES),
        ("", out / ACTIVE),
        ("late events", out / f"{PURCHASES}.late"),
        ("", out / f"{ACTIVE}.late"),
        ("dead letters", out / "dead_letters"),
        *([place.left] if place else []),
        ("the log itself", folder / "log"),
        ("Spark's log", folder / "spark.log"),
    ):
        grid.add_row(f"  {what}", str(path))
    console.print(Text("Where everything is", style="bold"))
    console.print(grid)
    if place is not None and place.again:
        console.print(Text(f"\nTo look into {place.title.partition(' ')[0]} again", style="bold"))
        for command in place.again:
            console.print(Text(f"  {command}", style="cyan"), soft_wrap=True)

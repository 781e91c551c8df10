"""State for display and for programs: tables, JSON and Parquet."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, Final

import polars as pl
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from slackwater.base.times import TIMESTAMP
from slackwater.formats.row_json import json_objects
from slackwater.observe.metrics.status_text import size
from slackwater.observe.state_reading.summary import StepSummary
from slackwater.plan.explain import printable

_LARGEST: Final = pl.List(pl.Struct({"key": pl.String(), "entries": pl.Int64()}))
_SUMMARY: Final = pl.Schema(
    {
        "step": pl.String(),
        "bytes": pl.Int64(),
        "rows": pl.Int64(),
        "pieces": pl.Int64(),
        "keys": pl.Int64(),
        "oldest": TIMESTAMP,
        "largest": _LARGEST,
    }
)


def summary_frame(summaries: Sequence[StepSummary]) -> pl.DataFrame:
    """Return summaries as a frame, one row per step."""
    return pl.DataFrame([asdict(summary) for summary in summaries], schema=_SUMMARY)


def as_json(head: Mapping[str, Any], **frames: pl.DataFrame | Mapping[str, pl.DataFrame]) -> str:
    """Return a JSON object: the entries of `head`, and each frame as a list of objects, or such lists by name."""
    whole: dict[str, Any] = dict(head)
    for name, given in frames.items():
        whole[name] = (
            _rows(given) if isinstance(given, pl.DataFrame) else {of: _rows(each) for of, each in given.items()}
        )
    return json.dumps(whole, indent=2, ensure_ascii=False)


def print_summary(summaries: Sequence[StepSummary], console: Console) -> None:
    """Print the sizes of the steps, followed by their largest keys."""
    table = _table("step", size="right", rows="right", keys="right", pieces="right", oldest="left")
    for each in summaries:
        keys = "?" if each.keys is None else f"{each.keys:,}"
        table.add_row(Text(each.step), size(each.bytes), f"{each.rows:,}", keys, f"{each.pieces:,}", _cell(each.oldest))
    console.print(table, highlight=False)
    if any(each.largest for each in summaries):
        table = _table("step", **{"largest keys": "left", "entries": "right"})
        for each in summaries:
            for place, key in enumerate(each.largest):
                table.add_row(Text("" if place else each.step), Text(printable(key["key"])), f"{key['entries']:,}")
        console.print(table, highlight=False)


def print_rows(steps: Mapping[str, pl.DataFrame], console: Console) -> None:
    """Print the rows of each step: as a table if it fits, otherwise as lines of name and value."""
    for name, rows in steps.items():
        console.print(Text(f"step {name}"), highlight=False)
        cells = [[_cell(value) for value in row] for row in rows.rows()]
        widths = [max(map(len, column)) for column in zip(rows.columns, *cells, strict=True)]
        if sum(widths) + 2 * len(widths) < console.width:
            table = _table(**dict.fromkeys(rows.columns, "left"))
            for row in cells:
                table.add_row(*map(Text, row))
            console.print(table, highlight=False)
        else:
            label = max(map(len, rows.columns))
            for row in cells:
                lines = [f"  {column:<{label}}  {value}" for column, value in zip(rows.columns, row, strict=True)]
                console.print(Text("\n" + "\n".join(lines)), highlight=False)
            console.print()


def _table(first: str = "", **columns: Any) -> Table:  # noqa: ANN401  the alignment of each
    table = Table(box=box.SIMPLE_HEAD)
    if first:
        table.add_column(first, no_wrap=True)
    for name, justify in columns.items():
        table.add_column(Text(name), no_wrap=True, justify=justify)
    return table


def _rows(frame: pl.DataFrame) -> list[Any]:
    return [json.loads(text) for text in json_objects(frame)] if frame.height else []


def _cell(value: Any) -> str:  # noqa: ANN401  a value of any column
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(sep=" ", timespec="milliseconds").removesuffix(".000")
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={_cell(each)}" for name, each in value.items())
    if isinstance(value, list):
        return "[" + "; ".join(map(_cell, value)) + "]"
    return value.hex() if isinstance(value, bytes) else printable(str(value))

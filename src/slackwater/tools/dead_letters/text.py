"""Dead letters in readable form: a table, a single letter in full, and counts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final, Literal

import polars as pl
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

By = Literal["reason", "step", "source", "hour"]

SHOWN_DIGITS: Final = 10
"""The digits of an id that a table shows; any unambiguous prefix identifies a letter."""
_BYTES_A_LINE: Final = 16
_PRINTABLE: Final = range(0x20, 0x7F)


def print_letters(letters: pl.DataFrame, console: Console) -> None:
    """Print letters as a table; `letters` also has `id`, `retried` (a time) and `unsettled` (a boolean)."""
    table = Table(box=box.SIMPLE_HEAD)
    for name in ("id", "processed at", "retried", "partition", "offset", "step", "reason"):
        table.add_column(name, no_wrap=True, justify="right" if name == "offset" else "left")
    table.add_column("message")
    for row in letters.iter_rows(named=True):
        retried = "unsettled" if row["unsettled"] else time_text(row["retried"]) if row["retried"] else ""
        table.add_row(
            row["id"][:SHOWN_DIGITS],
            time_text(row["processed_at"]),
            retried,
            *(Text(str(row[name])) for name in ("partition", "offset", "step", "reason")),
            _one_line(row["message"]),
            style="dim" if retried else "",
        )
    console.print(table, highlight=False)


def print_stats(stats: pl.DataFrame, by: By, console: Console) -> None:
    """Print the counts of `count_by`."""
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column(by, no_wrap=True)
    for name in ("letters", "share"):
        table.add_column(name, no_wrap=True, justify="right")
    for name in ("first", "last"):
        table.add_column(name, no_wrap=True)
    table.add_column("for example")
    for row in stats.iter_rows(named=True):
        group = time_text(row["group"]) if isinstance(row["group"], datetime) else str(row["group"])
        times = (time_text(row["first"]), time_text(row["last"]))
        table.add_row(Text(group), f"{row['letters']:,}", f"{row['share']:.1%}", *times, _one_line(row["example"]))
    console.print(table, highlight=False)


def count_by(letters: pl.LazyFrame, by: By) -> pl.DataFrame:
    """Count letters by reason, step, source or hour: most frequent first, hours in order."""
    group = pl.col("processed_at").dt.truncate("1h") if by == "hour" else pl.col(by)
    counts = letters.group_by(group=group).agg(
        letters=pl.len(),
        first=pl.col("processed_at").min(),
        last=pl.col("processed_at").max(),
        example=pl.col("message").drop_nulls().first(),
    )
    shares = counts.with_columns(share=pl.col("letters") / pl.col("letters").sum())
    if by == "hour":
        return shares.sort("group").collect()
    return shares.sort("letters", "group", descending=[True, False]).collect()


def letter_text(letter: dict[str, Any], retried: str) -> str:
    """Return a letter in full."""
    return "\n".join(_facts(letter, retried)) + "\n"


def time_text(moment: datetime | None) -> str:
    """Return a letter's time in readable form, in UTC and to the second."""
    return "" if moment is None else moment.strftime("%Y-%m-%d %H:%M:%S")


def _facts(letter: dict[str, Any], retried: str) -> Iterator[str]:
    yield f"id              {letter['id']}"
    yield f"reason          {letter['reason']}"
    yield f"message         {_visible(letter['message'] or '')}".rstrip()
    yield f"step            {letter['step']}"
    yield f"source          {_visible(letter['source'])}"
    yield f"partition       {_visible(letter['partition'])}"
    yield f"offset          {letter['offset']}"
    yield f"ingestion time  {_exactly(letter['ingestion_time'])}"
    yield f"processed at    {_exactly(letter['processed_at'])}"
    yield f"retried         {retried}"
    yield f"key             {_inline(letter['key'])}"
    if letter["headers"] is None:
        yield "headers         none"
    else:
        yield f"headers         {len(letter['headers'])}"
        yield from (f"  {header['name']}: {_inline(header['value'])}" for header in letter["headers"])
    payload: bytes | None = letter["payload"]
    if payload is None:
        yield "payload         none"
        return
    if not payload:
        yield "payload         0 bytes"
        return
    form, lines = _content(payload)
    yield f"payload         {len(payload):,} bytes, {form}"
    yield from (f"  {line}" for line in lines)


def _content(payload: bytes) -> tuple[str, Iterator[str]]:
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        return "not UTF-8", _hex_dump(payload)
    try:
        # Keep numbers as written: the letter may be here because one was too large.
        value = json.loads(
            text, parse_float=_Number, parse_int=_Number, parse_constant=_no_number, object_pairs_hook=_Object
        )
        form, text = "JSON", _pretty(value)
    except (ValueError, RecursionError):
        form = "text"
    return form, (_visible(line) for line in text.split("\n"))


class _Number(str):
    """A JSON number as written."""

    __slots__ = ()


class _Object(list[tuple[str, object]]):
    """A JSON object with all its fields, including duplicates."""


def _no_number(name: str) -> object:
    raise ValueError(name)


def _pretty(value: object, indent: str = "") -> str:
    if isinstance(value, _Number):
        return value
    inner = indent + "  "
    if isinstance(value, _Object) and value:
        items = [f"{inner}{json.dumps(name, ensure_ascii=False)}: {_pretty(item, inner)}" for name, item in value]
        return "{\n" + ",\n".join(items) + f"\n{indent}}}"
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(inner + _pretty(item, inner) for item in value) + f"\n{indent}]"
    return "{}" if isinstance(value, _Object) else json.dumps(value, ensure_ascii=False)


def _hex_dump(payload: bytes) -> Iterator[str]:
    for start in range(0, len(payload), _BYTES_A_LINE):
        part = payload[start : start + _BYTES_A_LINE]
        shown = "".join(chr(byte) if byte in _PRINTABLE else "." for byte in part)
        yield f"{start:08x}  {part.hex(' '):<{3 * _BYTES_A_LINE - 1}}  {shown}"


def _inline(value: bytes | None) -> str:
    if value is None:
        return "none"
    try:
        return _visible(value.decode())
    except UnicodeDecodeError:
        return f"0x{value.hex()}"


def _visible(text: str) -> str:
    """Escape characters that would move a terminal's cursor or change its colours."""
    return "".join(letter if letter.isprintable() or letter == "\t" else repr(letter)[1:-1] for letter in text)


def _one_line(text: str | None) -> Text:
    """Return `text` on one line, for the column that is shortened when the terminal is narrow."""
    return Text(_visible(" ".join((text or "").split())), no_wrap=True, overflow="ellipsis")


def _exactly(moment: datetime | None) -> str:
    return "" if moment is None else moment.isoformat(sep=" ", timespec="milliseconds").replace("+00:00", "")

"""Console: prints rows as they arrive, to watch a running pipeline."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from typing import Final

import polars as pl

from slackwater.base.errors import counted, refuse
from slackwater.base.terminal_line import above_the_line
from slackwater.connectors.sink import EVERYTHING, Change, Mark, Sink, SinkBatch, SinkWriter, Slot
from slackwater.formats.python_range import limited

_WIDTH: Final = 200
"""The width in columns if there is no terminal."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ConsoleSink(Sink):
    """Prints the first rows of every batch."""

    limit: int
    takes: frozenset[Change] = EVERYTHING

    def open(self, slot: Slot) -> SinkWriter:
        """Open the console for one output."""
        return _Printer(output=slot.output, limit=self.limit)

    def __str__(self) -> str:
        return "console"


def console(*, limit: int = 20) -> ConsoleSink:
    """Print the first `limit` rows of every batch."""
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise refuse("CONSOLE_LIMIT", got=repr(limit))
    return ConsoleSink(limit=limit)


@dataclass(kw_only=True)
class _Printer(SinkWriter):
    output: str
    limit: int

    def write(self, batch: SinkBatch, mark: Mark | None) -> None:  # noqa: ARG002  keeps no marks
        """Print the number of rows and the first of them, in lines of their own."""
        rows = _printable(pl.concat(list(batch.frames())).head(self.limit))
        config = pl.Config(
            tbl_rows=self.limit,
            tbl_cols=-1,
            tbl_width_chars=shutil.get_terminal_size(fallback=(_WIDTH, 0)).columns,
            tbl_hide_dataframe_shape=True,
            tbl_hide_column_data_types=True,
        )
        with config, above_the_line(sys.stdout):
            print(f"{self.output}, batch {batch.batch}: {counted(batch.rows, 'row')}", rows, sep="\n", flush=True)  # noqa: T201  its purpose


def _printable(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows with columns that hold a date or time beyond the calendar as the numbers they are stored as."""
    beyond = rows.select(each.any() for each in limited(rows.schema).values())
    far = [name for name in beyond.columns if beyond[name].item()]
    return rows.with_columns(pl.col(name).to_physical() for name in far)

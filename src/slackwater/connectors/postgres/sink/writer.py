"""An open slot of a table: rows are staged, then moved into the table together with the mark.

1. Begin. Copy the rows into a temporary table that only this transaction sees; only the last row of each key.
2. Update the slot's row in the ledger with the mark; a writer whose slot was opened by another stops here.
3. Move the rows: delete, insert, update.
4. Commit.

Copying, which takes longest, holds no locks: a writer that hangs there blocks nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from slackwater.base.crash_points import crash_point
from slackwater.connectors.postgres.connection import transaction
from slackwater.connectors.postgres.names import quoted, quoted_list
from slackwater.connectors.postgres.sink.csv_rows import CsvRows
from slackwater.connectors.postgres.sink.ledger import SlotLease
from slackwater.connectors.postgres.sink.tables import TargetTable
from slackwater.connectors.sink import Mark, SinkBatch, SinkWriter

if TYPE_CHECKING:
    import psycopg

CHUNK_ROWS: Final = 250_000
CHUNK_BYTES: Final = 64 << 20
"""The limits of what is copied at once: small frames are combined, and memory does not grow with the batch."""
_STAGE: Final = "slackwater_stage"
_RETRACTION: Final = "is_retraction"
_CHUNK, _GONE = "__chunk", "__gone"


@dataclass(kw_only=True)
class PostgresWriter(SinkWriter):
    """Writes batches over one connection."""

    connection: psycopg.Connection[Any]
    table: TargetTable
    rows: CsvRows
    keys: dict[str, str]
    """The key columns of the rows, with their names in the table; empty if rows are appended."""
    lease: SlotLease | None
    sink: object

    def mark(self) -> Mark | None:
        """Return the slot's mark as of its opening: nobody else can have changed it since."""
        return None if self.lease is None else self.lease.mark

    def write(self, batch: SinkBatch, mark: Mark | None) -> None:
        """Write a batch, in the steps listed in the module's docstring."""
        keys = self.keys.values()
        with transaction(self.connection, sink=self.sink, doing=f"batch {batch.batch}", keys=keys):
            chunks, has_retractions = self._stage(batch)  # 1
            if mark is not None:
                assert self.lease is not None, "who is given marks has a lease"
                self.lease.note(self.connection, mark, self.sink)  # 2
            for statement in self._moves(chunks=chunks, has_retractions=has_retractions):  # 3
                self.connection.execute(statement.encode())
            crash_point("written", batch.batch)
        # 4: leaving the transaction commits

    def close(self) -> None:
        """Close the connection; the server rolls back what is not committed."""
        self.connection.close()

    @property
    def _names(self) -> list[str]:
        return [field.name for field in self.rows.fields]

    def _stage(self, batch: SinkBatch) -> tuple[int, bool]:
        """Copy the rows into the temporary table; return the number of chunks, and whether some are retractions."""
        columns = [f"{quoted(name)} {self.table.columns[name].type}" for name in self._names]
        columns += [f"{_CHUNK} integer", f"{_GONE} boolean"] if self.keys else []
        self.connection.execute(f"CREATE TEMPORARY TABLE {_STAGE} ({', '.join(columns)}) ON COMMIT DROP".encode())
        chunks, has_retractions = 0, False
        with (
            self.connection.cursor() as cursor,
            cursor.copy(f"COPY pg_temp.{_STAGE} FROM STDIN (FORMAT csv)".encode()) as copy,
        ):
            for frame in _gathered(batch.frames()):
                rows = frame
                extra: tuple[pl.Expr, ...] = ()
                if self.keys:
                    rows = frame.unique(list(self.keys), keep="last").sort(list(self.keys))
                    gone = (
                        pl.col(_RETRACTION).fill_null(value=False)
                        if _RETRACTION in rows.columns
                        else pl.lit(value=False)
                    )
                    has_retractions |= bool(rows.select(gone.any()).item())
                    extra = (pl.lit(chunks).alias(_CHUNK), gone.alias(_GONE))
                copy.write(self.rows.encoded(rows, extra))
                chunks += 1
        return chunks, has_retractions

    def _moves(self, *, chunks: int, has_retractions: bool) -> Iterator[str]:
        """Yield the statements that move the staged rows into the table."""
        names = quoted_list(self._names)
        insert = f"INSERT INTO {self.table.name.sql} ({names}) SELECT {names} FROM pg_temp.{_STAGE}"  # noqa: S608  names are quoted
        if not self.keys:
            yield insert
            return
        if chunks > 1:
            same = _equal("old", "new", self.keys.values())
            yield (
                f"DELETE FROM pg_temp.{_STAGE} old USING pg_temp.{_STAGE} new "  # noqa: S608  all names are quoted
                f"WHERE {same} AND old.{_CHUNK} < new.{_CHUNK}"
            )
        if has_retractions:
            same = _equal("target", "stage", self.keys.values())
            yield (
                f"DELETE FROM {self.table.name.sql} target USING pg_temp.{_STAGE} stage "  # noqa: S608  names are quoted
                f"WHERE stage.{_GONE} AND {same}"
            )
        others = [quoted(name) for name in self._names if name not in self.keys.values()]
        update = f"UPDATE SET {', '.join(f'{name} = EXCLUDED.{name}' for name in others)}" if others else "NOTHING"
        yield f"{insert} WHERE NOT {_GONE} ON CONFLICT ({quoted_list(self.keys.values())}) DO {update}"


def _equal(left: str, right: str, keys: Iterable[str]) -> str:
    return " AND ".join(f"{left}.{quoted(key)} = {right}.{quoted(key)}" for key in keys)


def _gathered(frames: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Combine small frames, in order."""
    held: list[pl.DataFrame] = []
    rows = size = 0
    for frame in frames:
        held.append(frame)
        rows, size = rows + frame.height, size + int(frame.estimated_size())
        if rows >= CHUNK_ROWS or size >= CHUNK_BYTES:
            yield pl.concat(held)
            held, rows, size = [], 0, 0
    if held:
        yield pl.concat(held)

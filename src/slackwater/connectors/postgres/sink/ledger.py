"""The ledger: a table in the target's schema with one row per slot: its last mark and the epoch of its writer.

Opening a slot increments its epoch. A batch is committed by an update of the slot's row that requires the writer's own
epoch, in the same transaction as the rows: if the slot has been opened since, no row matches, and nothing is committed.
The row lock settles the order: if a writer is about to commit, the slot is opened after that commit and its mark is
seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from slackwater.base.errors import fault
from slackwater.connectors.postgres.names import TableName
from slackwater.connectors.sink import Mark, Slot, Unavailable

if TYPE_CHECKING:
    import psycopg

LEDGER: Final = "slackwater_ledger"

_COLUMNS: Final = """(
    pipeline text NOT NULL,
    output text NOT NULL,
    sink text NOT NULL,
    slot integer NOT NULL,
    epoch bigint NOT NULL,
    incarnation text,
    batch bigint,
    token text,
    written_at timestamp with time zone,
    PRIMARY KEY (pipeline, output, sink, slot)
)"""
_OF_SLOT: Final = "WHERE pipeline = %s AND output = %s AND sink = %s AND slot = %s"


def ledger_of(target: TableName) -> TableName:
    """Return the ledger of a target: there is one per schema."""
    return TableName(schema=target.schema, table=LEDGER)


def ledger_ddl(ledger: TableName) -> str:
    """Return the statement that creates a ledger."""
    return f"CREATE TABLE IF NOT EXISTS {ledger.sql} {_COLUMNS}"


@dataclass(frozen=True, kw_only=True)
class SlotLease:
    """The ownership of a slot, from opening it until another writer opens it."""

    slot: Slot
    target: TableName
    epoch: int
    mark: Mark | None
    """The slot's last mark when it was opened."""

    @classmethod
    def taken(cls, connection: psycopg.Connection[Any], slot: Slot, target: TableName) -> SlotLease:
        """Take over the slot."""
        statement = f"""
            INSERT INTO {_in_query(target)} AS ledger (pipeline, output, sink, slot, epoch) VALUES (%s, %s, %s, %s, 1)
            ON CONFLICT (pipeline, output, sink, slot) DO UPDATE SET epoch = ledger.epoch + 1
            RETURNING epoch, incarnation, batch, token
        """  # noqa: S608  the name is quoted
        row = connection.execute(statement.encode(), _key(slot, target)).fetchone()
        assert row is not None
        epoch, *found = row
        stored = dict(zip(("incarnation", "batch", "token"), found, strict=True))
        mark = None if stored["incarnation"] is None else Mark.from_dict(stored)
        return cls(slot=slot, target=target, epoch=epoch, mark=mark)

    def note(self, connection: psycopg.Connection[Any], mark: Mark, sink: object) -> None:
        """Record the mark of the rows in this transaction; until its end, nobody else can open the slot."""
        statement = f"""
            UPDATE {_in_query(self.target)} SET incarnation = %s, batch = %s, token = %s, written_at = now()
            {_OF_SLOT} AND epoch = %s
        """  # noqa: S608  the name is quoted
        values = (mark.incarnation, mark.batch, mark.token, *_key(self.slot, self.target), self.epoch)
        if connection.execute(statement.encode(), values).rowcount == 1:
            return
        look = f"SELECT epoch FROM {_in_query(self.target)} {_OF_SLOT}"  # noqa: S608  the name is quoted
        if connection.execute(look.encode(), _key(self.slot, self.target)).fetchone() is None:
            raise Unavailable("the slot's row in the ledger is gone")  # reopening the slot judges the missing mark
        facts = {"output": self.slot.output, "pipeline": self.slot.pipeline, "slot": self.slot.number}
        raise fault("POSTGRES_SHUT_OUT", sink=sink, **facts)


def _in_query(target: TableName) -> str:
    """Return the ledger's name for a statement with parameters, in which percent signs are doubled."""
    return ledger_of(target).sql.replace("%", "%%")


def _key(slot: Slot, target: TableName) -> tuple[str, str, str, int]:
    return slot.pipeline, slot.output, str(target), slot.number

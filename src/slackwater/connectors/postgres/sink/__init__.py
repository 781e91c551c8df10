"""Postgres as a sink: rows are appended, or one row per key is kept up to date, exactly once.

The transaction is the server's own. Rows are copied into a temporary table; at the end of the transaction, the writer
updates the slot's row in the ledger with the mark and moves the rows into the target. So rows and mark become visible
together, and a writer that was replaced meanwhile finds the ledger's row taken.
"""

from slackwater.connectors.postgres.sink.definition import PostgresSink, postgres

__all__ = ["PostgresSink", "postgres"]

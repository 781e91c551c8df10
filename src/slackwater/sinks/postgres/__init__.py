"""Postgres: rows appended, or one row a key kept up to date, exactly once.

The transaction is the server's own. Rows are copied into a temporary table; then one short transaction's end takes the
slot's row in the ledger, moves the rows into the target and notes the mark, so that rows and mark become visible
together, and a writer that was replaced meanwhile finds the ledger's row taken.
"""

from slackwater.sinks.postgres.definition import PostgresSink, postgres

__all__ = ["PostgresSink", "postgres"]

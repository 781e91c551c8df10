"""Tables that streams are joined with: small, the same for all rows of a batch, with versions that are written down."""

from slackwater.tables.definition import Table, table

__all__ = ["Table", "table"]

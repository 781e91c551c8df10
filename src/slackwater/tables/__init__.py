"""Tables to join streams with: small, the same for all rows of a batch, with persisted versions."""

from slackwater.tables.definition import Table, table

__all__ = ["Table", "table"]

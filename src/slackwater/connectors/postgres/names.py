"""Table names: parsed once, and always quoted in SQL."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from slackwater.base.errors import refuse

LONGEST_NAME: Final = 63
"""In bytes; the server truncates longer names without an error."""


@dataclass(frozen=True, kw_only=True)
class TableName:
    """A table and its schema, spelled as stored."""

    schema: str
    table: str

    @property
    def sql(self) -> str:
        """The quoted name, for SQL."""
        return f"{quoted(self.schema)}.{quoted(self.table)}"

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"


def table_name(given: object) -> TableName:
    """Return the table that the user names; without a schema it is in `public`."""
    parts = given.split(".") if isinstance(given, str) else []
    if len(parts) not in (1, 2) or not all(is_name(part) for part in parts):
        raise refuse("POSTGRES_TABLE_NAME", got=repr(given))
    return TableName(schema=parts[0] if len(parts) > 1 else "public", table=parts[-1])


def is_name(text: str) -> bool:
    """Return whether the server can store `text` as a name."""
    return 0 < len(text.encode()) <= LONGEST_NAME and "\x00" not in text


def quoted(name: str) -> str:
    """Return a name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def quoted_list(names: Iterable[str]) -> str:
    """Return names as a list of quoted SQL identifiers."""
    return ", ".join(quoted(name) for name in names)

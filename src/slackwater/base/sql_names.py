"""Names in SQL that Polars does not understand as users mean them: some types, a column `user`, and the clock."""

from __future__ import annotations

import re
from typing import Final

_KNOWN: Final = {"long": "bigint", "short": "smallint", "byte": "tinyint"}
"""Type names that schemas accept but Polars' SQL does not."""
_QUOTED: Final = r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|--[^\n]*|/\*.*?\*/"""
_NAMES: Final = "|".join(_KNOWN)
# In cast(x as long) the last word is a type; in `x as long` it is the name of a column.
_TYPE: Final = rf"(?P<before>\bas\s+)(?P<last>{_NAMES})(?=\s*\))|(?P<colons>::\s*)(?P<type>{_NAMES})\b"
# In SQL `user` is the session's user, which means nothing here; a stream with a column of that name is common.
_USER: Final = r"(?P<user>\buser\b)(?!\s*\()"
_CLOCK: Final = r"(?P<clock>\b(?:current_(?:date|time|timestamp)|localtime(?:stamp)?|now(?=\s*\()))\b"
_CLOCK_PIECE: Final = re.compile(f"{_QUOTED}|{_CLOCK}", re.IGNORECASE | re.DOTALL)
_PIECE: Final = re.compile(f"{_QUOTED}|{_TYPE}|{_USER}", re.IGNORECASE | re.DOTALL)


def with_known_names(text: str) -> str:
    """Return SQL with names that Polars understands; quoted parts are left unchanged."""
    return _PIECE.sub(_known, text)


def clock_in(text: str) -> str | None:
    """Return the first SQL keyword that reads the clock, or None; Polars would evaluate it once, while parsing."""
    return next((piece["clock"] for piece in _CLOCK_PIECE.finditer(text) if piece["clock"]), None)


def _known(piece: re.Match[str]) -> str:
    if piece["user"] is not None:
        return f'"{piece["user"]}"'
    name = piece["last"] or piece["type"]
    return piece[0] if name is None else (piece["before"] or piece["colons"]) + _KNOWN[name.lower()]

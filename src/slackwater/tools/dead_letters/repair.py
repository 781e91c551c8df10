"""The user's repair function: loaded from its file, and called for each letter."""

from __future__ import annotations

import runpy
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import polars as pl

from slackwater.base.errors import fault, near_miss, refuse
from slackwater.base.folders import given_path

Repair = Callable[[bytes, dict[str, Any]], bytes | None]
"""Takes a payload and its letter, and returns the payload to send instead; None skips the letter."""

_NAME: Final = "__repair__"


@dataclass(frozen=True, kw_only=True)
class Left:
    """A letter that is not sent, and why."""

    id: str
    why: str

    def __str__(self) -> str:
        return f"{self.id}: {self.why}"


@dataclass(frozen=True, kw_only=True)
class Repaired:
    """The result of repairing letters."""

    letters: pl.DataFrame
    """The letters to send, with their new payloads."""
    declined: int
    """The number of letters that the function skipped by returning None."""
    left: tuple[Left, ...]
    """The letters on which the function failed."""


def load_repair(name: str) -> Repair:
    """Load the function named by `FILE.py:function`."""
    path, colon, function = name.rpartition(":")
    if not colon or not path or not function.isidentifier():
        raise refuse("REPAIR_NAME", got=repr(name))
    path = str(given_path(path))
    try:
        found = runpy.run_path(path, run_name=_NAME)
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
        at = f"line {lines[-1]}: " if lines else ""
        raise fault("REPAIR_FILE", file=path, cause=f"{at}{type(error).__name__}: {error}") from error
    repair: Repair | None = found.get(function)
    if not callable(repair):
        known = [each for each, value in found.items() if callable(value) and not each.startswith("_")]
        raise fault("REPAIR_MISSING", file=Path(path), name=function, near=near_miss(function, known))
    return repair


def repair_letters(letters: pl.DataFrame, repair: Repair) -> Repaired:
    """Call `repair` for each letter; letters on which it fails are left out.

    For a letter without a payload, the function gets empty bytes, and `letter["payload"]` is None.
    """
    kept: list[int] = []
    payloads: list[bytes] = []
    left: list[Left] = []
    for number, letter in enumerate(letters.drop("record", "ids").iter_rows(named=True)):
        try:
            payload = repair(letter["payload"] or b"", letter)
        except Exception as error:  # noqa: BLE001  a user's function, on broken data: reported with the letter
            left.append(Left(id=letter["id"], why=f"the repair raised {_words(error)}"))
            continue
        if isinstance(payload, bytes):
            kept.append(number)
            payloads.append(payload)
        elif payload is not None:
            why = f"the repair returned {type(payload).__name__}; it must return bytes, or None to skip the letter"
            left.append(Left(id=letter["id"], why=why))
    repaired = letters[kept].with_columns(payload=pl.Series(payloads, dtype=pl.Binary))
    return Repaired(letters=repaired, declined=letters.height - len(kept) - len(left), left=tuple(left))


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ").replace("\n", " ")

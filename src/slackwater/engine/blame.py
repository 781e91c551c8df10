"""Blame: finds the rows that make a computation fail, when it fails on many rows at once.

Rows of different keys do not affect each other, so the keys are bisected until the failing ones are left. The rows of
such a key are then admitted in their order, half by half: a row with which the computation fails, while it succeeds on
the rows admitted before it, is to blame. So of two rows that fail only together, the later one is, however the rows
were batched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from slackwater.base.errors import RowError, SlackwaterError, UnplacedError, cause_of
from slackwater.base.expressions import FAILURES
from slackwater.base.stable_hash import U64

I64 = npt.NDArray[np.int64]
Attempt = Callable[[I64], None]
"""Runs the computation on the rows with the given numbers, in order, and leaves no trace; raises if it fails."""
_MOST_PER_KEY: Final = 100
"""The most rows of one key that are found one by one; above it, the rows of the key that are left are to blame too."""
_LONGEST: Final = 1_000


def is_of_rows(error: BaseException) -> bool:
    """Return whether rows may be to blame for `error`; what Slackwater or the machine reports is not their fault."""
    if isinstance(error, UnplacedError | RowError):
        return True
    return isinstance(error, FAILURES) and not isinstance(error, MemoryError | SlackwaterError)


def blamed_rows(hashes: U64, attempt: Attempt) -> dict[int, str]:
    """Return the numbers of the rows on which `attempt` fails, each with the error's text; `hashes` are of their keys.

    The attempt on all rows has failed. An error that no row is to blame for is raised.
    """
    bad: dict[int, str] = {}
    for rows in _failing_keys(np.argsort(hashes, kind="stable"), hashes, attempt):
        _admit(rows, attempt, bad)
    return dict(sorted(bad.items()))


def _failing_keys(rows: I64, hashes: U64, attempt: Attempt) -> Iterator[I64]:
    """Yield the rows of each key on whose rows `attempt` fails; `rows` are sorted by hash."""
    starts = np.flatnonzero(np.append(True, np.diff(hashes[rows]) != 0))
    if _failure(rows, attempt) is None:
        return
    if len(starts) == 1:
        yield np.sort(rows)
        return
    half = int(starts[len(starts) // 2])
    yield from _failing_keys(rows[:half], hashes, attempt)
    yield from _failing_keys(rows[half:], hashes, attempt)


def _admit(rows: I64, attempt: Attempt, bad: dict[int, str]) -> None:
    """Admit the rows of one key in order, and add those that fail to `bad`."""
    admitted = np.empty(0, np.int64)
    waiting, found = [rows], 0
    while waiting:
        part = waiting.pop()
        error = _failure(np.append(admitted, part), attempt)
        if error is None:
            admitted = np.append(admitted, part)
        elif len(part) == 1 or found >= _MOST_PER_KEY:
            bad.update(dict.fromkeys(map(int, part), _text(error)))
            found += len(part)
        else:
            half = len(part) // 2
            waiting += [part[half:], part[:half]]


def _failure(rows: I64, attempt: Attempt) -> BaseException | None:
    try:
        attempt(np.sort(rows))
    except FAILURES as error:
        if not is_of_rows(error):
            raise
        return error
    return None


def _text(error: BaseException) -> str:
    cause = error.__cause__ if isinstance(error, UnplacedError) and error.__cause__ else error
    return (str(cause) if isinstance(cause, RowError | UnplacedError) else cause_of(cause))[:_LONGEST]

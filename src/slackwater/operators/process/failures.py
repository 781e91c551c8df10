"""Errors in the user's code as one line, for the message of a dead letter."""

from __future__ import annotations

import traceback
from collections.abc import Generator
from pathlib import Path
from typing import Final

from slackwater.base.errors import cause_of
from slackwater.base.expressions import FAILURES

MOST_LETTERS: Final = 1000
_PACKAGE: Final = str(Path(__file__).resolve().parents[2])
_SHOWN_FRAMES: Final = 3


class MisfitError(TypeError):
    """The user's code returned something of the wrong type; the message describes it."""


def described(error: BaseException) -> str:
    """Return the cause of an error, and the last lines of the user's code in its traceback, if there are any."""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if not frame.filename.startswith(_PACKAGE)]
    lines = [f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}: {frame.line}" for frame in theirs]
    cause = str(error) if isinstance(error, MisfitError) else cause_of(error)
    return " | ".join([cause, *lines[-_SHOWN_FRAMES:]])[:MOST_LETTERS]


def ended(made: object, error: BaseException) -> str:
    """Run what a failed call has left to run, such as a generator's `finally`; return the error message if that fails.

    `made` is what the call returned. Generators that it was using are held by the frames of its `error`.
    """
    message = ""
    if isinstance(made, Generator):
        try:
            made.close()
        except FAILURES as another:
            if isinstance(another, MemoryError):
                raise
            message = f"and when it was closed: {described(another)}"
    chain: BaseException | None = error
    seen: set[int] = set()
    while chain is not None and id(chain) not in seen:
        seen.add(id(chain))
        traceback.clear_frames(chain.__traceback__)
        chain = chain.__cause__ or chain.__context__
    return message

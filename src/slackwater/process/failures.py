"""Errors in the user's code as one line, for the message of a dead letter."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Final

from slackwater.errors import cause_of

MOST_LETTERS: Final = 1000
_PACKAGE: Final = str(Path(__file__).resolve().parents[1])
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

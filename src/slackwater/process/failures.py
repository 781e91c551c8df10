"""What went wrong in the user's code, in one line for the message of a dead letter."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Final

from slackwater.errors import cause_of

MOST_LETTERS: Final = 1000
_PACKAGE: Final = str(Path(__file__).resolve().parents[1])
_SHOWN_FRAMES: Final = 3


def told(error: BaseException) -> str:
    """Return what went wrong, and the last lines of the user's code on the way there."""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if not frame.filename.startswith(_PACKAGE)] or frames
    lines = [f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}: {frame.line}" for frame in theirs]
    return " | ".join([cause_of(error), *lines[-_SHOWN_FRAMES:]])[:MOST_LETTERS]

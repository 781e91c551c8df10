"""Errors of ours that were raised in a Python worker and come back wrapped in Spark's."""

from __future__ import annotations

import re
from typing import Final

from slackwater.catalogue import CATALOGUE
from slackwater.errors import RunError

_OURS: Final = re.compile(r"slackwater\.\S+: \[([A-Z0-9_]+)\] (.+)")


def unwrapped(error: BaseException) -> BaseException:
    """Return the error of ours that made a worker fail, so that users read a sentence; else `error` itself."""
    if isinstance(error, RunError):
        return error
    for code, message in _OURS.findall(str(error)):
        if code in CATALOGUE:
            found = RunError(code, message)
            found.__cause__ = error
            return found
    return error

"""Names that users give to streams, steps and pipelines."""

from __future__ import annotations

import re
from typing import Final

from slackwater.base.errors import refuse

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def checked_name(name: str, what: str) -> str:
    """Return `name` if it can be used in file names, state and metrics; raise an error otherwise."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise refuse("BAD_NAME", what=what, got=repr(name))
    return name

"""The limit of open files: raised where the system allows it, and checked before Spark is started."""

from __future__ import annotations

import resource
from typing import Final

from slackwater.base.errors import fault

NEEDED: Final = 1_024
"""Spark's classpath alone is 300 files; state, shuffles and connections come on top."""


def check_open_files() -> None:
    """Raise this process's limit, which its children inherit, to what a job needs; fault if that is not allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= NEEDED:
        return
    if hard != resource.RLIM_INFINITY and hard < NEEDED:
        raise fault("OPEN_FILES", needed=NEEDED, got=hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (NEEDED, hard))

"""Named points of a micro-batch at which tests kill the process, to prove that nothing is lost or doubled.

`SLACKWATER_CRASH=<point>@<batch>` kills, without warning, the process that first reaches the point in
that batch; the file named by `SLACKWATER_CRASH_ONCE` remembers that it happened, so that the process
started again (or the retried task) passes.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Final

POINTS: Final = (
    "front",  # a worker, while it reads and combines
    "keyed",  # a worker, after a key group's state is written
    "evaluated",  # the driver, when the batch is evaluated and nothing is delivered
    "opened",  # whoever writes a slot: its mark is known, nothing is written
    "written",  # whoever writes a slot: all rows are written, nothing is committed
    "committed",  # whoever writes a slot: rows and mark are committed
    "delivering",  # the driver, between two sinks
    "delivered",  # the driver, after all sinks and before the clock
    "clock",  # the driver, after the clock is written and before Spark commits the batch
)


def crash_point(name: str, batch: int) -> None:
    """Die here if this run was told to."""
    if os.environ.get("SLACKWATER_CRASH") != f"{name}@{batch}":
        return
    once = Path(os.environ["SLACKWATER_CRASH_ONCE"])
    try:
        once.touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)

"""Named points of a micro-batch at which tests crash a process, to prove that nothing is lost or duplicated.

`SLACKWATER_CRASH="<point>@<batch> …"` names the points. The first process to reach one is killed there; or, with
`SLACKWATER_CRASH_SIGNAL=STOP`, it is suspended until it is continued or killed, so that something else can be killed at
exactly that point. The folder `SLACKWATER_CRASH_ONCE` records which process was hit at which point, so that the
restarted process (or the retried task) continues.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Final

POINTS: Final = (
    "front",  # a worker, as it begins to read and combine
    "keyed",  # a worker, after a key group's state is written
    "evaluated",  # the driver, when the batch is evaluated but nothing is delivered yet
    "opened",  # the writer of a slot: its mark is known, nothing is written yet
    "written",  # the writer of a slot: all rows are written, nothing is committed yet
    "committed",  # the writer of a slot: rows and mark are committed
    "delivering",  # the driver, between two sinks
    "delivered",  # the driver, after all sinks and before the clock
    "clock",  # the driver, after the clock is written and before Spark commits the batch
)


def crash_point(name: str, batch: int) -> None:
    """Crash here if `SLACKWATER_CRASH` names this point and batch, and no process has crashed here yet."""
    points = os.environ.get("SLACKWATER_CRASH")
    if points is None or f"{name}@{batch}" not in points.split():
        return
    once = Path(os.environ["SLACKWATER_CRASH_ONCE"]) / f"{name}@{batch}"
    once.parent.mkdir(parents=True, exist_ok=True)
    try:
        with once.open("x") as note:
            note.write(str(os.getpid()))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.Signals[f"SIG{os.environ.get('SLACKWATER_CRASH_SIGNAL', 'KILL')}"])

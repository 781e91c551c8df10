"""Named points of a micro-batch at which tests strike, to prove that nothing is lost or doubled.

`SLACKWATER_CRASH="<point>@<batch> …"` names the points. The process that first reaches one dies there, without
warning; or, with `SLACKWATER_CRASH_SIGNAL=STOP`, stands still until it is continued or killed, so that something else
can be killed at that very point. The folder `SLACKWATER_CRASH_ONCE` remembers who was struck where, so that the
process started again (or the retried task) passes.
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
    "opened",  # the writer of a slot: its mark is known, nothing is written
    "written",  # the writer of a slot: all rows are written, nothing is committed
    "committed",  # the writer of a slot: rows and mark are committed
    "delivering",  # the driver, between two sinks
    "delivered",  # the driver, after all sinks and before the clock
    "clock",  # the driver, after the clock is written and before Spark commits the batch
)


def crash_point(name: str, batch: int) -> None:
    """Crash here if this run is to."""
    told = os.environ.get("SLACKWATER_CRASH")
    if told is None or f"{name}@{batch}" not in told.split():
        return
    once = Path(os.environ["SLACKWATER_CRASH_ONCE"]) / f"{name}@{batch}"
    once.parent.mkdir(parents=True, exist_ok=True)
    try:
        with once.open("x") as note:
            note.write(str(os.getpid()))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.Signals[f"SIG{os.environ.get('SLACKWATER_CRASH_SIGNAL', 'KILL')}"])

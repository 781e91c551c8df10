"""The starts of a checkpoint, counted in `<checkpoint>/slackwater/history/runs.json`."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from slackwater.ground.durable import write_durably
from slackwater.ground.stored import shaped

_FILE: Final = "runs.json"


@dataclass(frozen=True, kw_only=True)
class Run:
    """One start of a checkpoint."""

    starts: int = 0
    """Which start it is, from 1; 0 if there was none."""
    since_ms: int = 0
    """When it was started."""


def last_run(folder: Path) -> Run:
    """Return the last start of the checkpoint whose history is in `folder`; a file that cannot be read counts none."""
    try:
        run: Run = shaped(json.loads((folder / _FILE).read_text(encoding="utf-8")), Run)
    except (OSError, ValueError):
        return Run()
    return run


def begin_run(folder: Path, now_ms: int) -> Run:
    """Count a start; whoever does holds the checkpoint's lock."""
    folder.mkdir(parents=True, exist_ok=True)
    run = Run(starts=last_run(folder).starts + 1, since_ms=now_ms)
    write_durably(folder / _FILE, json.dumps(asdict(run)))
    return run

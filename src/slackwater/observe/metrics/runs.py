"""The runs on a checkpoint, counted in `<checkpoint>/slackwater/history/runs.json`."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from slackwater.base.durable import write_durably
from slackwater.base.stored import shaped

_FILE: Final = "runs.json"


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run on a checkpoint."""

    starts: int = 0
    """The number of the run, from 1; 0 if there was none."""
    since_ms: int = 0
    """When the run started."""


def last_run(folder: Path) -> Run:
    """Return the last run of the checkpoint whose history is in `folder`; an unreadable file counts as no run."""
    try:
        run: Run = shaped(json.loads((folder / _FILE).read_text(encoding="utf-8")), Run)
    except (OSError, ValueError):
        return Run()
    return run


def begin_run(folder: Path, now_ms: int) -> Run:
    """Count a new run; the caller must hold the checkpoint's lock."""
    folder.mkdir(parents=True, exist_ok=True)
    run = Run(starts=last_run(folder).starts + 1, since_ms=now_ms)
    write_durably(folder / _FILE, json.dumps(asdict(run)))
    return run

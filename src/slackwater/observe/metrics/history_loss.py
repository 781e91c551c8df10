"""What cannot be shown of a job because its history is damaged or missing, as one sentence.

A damaged line costs one batch and is skipped. This module is about larger losses: files of which nothing can be read, a
folder that cannot be listed, and an empty history of a job that has committed batches.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

from slackwater.base.errors import cause_of, counted, render
from slackwater.observe.metrics.history import LEVELS, history_folder, records_of, segments
from slackwater.observe.metrics.record import BatchRecord

_BESIDE: Final = {
    "runs.json": "how often it was started",
    "failing.json": "which batch fails",
    "job.json": "its plan",
    "lateness.json": "how late its rows were",
    "samples.json": "samples of its late rows and dead letters",
}
"""The other files in the history's folder, and what they contain."""
_SHOWN: Final = 3


def history_loss(checkpoint: Path, records: Sequence[BatchRecord]) -> str:
    """Return what is missing from a history with these readable `records`, as one sentence; "" if it is intact."""
    folder = history_folder(checkpoint)
    try:
        names = sorted(path.name for path in folder.iterdir())
    except FileNotFoundError:
        names = []
    except OSError as error:
        return _sentence(folder, _why(error), ["the figures of all batches"])
    damaged = {path: why for level in range(LEVELS) for path in segments(folder, level) if (why := _damage(path))}
    beside = {folder / name: why for name in _BESIDE if name in names and (why := _damage_beside(folder / name))}
    lost = list(_batches(damaged.keys(), records)) + [_BESIDE[path.name] for path in beside]
    if not records and not damaged and _has_committed(checkpoint):
        return _sentence(folder, "it has no records", ["the figures of all batches", *lost])
    if not lost:
        return ""
    (first, why), *others = [*damaged.items(), *beside.items()]
    more = f", and so {'is' if len(others) == 1 else 'are'} {counted(len(others), 'other file')}" if others else ""
    return _sentence(folder, f"{first.name} is damaged ({why}){more}", lost)


def _sentence(folder: Path, cause: str, lost: Sequence[str]) -> str:
    together = ", ".join(lost[:-1]) + " and " * (len(lost) > 1) + lost[-1]
    return render("HISTORY_UNREADABLE", path=folder, cause=cause, lost=together)


def _damage(segment: Path) -> str:
    """Return why nothing in a segment is readable; "" if something is, or if its first line is being written."""
    if records_of(segment):
        return ""
    try:
        held = segment.read_bytes()
    except FileNotFoundError:
        return ""  # moved up just now
    except OSError as error:
        return _why(error)
    return "no line is a record" if b"\n" in held else ""


def _damage_beside(path: Path) -> str:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ""
    except OSError as error:
        return _why(error)
    except ValueError:
        return "it is not JSON"
    return "" if isinstance(found, dict) else "it is not an object"


def _why(error: OSError) -> str:
    return error.strerror or cause_of(error)


def _batches(damaged: Collection[Path], records: Sequence[BatchRecord]) -> Iterator[str]:
    """Yield the batches that have no record because segments are damaged."""
    if not damaged:
        return
    if not records:
        yield "the figures of all batches"
        return
    first, last = records[0].first_batch, records[-1].batch
    starts = [int(path.stem.partition("-")[2]) for path in damaged if path.stem.partition("-")[2].isdigit()]
    spans = [(min(starts), first - 1)] if starts and min(starts) < first else []
    spans += [(one.batch + 1, other.first_batch - 1) for one, other in pairwise(records)]
    texts = [f"{begin:,} to {end:,}" if end > begin else f"{begin:,}" for begin, end in spans if end >= begin]
    texts += [f"{min(start for start in starts if start > last):,} on"] if max(starts, default=-1) > last else []
    if texts:
        yield f"the figures of batches {', '.join(texts[:_SHOWN])}" + ", …" * (len(texts) > _SHOWN)


def _has_committed(checkpoint: Path) -> bool:
    folder = checkpoint / "commits"
    return folder.is_dir() and any(path.name.isdigit() for path in folder.iterdir())

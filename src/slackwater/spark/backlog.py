"""What a log holds that no batch has read yet, and files that none will ever read."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from slackwater.errors import SlackwaterWarning, counted, render
from slackwater.planning.plan import Plan
from slackwater.sources.kafka.watch import Lag
from slackwater.sources.log.definition import LogSource
from slackwater.sources.log.listing import is_passed_over, shown
from slackwater.spark.log_intake import LogIntake

_SHOWN: Final = 5


class StrayFilesWarning(SlackwaterWarning):
    """A log holds files that will never be read."""


class UnreadFilesWarning(SlackwaterWarning):
    """A bounded run leaves files of a log unread."""


@dataclass(frozen=True, kw_only=True)
class Unread:
    """What no batch has read, per stream."""

    backlog: dict[str, frozenset[str]] = field(default_factory=dict)
    """Partitions with records that a batch to come will read."""
    known: dict[str, frozenset[str]] = field(default_factory=dict)
    """Partitions that exist, whether or not anything was ever in them."""
    lag: dict[str, dict[str, Lag]] = field(default_factory=dict)
    """How many records of a Kafka partition no batch has read."""
    strays: dict[str, list[str]] = field(default_factory=dict)
    """Files that no batch will ever read."""
    left: dict[str, list[str]] = field(default_factory=dict)
    """Files of a log that no batch has read."""
    missing: dict[str, frozenset[str]] = field(default_factory=dict)
    """Partitions that were read and that the source no longer has."""


def unread(intakes: Iterable[LogIntake]) -> Unread:
    """Compare every log's folder with what batches have taken from it.

    A partition with files that were not read holds the watermark: files are read by modification time, so that a
    backlog is read one partition after the other.
    """
    found = Unread()
    for intake in intakes:
        listing, waiting = intake.look()
        found.backlog[intake.stream] = frozenset(waiting)
        found.strays[intake.stream] = listing.strays
        found.left[intake.stream] = [shown(file.path) for file in listing.files]
        found.missing[intake.stream] = intake.missing()
    return found


def report_left(plan: Plan, found: Unread) -> None:
    """Warn of files that came while a bounded run was under way, and that it leaves unread."""
    for stream, left in found.left.items():
        if left:
            path, count = _logs(plan)[stream], counted(len(left), "file")
            words = render("LOG_LEFT", path=path, count=count, files=_listed(left))
            warnings.warn(f"[LOG_LEFT] {words}", UnreadFilesWarning, stacklevel=2)


def report_strays(plan: Plan, found: Unread, reported: set[str]) -> None:
    """Warn, once per file, of what will never be read; `reported` remembers."""
    paths = _logs(plan)
    for stream, lost in found.strays.items():
        if fresh := [path for path in lost if path not in reported]:
            reported.update(fresh)
            root = paths[stream]
            reasons = {path: _why(path, root) for path in fresh}
            for why, remedy in dict.fromkeys(reasons.values()):
                files = [path for path, reason in reasons.items() if reason == (why, remedy)]
                count = counted(len(files), "file")
                words = render("LOG_STRAYS", path=root, count=count, why=why, files=_listed(files), remedy=remedy)
                warnings.warn(f"[LOG_STRAYS] {words}", StrayFilesWarning, stacklevel=2)


def _why(file: str, root: str) -> tuple[str, str]:
    """Return why a file of the log `root` is never read, and what to do."""
    if any(map(is_passed_over, Path(file.removeprefix(shown(root))).parts)):
        return "name starts with `_`", "rename it"
    if Path(file).is_symlink() and not Path(file).exists():
        return "broken link", "restore its target, or remove it"
    return "changed after it was read", "write new records to new files, with other names"


def _logs(plan: Plan) -> dict[str, str]:
    return {source.name: source.source.path for source in plan.sources if isinstance(source.source, LogSource)}


def _listed(files: Sequence[str]) -> str:
    return ", ".join(files[:_SHOWN]) + (", …" if len(files) > _SHOWN else "")

"""Warnings about files of a log that no batch reads."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from slackwater.base.errors import SlackwaterWarning, counted, listed, notice
from slackwater.connectors.log.listing import is_passed_over, shown

_SHOWN: Final = 5


class StrayFilesWarning(SlackwaterWarning):
    """A log contains files that will never be read."""


class UnreadFilesWarning(SlackwaterWarning):
    """A bounded run leaves files of a log unread."""


def report_left(log: str, files: Sequence[str]) -> None:
    """Warn about files that arrived during a bounded run, which leaves them unread."""
    if files:
        warnings.warn(
            notice("LOG_LEFT", path=log, count=counted(len(files), "file"), files=_listed(files)),
            UnreadFilesWarning,
            stacklevel=2,
        )


def report_strays(log: str, strays: Sequence[str], reported: set[str]) -> None:
    """Warn, once per file, about files that will never be read; `reported` remembers them."""
    _report(log, {path: _why(path, log) for path in strays}, reported)


def report_doubtful(log: str, files: Sequence[str], reported: set[str]) -> None:
    """Warn, once per file, about files that may have been read before they were deleted and came back."""
    why = "no newer than files that were read and deleted long ago, so it may be one of them"
    _report(log, dict.fromkeys(files, (why, "if it was never read, `touch` it")), reported)


def _report(log: str, reasons: dict[str, tuple[str, str]], reported: set[str]) -> None:
    reasons = {path: reason for path, reason in reasons.items() if path not in reported}
    reported.update(reasons)
    for why, remedy in dict.fromkeys(reasons.values()):
        files = [path for path, reason in reasons.items() if reason == (why, remedy)]
        count = counted(len(files), "file")
        warnings.warn(
            notice("LOG_STRAYS", path=log, count=count, why=why, files=_listed(files), remedy=remedy),
            StrayFilesWarning,
            stacklevel=3,
        )


def _why(file: str, root: str) -> tuple[str, str]:
    """Return why a file of the log `root` is never read, and the remedy."""
    if any(map(is_passed_over, Path(file.removeprefix(shown(root))).parts)):
        return "name starts with `_`", "rename it"
    if Path(file).is_symlink() and not Path(file).exists():
        return "broken link", "restore its target, or remove it"
    return "changed after it was read", "write new records to new files, with other names"


def _listed(files: Sequence[str]) -> str:
    return listed(files, most=_SHOWN)

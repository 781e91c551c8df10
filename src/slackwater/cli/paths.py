"""Paths on the command line."""

from __future__ import annotations

from pathlib import Path

from slackwater.ground.folders import given_path


def at_home(path: Path | None) -> Path | None:
    """Return a path of the command line; a shell leaves the `~` of `--folder=~/data` as it is."""
    return None if path is None else given_path(path)

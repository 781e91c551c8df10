"""Paths on the command line."""

from __future__ import annotations

from pathlib import Path

from slackwater.base.folders import given_path


def at_home(path: Path | None) -> Path | None:
    """Return a path with `~` expanded; a shell does not expand the `~` in `--folder=~/data`."""
    return None if path is None else given_path(path)

"""Folders that users name: on a disk or a mount, the same for the driver and the executors."""

from __future__ import annotations

import os
from pathlib import Path

from slackwater.errors import refuse
from slackwater.secrets import shown_url


def local_folder(path: str | os.PathLike[str], *, what: str) -> str:
    """Return `path` as an absolute one; `what` says in the error what it was for."""
    if not isinstance(path, str | os.PathLike) or not str(path).strip():
        raise refuse("NOT_A_FOLDER", what=what, got=repr(path))
    folder = str(path).removeprefix("file://")
    if "://" in folder:
        raise refuse("FOLDER_REMOTE", what=what, got=shown_url(folder))
    return str(Path(folder).absolute())

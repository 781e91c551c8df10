"""Folders that users name: on a disk or a mount, the same for the driver and the executors."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from slackwater.errors import refuse
from slackwater.secrets import shown_url

_FILE_URI: Final = re.compile(r"^file:(//(localhost)?)?(?=/)", re.IGNORECASE)


def local_folder(path: str | os.PathLike[str], *, what: str) -> str:
    """Return `path` as an absolute one; `what` says in the error what it was for."""
    if not isinstance(path, str | os.PathLike) or not str(path).strip():
        raise refuse("NOT_A_FOLDER", what=what, got=repr(path))
    folder = without_scheme(str(path))
    if "://" in folder:
        raise refuse("FOLDER_REMOTE", what=what, got=shown_url(folder))
    return str(Path(folder).absolute())


def without_scheme(path: str) -> str:
    """Return the path of a URI such as `file:///data/orders`; anything else as it is."""
    return _FILE_URI.sub("", path)


def lies_in(inner: str, outer: str) -> bool:
    """Return whether a place is another one or a folder inside it, however the two are spelt; links are followed."""
    if not (Path(inner).is_absolute() and Path(outer).is_absolute()):
        return inner == outer
    return Path(inner).resolve().is_relative_to(Path(outer).resolve())

"""Paths given by users: folders on a disk or mount that the driver and the executors share."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from slackwater.base.errors import refuse
from slackwater.base.secrets import shown_url

_FILE_URI: Final = re.compile(r"^file:(//(localhost)?)?(?=/)", re.IGNORECASE)


def given_path(path: str | os.PathLike[str]) -> Path:
    """Return a path with `~` expanded to the user's home; `~name` of an unknown user is left as is."""
    return Path(os.path.expanduser(path))  # noqa: PTH111  pathlib's version fails for an unknown user


def plain_path(path: str | os.PathLike[str]) -> Path:
    """Return a path as an absolute one, without `..` unless a symbolic link would change its meaning."""
    given = given_path(path).absolute()
    plain = Path(os.path.normpath(given))
    return plain if plain.resolve() == given.resolve() else given


def local_folder(path: str | os.PathLike[str], *, what: str) -> str:
    """Return `path` as an absolute one; `what` names its purpose in an error."""
    if not isinstance(path, str | os.PathLike) or not str(path).strip():
        raise refuse("NOT_A_FOLDER", what=what, got=repr(path))
    folder = without_scheme(str(path))
    if "://" in folder:
        raise refuse("FOLDER_REMOTE", what=what, got=shown_url(folder))
    return str(given_path(folder).absolute())


def without_scheme(path: str) -> str:
    """Return the path of a URI such as `file:///data/orders`; anything else unchanged."""
    return _FILE_URI.sub("", path)


def lies_in(inner: str, outer: str) -> bool:
    """Return whether `inner` is the same place as `outer` or inside it; symbolic links are followed."""
    if not (Path(inner).is_absolute() and Path(outer).is_absolute()):
        return inner == outer
    return Path(inner).resolve().is_relative_to(Path(outer).resolve())

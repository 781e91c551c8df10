"""Files that are either complete or absent, even after a power failure; a full disk is an error that names the file."""

from __future__ import annotations

import errno
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from slackwater.base.errors import RunError, fault

_FULL: Final = {
    errno.ENOSPC: "No space left on device",
    errno.EDQUOT: "Disk quota exceeded",
    errno.EFBIG: "File too large",
}
"""Why a write fails although nothing is wrong with the file, as the system puts it: Java and Polars repeat the text."""


def write_durably(path: Path, content: str | bytes) -> None:
    """Write `content` so that after a crash the file has either the new or the old content."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    with space_for(path):
        try:
            _write(temporary, content)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        flush_folder(path.parent)


def write_and_flush(path: Path, content: str | bytes) -> None:
    """Write a new file, and make sure that it survives a power failure under this name."""
    with space_for(path):
        _write(path, content)


def flush_file(path: Path) -> None:
    """Make sure that the content of a file survives a power failure."""
    with path.open("rb+") as written:
        os.fsync(written.fileno())


def flush_folder(folder: Path) -> None:
    """Make sure that renames in `folder` survive a power failure."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_once(path: Path, content: bytes) -> bool:
    """Write a new file and its folders; if the file exists, change nothing and return False.

    After a crash the file has all of `content` or does not exist.
    """
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    with space_for(path):
        for folder in reversed([each for each in path.parents if not each.is_dir()]):
            folder.mkdir(exist_ok=True)
            flush_folder(folder.parent)
        try:
            _write(temporary, content)
            os.link(temporary, path)
        except FileExistsError:
            return False
        finally:
            temporary.unlink(missing_ok=True)
        flush_folder(path.parent)
    return True


def _write(path: Path, content: str | bytes) -> None:
    with path.open("xb") as out:
        out.write(content.encode() if isinstance(content, str) else content)
        out.flush()
        os.fsync(out.fileno())


@contextmanager
def space_for(path: Path) -> Iterator[None]:
    """Report that a disk is full, if that is why writing to `path` fails."""
    try:
        yield
    except RunError:
        raise
    except Exception as error:
        if (why := full_disk(error)) is not None:
            raise fault("DISK_FULL", path=path, why=why) from error
        raise


def full_disk(error: BaseException) -> str | None:
    """Return the system's text for a full disk or an exceeded quota if that is the cause of an error, or None."""
    if isinstance(error, OSError) and error.errno in _FULL:
        return _FULL[error.errno]
    return next((text for text in _FULL.values() if text in str(error)), None)

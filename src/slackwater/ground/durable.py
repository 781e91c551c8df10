"""Files that are either complete or absent, even after a power failure."""

from __future__ import annotations

import os
import uuid
from pathlib import Path


def write_durably(path: Path, text: str) -> None:
    """Write `text` so that after a crash the file has either the new or the old content."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    write_and_flush(temporary, text)
    temporary.replace(path)
    flush_folder(path.parent)


def write_and_flush(path: Path, text: str) -> None:
    """Write a new file, and make sure that it survives a power failure under this name."""
    with path.open("x", encoding="utf-8") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())


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
    for folder in reversed([each for each in path.parents if not each.is_dir()]):
        folder.mkdir(exist_ok=True)
        flush_folder(folder.parent)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    with temporary.open("xb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    finally:
        temporary.unlink()
    flush_folder(path.parent)
    return True

"""Files that are whole or not there, after a power cut as well."""

from __future__ import annotations

import os
import uuid
from pathlib import Path


def write_durably(path: Path, text: str) -> None:
    """Write `text` so that after a crash the file holds all of it or what it held before."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    write_and_flush(temporary, text)
    temporary.replace(path)
    flush_folder(path.parent)


def write_and_flush(path: Path, text: str) -> None:
    """Write a new file, and make it survive a power cut under this name."""
    with path.open("x", encoding="utf-8") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())


def flush_file(path: Path) -> None:
    """Make what was written to a file survive a power cut."""
    with path.open("rb+") as written:
        os.fsync(written.fileno())


def flush_folder(folder: Path) -> None:
    """Make renames in `folder` survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_once(path: Path, content: bytes) -> bool:
    """Write a file that nobody has written before, and its folders; return False, and change nothing, if it is there.

    After a crash the file holds all of `content` or does not exist.
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

"""Sealed files: what is read is what was written, in this place and for this job, or it is an error.

The first line of a sealed file is its seal; the content follows unchanged (`tail -n +2` shows it):

    {"sealed": 2, "place": "clock/7", "form": 1, "of": "0b6c…", "length": 812, "sha256": "9f86…"}
    {"batch": 7, …}

`place` is the path of the file within its folder, and so also its kind, its batch, its step. `form` is the version of
what files of this kind contain (docs/inside/stored-files.md lists them). `of` is the owner: for a checkpoint its
incarnation. The checksum covers place, form, owner and content. A reader computes the seal that the file must have, and
compares the whole line: a changed bit is found wherever it is, and so is a file of another batch or job.

A file that grows by lines has a seal at the end of each: the start of the checksum of place, owner, number of the line
and text. So a line that is lost, moved or exchanged is found, unless it is one of the last: their readers count them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NotRequired, TypedDict

from slackwater.base.durable import write_durably, write_once
from slackwater.base.stored import AnotherVersionError, Damaged, DamageError, damaged, readable, shaped

_VERSION: Final = 2
_LINE_SEAL: Final = 16
"""The length of a line's seal, in hexadecimal digits."""
_SHOWN: Final = 8


class _Seal(TypedDict):
    sealed: int
    place: str
    form: NotRequired[int]
    of: str
    length: int
    sha256: str


def sealed(content: bytes, *, place: str, of: str, form: int = 1) -> bytes:
    """Return `content` with its seal."""
    return _seal(content, place, form, of) + b"\n" + content


def unsealed(stored: bytes, *, place: str | None, of: str | None, form: int = 1) -> bytes:
    """Return the content of a sealed file; raise `DamageError` if it is not what was written for `place` and `of`.

    None stands for any place or owner; the seal must be intact all the same. A file of another form or with a seal of
    another version is an `AnotherVersionError`.
    """
    first, _, content = stored.partition(b"\n")
    if place is not None and of is not None and first == _seal(content, place, form, of):
        return content
    try:
        found: _Seal = shaped(json.loads(first), _Seal)
    except ValueError as error:
        raise DamageError("it is empty" if not stored.strip() else "its first line is not a seal") from error
    if first != _seal(content, found["place"], found.get("form", 0), found["of"]):
        raise _broken(found, content)
    if found["form"] != form:
        raise AnotherVersionError.of(found["form"], known=form)
    if place not in (None, found["place"]):
        raise DamageError(f"it was written as `{found['place']}`")
    if of not in (None, found["of"]):
        raise DamageError(f"it belongs to `{found['of'][:_SHOWN]}`, and this is `{str(of)[:_SHOWN]}`")
    return content


def sealed_lines(texts: Iterable[str], *, place: str, of: str, first: int = 0) -> str:
    """Return lines with their seals, for a file that has `first` lines already."""
    return "".join(f"{text} {_line_seal(text, place, of, first + at)}\n" for at, text in enumerate(texts))


def unsealed_lines(stored: bytes, *, place: str, of: str) -> tuple[list[str], str | None]:
    """Return the lines of a file up to the first that is not as written, and what is wrong with that one."""
    found: list[str] = []
    for line in stored.splitlines(keepends=True):
        text, _, seal = line.decode("utf-8", "replace").rpartition(" ")
        if seal != f"{_line_seal(text, place, of, len(found))}\n":
            why = "is not complete" if not line.endswith(b"\n") else "is not as it was written for this job"
            return found, f"line {len(found) + 1} {why}"
        found.append(text)
    return found, None


@dataclass(frozen=True, kw_only=True)
class SealedFolder:
    """A folder of sealed files that belong to one owner."""

    path: Path
    of: str | None
    """None if the owner is not known: then any owner's files can be read, and none can be written."""
    damaged: Damaged

    def at(self, place: str) -> Path:
        """Return the path of a file."""
        return self.path / place

    def seal(self, place: str, content: bytes, *, form: int = 1) -> bytes:
        """Return the content of a file with its seal."""
        assert self.of is not None, "only an owner writes"
        return sealed(content, place=place, form=form, of=self.of)

    def write(self, place: str, content: bytes, *, form: int = 1) -> None:
        """Write or replace a file, atomically and durably."""
        write_durably(self.at(place), self.seal(place, content, form=form))

    def write_json(self, place: str, value: object, *, indent: int | None = None) -> None:
        """Write or replace a file with a JSON value."""
        self.write(place, json.dumps(value, indent=indent).encode())

    def write_once(self, place: str, content: bytes) -> bool:
        """Write a new file and its folders; if it exists, change nothing and return False."""
        return write_once(self.at(place), self.seal(place, content))

    def read(self, place: str, *, form: int = 1) -> bytes:
        """Return the content of a file that must be there."""
        with self.readable(place):
            return unsealed(self.at(place).read_bytes(), place=place, form=form, of=self.of)

    def read_json(self, place: str, shape: Any) -> Any:  # noqa: ANN401  depends on the shape
        """Return the content of a JSON file that must be there, as a `shape`."""
        content = self.read(place)
        with self.readable(place):
            return shaped(json.loads(content), shape)

    @contextmanager
    def readable(self, place: str) -> Iterator[None]:
        """Report errors inside as damage to a file; a file that is missing is damaged, too."""
        try:
            with readable(self.at(place), self.damaged):
                yield
        except FileNotFoundError as error:
            raise self.damaged(self.at(place), "it is missing") from error


def checkpoint_folder(home: Path, of: str | None) -> SealedFolder:
    """Return Slackwater's own subfolder of a checkpoint."""
    return SealedFolder(path=home, of=of, damaged=damaged(home.parent))


def _seal(content: bytes, place: str, form: int, of: str) -> bytes:
    checksum = hashlib.sha256(f"{place}\n{form}\n{of}\n".encode())
    checksum.update(content)
    facts = {"length": len(content), "sha256": checksum.hexdigest()}
    return json.dumps({"sealed": _VERSION, "place": place, "form": form, "of": of, **facts}).encode()


def _line_seal(text: str, place: str, of: str, number: int) -> str:
    checksum = hashlib.sha256(f"{place}\n{of}\n{number}\n{text}".encode("utf-8", "surrogatepass"))
    return checksum.hexdigest()[:_LINE_SEAL]


def _broken(found: _Seal, content: bytes) -> DamageError:
    if found["sealed"] != _VERSION:
        return AnotherVersionError.of(found["sealed"], known=_VERSION, what="a seal of version")
    if found["length"] != len(content):
        return DamageError(f"it has {len(content):,} bytes after its first line, and {found['length']:,} were written")
    return DamageError("its content is not what was written: the checksum does not match")

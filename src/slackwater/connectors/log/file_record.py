"""The record of a log: every file ever listed, in `files.jsonl`, one sealed line for each listing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path

from slackwater.base.durable import space_for, write_durably
from slackwater.base.sealed import SealedFolder, sealed_lines, unsealed_lines
from slackwater.base.stored import shaped
from slackwater.connectors.log.listing import ListedFile


class FileRecord:
    """The record of one log of a job; only its driver writes it."""

    def __init__(self, files: SealedFolder, number: int) -> None:
        assert files.of is not None, "the log of a job"
        self._files, self._of = files, files.of
        self._place = f"log/{number}/files.jsonl"
        self._lines = 0

    @property
    def path(self) -> Path:
        """The file."""
        return self._files.at(self._place)

    def read(self) -> tuple[list[ListedFile], str | None]:
        """Return the files of all listings up to the first line that is not as written, and what is wrong with that.

        A crash may have left the last line incomplete, before anything used it.
        """
        if not self.path.exists():
            return [], "it is missing"
        with self._files.readable(self._place):
            texts, flaw = unsealed_lines(self.path.read_bytes(), place=self._place, of=self._of)
            self._lines = len(texts)
            return [file for text in texts for file in shaped(json.loads(text), list[ListedFile])], flaw

    def append(self, listing: Sequence[ListedFile]) -> None:
        """Add the files of a listing, durably."""
        with space_for(self.path), self.path.open("a", encoding="utf-8") as record:
            record.write(self._sealed([listing], self._lines))
            record.flush()
            os.fsync(record.fileno())
        self._lines += 1

    def rewrite(self, files: Iterable[ListedFile]) -> None:
        """Replace the record."""
        listings = [list(listing) for _, listing in groupby(files, key=lambda file: file.listing)]
        write_durably(self.path, self._sealed(listings, 0))
        self._lines = len(listings)

    def _sealed(self, listings: Iterable[Sequence[ListedFile]], first: int) -> str:
        texts = (f"[{', '.join(map(text_of, listing))}]" for listing in listings)
        return sealed_lines(texts, place=self._place, of=self._of, first=first)


def text_of(file: ListedFile) -> str:
    """Return a file as text, for the record and for a share."""
    return json.dumps(asdict(file))


def write_shares(shares: Sequence[Path], files: Iterable[ListedFile], time_ms: int) -> None:
    """Divide files into shares of about equal size, all with one modification time."""
    dealt: list[list[ListedFile]] = [[] for _ in shares]
    sizes = [0] * len(shares)
    for file in sorted(files, key=lambda file: -file.length):
        smallest = sizes.index(min(sizes))
        dealt[smallest].append(file)
        sizes[smallest] += file.length + 1
    for path, share in zip(shares, dealt, strict=True):
        write_share(path, "".join(f"{text_of(file)}\n" for file in share), time_ms)


def write_share(path: Path, lines: str, time_ms: int) -> None:
    """Write a share, which Spark orders by its modification time."""
    path.write_text(lines, encoding="ascii")
    os.utime(path, ns=(time_ms * 1_000_000,) * 2)


def differing_share(shares: Sequence[Path], files: Iterable[ListedFile]) -> Path | None:
    """Return a share that is not as written, if the shares of a listing do not name exactly `files`."""
    missing = {text_of(file) for file in files}
    suspect = None
    for path in shares:
        try:
            lines = path.read_text(encoding="ascii", errors="replace").splitlines()
        except FileNotFoundError:
            return path
        for line in filter(None, lines):
            if line not in missing:
                suspect = suspect or path
            missing.discard(line)
    return suspect or (next(iter(shares), None) if missing else None)

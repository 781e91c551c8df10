"""The record of a log: the files that were listed, so that none is read twice.

In `<checkpoint>/slackwater/log/<i>`:

- `files.arrow` is a snapshot of the record (`file_snapshot.py`), a sealed file;
- `files.jsonl` has one sealed line for each listing since the snapshot. Its seals name the generation of the snapshot.

The record is compacted in these steps, and a crash between any two of them leaves it correct:

1. a snapshot of both files, without what may be forgotten, replaces `files.arrow`, durably;
2. `files.jsonl` is removed. If it is still there after a crash, its seals are of an earlier generation, and the
   snapshot has all its lines.

That happens when `files.jsonl` has as many files as a quarter of the snapshot, so that a file costs the same however
many there are.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from slackwater.base.durable import space_for, write_durably
from slackwater.base.sealed import SealedFolder, sealed_lines, unsealed_lines
from slackwater.base.stored import DamageError, shaped
from slackwater.connectors.intake import RETAIN
from slackwater.connectors.log.file_snapshot import Snapshot, snapshot_of
from slackwater.connectors.log.listing import ListedFile
from slackwater.connectors.log.shares import text_of

FEW: Final = 512
"""How many files `files.jsonl` may have in any case."""


class KnownFile(NamedTuple):
    """What is remembered of a listed file."""

    length: int
    modified_ms: int
    listing: int


class FileRecord:
    """The record of one log of a job; only its driver writes it."""

    def __init__(self, files: SealedFolder, number: int) -> None:
        assert files.of is not None, "the log of a job"
        self._files, self._of = files, files.of
        self._place, self._snapshot_place = f"log/{number}/files.jsonl", f"log/{number}/files.arrow"
        self._snapshot = Snapshot()
        self._tail: list[ListedFile] = []
        self._lines = 0

    @property
    def path(self) -> Path:
        """The file with the newest listings."""
        return self._files.at(self._place)

    @property
    def is_due(self) -> bool:
        """Whether it is time to compact the record."""
        return len(self._tail) >= max(FEW, self._snapshot.files.height // 4)

    @property
    def last(self) -> int:
        """The last listing; -1 if there is none."""
        newest = self._snapshot.files["listing"].max()
        return max([newest if isinstance(newest, int) else -1, *(file.listing for file in self._tail[-1:])])

    @property
    def settled(self) -> int:
        """The last listing of which no batch can be replayed; -1 if there is none."""
        history = self._snapshot.history
        return max((listing for batch, listing in history if batch <= history[-1][0] - RETAIN), default=-1)

    def read(self) -> str | None:
        """Read all listings up to the first line that is not as written; return what is wrong with that one.

        A crash may have left the last line incomplete, before anything used it.
        """
        self._snapshot, self._tail, self._lines = Snapshot(), [], 0
        if not self._files.at(self._snapshot_place).exists():
            return "it is missing"
        content = self._files.read(self._snapshot_place)
        with self._files.readable(self._snapshot_place):
            self._snapshot = snapshot_of(content)
        if not self.path.exists():
            return None
        with self._files.readable(self._place):
            texts, flaw = unsealed_lines(self.path.read_bytes(), place=self._sealed_place, of=self._of)
            self._lines = len(texts)
            self._tail = [file for text in texts for file in shaped(json.loads(text), list[ListedFile])]
        return flaw

    def check(self, listing: int, flaw: str | None) -> None:
        """Raise if the record ends before a listing that a batch has taken."""
        if self.last < listing:
            is_there = self._files.at(self._snapshot_place).exists()
            with self._files.readable(self._place if is_there else self._snapshot_place):
                missing = None if self.path.exists() else "it is missing"
                raise DamageError(flaw or missing or f"it ends before listing {listing}, which a batch has taken")

    def known(self) -> dict[str, KnownFile]:
        """Return what is remembered of each file, by path."""
        frame = self._snapshot.files
        facts = zip(frame["length"], frame["modified_ms"], frame["listing"], strict=True)
        found = dict(zip(self._snapshot.paths(), map(KnownFile._make, facts), strict=True))
        found.update((file.path, KnownFile(file.length, file.modified_ms, file.listing)) for file in self._tail)
        return found

    def paths(self, wanted: Collection[tuple[str, int]]) -> dict[tuple[str, int], str]:
        """Return the paths of the files with these numbers in their partitions, as far as they are known."""
        found = self._snapshot.named(wanted)
        keys = {*wanted} - {*found}
        return found | {key: file.path for file in self._tail if (key := (file.partition, file.number)) in keys}

    def replayable(self) -> list[ListedFile]:
        """Return the files of batches that can be replayed, and of listings that no batch has taken."""
        return [*self._snapshot.listed(self.settled), *(file for file in self._tail if file.listing > self.settled)]

    def partitions(self, up_to: int) -> Iterator[tuple[str, str, int]]:
        """Yield each partition with files of listings up to one, the path of one of them, and their largest number."""
        yield from self._snapshot.up_to(up_to).partitions()
        yield from ((file.partition, file.path, file.number) for file in self._tail if file.listing <= up_to)

    def next_number(self, partition: str, largest: int) -> int:
        """Return the number of the next file of a partition in which `largest` is the largest that is known."""
        mark = self._snapshot.mark(partition)
        return 1 + max(largest, -1 if mark is None else mark.number)

    def may_have_had(self, partition: str, modified_ms: int) -> bool:
        """Return whether an unknown file may be one that was read and is forgotten."""
        mark = self._snapshot.mark(partition)
        return mark is not None and modified_ms <= mark.modified_ms

    def append(self, listing: Sequence[ListedFile]) -> None:
        """Add the files of a listing, durably."""
        text = f"[{', '.join(map(text_of, listing))}]"
        line = sealed_lines([text], place=self._sealed_place, of=self._of, first=self._lines)
        if not self._lines:
            write_durably(self.path, line)
        else:
            with space_for(self.path), self.path.open("a", encoding="utf-8") as record:
                record.write(line)
                record.flush()
                os.fsync(record.fileno())
        self._lines += 1
        self._tail.extend(listing)

    def took(self, batch: int, listing: int) -> None:
        """Note the last listing that batches have taken up to `batch`."""
        history = [*(pair for pair in self._snapshot.history if pair[0] < batch), (batch, listing)]
        old = [pair for pair in history if pair[0] <= batch - RETAIN]
        self._snapshot = replace(self._snapshot, history=(*old[-1:], *history[len(old) :]))

    def rewrite(self, taken: int) -> None:
        """Replace the record by one without the listings after `taken`."""
        self._write(self._snapshot.with_files(self._tail).up_to(taken))

    def compact(self, existing: Collection[str]) -> list[str]:
        """Replace the record by a snapshot, given the files of the folder; return the files that are forgotten."""
        snapshot, forgotten = self._snapshot.with_files(self._tail).folded(existing, after=self.settled)
        self._write(snapshot)
        return forgotten

    def _write(self, snapshot: Snapshot) -> None:  # the numbers refer to the module docstring
        self._files.write(self._snapshot_place, snapshot.to_bytes())  # 1
        self._snapshot, self._tail, self._lines = snapshot, [], 0
        self.path.unlink(missing_ok=True)  # 2

    @property
    def _sealed_place(self) -> str:
        return f"{self._place}/{self._snapshot.generation}"

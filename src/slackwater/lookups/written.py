"""Answers, persisted before they are used: a replayed batch gets the same ones.

1. A task has some rows of one source partition, with offsets from `first` to `last`, all of one chunk.
2. It reads the answers persisted for the batch, the step and this range of the partition. A row is covered if the range
   of a file includes its offset, and the file has its key.
3. It asks for the keys of the rows that are not covered, and writes the answers to one file, atomically.
4. Only then does it use them.

A crash before 3 leaves nothing, one after it leaves what the next attempt will use. Two tasks that do the same work at
the same time ask for the same keys, so they write the same file name: the first one wins, and the second uses what the
first has written.
"""

from __future__ import annotations

import hashlib
import io
import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import polars as pl

from slackwater.ground.durable import write_once
from slackwater.ground.stored import damaged
from slackwater.lookups.fitting import KEY

_FILE: Final = re.compile(r"([0-9a-f]{16})_(\d+)_(\d+)_[0-9a-f]{16}\.arrow")
RETAIN: Final = 100
"""How many batches' answers are kept in memory: as many as a checkpoint keeps."""


@dataclass(frozen=True, kw_only=True)
class Span:
    """A range of a source partition that contains the rows of one chunk."""

    partition: str
    first: int
    last: int

    @property
    def place(self) -> str:
        """A hash of the partition's name, for file names."""
        return hashlib.blake2b(self.partition.encode(), digest_size=8).hexdigest()

    def file(self, answers: pl.DataFrame) -> str:
        """Return the file name for some answers; the same keys and columns have the same name."""
        asked = hashlib.blake2b(str(answers.schema).encode(), digest_size=8)
        asked.update(_stored(answers.select(KEY)))
        return f"{self.place}_{self.first}_{self.last}_{asked.hexdigest()}.arrow"


@dataclass(frozen=True, kw_only=True)
class Covered:
    """Answers persisted for the rows from `first` to `last`."""

    first: int
    last: int
    answers: pl.DataFrame


class Answers(ABC):
    """A store of persisted answers."""

    @abstractmethod
    def names(self, step: str, batch: int) -> list[str]:
        """Return the file names for a step and batch."""

    @abstractmethod
    def read(self, step: str, batch: int, name: str) -> pl.DataFrame:
        """Return the answers in a file."""

    @abstractmethod
    def write(self, step: str, batch: int, span: Span, answers: pl.DataFrame) -> pl.DataFrame:
        """Persist answers, and return those that count: another attempt may have been first."""


class Listing:
    """The files of a step and batch when a task first needs one; answers that it writes later it has already used."""

    def __init__(self, answers: Answers, step: str, batch: int) -> None:
        self._answers, self._step, self._batch = answers, step, batch
        self._files: dict[str, list[tuple[int, int, str]]] = {}
        for name in sorted(answers.names(step, batch)):
            if (found := _FILE.fullmatch(name)) is not None:
                self._files.setdefault(found[1], []).append((int(found[2]), int(found[3]), name))

    def covering(self, span: Span) -> list[Covered]:
        """Return the answers persisted for rows of a span, always in the same order."""
        return [
            Covered(first=first, last=last, answers=self._answers.read(self._step, self._batch, name))
            for first, last, name in self._files.get(span.place, ())
            if first <= span.last and span.first <= last
        ]


@dataclass(frozen=True, kw_only=True)
class FolderAnswers(Answers):
    """Answers as Arrow files, in a folder that the driver and all executors see: `<step>/<batch>/<range>.arrow`."""

    home: Path
    """Slackwater's own subfolder of the checkpoint."""

    @property
    def folder(self) -> Path:
        """The folder with the answers of all steps."""
        return self.home / "lookups"

    def names(self, step: str, batch: int) -> list[str]:
        """Return the file names; empty if there is no folder yet."""
        folder = self.folder / step / str(batch)
        return [entry.name for entry in folder.iterdir()] if folder.is_dir() else []

    def read(self, step: str, batch: int, name: str) -> pl.DataFrame:
        """Read a file."""
        path = self.folder / step / str(batch) / name
        with readable_arrow(path, self.home.parent):
            return _read(path.read_bytes())

    def write(self, step: str, batch: int, span: Span, answers: pl.DataFrame) -> pl.DataFrame:
        """Write a file atomically and durably, unless it exists; return the answers that count."""
        name = span.file(answers)
        is_first = write_once(self.folder / step / str(batch) / name, _stored(answers))
        return answers if is_first else self.read(step, batch, name)

    def forget(self, batch: int) -> None:
        """Delete the answers of a batch that cannot be replayed."""
        for folder in self.folder.glob(f"*/{batch}"):
            shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True, kw_only=True)
class MemoryAnswers(Answers):
    """Answers in memory, for the engine without Spark; passed on, they survive a restart."""

    files: dict[tuple[str, int], dict[str, bytes]] = field(default_factory=dict)

    def names(self, step: str, batch: int) -> list[str]:
        """Return the names that the files would have."""
        return list(self.files.get((step, batch), ()))

    def read(self, step: str, batch: int, name: str) -> pl.DataFrame:
        """Return the answers stored under a name."""
        return _read(self.files[step, batch][name])

    def write(self, step: str, batch: int, span: Span, answers: pl.DataFrame) -> pl.DataFrame:
        """Keep answers, unless there are some under the same name."""
        for known in [at for at in self.files if at[1] < batch - RETAIN]:
            del self.files[known]
        return _read(self.files.setdefault((step, batch), {}).setdefault(span.file(answers), _stored(answers)))


@contextmanager
def readable_arrow(path: Path, checkpoint: Path) -> Iterator[None]:
    """Report errors inside as damage to a file of the checkpoint."""
    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError) as error:
        raise damaged(checkpoint)(path, str(error).partition("\n")[0]) from error


def _stored(frame: pl.DataFrame) -> bytes:
    out = io.BytesIO()
    frame.rechunk().write_ipc(out, compression="zstd")
    return out.getvalue()


def _read(stored: bytes) -> pl.DataFrame:
    return pl.read_ipc(io.BytesIO(stored))

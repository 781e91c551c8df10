"""Answers, persisted before they are used: a replayed batch gets the same ones.

1. A task has some rows of one source partition, with offsets from `first` to `last`, all of one chunk.
2. It reads the answers persisted for the batch, the step and this range of the partition. A row is covered if a file
   has an answer for its offset and its key.
3. It asks for the keys of the rows that are not covered, and writes the answers to one file, atomically.
4. Only then does it use them.

An answer belongs to rows, not to the chunk in which they were asked for. If no file covers any of a chunk's rows, its
answers are for all rows of the range that have the key. Otherwise each answer has the offsets of its rows: those that
another file covers keep that file's answer, however a later attempt cuts the rows into chunks.

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
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import polars as pl

from slackwater.base.sealed import SealedFolder
from slackwater.engine.enrichment.fitting import KEY
from slackwater.engine.enrichment.snapshots import stored

_FILE: Final = re.compile(r"([0-9a-f]{16})_(\d+)_(\d+)_[0-9a-f]{16}\.arrow")
_LOOKUPS: Final = "lookups"
ROWS: Final = "__rows"
"""The column with the offsets of the rows that an answer is for."""
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
        """Return the file name for some answers; the same keys, rows and columns have the same name."""
        asked = hashlib.blake2b(str(answers.schema).encode(), digest_size=8)
        asked.update(stored(answers.select(KEY, *({ROWS} & {*answers.columns}))))
        return f"{self.place}_{self.first}_{self.last}_{asked.hexdigest()}.arrow"


@dataclass(frozen=True, kw_only=True)
class Covered:
    """Answers persisted for rows from `first` to `last`."""

    first: int
    last: int
    answers: pl.DataFrame

    @property
    def schema(self) -> pl.Schema:
        """The columns of the answers."""
        return self.answers.drop(ROWS, strict=False).schema

    def answered(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return those of `rows` that have an answer here, with it; `rows` have their offset in `__off`."""
        within = rows.filter(pl.col("__off").is_between(self.first, self.last))
        if ROWS not in self.answers.columns:
            return within.join(self.answers, on=KEY, how="inner")
        each = self.answers.explode(ROWS, empty_as_null=False).rename({ROWS: "__off"})
        return within.join(each, on=[KEY, "__off"], how="inner")


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


class AnswerFiles:
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
    """Answers as sealed Arrow files that the driver and all executors see: `lookups/<step>/<batch>/<range>.arrow`."""

    files: SealedFolder
    """Slackwater's own subfolder of the checkpoint."""

    @property
    def folder(self) -> Path:
        """The folder with the answers of all steps."""
        return self.files.at(_LOOKUPS)

    def names(self, step: str, batch: int) -> list[str]:
        """Return the file names; empty if there is no folder yet."""
        folder = self.folder / step / str(batch)
        return [entry.name for entry in folder.iterdir()] if folder.is_dir() else []

    def written(self, batch: int) -> dict[str, list[str]]:
        """Return the names of all files of answers of a batch, by step."""
        steps = [entry.name for entry in self.folder.iterdir()] if self.folder.is_dir() else []
        found = {step: sorted(filter(_FILE.fullmatch, self.names(step, batch))) for step in steps}
        return {step: names for step, names in found.items() if names}

    def check_written(self, batch: int, expected: Mapping[str, list[str]]) -> None:
        """Raise if one of the files is missing."""
        for step, names in expected.items():
            for name in sorted({*names} - {*self.names(step, batch)}):
                self.read(step, batch, name)

    def read(self, step: str, batch: int, name: str) -> pl.DataFrame:
        """Read a file."""
        return _read(self.files.read(_place(step, batch, name)))

    def write(self, step: str, batch: int, span: Span, answers: pl.DataFrame) -> pl.DataFrame:
        """Write a file atomically and durably, unless it exists; return the answers that count."""
        name = span.file(answers)
        is_first = self.files.write_once(_place(step, batch, name), stored(answers))
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
        return _read(self.files.setdefault((step, batch), {}).setdefault(span.file(answers), stored(answers)))


def _place(step: str, batch: int, name: str) -> str:
    return f"{_LOOKUPS}/{step}/{batch}/{name}"


def _read(stored: bytes) -> pl.DataFrame:
    return pl.read_ipc(io.BytesIO(stored))

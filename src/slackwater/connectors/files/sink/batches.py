"""The folders of a files sink: which of them hold the rows, and how small ones are merged.

Without merging, every folder `batch-…` holds rows, and each has appeared atomically. With merging, the manifest lists
the folders that do; it is replaced atomically, so a reader sees either the small folders or the merged one:

1. The rows of the small folders are written to a folder of the writer's, with the mark of the last one.
2. The folder is renamed to `merged-…`; nobody reads it yet.
3. The manifest lists it in place of the small ones, which are now retired.
4. The next merge deletes the retired folders. A reader that has seen the older manifest has until then to read them.

Merged folders are merged again once there are equally many of them, up to a size: so the number of folders grows with
the bytes in the sink, not with the number of batches.

A crash after any step is repaired when the sink is opened: a folder that the manifest does not list is either a batch
added after the manifest was written, or is deleted.
"""

from __future__ import annotations

import json
import re
import shutil
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import polars as pl

from slackwater.base.durable import flush_file, write_and_flush
from slackwater.base.errors import notice
from slackwater.base.folders import given_path
from slackwater.base.sealed import SealedFolder
from slackwater.connectors.delivery import SinkWarning
from slackwater.connectors.files.sink.lease import FolderLease, files_of
from slackwater.connectors.sink import Mark

OWNER: Final = "_slackwater.json"
MARK: Final = "_mark.json"
MANIFEST: Final = "_manifest.json"
_NAME: Final = re.compile(r"(?:batch|merged(?P<tier>\d*)-\d+)-(?P<last>\d+)")
MANY: Final = 10_000
"""The number of folders above which a notice recommends merging."""
_FULL_BYTES: Final = 128 << 20
"""A folder of this size is not merged again."""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The folders that hold the rows."""

    folders: tuple[str, ...]
    retired: tuple[str, ...] = ()
    """Folders whose rows are now in a merged one."""

    @classmethod
    def read(cls, files: SealedFolder) -> Manifest:
        """Return the stored manifest; without one, every batch folder counts, unless some were merged."""
        home = files.path
        if not (home / MANIFEST).exists() and not any(home.glob("merged*")):
            return cls(folders=tuple(sorted(path.name for path in home.glob("batch-*"))))
        found: Manifest = files.read_json(MANIFEST, cls)
        return found

    def write(self, lease: FolderLease) -> None:
        """Replace the manifest."""
        lease.replace_file(MANIFEST, json.dumps({"folders": self.folders, "retired": self.retired}).encode())


def part_files(home: Path) -> list[Path]:
    """Return the files that hold a files sink's rows, oldest batch first."""
    folders = (home / name for name in Manifest.read(files_of(home)).folders)
    return [part for folder in folders for part in sorted(folder.glob("part-*"))]


def read_files(path: str | Path) -> pl.LazyFrame:
    """Read all rows that `sw.sinks.files(path)` has delivered, each once, even while files are being merged.

    Returns a Polars LazyFrame: `read_files("out").collect()` is the DataFrame.
    """
    parts = part_files(given_path(path))
    if any(part.suffix == ".jsonl" for part in parts):
        return pl.concat([pl.scan_ndjson(part) for part in parts], how="vertical_relaxed")
    return pl.concat([pl.scan_parquet(part) for part in parts]) if parts else pl.LazyFrame()


@dataclass(kw_only=True)
class Batches:
    """The folders of an open sink."""

    lease: FolderLease
    merge_after: int | None = None
    """How many small folders are merged into one; None means never."""
    newest: int = -1
    """The newest batch in the sink."""
    _count: int = 0

    @property
    def home(self) -> Path:
        """The sink's folder."""
        return self.lease.home

    def repair(self) -> None:
        """Repair what a crash left behind."""
        manifest = Manifest.read(self.lease.files)
        self.newest = last_batch(manifest.folders)
        named = {*manifest.folders, *manifest.retired}
        for path in sorted(self.home.iterdir()):
            if _NAME.fullmatch(path.name) is None or path.name in named:
                continue
            if path.name.startswith("batch-") and last_batch([path.name]) > self.newest:
                manifest = replace(manifest, folders=(*manifest.folders, path.name))
                self.newest = last_batch([path.name])
            else:
                self.lease.remove(path.name)
        if self.merge_after is not None or (self.home / MANIFEST).exists():
            manifest.write(self.lease)
        self._count = len(manifest.folders)

    def mark(self) -> Mark | None:
        """Return the mark of the newest batch."""
        return _mark_in(self.lease.files, Manifest.read(self.lease.files).folders)

    def add(self, folder: Path, batch: int) -> None:
        """Publish a written batch, and merge if there are enough folders."""
        name = batch_folder(batch)
        self.lease.add(folder, name)
        self.newest = batch
        if self.merge_after is None:
            self._advise()
            if not (self.home / MANIFEST).exists():
                return
        before = Manifest.read(self.lease.files)
        folders = (*before.folders, name)
        retired: tuple[str, ...] = ()
        while small := self._to_merge(folders):
            kept = folders[: -len(small)]
            folders, retired = (*kept, self._merge(small)), (*retired, *small)
        if not retired:
            replace(before, folders=folders).write(self.lease)
            return
        seen = tuple(each for each in retired if each in (*before.folders, name))
        Manifest(folders=folders, retired=seen).write(self.lease)
        for gone in {*before.retired, *retired} - {*seen}:
            self.lease.remove(gone)

    def _advise(self) -> None:
        """Recommend merging when there are many folders: at ten thousand, a hundred thousand and so on."""
        self._count += 1
        if self._count >= MANY and re.fullmatch("10*", str(self._count)):
            warnings.warn(notice("FILES_MANY", path=self.home, count=f"{self._count:,}"), SinkWarning, stacklevel=2)

    def _to_merge(self, folders: tuple[str, ...]) -> tuple[str, ...]:
        """Return the newest folders if they should be merged: `merge_after` of one tier, or enough to fill a folder."""
        if self.merge_after is None:
            return ()
        tier, size, run = _tier(folders[-1]), 0, 0
        for folder in reversed(folders):
            bytes_here = sum(part.stat().st_size for part in (self.home / folder).glob("part-*")) if tier else 0
            if _tier(folder) != tier or bytes_here >= _FULL_BYTES:
                break
            size, run = size + bytes_here, run + 1
        is_enough = run >= self.merge_after or (run > 1 and size >= _FULL_BYTES)
        return folders[-run:] if is_enough else ()

    def _merge(self, small: tuple[str, ...]) -> str:
        """Write the rows of small folders into one; return its name."""
        tier = _tier(small[0]) + 1
        name = f"merged{tier if tier > 1 else ''}-{_first_batch(small[0]):012d}-{last_batch(small[-1:]):012d}"
        folder = self.lease.new_folder()
        parts = [part for each in small for part in sorted((self.home / each).glob("part-*"))]
        target = folder / f"part-00000{parts[0].suffix}"
        if target.suffix == ".parquet":
            pl.scan_parquet(parts).sink_parquet(target, compression="zstd", compression_level=1, maintain_order=True)
        else:
            with target.open("wb") as out:
                for part in parts:
                    with part.open("rb") as lines:
                        shutil.copyfileobj(lines, out)
        flush_file(target)
        mark = self.lease.files.read(f"{small[-1]}/{MARK}")
        write_and_flush(folder / MARK, self.lease.files.seal(f"{name}/{MARK}", mark))
        self.lease.add(folder, name)
        return name


def newest_mark(files: SealedFolder) -> Mark | None:
    """Return the mark of the newest batch in a folder that may not have been repaired yet."""
    named = Manifest.read(files).folders
    added = [path.name for path in files.path.glob("batch-*") if last_batch([path.name]) > last_batch(named)]
    return _mark_in(files, (*named, *sorted(added)))


def _mark_in(files: SealedFolder, folders: tuple[str, ...]) -> Mark | None:
    """Return the mark in the last of a sink's folders."""
    place = f"{folders[-1]}/{MARK}" if folders else ""
    if not place or not files.at(place).exists():
        return None
    with files.readable(place):
        return Mark.from_dict(files.read_json(place, dict[str, Any]))


def batch_folder(batch: int) -> str:
    """Return the name of a batch's folder."""
    return f"batch-{batch:012d}"


def last_batch(folders: tuple[str, ...] | list[str]) -> int:
    """Return the newest batch among folders with these names, or -1."""
    found = (_NAME.fullmatch(name) for name in folders)
    return max((int(match["last"]) for match in found if match is not None), default=-1)


def _first_batch(folder: str) -> int:
    return int(folder.split("-")[1])


def _tier(folder: str) -> int:
    """Return how many times the rows of a folder have been merged."""
    match = _NAME.fullmatch(folder)
    tier = None if match is None else match["tier"]
    return 0 if tier is None else int(tier or 1)

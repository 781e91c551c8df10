"""The folders of a files sink: which of them hold the rows, and how many small ones become one.

Without merging, every folder `batch-…` holds rows, and each has appeared whole. With merging, the manifest says which
folders do; it is replaced in one go, so a reader sees either the small folders or the one they were merged into:

1. the rows of small folders are written into a folder `merged-…`, under a temporary name, with the last one's mark;
2. the folder gets its name: nobody looks at it yet;
3. the manifest names it in place of the small ones, which are now retired;
4. at the next merging the retired ones are deleted. A reader who has seen the older manifest has had so long to read.

A crash after any step is mended when the sink is opened: what the manifest does not name is a batch that came after it
was written, or is deleted.
"""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import polars as pl

from slackwater.sinks.base import Mark
from slackwater.sinks.files.durable import flush_file, flush_folder, write_durably

OWNER: Final = "_slackwater.json"
MARK: Final = "_mark.json"
MANIFEST: Final = "_manifest.json"
_NAME: Final = re.compile(r"(?:batch|merged-\d+)-(\d+)")


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """Which folders hold the rows."""

    folders: tuple[str, ...]
    retired: tuple[str, ...] = ()
    """Folders whose rows are in a merged one."""

    @classmethod
    def read(cls, home: Path) -> Manifest:
        """Return what the manifest says; where there is none, every batch's folder counts."""
        try:
            found = json.loads((home / MANIFEST).read_text())
        except FileNotFoundError:
            return cls(folders=tuple(sorted(path.name for path in home.glob("batch-*"))))
        return cls(folders=tuple(found["folders"]), retired=tuple(found["retired"]))

    def write(self, home: Path) -> None:
        """Replace the manifest."""
        write_durably(home / MANIFEST, json.dumps({"folders": self.folders, "retired": self.retired}))


def part_files(home: Path) -> list[Path]:
    """Return the files that hold a files sink's rows, oldest batch first."""
    folders = (home / name for name in Manifest.read(home).folders)
    return [part for folder in folders for part in sorted(folder.glob("part-*"))]


def read_files(path: str | Path) -> pl.LazyFrame:
    """Read all rows that `sw.sinks.files(path)` has delivered: each once, also while small files are being merged."""
    parts = part_files(Path(path))
    if any(part.suffix == ".jsonl" for part in parts):
        return pl.concat([pl.scan_ndjson(part) for part in parts], how="vertical_relaxed")
    return pl.concat([pl.scan_parquet(part) for part in parts]) if parts else pl.LazyFrame()


@dataclass(kw_only=True)
class Batches:
    """The folders of an open sink."""

    home: Path
    merge_after: int | None = None
    """How many small folders are merged; None for never."""
    newest: int = -1
    """The newest batch that is there."""

    def mend(self) -> None:
        """Put right what a crash has left."""
        for left in [*self.home.glob(".batch-*"), *self.home.glob(".merged-*")]:
            shutil.rmtree(left)
        manifest = Manifest.read(self.home)
        self.newest = last_batch(manifest.folders)
        for path in sorted(self.home.iterdir()):
            if _NAME.fullmatch(path.name) is None or path.name in (*manifest.folders, *manifest.retired):
                continue
            if path.name.startswith("batch-") and last_batch([path.name]) > self.newest:
                manifest = replace(manifest, folders=(*manifest.folders, path.name))
                self.newest = last_batch([path.name])
            else:
                shutil.rmtree(path)
        if self.merge_after is not None or (self.home / MANIFEST).exists():
            manifest.write(self.home)

    def mark(self) -> Mark | None:
        """Return the mark of the newest batch."""
        folders = Manifest.read(self.home).folders
        path = self.home / folders[-1] / MARK if folders else None
        return Mark.from_dict(json.loads(path.read_text())) if path is not None and path.exists() else None

    def added(self, name: str) -> None:
        """Note a batch that was written, and merge if there are enough."""
        self.newest = last_batch([name])
        if self.merge_after is None and not (self.home / MANIFEST).exists():
            return
        manifest = Manifest.read(self.home)
        folders = (*manifest.folders, name)
        manifest = replace(manifest, folders=folders)
        small = tuple(folder for folder in folders if folder.startswith("batch-"))
        if self.merge_after is not None and len(small) >= self.merge_after:
            merged = self._merge(small)
            kept = tuple(folder for folder in folders if folder not in small)
            Manifest(folders=(*kept, merged), retired=small).write(self.home)
            for folder in manifest.retired:
                shutil.rmtree(self.home / folder, ignore_errors=True)
        else:
            manifest.write(self.home)

    def _merge(self, small: tuple[str, ...]) -> str:
        """Write the rows of small folders into one, and return its name."""
        first, last = (int(name.removeprefix("batch-")) for name in (small[0], small[-1]))
        final = self.home / f"merged-{first:012d}-{last:012d}"
        temporary = self.home / f".{final.name}"
        temporary.mkdir()
        parts = [part for name in small for part in sorted((self.home / name).glob("part-*"))]
        target = temporary / f"part-00000{parts[0].suffix}"
        if target.suffix == ".parquet":
            pl.scan_parquet(parts).sink_parquet(target, compression="zstd", compression_level=1, maintain_order=True)
        else:
            with target.open("wb") as out:
                for part in parts:
                    with part.open("rb") as lines:
                        shutil.copyfileobj(lines, out)
        flush_file(target)
        write_durably(temporary / MARK, (self.home / small[-1] / MARK).read_text())
        temporary.rename(final)
        flush_folder(self.home)
        return final.name


def last_batch(folders: tuple[str, ...] | list[str]) -> int:
    """Return the number of the newest batch in folders of these names, -1 if there are none."""
    found = (_NAME.fullmatch(name) for name in folders)
    return max((int(match[1]) for match in found if match is not None), default=-1)

"""Files: Parquet or JSON lines in one folder per batch, exactly once.

The protocol, per batch (a crash after any step is mended by the next run of the batch):
1. a folder `batch-<number>` that exists is this batch, delivered: do nothing;
2. throw away what an interrupted run left under the temporary name;
3. write the rows under the temporary name;
4. write the mark into it, and flush all of it to disk;
5. rename it: rows and mark become visible together.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import polars as pl

from slackwater.errors import fault, refuse
from slackwater.formats.dead_letter_json import bytes_as_base64
from slackwater.local_folders import local_folder
from slackwater.sinks.base import Change, Delivery, Sink, SinkBatch, SinkWriter

OWNER = "_slackwater.json"
MARK = "_mark.json"


@dataclass(frozen=True, kw_only=True, eq=False)
class FilesSink(Sink):
    """A folder of batch folders."""

    path: str
    format: Literal["parquet", "json"]
    takes: frozenset[Change]
    delivery: Delivery = "exactly_once"

    @property
    def place(self) -> str:
        """The folder."""
        return self.path

    def open(self, *, pipeline: str, output: str, schema: pl.Schema, incarnation: str) -> SinkWriter:  # noqa: ARG002
        """Claim the folder for this output; a folder of another run is an error with choices."""
        folder = Path(self.path)
        owner = folder / OWNER
        mine = {"pipeline": pipeline, "output": output, "incarnation": incarnation}
        if owner.exists():
            found = json.loads(owner.read_text())
            if found != mine:
                raise fault("FILES_FOREIGN", path=folder, found=_run(found), mine=_run(mine))
        elif folder.exists() and any(folder.glob("batch-*")):
            raise fault("FILES_UNMARKED", path=folder)
        else:
            folder.mkdir(parents=True, exist_ok=True)
            write_durably(owner, json.dumps(mine))
        return _FilesWriter(folder=folder, format=self.format)

    def __str__(self) -> str:
        return f"files {self.path} ({'Parquet' if self.format == 'parquet' else 'JSON lines'})"


def files(
    path: str | Path,
    *,
    format: Literal["parquet", "json"] = "parquet",  # noqa: A002  the word users expect
    changelog: bool = False,
) -> FilesSink:
    """Write Parquet or JSON-lines files, exactly once: `files("out/results")`.

    Rows are only ever appended: a window that fires again adds a row with the next `pane_index`.
    Retractions are refused, unless `changelog=True` says that readers look at `is_retraction`.
    """
    if format not in ("parquet", "json"):
        raise refuse("FILES_FORMAT", got=repr(format))
    folder = local_folder(path, what="the files sink")
    takes: frozenset[Change] = frozenset({"append", "update", "retract"} if changelog else {"append", "update"})
    return FilesSink(path=folder, format=format, takes=takes)


@dataclass(kw_only=True)
class _FilesWriter(SinkWriter):
    folder: Path
    format: Literal["parquet", "json"]

    def write(self, batch: SinkBatch) -> None:
        """Deliver one batch; the numbers are those of the module's protocol."""
        final = self.folder / f"batch-{batch.batch:012d}"
        if batch.rows == 0 or final.exists():  # 1
            return
        temporary = self.folder / f".batch-{batch.batch:012d}"
        shutil.rmtree(temporary, ignore_errors=True)  # 2
        temporary.mkdir()
        write = _PartWriter(folder=str(temporary), format=self.format)
        if batch.in_parallel is not None:  # 3
            batch.in_parallel(write)
        else:
            write(0, batch.frames())
        mark = {"incarnation": batch.incarnation, "batch": batch.batch, "rows": batch.rows}
        write_durably(temporary / MARK, json.dumps(mark))  # 4
        temporary.rename(final)  # 5
        flush_folder(self.folder)


@dataclass(frozen=True, kw_only=True)
class _PartWriter:
    """Writes one part; runs on the driver, or as a Spark task that may be retried."""

    folder: str
    format: Literal["parquet", "json"]

    def __call__(self, part: int, frames: Iterator[pl.DataFrame]) -> None:
        rows = [frame for frame in frames if frame.height]
        if not rows:
            return
        suffix = "parquet" if self.format == "parquet" else "jsonl"
        final = Path(self.folder) / f"part-{part:05d}.{suffix}"
        temporary = final.with_name(f".{final.name}.{os.getpid()}")
        frame = pl.concat(rows)
        if self.format == "parquet":
            frame.write_parquet(temporary, compression="zstd", compression_level=1)
        else:
            bytes_as_base64(frame).write_ndjson(temporary)
        with temporary.open("rb+") as written:
            os.fsync(written.fileno())
        temporary.replace(final)


def _run(owner: dict[str, str]) -> str:
    return f"output `{owner['output']}` of pipeline `{owner['pipeline']}`, run {owner['incarnation'][:8]}"


def write_durably(path: Path, text: str) -> None:
    """Write `text` so that after a crash the file holds all of it or does not exist."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("w", encoding="utf-8") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    temporary.replace(path)
    flush_folder(path.parent)


def flush_folder(folder: Path) -> None:
    """Make renames in `folder` survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

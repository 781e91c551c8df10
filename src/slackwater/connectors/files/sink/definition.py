"""Files: Parquet or JSON lines in one folder per batch, exactly once.

The transaction is a rename. Rows and mark are written into a hidden folder and flushed to disk; then the folder is
renamed into place, and rows and mark become visible together. Of two writers, only the one that opened the sink last
can do that: see `lease`.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final, Literal, TypedDict

import polars as pl

from slackwater.base.crash_points import crash_point
from slackwater.base.durable import flush_file, write_and_flush
from slackwater.base.errors import fault, refuse
from slackwater.base.folders import local_folder
from slackwater.connectors.files.sink.batches import MARK, OWNER, Batches, batch_folder, newest_mark
from slackwater.connectors.files.sink.lease import FolderLease, files_of
from slackwater.connectors.sink import Change, Delivery, Mark, Sink, SinkBatch, SinkWriter, Slot, Trial
from slackwater.connectors.sink_options import check_flags
from slackwater.formats.row_json import bytes_as_base64, check_json

_LEAST_MERGED: Final = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class FilesSink(Sink):
    """A sink that writes each batch to a folder of its own."""

    for_retractions: ClassVar[str] = "changelog=True keeps them as rows"
    shown_options: ClassVar[tuple[str, ...]] = ("merge_after", "changelog")
    after_another_run: ClassVar[str] = "choose another folder, or move this one away: batches are numbered from 0 again"
    path: str
    format: Literal["parquet", "json"]
    merge_after: int | None = None
    changelog: bool = False
    takes: frozenset[Change]
    delivery: Delivery = "exactly_once"

    @property
    def place(self) -> str:
        """The folder."""
        return self.path

    def prepare(self, slot: Slot) -> None:
        """Claim the folder for this output; a folder of another output is an error with options for the user."""
        try:
            self._claim(Path(self.path), slot)
        except OSError as error:
            raise fault("FILES_PLACE", path=self.path, why=_why(Path(self.path), error)) from error

    def _claim(self, folder: Path, slot: Slot) -> None:
        owner = folder / OWNER
        mine = {"pipeline": slot.pipeline, "output": slot.output}
        if owner.exists():
            found = files_of(folder).read_json(OWNER, _Owner)
            if found != mine:
                raise fault("FILES_FOREIGN", path=folder, found=_output(found), mine=_output(mine))
        elif any(folder.glob("batch-*")) or any(folder.glob("merged*")):
            raise fault("FILES_UNMARKED", path=folder)
        else:
            folder.mkdir(parents=True, exist_ok=True)
            files_of(folder, slot).write_json(OWNER, mine)

    def trial(self, slot: Slot) -> Trial | None:  # noqa: ARG002  depends only on the format
        """Return the check for rows that cannot be written as JSON; Parquet can hold any."""
        return Trial(rule="json", check=check_json) if self.format == "json" else None

    def last_mark(self, slot: Slot) -> Mark | None:
        """Return the mark of the newest batch."""
        return newest_mark(files_of(Path(self.path), slot))

    def check_take_over(self, found: Mark, batch: int) -> None:
        """Reject a batch that is not newer than those in the folder: its name would be taken."""
        if batch <= found.batch:
            raise fault("FILES_BATCH_TAKEN", path=self.path, batch=batch)

    def open(self, slot: Slot) -> SinkWriter:
        """Take the folder over from its current writer, and repair what an interrupted run left behind."""
        lease = FolderLease.taken(Path(self.path), slot, self)
        batches = Batches(lease=lease, merge_after=self.merge_after)
        with lease.checked():
            batches.repair()
        return _FilesWriter(batches=batches, format=self.format)

    def __str__(self) -> str:
        return f"files {self.path} ({'Parquet' if self.format == 'parquet' else 'JSON lines'})"


def files(
    path: str | Path,
    *,
    format: Literal["parquet", "json"] = "parquet",  # noqa: A002  the name users expect
    changelog: bool = False,
    merge_after: int | None = None,
) -> FilesSink:
    """Write Parquet or JSON-lines files, exactly once: `files("out/results")`.

    JSON cannot represent NaN and infinities, so they are null there; Parquet keeps them.

    Rows are only appended: a window that fires again adds a row with the next `pane_index`. Retractions are
    rejected unless `changelog=True` (readers then check `is_retraction`).

    Each batch is a folder. With `merge_after=100`, every hundred folders are merged into one; then read the rows
    with `sw.sinks.read_files(path)`, a Polars LazyFrame that has each row once at any moment.
    """
    if merge_after is not None and (type(merge_after) is not int or merge_after < _LEAST_MERGED):
        raise refuse("FILES_MERGE", got=repr(merge_after), least=_LEAST_MERGED)
    if format not in ("parquet", "json"):
        raise refuse("FILES_FORMAT", got=repr(format))
    folder = local_folder(path, what="the files sink")
    check_flags("the files sink", changelog=changelog)
    takes: frozenset[Change] = frozenset({"append", "update", "retract"} if changelog else {"append", "update"})
    return FilesSink(path=folder, format=format, merge_after=merge_after, changelog=changelog, takes=takes)


@dataclass(kw_only=True)
class _FilesWriter(SinkWriter):
    batches: Batches
    format: Literal["parquet", "json"]

    def mark(self) -> Mark | None:
        """Return the mark of the newest batch."""
        return self.batches.mark()

    def write(self, batch: SinkBatch, mark: Mark | None) -> None:
        """Write a folder and publish it."""
        assert mark is not None, "the sink promises exactly once"
        if batch.batch <= self.batches.newest:
            raise fault("FILES_BATCH_TAKEN", path=self.batches.home, batch=batch.batch)
        with self.batches.lease.checked():
            folder = self.batches.lease.new_folder()
            write = _PartWriter(folder=str(folder), format=self.format)
            if batch.in_parallel is not None:
                batch.in_parallel(write)
            else:
                write(0, batch)
            noted = json.dumps({**mark.as_dict(), "rows": batch.rows}).encode()
            place = f"{batch_folder(batch.batch)}/{MARK}"
            write_and_flush(folder / MARK, self.batches.lease.files.seal(place, noted))
            crash_point("written", batch.batch)
            self.batches.add(folder, batch.batch)

    def close(self) -> None:
        """Release the folder, and discard anything uncommitted."""
        self.batches.lease.end()


@dataclass(frozen=True, kw_only=True)
class _PartWriter:
    """Writes one part; runs on the driver, or as a Spark task that may be retried."""

    folder: str
    format: Literal["parquet", "json"]

    def __call__(self, part: int, batch: SinkBatch) -> None:
        rows = [frame for frame in batch.frames() if frame.height]
        if not rows:
            return
        suffix = "parquet" if self.format == "parquet" else "jsonl"
        final = Path(self.folder) / f"part-{part:05d}.{suffix}"
        temporary = final.with_name(f".{final.name}.{uuid.uuid4().hex}")
        frame = pl.concat(rows)
        if self.format == "parquet":
            frame.write_parquet(temporary, compression="zstd", compression_level=1)
        else:
            bytes_as_base64(frame).write_ndjson(temporary)
        flush_file(temporary)
        temporary.replace(final)


class _Owner(TypedDict):
    pipeline: str
    output: str


def _output(owner: dict[str, str]) -> str:
    return f"output `{owner['output']}` of pipeline `{owner['pipeline']}`"


def _why(folder: Path, error: OSError) -> str:
    """Return why a folder cannot be used: mostly because it, or a folder above it, is a file."""
    files = [path for path in (folder, *folder.parents) if path.is_file()]
    return f"`{files[0]}` is a file, not a folder" if files else str(error.strerror or error)

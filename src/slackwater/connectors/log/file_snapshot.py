"""A snapshot of the record of a log: the files that must be recognised, and a mark for those that were forgotten.

A file is kept as long as it is in the log's folder or belongs to a batch that can be replayed. Of the others, which
were deleted, the newest `GONE` are kept, so that one that comes back is recognised by its name. Older ones are
forgotten: what remains of them is a mark for each partition. An unknown file that is not newer than the mark may be
one of them; it is reported, and not read.
"""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Final

import polars as pl

from slackwater.base.stored import DamageError, shaped
from slackwater.connectors.log.listing import ListedFile

GONE: Final = 1 << 16
"""How many files are kept that are no longer in the log's folder."""
MARKS: Final = 1 << 12
"""How many partitions without files have a mark of their own."""
_SCHEMA: Final = pl.Schema(
    {
        "path": pl.Binary(),
        "partition": pl.String(),
        "number": pl.Int64(),
        "length": pl.Int64(),
        "modified_ms": pl.Int64(),
        "listing": pl.Int64(),
    }
)


@dataclass(frozen=True, kw_only=True)
class ForgottenMark:
    """What is known of forgotten files: the largest number and the newest modification time."""

    number: int
    modified_ms: int

    def joined(self, other: ForgottenMark | None) -> ForgottenMark:
        """Return the mark of the files of both."""
        if other is None:
            return self
        return ForgottenMark(
            number=max(self.number, other.number),
            modified_ms=max(self.modified_ms, other.modified_ms),
        )


@dataclass(frozen=True, kw_only=True)
class _Header:
    """The part of a snapshot that is JSON."""

    generation: int
    marks: dict[str, ForgottenMark]
    rest: ForgottenMark | None
    history: list[list[int]]


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The record of a log at one time."""

    generation: int = 0
    """How many snapshots of this log there were before."""
    files: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=_SCHEMA))
    """Files in the order in which they were listed."""
    marks: dict[str, ForgottenMark] = field(default_factory=dict)
    """For each partition with forgotten files, their mark."""
    rest: ForgottenMark | None = None
    """The mark of partitions that were themselves forgotten."""
    history: tuple[tuple[int, int], ...] = ()
    """The last listing that batches had taken, by batch."""

    def mark(self, partition: str) -> ForgottenMark | None:
        """Return the mark for the files of a partition; None if none was forgotten."""
        return self.marks.get(partition, self.rest)

    def listed(self, after: int) -> list[ListedFile]:
        """Return the files of the listings after one."""
        rows = self.files.filter(pl.col("listing") > after).iter_rows(named=True)
        return [ListedFile(**{**row, "path": _text(row["path"])}) for row in rows]

    def partitions(self) -> Iterator[tuple[str, str, int]]:
        """Yield each partition with files, the path of one of them, and their largest number."""
        groups = self.files.group_by("partition").agg(pl.col("path").first(), pl.col("number").max())
        yield from ((partition, _text(path), number) for partition, path, number in groups.iter_rows())

    def named(self, wanted: Collection[tuple[str, int]]) -> dict[tuple[str, int], str]:
        """Return the paths of the files with these numbers in their partitions."""
        keys = pl.DataFrame([*wanted], schema=_SCHEMA.to_frame().select("partition", "number").schema, orient="row")
        rows = self.files.join(keys, on=["partition", "number"], how="semi").select("partition", "number", "path")
        return {(partition, number): _text(path) for partition, number, path in rows.iter_rows()}

    def paths(self) -> list[str]:
        """Return the paths of all files."""
        return [_text(path) for path in self.files["path"]]

    def with_files(self, files: Sequence[ListedFile]) -> Snapshot:
        """Return the next snapshot, with more files."""
        rows = [{**asdict(file), "path": file.path.encode("utf-8", "surrogateescape")} for file in files]
        added = pl.DataFrame(rows, schema=_SCHEMA)
        return replace(self, generation=self.generation + 1, files=pl.concat([self.files, added], rechunk=True))

    def up_to(self, listing: int) -> Snapshot:
        """Return the snapshot without the files of later listings."""
        return replace(self, files=self.files.filter(pl.col("listing") <= listing))

    def folded(self, existing: Collection[str], *, after: int) -> tuple[Snapshot, list[str]]:
        """Forget the oldest files that are neither in the folder nor in a listing after `after`; return their paths."""
        rows = zip(self.paths(), self.files["listing"], strict=True)
        gone = [row for row, (path, listing) in enumerate(rows) if listing <= after and path not in existing]
        forgotten = {*gone[: max(0, len(gone) - GONE)]}
        is_dropped = pl.Series([row in forgotten for row in range(self.files.height)], dtype=pl.Boolean())
        dropped, kept = self.files.filter(is_dropped), self.files.filter(~is_dropped)
        found = replace(self, files=kept, marks=self._marks(dropped))._with_fewer_marks()  # noqa: SLF001  its own
        return found, [_text(path) for path in dropped["path"]]

    def _marks(self, dropped: pl.DataFrame) -> dict[str, ForgottenMark]:
        marks = dict(self.marks)
        highest = dropped.group_by("partition").agg(pl.col("number").max(), pl.col("modified_ms").max())
        for partition, number, modified_ms in highest.iter_rows():
            marks[partition] = ForgottenMark(number=number, modified_ms=modified_ms).joined(self.mark(partition))
        return marks

    def _with_fewer_marks(self) -> Snapshot:
        """Join the oldest marks of partitions without files, if there are many."""
        used = {*self.files["partition"].unique()}
        unused = sorted((mark.modified_ms, name) for name, mark in self.marks.items() if name not in used)
        marks, rest = dict(self.marks), self.rest
        for _, name in unused[: max(0, len(unused) - MARKS)]:
            rest = marks.pop(name).joined(rest)
        return replace(self, marks=marks, rest=rest)

    def to_bytes(self) -> bytes:
        """Return the snapshot as it is stored: a line of JSON, then the files in Arrow's IPC format."""
        header = _Header(
            generation=self.generation,
            marks=self.marks,
            rest=self.rest,
            history=[list(pair) for pair in self.history],
        )
        out = io.BytesIO()
        self.files.write_ipc(out, compression="zstd")
        return json.dumps(asdict(header)).encode() + b"\n" + out.getvalue()


def snapshot_of(stored: bytes) -> Snapshot:
    """Return a stored snapshot; raises `DamageError` if it is not one."""
    first, _, content = stored.partition(b"\n")
    header: _Header = shaped(json.loads(first), _Header)
    files = pl.read_ipc(io.BytesIO(content))
    if files.schema != _SCHEMA:
        raise DamageError("its columns are not those of a record of files")
    return Snapshot(
        generation=header.generation,
        files=files,
        marks=header.marks,
        rest=header.rest,
        history=tuple((batch, listing) for batch, listing in header.history),
    )


def _text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")

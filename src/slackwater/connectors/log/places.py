"""The places of a log's rows as users write them, for rows that have left FRONT.

In FRONT, a chunk knows its file. After that, a row has the index of its file and its line in one integer
(`listing.file_position`), which sorts the rows of a partition; the record of files tells the rest.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import polars as pl

from slackwater.base.errors import SlackwaterError
from slackwater.base.sealed import SealedFolder
from slackwater.connectors.log.file_record import FileRecord
from slackwater.connectors.log.listing import file_and_line, named_offset, place_of, shown

_FILE: Final = pl.Schema({"partition": pl.String(), "number": pl.Int64()})


class LogPlaces:
    """The places of the rows of one log, in one task of a job; reads the record of files when it is first asked."""

    def __init__(self, files: SealedFolder, number: int) -> None:
        self._record: FileRecord | None = FileRecord(files, number)
        self._is_read = False
        self._paths: dict[tuple[str, int], str | None] = {}

    def __call__(self, partitions: pl.Series, offsets: pl.Series) -> pl.DataFrame:
        """Return the file and the offset of each row; null for rows of files that are forgotten."""
        number, line = file_and_line(offsets)
        places = pl.DataFrame({"partition": partitions, "number": number, "line": line})
        wanted = places.select(_FILE.names()).unique().rows()
        self._learn({*wanted} - {*self._paths})
        found = [
            (*key, shown(path), named_offset(path) or 0) for key in wanted if (path := self._paths[key]) is not None
        ]
        files = pl.DataFrame(found, schema={**_FILE, "source": pl.String(), "first": pl.Int64()}, orient="row")
        joined = places.join(files, on=_FILE.names(), how="left", maintain_order="left")
        return joined.select("source", (pl.col("first") + pl.col("line")).alias("offset"))

    def _learn(self, wanted: Collection[tuple[str, int]]) -> None:
        if not wanted:
            return
        self._paths.update(dict.fromkeys(wanted))
        try:
            if self._record is not None and not self._is_read:
                self._record.read()
                self._is_read = True
        except (SlackwaterError, OSError):
            self._record = None  # a dead letter with another place is better than a batch that fails
        if self._record is not None:
            self._paths.update({key: place_of(path) for key, path in self._record.paths(wanted).items()})

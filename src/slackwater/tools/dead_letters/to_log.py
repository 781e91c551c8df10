"""Sends dead letters to a log: each batch is a file, and a second name of that file shows that it was published.

A log file gets its final name, an offset, by a hard link. The original name, `.retry-<batch>.jsonl`, which readers
ignore, is kept until the ledger says `sent`: while it exists, comparing it with the files of the log shows whether the
batch was published. The batch may get any offset, so other writers can write to the log at the same time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import polars as pl

from slackwater.base.durable import flush_folder
from slackwater.base.errors import DefinitionError, fault
from slackwater.connectors.files.sink import OWNER
from slackwater.connectors.log.listing import OFFSET_DIGITS, list_log
from slackwater.connectors.log.writing import _NO_LINKS, _check_partition, _Partition
from slackwater.tools.dead_letters.ledger import Intent
from slackwater.tools.dead_letters.repair import Left
from slackwater.tools.dead_letters.targets import RetryTarget, UnsureError, slices

_NEVER: Final = "a log line cannot hold"


@dataclass(frozen=True, kw_only=True)
class RetriesToLog(RetryTarget):
    """A log of JSON lines. Letters return to the partition they came from.

    A partition that the log does not have, such as `orders/0` of a topic, becomes a single folder, `orders-0`.
    """

    folder: Path

    def check(self) -> None:
        """Refuse a folder that is not a log of JSON lines: letters would be lost there."""
        if not self.folder.is_dir():
            raise fault("RETRY_TARGET", path=self.folder, found="not a folder")
        if (self.folder / OWNER).exists():
            raise fault("RETRY_TARGET", path=self.folder, found="the folder of a files sink")
        if any(file.path.endswith(".parquet") for file in list_log(self.folder)):
            raise fault("RETRY_TARGET", path=self.folder, found="a log of Parquet files")

    def unsendable(self, letters: pl.DataFrame) -> list[Left]:
        """Return the letters that a line cannot hold, or whose partition cannot be a folder."""
        payload = pl.col("payload").cast(pl.Binary)
        why = (
            pl.when(payload.is_null())
            .then(pl.lit(f"{_NEVER} a record without a payload"))
            .when(payload.bin.contains(b"\n"))
            .then(pl.lit(f"{_NEVER} a newline; remove it with --repair, or send to Kafka"))
            .when(payload.bin.ends_with(b"\r"))
            .then(pl.lit(f"{_NEVER} a carriage return at its end; remove it with --repair, or send to Kafka"))
            .when(pl.col("partition").is_in(_impossible(letters["partition"])))
            .then(pl.format("a log cannot have a partition `{}`; send to Kafka", "partition"))
        )
        found = letters.select("id", why=why).filter(pl.col("why").is_not_null())
        return [Left(id=letter, why=words) for letter, words in found.iter_rows()]

    def batches(self, letters: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """Split the letters into batches of one partition each, in the order of their offsets."""
        for part in letters.sort("partition", "offset").partition_by("partition", maintain_order=True):
            yield from slices(part)

    def facts(self, batch: str, letters: pl.DataFrame) -> Mapping[str, Any]:
        """Return the batch's partition, and the name of its prepared file."""
        return {"partition": self._partition(letters["partition"][0]), "file": f".retry-{batch}.jsonl"}

    def _partition(self, name: str) -> str:
        """Return the partition for letters of `name`: the same if the log has it, otherwise a single folder."""
        return name if (self.folder / name).is_dir() else name.replace("/", "-")

    def publish(self, intent: Intent, letters: pl.DataFrame) -> Mapping[str, Any]:
        """Write the file and link it into the log."""
        prepared = self._prepared(intent)
        partition = _Publication(prepared.parent)
        partition.prepare(prepared, b"\n".join([*letters["payload"], b""]))
        return {"offset": partition.link(prepared), "records": letters.height}

    def holds(self, intent: Intent) -> bool:
        """Return whether the prepared file has also been linked into the log."""
        prepared = self._prepared(intent)
        if not self.folder.is_dir():
            raise UnsureError(f"{self.folder} does not exist")
        if not prepared.exists():
            return False  # deleted only after its outcome is in the ledger, so it was never published
        in_log = (path for path in prepared.parent.iterdir() if path.name[0] not in {".", "_"})
        return any(path.samefile(prepared) for path in in_log)

    def tidy(self, intent: Intent) -> None:
        """Remove the prepared file's own name; its name in the log remains."""
        self._prepared(intent).unlink(missing_ok=True)

    def _prepared(self, intent: Intent) -> Path:
        return self.folder / str(intent.facts["partition"]) / str(intent.facts["file"])


class _Publication(_Partition):
    """A log partition to which an already written file is added."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "json")

    def prepare(self, prepared: Path, content: bytes) -> None:
        """Write the file and sync it to disk."""
        with prepared.open("xb") as file:
            file.write(content)
            file.flush()
            self._stamp(prepared)
            os.fsync(file.fileno())
        flush_folder(self.folder)

    def link(self, prepared: Path) -> int:
        """Link the file into the log, permanently; return the offset of its first record."""
        while True:
            try:
                os.link(prepared, self.folder / f"{self._next:0{OFFSET_DIGITS}}.jsonl")
            except FileExistsError:
                # Another writer was faster: continue after its files.
                self._next, last_ms = self._position()
                self._last_ms = max(self._last_ms, last_ms)
                self._stamp(prepared)
            except OSError as error:
                if error.errno in _NO_LINKS:
                    raise fault("RETRY_LINKS", path=self.folder, cause=error.strerror) from error
                raise
            else:
                flush_folder(self.folder)
                return self._next


def _impossible(partitions: pl.Series) -> list[str]:
    found = []
    for partition in partitions.unique():
        try:
            _check_partition(partition)
        except DefinitionError:
            found.append(partition)
    return found

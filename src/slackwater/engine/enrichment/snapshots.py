"""Persisted versions of a table: a replayed batch sees the same one.

`<checkpoint>/slackwater/tables/<step>/<version>.arrow`. The version is a hash of the rows, so an unchanged table is not
written again. The clock of a batch names the version of each table. The files are sealed.
"""

from __future__ import annotations

import hashlib
import io
from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import lru_cache

import polars as pl

from slackwater.base.sealed import SealedFolder
from slackwater.base.stored import DamageError


class Snapshots(ABC):
    """A store of table versions."""

    @abstractmethod
    def keep(self, step: str, frame: pl.DataFrame) -> str:
        """Persist a table, unless this version exists; return its version."""

    @abstractmethod
    def load(self, step: str, version: str) -> pl.DataFrame:
        """Return a version of a table."""


@dataclass(frozen=True, kw_only=True)
class FolderSnapshots(Snapshots):
    """Versions as Arrow files, in a folder that the driver and all executors see."""

    files: SealedFolder
    """Slackwater's own subfolder of the checkpoint."""

    def keep(self, step: str, frame: pl.DataFrame) -> str:
        """Write a file atomically and durably, unless it exists; return its version."""
        content = stored(frame)
        version = _version(content)
        self.files.write_once(_place(step, version), content)
        return version

    def load(self, step: str, version: str) -> pl.DataFrame:
        """Read a version; the process caches the last few."""
        return _loaded(self.files, step, version)

    def forget(self, step: str, keep: Collection[str]) -> None:
        """Delete the versions of a table that no batch can use any more."""
        for path in self.files.at(_place(step, "")).parent.glob("*.arrow"):
            if path.stem not in keep:
                path.unlink(missing_ok=True)


@dataclass(frozen=True, kw_only=True)
class MemorySnapshots(Snapshots):
    """Versions in memory, for the engine without Spark; passed on, they survive a restart."""

    frames: dict[tuple[str, str], pl.DataFrame] = field(default_factory=dict)

    def keep(self, step: str, frame: pl.DataFrame) -> str:
        """Keep a version."""
        version = _version(stored(frame))
        self.frames[step, version] = frame
        return version

    def load(self, step: str, version: str) -> pl.DataFrame:
        """Return a version."""
        return self.frames[step, version]


@lru_cache(maxsize=8)
def _loaded(files: SealedFolder, step: str, version: str) -> pl.DataFrame:
    content = files.read(_place(step, version))
    with files.readable(_place(step, version)):
        if (found := _version(content)) != version:
            raise DamageError(f"it has the rows of version {found}")
    return pl.read_ipc(io.BytesIO(content))


def _place(step: str, version: str) -> str:
    return f"tables/{step}/{version}.arrow"


def _version(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=12).hexdigest()


def stored(frame: pl.DataFrame) -> bytes:
    """Return a frame as it is stored, the same bytes for the same rows."""
    out = io.BytesIO()
    frame.rechunk().write_ipc(out, compression="zstd")
    return out.getvalue()

"""Fencing for a files sink: only the writer that opened a folder last can change it.

Each writer has its own folder, `.writer-…`, inside the sink's, and changes the sink only by renaming: what it adds
comes out of its own folder, what it removes goes into it. The next writer takes that folder away before it reads
anything. From then on every rename by the previous writer fails, because one end of it is gone: a frozen writer is
stopped by the rename itself, not by a check before it, wherever and for however long it was frozen.
"""

from __future__ import annotations

import errno
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from slackwater.base.durable import flush_folder, space_for, write_and_flush
from slackwater.base.errors import fault
from slackwater.base.sealed import SealedFolder
from slackwater.connectors.sink import Slot

_OTHERS: Final = (".writer-*", ".batch-*", ".merged-*")
"""The unfinished work of other writers; the last two patterns are from an earlier version."""


def files_of(home: Path, slot: Slot | None = None) -> SealedFolder:
    """Return the sealed files of a sink: its owner, its manifest, its marks; without a slot, whatever output it is."""
    return SealedFolder(
        path=home,
        of=None if slot is None else f"{slot.pipeline}/{slot.output}",
        damaged=lambda path, why: fault("FILES_DAMAGED", path=path, why=why, home=home),
    )


@dataclass(frozen=True, kw_only=True)
class FolderLease:
    """The right to change a folder, until another writer takes it."""

    home: Path
    own: Path
    slot: Slot
    sink: object

    @classmethod
    def taken(cls, home: Path, slot: Slot, sink: object) -> FolderLease:
        """Take the lease from its current holder."""
        lease = cls(home=home, own=home / f".writer-{uuid.uuid4().hex}", slot=slot, sink=sink)
        lease.own.mkdir()
        for pattern in _OTHERS:
            for other in home.glob(pattern):
                if other != lease.own:
                    lease.remove(other.name)
        return lease

    @property
    def files(self) -> SealedFolder:
        """The sealed files of the sink."""
        return files_of(self.home, self.slot)

    @contextmanager
    def checked(self) -> Iterator[None]:
        """Report an error inside as fencing, if this writer was fenced."""
        try:
            with space_for(self.home):
                yield
        except Exception as error:
            if self.own.is_dir():
                raise
            facts = {"sink": self.sink, "slot": self.slot.number, "output": self.slot.output}
            raise fault("SINK_FENCED", **facts) from error

    def new_folder(self) -> Path:
        """Create a hidden folder to fill."""
        path = self._new_path()
        path.mkdir()
        return path

    def add(self, folder: Path, name: str) -> None:
        """Publish a folder in the sink, atomically."""
        flush_folder(folder)
        folder.rename(self.home / name)
        flush_folder(self.home)

    def replace_file(self, name: str, content: bytes) -> None:
        """Replace a sealed file of the sink atomically."""
        path = self._new_path()
        write_and_flush(path, self.files.seal(name, content))
        path.replace(self.home / name)
        flush_folder(self.home)

    def remove(self, name: str) -> None:
        """Remove a folder from the sink, if it exists: it disappears at once, and its files are deleted afterwards."""
        path = self._new_path()
        try:
            (self.home / name).rename(path)
        except FileNotFoundError:
            if not self.own.is_dir():
                raise
            return
        # A fenced writer may still be filling it; what it leaves is deleted with this writer's folder.
        shutil.rmtree(path, ignore_errors=True)

    def end(self) -> None:
        """Release the lease."""
        gone = self.own.with_name(f"{self.own.name}-ended")
        try:
            self.own.rename(gone)
        except OSError as error:
            if error.errno != errno.ENOENT:
                raise
            return  # another writer has taken it
        shutil.rmtree(gone, ignore_errors=True)

    def _new_path(self) -> Path:
        return self.own / uuid.uuid4().hex

"""Whose turn it is: only the writer that opened a folder last can change it.

A writer has a folder of its own, `.writer-…`, inside the sink's, and changes the sink by renaming alone: what it adds
comes out of its own folder, what it removes goes into it. The next writer takes that folder away before it looks at
anything. From then on each rename of the writer before fails, for one of its ends is gone: a writer that was frozen is
stopped by the rename itself, not by a look before it, wherever it was frozen and however long.
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

from slackwater.errors import fault
from slackwater.ground.durable import flush_folder, write_and_flush
from slackwater.sinks.base import Slot

_OTHERS: Final = (".writer-*", ".batch-*", ".merged-*")
"""What other writers have under way; the last two are of an earlier version."""


@dataclass(frozen=True, kw_only=True)
class Turn:
    """The right to change a folder, until another takes it."""

    home: Path
    own: Path
    slot: Slot
    sink: object

    @classmethod
    def taken(cls, home: Path, slot: Slot, sink: object) -> Turn:
        """Take the turn from the writer that has it."""
        turn = cls(home=home, own=home / f".writer-{uuid.uuid4().hex}", slot=slot, sink=sink)
        turn.own.mkdir()
        for pattern in _OTHERS:
            for other in home.glob(pattern):
                if other != turn.own:
                    turn.remove(other.name)
        return turn

    @contextmanager
    def checked(self) -> Iterator[None]:
        """Say of what fails inside that this writer was shut out, if it was."""
        try:
            yield
        except Exception as error:
            if self.own.is_dir():
                raise
            facts = {"sink": self.sink, "slot": self.slot.number, "output": self.slot.output}
            raise fault("SINK_FENCED", **facts) from error

    def new_folder(self) -> Path:
        """Make a folder to fill, which nobody sees yet."""
        path = self._new_path()
        path.mkdir()
        return path

    def add(self, folder: Path, name: str) -> None:
        """Let a folder appear in the sink, whole."""
        flush_folder(folder)
        folder.rename(self.home / name)
        flush_folder(self.home)

    def replace_file(self, name: str, text: str) -> None:
        """Replace a file of the sink in one go."""
        path = self._new_path()
        write_and_flush(path, text)
        path.replace(self.home / name)
        flush_folder(self.home)

    def remove(self, name: str) -> None:
        """Remove a folder from the sink, unless it is gone: it vanishes at once, and its files then."""
        path = self._new_path()
        try:
            (self.home / name).rename(path)
        except FileNotFoundError:
            if not self.own.is_dir():
                raise
            return
        # A writer that was shut out may still be filling it; what that leaves goes with this writer's folder.
        shutil.rmtree(path, ignore_errors=True)

    def end(self) -> None:
        """Give the turn back."""
        gone = self.own.with_name(f"{self.own.name}-ended")
        try:
            self.own.rename(gone)
        except OSError as error:
            if error.errno != errno.ENOENT:
                raise
            return  # another has taken it
        shutil.rmtree(gone, ignore_errors=True)

    def _new_path(self) -> Path:
        return self.own / uuid.uuid4().hex

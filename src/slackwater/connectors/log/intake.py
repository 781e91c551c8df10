"""How a log feeds its batches: the driver lists the folder, and Spark reads the listings, exactly once.

For the log with index `i` among the sources, in `<checkpoint>/slackwater/log/<i>`:

- `files.arrow` and `files.jsonl` are the record of the files that were listed (`file_record.py`);
- `listings/<number>/<number>-<share>` are the files of one listing, divided among as many tasks as run at once. Spark
  streams this folder: it records which listings a batch has, and its workers read the files they name. It identifies a
  share by its name alone, which is unique, so that a copy of a checkpoint reads nothing twice.

A listing is created in these steps, and a crash between any two of them leaves the log correct:

1. files not listed yet are taken, in the order of modification time, partition and name;
2. they are added to the record, durably;
3. the listing is renamed to its final name.

Listings that no batch has taken when a job starts are created again. The files that a listing of a batch names are
compared with the record: when a job starts, shares that differ are written again; later, they are an error.

The last listing of a bounded run has no files. Its only share is called `<number>-end`, and makes Spark run one more
batch: the one for the final watermark.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from slackwater.base.durable import space_for
from slackwater.base.errors import fault
from slackwater.base.stored import DamageError
from slackwater.connectors.intake import Intake, Look, ReadOffsets, StreamPlace
from slackwater.connectors.log.batch_offsets import offsets_of
from slackwater.connectors.log.file_record import FileRecord, KnownFile
from slackwater.connectors.log.listing import (
    ListedFile,
    Listing,
    LogFile,
    file_facts,
    found_instead,
    list_folder,
    modified_ms,
    place_of,
    reading_order,
    shown,
    text_path,
)
from slackwater.connectors.log.reports import report_doubtful, report_left, report_strays
from slackwater.connectors.log.shares import (
    END,
    differing_share,
    is_after,
    is_end,
    listing_of,
    share_name,
    write_share,
    write_shares,
)
from slackwater.connectors.log.spark_files import adopt, entry_of, listed_files, missing_entry, newest_files, trim
from slackwater.connectors.reading import Reading

if TYPE_CHECKING:
    from slackwater.connectors.log.source import LogSource

KEPT: Final = 10
"""How many batches' listings are kept; Spark replays only the last batch, but scans all listings every time."""


class LogIntake(Intake):
    """One log of a job: lists its files, and keeps track of those that batches have taken."""

    is_listed = True

    def __init__(self, source: LogSource, place: StreamPlace) -> None:
        self.source = source
        self.stream = place.stream
        self.shares = max(1, place.slots)
        assert place.progress is not None, "a log is listed for a job that has a checkpoint"
        self._progress, self._number = place.progress, place.number
        self._home = self._progress.home / "log" / str(self._number)
        self._record = FileRecord(self._progress.files, self._number)
        self._taken_by_spark = self._progress.path / "sources" / str(self._number)
        self._lock = threading.RLock()
        self._files: dict[str, KnownFile] = {}
        self._by_listing: dict[int, list[ListedFile]] = {}
        self._folders: dict[str, Path] = {}
        self._counts: dict[str, int] = {}
        self._taken = -1
        self._begun: frozenset[int] = frozenset()
        self._next = 0
        self._end: int | None = None
        self._last_ms = 0
        self._history: deque[int] = deque()
        self._seen: Listing | None = None
        self._reported: set[str] = set()

    @property
    def listings(self) -> Path:
        """The folder that Spark streams."""
        return self._home / "listings"

    def check(self) -> int:
        """Reject a log that cannot be read on from the current position; return the number of bytes waiting."""
        self._read()
        return sum(file.length for file in self.unread()[0].files)

    def partitions(self) -> frozenset[str]:
        """Return the partitions that have files, or had some."""
        return frozenset({*self._folders, *(file.partition for file in list_folder(self.source.path).files)})

    def open(self) -> None:
        """Load what was listed before; discard listings that no batch has taken."""
        is_all = self._read()
        with self._progress.readable(self._taken_by_spark):
            adopt(self._taken_by_spark, self.listings)
        with space_for(self.listings):
            self.listings.mkdir(parents=True, exist_ok=True)
            for left in self._home.glob(".*"):
                left.unlink()  # of a killed driver
            if not is_all:
                self._record.rewrite(self._taken)
            for listing, shares in self._by_folder(newest_files(self._taken_by_spark)).items():
                files = self._by_listing.get(listing, ())
                if files and differing_share(shares, files) is not None:
                    shares[0].parent.mkdir(exist_ok=True)
                    write_shares(shares, files, self._later_ms())
        for folder in self.listings.iterdir():
            if folder.name.startswith(".") or int(folder.name) > self._taken:
                shutil.rmtree(folder)
        self._last_ms = max((modified_ms(share.stat()) for share in self.listings.glob("*/*")), default=0)

    def _read(self) -> bool:
        """Load the files that batches have taken; return whether nothing else was listed."""
        self._check_entries()
        with self._progress.readable(self._taken_by_spark):
            newest = newest_files(self._taken_by_spark)
            self._taken = max(map(listing_of, newest), default=-1)
        self._next = self._taken + 1
        is_amid = self._progress.is_amid_batch()
        self._begun = self._listings_of(self._progress.next_batch()) if is_amid else frozenset()
        flaw = self._record.read()
        self._record.check(self._taken - any(map(is_end, newest)), flaw)
        self._files = {path: file for path, file in self._record.known().items() if file.listing <= self._taken}
        self._by_listing, self._counts, self._folders = {}, {}, {}
        for partition, path, number in self._record.partitions(self._taken):
            self._note_partition(partition, path, number)
        for file in self._record.replayable():
            if file.listing <= self._taken:
                self._by_listing.setdefault(file.listing, []).append(file)
        return flaw is None and self._record.last <= self._taken

    def _check_entries(self) -> None:
        """Raise if Spark's log of this source lacks an entry that Spark reads when it starts."""
        last = -1
        offsets = self._progress.path / "offsets"
        for batch in {self._progress.committed_batch(), self._progress.next_batch()}:
            if lines := self._progress.source_offsets(batch):
                with self._progress.readable(offsets / str(batch)):
                    last = max(last, entry_of(lines, self._number))
        if (missing := missing_entry(self._taken_by_spark, last)) is not None:
            with self._progress.readable(missing):
                raise DamageError("it is missing")

    def reading(self, *, bounded: bool) -> Reading:
        """Return how Spark reads the listings."""
        return Reading(bounded=bounded, listings=self.listings, shares=self.shares)

    def publish(self, *, all_of_it: bool = False) -> None:
        """List new files: as many as one batch may read in addition to those waiting; or all, batch by batch."""
        with self._lock:
            found = list_folder(self.source.path).files
            fresh = sorted((file for file in found if self._is_new(file)), key=reading_order)
            if all_of_it:
                for part in self._batches(fresh):
                    self._publish(part, self.shares)
            else:
                waiting = [file for listing in range(self._taken + 1, self._next) for file in self._by_listing[listing]]
                part = self._first(fresh, len(waiting), sum(file.length for file in waiting))
                self._publish(part, min(self.shares, len(part)))
            if self._record.is_due:
                self._compact({text_path(file.path) for file in found})

    def publish_end(self) -> None:
        """Add one more batch after the one that takes the last files."""
        with self._lock:
            self._end = self._next
            self._next += 1
            self._by_listing[self._end] = []
            temporary = self.listings / f".{self._end}"
            with space_for(temporary):
                temporary.mkdir()
                write_share(temporary / share_name(self._end, END), "\n", self._later_ms())
                temporary.rename(self.listings / f"{self._end:012d}")

    @property
    def waiting(self) -> int:
        """The number of listings that no batch has taken."""
        return self._next - 1 - self._taken

    @property
    def is_at_end(self) -> bool:
        """Whether only the listing without files is waiting."""
        return self._end is not None and self._taken == self._end - 1

    def take(self, batch: int) -> None:
        """Record the listings of a batch; raises if one of its files is missing or has changed."""
        listings = self._by_folder(self._shares_of(batch))
        with self._lock:
            self._begun = frozenset()
            self._taken = max([self._taken, *listings])
            self._record.took(batch, self._taken)
            for listing, shares in sorted(listings.items()):
                files = self._by_listing.get(listing, ())
                changed = [(file, found) for file in files if (found := found_instead(file)) is not None]
                differing = differing_share(shares, files)
                if (changed or differing) and self._progress.accepts_changes:
                    self._relist(listing)
                elif changed:
                    facts = {"batch": batch, "stream": self.stream, "path": shown(changed[0][0].place)}
                    raise fault("BATCH_INPUT_CHANGED", **facts, found=changed[0][1])
                elif differing is not None:
                    with self._progress.readable(differing):
                        raise DamageError(f"it does not name the files of listing {listing}")
            self._forget_listings()

    def reads(self, batch: int, *, rows_before: int) -> dict[str, ReadOffsets]:  # noqa: ARG002  as in the contract
        """Return the offsets in the files of a batch."""
        with self._lock:
            files = [file for listing in self._listings_of(batch) for file in self._by_listing.get(listing, ())]
        return offsets_of(files, self.source.format)

    def look(self, batch: int, partitions: Collection[str]) -> Look:  # noqa: ARG002  keeps track of what batches have taken
        """Compare the folder with what batches have taken from it.

        A partition with unread files holds back the watermark: files are read by modification time, so a backlog is
        read one partition after another.
        """
        self._seen, waiting = self.unread()
        return Look(backlog=frozenset(waiting), missing=self._missing(partitions), is_complete=True)

    def brings(self) -> bool:
        """Return whether files are waiting for the next batch."""
        return self.waiting > 0 and not self.is_at_end

    def report(self, *, left: bool = False) -> None:
        """Warn, once per file, about files that will never be read; with `left`, also about unread files."""
        seen, self._seen = self._seen or self.unread()[0], None
        report_strays(self.source.path, seen.strays, self._reported)
        report_doubtful(self.source.path, seen.doubtful, self._reported)
        if left:
            report_left(self.source.path, [shown(file.path) for file in seen.files])

    def unread(self) -> tuple[Listing, set[str]]:
        """Return the files that are unread or have changed since they were read, and the partitions with unread files.

        Raises if a file's length has changed but not its modification time: it looks like the file that was read.
        """
        with self._lock:
            found = list_folder(self.source.path)
            waiting, unread = set(), []
            for file in found.files:
                known = self._files.get(text_path(file.path))
                if known is None and not self._is_new(file):
                    found.doubtful.append(file.path)
                elif known is None or known.listing > self._taken or known.listing in self._begun:
                    waiting.add(file.partition)
                    unread.append(file)
                elif (known.length, known.modified_ms) != (file.length, file.modified_ms):
                    if known.modified_ms == file.modified_ms and not self._progress.accepts_changes:
                        listed, now = (file_facts(each.length, each.modified_ms) for each in (known, file))
                        raise fault("LOG_FILE_CHANGED", path=shown(file.path), listed=listed, found=now)
                    found.strays.append(file.path)
            strays, doubtful = ([*map(shown, paths)] for paths in (found.strays, found.doubtful))
            return Listing(files=unread, strays=strays, doubtful=doubtful), waiting

    def _missing(self, partitions: Collection[str]) -> frozenset[str]:
        """Return the partitions that were read, now or earlier, and whose folders no longer exist."""
        if not Path(self.source.path).is_dir():
            return frozenset()
        with self._lock:
            forgotten = {name: Path(self.source.path) / name for name in partitions}
            return frozenset(name for name, folder in (forgotten | self._folders).items() if not folder.is_dir())

    def _by_folder(self, shares: Iterable[str]) -> dict[int, list[Path]]:
        """Return the shares of each listing; if the checkpoint was moved, Spark's log has their former paths."""
        found: dict[int, list[Path]] = {}
        for share in map(Path, shares):
            found.setdefault(listing_of(str(share)), []).append(self.listings / share.parent.name / share.name)
        return found

    def _listings_of(self, batch: int) -> frozenset[int]:
        return frozenset(map(listing_of, self._shares_of(batch)))

    def _shares_of(self, batch: int) -> list[str]:
        before, after = (self._progress.source_offsets(each) for each in (batch - 1, batch))
        with self._progress.readable(self._progress.path / "offsets" / str(batch)):
            entry_of(after, self._number)
        with self._progress.readable(self._taken_by_spark):
            return [path for path, _ in listed_files(self._taken_by_spark, before, after, self._number)]

    def _batches(self, files: list[LogFile]) -> Iterator[list[LogFile]]:
        while files:
            part = self._first(files, 0, 0)
            yield part
            files = files[len(part) :]

    def _first(self, files: list[LogFile], count: int, size: int) -> list[LogFile]:
        """Return the files that fit in a batch with `count` files of `size` bytes; at least one if it has none."""
        most_files, most_bytes = self.source.max_files_per_batch, self.source.max_bytes_per_batch
        for place, file in enumerate(files):
            full = size + file.length > most_bytes if most_files is None else count >= most_files
            if count and full:
                return files[:place]
            count, size = count + 1, size + file.length
        return files

    def _publish(self, files: list[LogFile], shares: int) -> None:  # the numbers refer to the module docstring
        if not files:
            return
        listing = self._next
        listed = [self._listed(file, listing) for file in files]  # 1
        self._record.append(listed)  # 2
        self._next = listing + 1
        self._note(listed)
        temporary = self.listings / f".{listing}"
        with space_for(temporary):
            temporary.mkdir()
            places = [temporary / share_name(listing, f"{share:04d}") for share in range(shares)]
            write_shares(places, listed, self._later_ms())
            temporary.rename(self.listings / f"{listing:012d}")  # 3

    def _listed(self, file: LogFile, listing: int) -> ListedFile:
        number = self._record.next_number(file.partition, self._counts.get(file.partition, -1))
        self._counts[file.partition] = number
        return ListedFile(
            path=text_path(file.path),
            partition=file.partition,
            number=number,
            length=file.length,
            modified_ms=file.modified_ms,
            listing=listing,
        )

    def _note(self, files: Iterable[ListedFile]) -> None:
        for file in files:
            self._files[file.path] = KnownFile(file.length, file.modified_ms, file.listing)
            self._by_listing.setdefault(file.listing, []).append(file)
            self._note_partition(file.partition, file.path, file.number)

    def _note_partition(self, partition: str, path: str, number: int) -> None:
        self._folders.setdefault(partition, Path(place_of(path)).parent)
        self._counts[partition] = max(self._counts.get(partition, -1), number)

    def _is_new(self, file: LogFile) -> bool:
        """Return whether a file was never listed, as far as that is certain."""
        return text_path(file.path) not in self._files and not self._record.may_have_had(
            file.partition, file.modified_ms
        )

    def _compact(self, existing: set[str]) -> None:
        """Compact the record, and forget what it forgets."""
        if not existing:
            return  # more likely the folder cannot be seen than that all is deleted
        for path in self._record.compact(existing):
            del self._files[path]
        for listing in [each for each in self._by_listing if each <= self._record.settled]:
            del self._by_listing[listing]

    def _later_ms(self) -> int:
        self._last_ms = max(time.time_ns() // 1_000_000, self._last_ms + 1)
        return self._last_ms

    def _relist(self, listing: int) -> None:
        """Rewrite a listing with its files as they are now, which the user has accepted."""
        files = []
        for file in self._by_listing.pop(listing):
            if Path(file.place).exists():
                status = Path(file.place).stat()
                now = {"length": status.st_size, "modified_ms": modified_ms(status)}
                files.append(ListedFile(**{**asdict(file), **now}))
        self._note(files)
        folder = self.listings / f"{listing:012d}"
        write_shares(sorted(folder.iterdir()), files, self._later_ms())  # Spark knows these shares by name

    def _forget_listings(self) -> None:
        """Delete the listings of batches that Spark cannot replay."""
        self._history.append(self._taken)
        while len(self._history) > KEPT:
            before, oldest = self._history.popleft(), self._history[0]
            if before < oldest:
                with self._progress.readable(self._taken_by_spark):
                    trim(self._taken_by_spark, partial(is_after, before))
                for folder in self.listings.iterdir():
                    if not folder.name.startswith(".") and int(folder.name) <= before:
                        shutil.rmtree(folder)
                        self._by_listing.pop(int(folder.name), None)

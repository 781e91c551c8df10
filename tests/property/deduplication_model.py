"""A slow, obvious model of deduplication: a loop over records, one dictionary."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.property.streams import Record

END = 1 << 60


@dataclass
class Kept:
    """What is known of one key."""

    record: Record
    until_ms: int
    is_shown: bool = False


@dataclass
class Model:
    """Where every record ends; `results` are (record, is_retraction) in the order of each key."""

    keep: str
    within_ms: int | None
    processes_late: bool
    watermark_ms: int = -END
    keys: dict[str | None, Kept] = field(default_factory=dict)
    results: list[tuple[Record, bool]] = field(default_factory=list)
    duplicates: list[Record] = field(default_factory=list)
    late: list[Record] = field(default_factory=list)

    def advance(self, watermark_ms: int) -> None:
        """Move the watermark, if it moves."""
        if watermark_ms <= self.watermark_ms:
            return
        self.watermark_ms = watermark_ms
        for key, kept in list(self.keys.items()):
            if self.keep == "first_by_time" and not kept.is_shown and kept.record.ts_ms < watermark_ms:
                self.results.append((kept.record, False))
                kept.is_shown = True
            if watermark_ms > kept.until_ms:
                del self.keys[key]

    def take(self, record: Record) -> None:
        """Take one record."""
        if record.ts_ms < self.watermark_ms and not self.processes_late:
            self.late.append(record)
            return
        until_ms = END if self.within_ms is None else max(record.ts_ms + self.within_ms, self.watermark_ms)
        kept = self.keys.get(record.key)
        if kept is None:
            self.keys[record.key] = Kept(record, until_ms, is_shown=self.keep != "first_by_time")
            if self.keep != "first_by_time":
                self.results.append((record, False))
        elif self.keep == "first_by_time" and not kept.is_shown and record.ts_ms < kept.record.ts_ms:
            self.duplicates.append(kept.record)
            self.keys[record.key] = Kept(record, until_ms)
        elif self.keep == "last_by_time" and record.ts_ms >= kept.record.ts_ms:
            self.results += [(kept.record, True), (record, False)]
            self.keys[record.key] = Kept(record, until_ms, is_shown=True)
        else:
            self.duplicates.append(record)

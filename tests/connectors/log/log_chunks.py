"""A file of a log as it is read: in chunks."""

from __future__ import annotations

from pathlib import Path

from slackwater.connectors.log.reading import Lines, read_file


def chunks_of(
    path: Path, *, kind: str = "json", chunk_bytes: int = 1 << 20, columns: list[str] | None = None
) -> list[Lines]:
    status = path.stat()
    return list(
        read_file(
            str(path),
            length=status.st_size,
            modified_ms=status.st_mtime_ns // 1_000_000,
            kind=kind,  # type: ignore[arg-type]
            chunk_bytes=chunk_bytes,
            columns=columns,
        )
    )

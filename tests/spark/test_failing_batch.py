"""A batch that fails is recorded for the status, and what keeps it from being recorded is not lost."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import MagicMock

from slackwater.engine.checkpoint.checkpoint import Checkpoint
from slackwater.spark.failures import note_failing_batch


def test_error_says_why_its_batch_is_not_in_the_status(tmp_path: Path) -> None:
    for folder in ("offsets", "commits"):
        (tmp_path / folder).mkdir()
    (tmp_path / "offsets" / "0").touch()
    error = ValueError("the user's")
    note_failing_batch(error, Checkpoint(path=tmp_path, incarnation="i", partitions=1), MagicMock())
    [note] = error.__notes__
    assert note.startswith("the status cannot show the batch that failed: RunError: ")
    assert "clock/0" in note

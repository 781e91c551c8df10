"""A history that is damaged or gone: status and page say what they cannot show, and show the rest."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from slackwater.engine.checkpoint.checkpoint import FORMAT
from slackwater.observe.metrics import history
from slackwater.observe.metrics.history import History, MetricsWarning, history_folder
from slackwater.observe.metrics.runs import begin_run
from slackwater.observe.metrics.status import read_status
from slackwater.observe.page.stored import StoredJob
from slackwater.tools.cli.main import app
from tests.observe.metrics.made_records import START_MS, record
from tests.sealing import write_manifest

REST = "the job, its state and its results do not depend on it"


@pytest.fixture
def checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the checkpoint of a job with forty batches in four files."""
    monkeypatch.setattr(history, "SEGMENT_LINES", 10)
    path = tmp_path / "shop"
    facts = {"format": FORMAT, "pipeline": "shop", "incarnation": "i", "key_groups": 8, "partitions": 1}
    write_manifest(path, {**facts, "sources": {}, "steps": {}, "finished": False})
    (path / "commits").mkdir()
    (path / "commits" / "39").touch()
    begin_run(history_folder(path), START_MS)
    with closing(History(folder=history_folder(path))) as kept:
        for batch in range(40):
            kept.append(record(batch))
    return path


def files(checkpoint: Path) -> list[Path]:
    return sorted(history_folder(checkpoint).glob("0-*.jsonl"))


def spoil(*paths: Path) -> None:
    for path in paths:
        path.write_bytes(bytes(path.stat().st_size - 1) + b"\n")


def lost(checkpoint: Path) -> str:
    return read_status(checkpoint).history_loss


def test_whole_history_has_nothing_to_say(checkpoint: Path) -> None:
    assert lost(checkpoint) == ""
    assert "cannot be read" not in CliRunner().invoke(app, ["status", "--checkpoint", str(checkpoint)]).output


def test_history_of_which_nothing_can_be_read_is_reported_and_the_state_is_shown(checkpoint: Path) -> None:
    spoil(*files(checkpoint))
    said = (
        f"the history in `{history_folder(checkpoint)}` cannot be read: 0-000000000000.jsonl is damaged (no line is a "
        f"record), and so are 3 other files; the figures of all batches cannot be shown; {REST}"
    )
    status = read_status(checkpoint)
    assert (status.history_loss, status.starts, status.batch) == (said, 1, None)
    done = CliRunner().invoke(app, ["status", "--checkpoint", str(checkpoint)])
    assert done.exit_code == 0
    assert done.output.startswith("shop  ")
    assert f"warning: {said}" in " ".join(done.output.split())
    [plain] = json.loads(CliRunner().invoke(app, ["status", "--checkpoint", str(checkpoint), "--json"]).output)
    assert plain["history_loss"] == said


def test_page_says_it_and_is_written(checkpoint: Path, tmp_path: Path) -> None:
    spoil(*files(checkpoint))
    command = ["page", "--checkpoint", str(checkpoint), "--out", str(tmp_path / "page.html")]
    with pytest.warns(MetricsWarning, match=r"^\[HISTORY_UNREADABLE\] .* the figures of all batches cannot be shown"):
        assert CliRunner().invoke(app, command).exit_code == 0
    assert "the figures of all batches cannot be shown" in (tmp_path / "page.html").read_text()
    assert StoredJob(checkpoint).feed.job["notice"] == lost(checkpoint)


@pytest.mark.parametrize(
    "spoilt, batches",
    [([0], "0 to 9"), ([1], "10 to 19"), ([3], "30 on"), ([0, 2], "0 to 9, 20 to 29"), ([2, 3], "20 on")],
)
def test_files_that_are_damaged_cost_their_batches(checkpoint: Path, spoilt: list[int], batches: str) -> None:
    spoil(*(files(checkpoint)[number] for number in spoilt))
    assert f"; the figures of batches {batches} cannot be shown; {REST}" in lost(checkpoint)


def test_file_that_the_system_does_not_give_is_damaged(checkpoint: Path) -> None:
    files(checkpoint)[1].unlink()
    (history_folder(checkpoint) / "0-000000000010.jsonl").mkdir()
    assert "0-000000000010.jsonl is damaged (Is a directory)" in lost(checkpoint)


def test_damaged_line_and_a_line_that_is_being_written_are_no_loss(checkpoint: Path) -> None:
    first = files(checkpoint)[0]
    first.write_bytes(b"x" + first.read_bytes())
    (history_folder(checkpoint) / "0-000000000040.jsonl").write_bytes(b'{"batch": 40, "at')
    assert lost(checkpoint) == ""


def test_files_beside_the_records_are_reported_as_well(checkpoint: Path) -> None:
    for name, text in (("runs.json", "{"), ("job.json", "[]"), ("lateness.json", "{}")):
        (history_folder(checkpoint) / name).write_text(text)
    assert "runs.json is damaged (it is not JSON), and so is 1 other file; how often it was started and its plan " in (
        lost(checkpoint)
    )


def test_history_that_is_gone_is_reported_of_a_job_that_has_batches(checkpoint: Path) -> None:
    for path in history_folder(checkpoint).iterdir():
        path.unlink()
    assert "cannot be read: it has no records; the figures of all batches cannot be shown" in lost(checkpoint)
    (checkpoint / "commits" / "39").unlink()
    assert lost(checkpoint) == "", "no batch, no history"


def test_path_that_is_no_folder_is_reported(checkpoint: Path) -> None:
    history_folder(checkpoint).rename(checkpoint / "elsewhere")
    history_folder(checkpoint).touch()
    assert "cannot be read: Not a directory; the figures of all batches cannot be shown" in lost(checkpoint)

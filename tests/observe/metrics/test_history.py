"""The history: bounded for ever, whole after a crash, readable whatever happened to it."""

from __future__ import annotations

import json
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from slackwater.observe.metrics import history
from slackwater.observe.metrics.history import History, MetricsWarning, read_history
from slackwater.observe.metrics.record import BatchRecord
from tests.observe.metrics.made_records import record


def written(folder: Path, batches: range, *, run: int = 1) -> None:
    with closing(History(folder=folder)) as kept:
        for batch in batches:
            kept.append(record(batch, run=run))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "SEGMENT_LINES", 20)
    monkeypatch.setattr(history, "MOST_SEGMENTS", 3)


def test_record_comes_back_from_json_as_it_was() -> None:
    whole = record(7)
    assert BatchRecord.from_json(json.loads(whole.to_line())) == whole


def test_record_leaves_out_what_has_its_default() -> None:
    plain = record(7).to_json()
    assert "batches" not in plain
    assert plain["streams"]["orders"]["partitions"]["orders-2"] == {"is_idle": True}


@pytest.mark.parametrize("text", ["[]", "{}", '{"batch": 1}', '{"batch": "x", "at_ms": 1, "now_ms": 1}', "3"])
def test_what_is_no_record_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match="it "):
        BatchRecord.from_json(json.loads(text))


def test_record_of_another_form_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="it has form 2, and this version reads 1"):
        BatchRecord.from_json({**record(7).to_json(), "form": 2})


def test_history_gives_back_what_was_written(tmp_path: Path) -> None:
    written(tmp_path, range(30))
    assert read_history(tmp_path) == [record(batch) for batch in range(30)]
    assert read_history(tmp_path, last=2) == [record(28), record(29)]


@pytest.mark.usefixtures("small")
def test_old_batches_are_put_together_and_every_one_of_them_is_counted(tmp_path: Path) -> None:
    written(tmp_path, range(1_000))
    found = read_history(tmp_path)
    assert sum(each.batches for each in found) == 1_000
    assert sum(each.rows for each in found) == 100_000
    assert sum(each.steps["orders.window"].counts["late"] for each in found) == 1_000
    assert [each.first_batch for each in found] == [0, *(each.batch + 1 for each in found[:-1])]
    assert [each for each in found if each.batches == 1][-60:] == [record(batch) for batch in range(940, 1_000)]
    assert {each.batches for each in found} == {1, 10, 100}
    assert found[0].streams["orders"].partitions == {}
    assert found[0].streams["orders"].ages == ()


@pytest.mark.usefixtures("small")
def test_number_of_segments_is_bounded_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "LEVELS", 2)
    written(tmp_path, range(3_000))
    assert len(list(tmp_path.glob("*.jsonl"))) <= 2 * (3 + 1)
    found = read_history(tmp_path)
    assert found[-1] == record(2_999)
    assert found[0].first_batch > 1_000


def test_history_of_any_length_takes_less_than_50_mb() -> None:
    segments = history.LEVELS * (history.MOST_SEGMENTS + 1)
    assert segments * history.SEGMENT_BYTES < 50_000_000


def test_history_of_very_many_batches_keeps_to_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "SEGMENT_LINES", 5)  # a fiftieth, and so are the batches and the bytes
    monkeypatch.setattr(history, "SEGMENT_BYTES", 20_000)
    most = 0
    with closing(History(folder=tmp_path)) as kept:
        for batch in range(2_000):
            kept.append(record(batch))
            if batch % 100 == 0:
                most = max(most, sum(path.stat().st_size for path in tmp_path.iterdir()))
    assert most < 1_000_000
    assert sum(each.batches for each in read_history(tmp_path)) == 2_000


def test_segment_ends_at_its_size_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "SEGMENT_BYTES", 5_000)
    written(tmp_path, range(20))
    assert max(path.stat().st_size for path in tmp_path.iterdir()) < 5_000 + len(record(0).to_line()) + 1


def test_damaged_line_costs_itself_alone(tmp_path: Path) -> None:
    written(tmp_path, range(5))
    [segment] = tmp_path.iterdir()
    lines = segment.read_bytes().split(b"\n")
    lines[2] = lines[2][:40] + b"\xff\x00"
    segment.write_bytes(b"\n".join(lines))
    assert [each.batch for each in read_history(tmp_path)] == [0, 1, 3, 4]


def test_job_that_died_within_a_line_continues_after_it(tmp_path: Path) -> None:
    written(tmp_path, range(3))
    [segment] = tmp_path.iterdir()
    segment.write_bytes(segment.read_bytes()[:-30])
    written(tmp_path, range(3, 5), run=2)
    assert [(each.batch, each.run) for each in read_history(tmp_path)] == [(0, 1), (1, 1), (3, 2), (4, 2)]


def test_batch_that_was_run_again_counts_once(tmp_path: Path) -> None:
    written(tmp_path, range(3))
    written(tmp_path, range(2, 4), run=2)
    assert [(each.batch, each.run) for each in read_history(tmp_path)] == [(0, 1), (1, 1), (2, 2), (3, 2)]


@pytest.mark.usefixtures("small")
def test_crash_between_handing_on_and_deleting_doubles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", _crash)
        with pytest.raises(KeyboardInterrupt):
            written(tmp_path, range(200))
    first = len(read_history(tmp_path))
    assert sum(each.batches for each in read_history(tmp_path)) == first == 62
    written(tmp_path, range(62, 200), run=2)
    found = read_history(tmp_path)
    assert sum(each.batches for each in found) == 200
    assert [each.first_batch for each in found] == [0, *(each.batch + 1 for each in found[:-1])]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("stopped_at", [61, 62, 63, 81])
def test_job_that_stops_amid_handing_on_loses_and_doubles_nothing(tmp_path: Path, stopped_at: int) -> None:
    written(tmp_path, range(stopped_at))
    written(tmp_path, range(stopped_at, 300))
    found = read_history(tmp_path)
    assert sum(each.rows for each in found) == 30_000
    assert [each.first_batch for each in found] == [0, *(each.batch + 1 for each in found[:-1])]


def _crash(path: Path, *, missing_ok: bool = False) -> None:
    raise KeyboardInterrupt


@pytest.mark.usefixtures("small")
def test_batches_of_two_runs_are_not_put_together(tmp_path: Path) -> None:
    written(tmp_path, range(5))
    written(tmp_path, range(5, 120), run=2)
    found = read_history(tmp_path)
    assert [(each.run, each.batches) for each in found[:2]] == [(1, 5), (2, 10)]


def test_history_that_cannot_be_written_is_warned_of_once_and_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    kept = History(folder=tmp_path / "file" / "history")
    with pytest.warns(MetricsWarning, match="METRICS_UNWRITTEN"):
        kept.append(record(0))
    kept.append(record(1))  # another warning would be an error


def test_history_that_does_not_exist_is_empty(tmp_path: Path) -> None:
    assert read_history(tmp_path / "none") == []


def test_a_batch_costs_well_under_a_millisecond(tmp_path: Path) -> None:
    records = [record(batch) for batch in range(600)]
    with closing(History(folder=tmp_path)) as kept:
        began = time.thread_time()
        for each in records:
            kept.append(each)
    assert (time.thread_time() - began) / len(records) < 0.001


def test_no_batch_pays_for_a_whole_segment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST_SEGMENTS", 2)
    read, costs, whole = Counter[str](), list[int](), history._record

    def counted(line: bytes, **how: bool) -> BatchRecord | None:
        read["lines"] += 1
        return whole(line, **how)

    monkeypatch.setattr(history, "_record", counted)
    with closing(History(folder=tmp_path)) as kept:
        for each in [record(batch) for batch in range(1_200)]:
            before = read["lines"]
            kept.append(each)
            costs.append(read["lines"] - before)
    assert {each.batches for each in read_history(tmp_path)} == {1, 10}
    assert 0 < max(costs) <= 2 * history.TOGETHER, "lines that are read again; a segment has 250"

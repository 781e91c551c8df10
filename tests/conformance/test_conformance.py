"""Every conformance case passes in memory: as written, row by row, and in random batches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from slackwater.testing.cases import reason_to_skip
from slackwater.testing.conformance import check, load, main
from slackwater.testing.replays import Replay, depends_on_batches

FOLDER = Path(__file__).parent / "cases"
CASES = [case for _, case in load([FOLDER])]
BUILT = [case for case in CASES if reason_to_skip(case) is None]
CUT = [case for case in BUILT if case["operator"] != "assign"]


def ids(cases: list[Any]) -> list[str]:
    return [case["id"] for case in cases]


@pytest.mark.parametrize("case", BUILT, ids=ids(BUILT))
def test_case_passes_as_written(case: dict[str, Any]) -> None:
    assert not "\n".join(check(case, "memory", ["whole"]))


@pytest.mark.parametrize("how", ["rows", pytest.param("random", marks=pytest.mark.long)])
@pytest.mark.parametrize("case", CUT, ids=ids(CUT))
def test_case_passes_however_its_rows_are_cut_into_batches(case: dict[str, Any], how: Replay) -> None:
    if depends_on_batches(case):
        # Its answer is bound to the batches as written; the test above replays those.
        return
    assert not "\n".join(check(case, "memory", [how]))


def test_only_what_is_not_built_is_skipped() -> None:
    assert [case["id"] for case in CASES if reason_to_skip(case)] == []


# ------------------------------------------------------------------------------ the command


def write(folder: Path, *cases: dict[str, Any]) -> Path:
    file = folder / "cases.json"
    file.write_text(json.dumps(cases), encoding="utf-8")
    return file


def one(name: str) -> dict[str, Any]:
    [case] = [case for case in CASES if case["id"] == name]
    return json.loads(json.dumps(case))  # type: ignore[no-any-return]


def test_command_counts_what_passes_and_what_is_skipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unknown = one("asg-tumbling-plain") | {"operator": "crystal_ball"}
    write(tmp_path, one("asg-tumbling-plain"), one("trg-beam-count2-once"), unknown)
    assert main([str(tmp_path), "--engine", "memory", "--replay", "all"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out == ["skipped  1 cases: crystal_ball is not built yet", "2 passed, 0 failed, 1 skipped"]


def test_command_shows_step_and_rows_of_a_case_that_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = one("trg-beam-count2-once")
    case["steps"][1]["expect"][0]["value"] = ["a", "z"]
    file = write(tmp_path, case, one("asg-tumbling-plain"))
    assert main([str(file)]) == 1
    out = capsys.readouterr().out
    assert f"FAILED   trg-beam-count2-once ({file})" in out
    assert "step 1, rows (whole replay)" in out
    assert '"value": ["a", "z"]' in out
    assert '"value": ["a", "b"]' in out
    assert out.splitlines()[-1] == "1 passed, 1 failed, 0 skipped"


def test_command_fails_a_case_that_it_cannot_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = one("trg-beam-count2-once")
    case["params"]["trigger"] = {"type": "full_moon"}
    assert main([str(write(tmp_path, case))]) == 1
    assert "refused: trigger 'full_moon'" in capsys.readouterr().out


def test_command_accepts_no_window_that_must_be_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = one("asg-invalid-tumbling-offset")
    case["params"]["window"]["offset_ms"] = 0
    assert main([str(write(tmp_path, case))]) == 1
    assert "must be refused, and was accepted" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["{", '{"id": 1}', "[1]", '[{"id": "x"}]', "[]"])
def test_command_stops_with_2_where_there_are_no_cases(tmp_path: Path, text: str) -> None:
    (tmp_path / "broken.json").write_text(text, encoding="utf-8")
    assert main([str(tmp_path)]) == 2


def test_command_stops_with_2_where_there_is_no_folder(tmp_path: Path) -> None:
    assert main([str(tmp_path / "nowhere")]) == 2

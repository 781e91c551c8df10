"""The examples on the data that `examples/make_data.py` writes, in memory, one file a batch."""

from __future__ import annotations

import re
import runpy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import slackwater as sw
from slackwater.tools.demo.account import read_log
from tests.docs.pages import ROOT

EXAMPLES = ROOT / "examples"
FRAUD = EXAMPLES / "fraud"


def replay(example: str, stream: str, data: str) -> sw.testing.Harness:
    """Run an example over its data to the end."""
    files = runpy.run_path(str(EXAMPLES / "make_data.py"))[data]
    pipeline = runpy.run_path(str(EXAMPLES / example))["pipeline"]
    harness = sw.testing.Harness(pipeline, now=datetime(2026, 3, 2, tzinfo=UTC))
    for records in files:
        harness.send(stream, records)
        harness.run_batch()
    harness.finish()
    return harness


def rows(frame: pl.DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    return frame.select(columns).rows()


def test_purchase_that_was_offline_for_minutes_corrects_its_window() -> None:
    results = replay("purchases.py", "purchases", "PURCHASES").output("per_minute")
    ada = results.filter(pl.col("user") == "ada").sort("window_start", "pane_index")
    assert rows(ada, "purchases", "cents", "pane") == [(1, 500, "on_time"), (2, 600, "late"), (1, 250, "on_time")]


def test_purchase_from_the_plane_is_in_the_late_output() -> None:
    late = replay("purchases.py", "purchases", "PURCHASES").output("per_minute.late")
    assert rows(late, "id", "user", "cents") == [("h", "bob", 650)]


def test_broken_purchase_and_the_one_from_the_future_are_dead_letters() -> None:
    dead = replay("purchases.py", "purchases", "PURCHASES").output("purchases.dead_letters")
    assert sorted(dead["reason"]) == ["ahead_of_clock", "malformed"]


def test_late_click_joins_two_visits_and_withdraws_them() -> None:
    visits = replay("sessions.py", "clicks", "CLICKS").output("visits")
    corrected = visits.filter((pl.col("visitor") == "v1") & (pl.col("pane") == "late"))
    assert sorted(rows(corrected, "is_retraction", "clicks", "entry", "exit")) == [
        (False, 4, "home", "checkout"),
        (True, 1, "checkout", "checkout"),
        (True, 2, "home", "shoes"),
    ]


@pytest.mark.parametrize(
    "example", sorted(EXAMPLES.rglob("*.py")), ids=lambda path: path.relative_to(EXAMPLES).as_posix()
)
def test_example_imports_only_what_is_public(example: Path) -> None:
    assert "slackwater." not in "".join(re.findall(r"^\s*(?:from|import) .*", example.read_text(), re.MULTILINE))


def test_data_is_written_one_file_a_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = runpy.run_path(str(EXAMPLES / "make_data.py"), run_name="__main__")
    assert len(list(tmp_path.glob("data/purchases/0/*.jsonl"))) == len(made["PURCHASES"])
    assert read_log(tmp_path / "data" / "clicks").height == sum(map(len, made["CLICKS"]))


def run_fraud(count: int) -> tuple[sw.testing.Harness, list[pl.DataFrame]]:
    """Run the fraud example in the current folder, one file a batch; return its decisions, late rows, dead letters."""
    runpy.run_path(str(FRAUD / "make_data.py"))["main"](count=count)
    pipeline = runpy.run_path(str(FRAUD / "pipeline.py"))["pipeline"]
    harness = sw.testing.Harness(pipeline, now=datetime(2026, 3, 2, tzinfo=UTC))
    for number, file in enumerate(sorted(Path("data", "payments").rglob("*.jsonl"))):
        harness.send("payments", file.read_text().splitlines()).run_batch()
        if number == 1:
            harness.restart()
    harness.finish()
    return harness, [harness.output(name) for name in ("decisions.rows", "late", "dead_letters")]


def test_every_fraud_decision_is_that_of_a_plain_recomputation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    harness, (decisions, late, dead) = run_fraud(count=600)
    assert {"approve", "review", "decline"} == set(decisions["decision"])
    assert set(late["step"]) == {"velocity", "tested"}
    assert {"malformed", "lookup_missing"} <= set(dead["reason"])
    assert runpy.run_path(str(FRAUD / "truth.py"))["differences"](decisions, late, dead) == []
    assert harness.pieces == 0


def test_fraud_recomputation_fails_on_outputs_that_lose_or_misplace_payments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _, (decisions, late, dead) = run_fraud(count=300)
    lines = [
        line for file in sorted(Path("data", "payments").rglob("*.jsonl")) for line in file.read_text().split("\n")
    ]
    everything, nothing = decisions["payment"].to_list(), decisions.clear()
    all_late = pl.DataFrame({"row": [*late["row"], *(line for line in lines if line.endswith("}"))]})
    all_dead = pl.DataFrame({"payload": [line for line in lines if line]})
    differences = runpy.run_path(str(FRAUD / "truth.py"))["differences"]
    assert len(differences(nothing, late, dead)) == len(everything)
    assert sum("late, but behind no newer one" in each for each in differences(nothing, all_late, dead)) > 200
    assert sum("a dead letter without a reason" in each for each in differences(nothing, late, all_dead)) > 200
    assert any("must be a dead letter, and is not" in each for each in differences(decisions, late, dead.clear()))
    assert any("records cannot be read, but 0 such" in each for each in differences(decisions, late, dead.clear()))
    assert differences(pl.concat([decisions, decisions[:1]]), late, dead) == [f"{everything[0]}: written twice"]


@pytest.mark.parametrize("missing", ["data/payments", "data/profiles.json", "out/decisions"])
def test_fraud_recomputation_without_its_files_ends_in_one_sentence(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("data", "payments").mkdir(parents=True)
    Path("data", "profiles.json").write_text("{}")
    if Path(missing).exists():
        Path(missing).rename("elsewhere")
    with pytest.raises(SystemExit, match=missing):
        runpy.run_path(str(FRAUD / "truth.py"))["main"]()


def test_fraud_score_is_the_same_as_an_expression_and_in_sql() -> None:
    fraud = runpy.run_path(str(FRAUD / "pipeline.py"))
    facts = {
        "last_minute": [1, 4, 4, None],
        "last_5_minutes": [1, 9, 4, 9],
        "spent_last_hour": [10.0, 90.0, 10.0, None],
        "monthly_limit": [1_000.0] * 4,
        "country": ["DE", "US", None, "US"],
        "home": ["DE"] * 4,
        "tested_by": [None, "p1", None, "p2"],
    }
    scores = pl.DataFrame(facts).select(score=fraud["SCORE"], in_sql=pl.sql_expr(fraud["SCORE_IN_SQL"]))
    assert scores["score"].to_list() == [0, 160, 40, 90]
    assert scores["in_sql"].to_list() == [0, 160, 40, 90]

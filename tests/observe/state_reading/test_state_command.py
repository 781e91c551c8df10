"""`slackwater state` without Spark: which state is found, what is refused, and how answers are written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import slackwater as sw
from slackwater.base.errors import RunError
from slackwater.engine.checkpoint.checkpoint import open_checkpoint
from slackwater.engine.checkpoint.lock import held
from slackwater.observe.state_reading.groups import MemoryGroups
from slackwater.observe.state_reading.stored import stored_state
from slackwater.plan.plan import Plan
from slackwater.tools.cli import state as command
from slackwater.tools.cli.main import app
from tests.observe.state_reading.held import at, row
from tests.sealing import reseal

Told = Callable[..., str]
"""Runs the command with some options, and returns what it prints."""
PIPELINE = """
import slackwater as sw

source = sw.testing.rows_source("user string, shop long, v double, t timestamp")
events = sw.stream("events", source).event_time("t")
per_minute = events.key_by("user").window(sw.tumbling("1m"), name="per_minute").aggregate(n=sw.count())
baskets = events.key_by("user", "shop").window(sw.session("5m"), name="baskets").aggregate(n=sw.count())
ends = [end for step in (per_minute, baskets) for end in (step.to(sw.sinks.memory()), step.late.drop())]
pipeline = sw.Pipeline("orders", *ends, events.dead_letters.drop(), key_groups=4)
"""


def loaded(text: str = PIPELINE) -> sw.Pipeline:
    names: dict[str, Any] = {}
    exec(text, names)  # noqa: S102  as the command line does with a file
    pipeline: sw.Pipeline = names["pipeline"]
    return pipeline


def make_checkpoint(path: Path, plan: Plan, batches: range = range(3, 8)) -> Path:
    open_checkpoint(path, plan, partitions=2)
    (path / "commits").mkdir()
    for batch in batches:
        (path / "commits" / str(batch)).write_text("v1\n{}")
    return path


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return make_checkpoint(tmp_path / "checkpoint", loaded().plan())


def refusal(path: Path, batch: int | None = None, *, plan: Plan | None = None) -> RunError:
    with pytest.raises(RunError) as refused:
        stored_state(path, plan or loaded().plan(), batch)
    return refused.value


def test_newest_committed_batch_is_read(checkpoint: Path) -> None:
    found = stored_state(checkpoint, loaded().plan())
    assert (found.batch, found.key_groups, found.partitions) == (7, 4, 2)
    assert [step.name for step in found.steps if step.spec is not None] == ["per_minute", "baskets"]


def test_batch_that_is_kept_is_read(checkpoint: Path) -> None:
    assert stored_state(checkpoint, loaded().plan(), 4).batch == 4


def test_batch_that_is_gone_is_refused_with_those_that_are_there(checkpoint: Path) -> None:
    error = refusal(checkpoint, 2)
    assert error.code == "STATE_READ_BATCH"
    assert "batch 2 is not among those" in error.message
    assert "which are 3 to 7" in error.message


def test_folder_without_a_checkpoint_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path / "nowhere").code == "STATE_READ_CHECKPOINT"
    assert not (tmp_path / "nowhere").exists()


def test_checkpoint_of_another_query_is_refused(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    assert refusal(tmp_path).code == "CHECKPOINT_FOREIGN"


def test_checkpoint_of_another_pipeline_is_refused(checkpoint: Path) -> None:
    other = loaded(PIPELINE.replace('"orders"', '"sales"')).plan()
    assert refusal(checkpoint, plan=other).code == "CHECKPOINT_OF_ANOTHER"


def test_checkpoint_of_another_format_is_refused(checkpoint: Path) -> None:
    reseal(checkpoint / "slackwater" / "manifest.json", {"format": 99})
    assert refusal(checkpoint).code == "CHECKPOINT_FORMAT"


def test_checkpoint_without_a_committed_batch_is_refused(tmp_path: Path) -> None:
    path = make_checkpoint(tmp_path / "checkpoint", loaded().plan(), range(0))
    assert refusal(path).code == "STATE_READ_NOTHING"


def test_state_can_be_read_while_a_driver_holds_the_checkpoint(checkpoint: Path) -> None:
    with held(checkpoint):
        assert stored_state(checkpoint, loaded().plan()).batch == 7


def test_unknown_step_is_refused_with_the_near_miss(checkpoint: Path) -> None:
    with pytest.raises(RunError, match=r"no step `basket` \(did you mean `baskets`\?\); its steps are per_minute, bas"):
        stored_state(checkpoint, loaded().plan()).chosen("basket")


def test_key_is_looked_for_in_the_steps_whose_key_it_can_be(checkpoint: Path) -> None:
    stored = stored_state(checkpoint, loaded().plan())
    assert [*stored.with_key("user=ada,shop=3", "baskets")] == ["baskets"]
    assert [*stored.with_key("ada", None)] == ["per_minute"]


@pytest.mark.parametrize(
    "before, after, step, words",
    [
        ('"1m"', '"2m"', "per_minute", "is not as it was stored: window: tumbling(size=1m, "),
        ('name="per_minute"', 'name="by_minute"', "per_minute", "is not in the pipeline"),
    ],
)
def test_step_that_has_changed_has_sizes_but_no_rows(
    checkpoint: Path, before: str, after: str, step: str, words: str
) -> None:
    changed = stored_state(checkpoint, loaded(PIPELINE.replace(before, after)).plan())
    assert [(each.name, each.spec is None) for each in changed.steps] == [("per_minute", True), ("baskets", False)]
    with pytest.raises(RunError) as refused:
        changed.with_key("ada", step)
    assert refused.value.code == "STATE_READ_STEP_CHANGED"
    assert words in refused.value.message


@pytest.fixture
def told(tmp_path: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> Told:
    """Run the command over the state of a few rows."""
    harness = sw.testing.Harness(loaded())
    harness.send("events", [row("ada", 0), row("ada", 9, shop=3), row("bob", 4)])
    harness.run_batch()
    monkeypatch.setattr(command, "_groups", lambda *_: MemoryGroups(harness.engine.state))
    file = tmp_path / "orders.py"
    file.write_text(PIPELINE)

    def run(*options: str) -> str:
        done = CliRunner().invoke(app, ["state", str(file), "--checkpoint", str(checkpoint), *options])
        if done.exception is not None:
            raise done.exception
        return done.output

    return run


def test_table_has_the_sizes_and_the_largest_keys(told: Told) -> None:
    lines = [line.split() for line in told().splitlines() if line.strip()]
    assert lines[0] == ["step", "size", "rows", "keys", "pieces", "oldest"]
    sizes = {line[0]: [line[3], line[4], *line[6:]] for line in lines[2:4]}
    assert sizes == {
        "per_minute": ["2", "2", "2026-03-01", "12:00:00"],
        "baskets": ["3", "3", "2026-03-01", "12:00:00"],
    }
    assert ["per_minute", "ada", "1"] in lines
    assert lines[-1] == ["state", "of", "orders", "after", "batch", "7"]


def test_json_of_the_sizes_is_one_object(told: Told) -> None:
    whole = json.loads(told("--format", "json", "--step", "baskets", "--top", "1"))
    assert (whole["pipeline"], whole["batch"]) == ("orders", 7)
    [step] = whole["steps"]
    assert (step["step"], step["rows"], step["keys"], step["largest"]) == (
        "baskets",
        3,
        3,
        [{"key": "ada,1", "entries": 1}],
    )


def test_rows_of_a_key_are_shown_by_step(told: Told) -> None:
    lines = [line.split() for line in told("--key", "ada").splitlines() if line.strip()]
    assert lines[0] == ["step", "per_minute"]
    assert lines[1] == ["user", "window_start", "window_end", "panes_shown", "rows_since_pane", "n"]
    assert lines[3] == ["ada", "2026-03-01", "12:00:00", "2026-03-01", "12:01:00", "0", "2", "2"]
    assert lines[4] == ["state", "of", "orders", "after", "batch", "7"]


def test_json_of_a_key_has_its_rows_by_step(told: Told) -> None:
    whole = json.loads(told("--key", "ada,3", "--step", "baskets", "--format", "json"))
    assert whole["key"] == "ada,3"
    [found] = whole["steps"]["baskets"]
    assert (found["user"], found["shop"], found["n"]) == ("ada", 3, 1)


def test_parquet_has_the_rows_of_one_step(told: Told, tmp_path: Path) -> None:
    out = tmp_path / "ada.parquet"
    assert told("--key", "ada", "--step", "per_minute", "--format", "parquet", "--out", str(out)) == ""
    assert pl.read_parquet(out).select("user", "window_start", "n").rows() == [("ada", at(0), 2)]


def test_parquet_of_the_sizes_has_a_row_for_each_step(told: Told, tmp_path: Path) -> None:
    out = tmp_path / "sizes.parquet"
    told("--format", "parquet", "--out", str(out))
    assert pl.read_parquet(out).select("step", "rows", "keys").rows() == [("per_minute", 2, 2), ("baskets", 3, 3)]


def test_table_is_written_to_a_file(told: Told, tmp_path: Path) -> None:
    out = tmp_path / "state.txt"
    assert told("--out", str(out)) == ""
    assert "largest keys" in out.read_text()


@pytest.mark.parametrize(
    "options, code",
    [
        (("--format", "parquet"), "STATE_READ_OUT"),
        (("--key", "zoe"), "STATE_READ_KEY_MISSING"),
        (("--key", "ada,x", "--step", "baskets"), "STATE_READ_KEY_TYPE"),
        (("--key", "ada", "--step", "baskets"), "STATE_READ_KEY_COLUMNS"),
        (("--step", "basket"), "STATE_READ_STEP"),
        (("--batch", "99"), "STATE_READ_BATCH"),
        (("--out", "/nowhere/at/all.txt"), "STATE_READ_OUT_FAILED"),
    ],
)
def test_what_cannot_be_answered_is_refused(told: Told, options: tuple[str, ...], code: str) -> None:
    with pytest.raises(RunError) as refused:
        told(*options)
    assert refused.value.code == code

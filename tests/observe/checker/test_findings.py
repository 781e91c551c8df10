"""Findings as they are shown, accepted and counted; facts that earlier runs left behind."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

import slackwater as sw
from slackwater.connectors.kafka.client import Cluster
from slackwater.engine.checkpoint.checkpoint import open_checkpoint
from slackwater.engine.checkpoint.lock import held
from slackwater.eventtime.measured_lateness import LatenessSketch
from slackwater.observe.checker import Facts, check_plan, facts_of_run, facts_of_topics, master_cores
from slackwater.observe.metrics.history import History, history_folder
from slackwater.observe.metrics.job_facts import lateness_facts, write_facts
from slackwater.observe.metrics.monitor import LATENESS
from slackwater.observe.metrics.record import BatchRecord, StepRecord, StreamRecord
from slackwater.observe.metrics.runs import begin_run
from slackwater.tools.demo.definition import demo_pipeline
from tests.docs.pages import ROOT
from tests.observe.checker.code_samples import restless_map
from tests.observe.checker.pipelines import dropping, files, kept, mapped, rows, stepped, windowed

EXAMPLES = ["purchases.py", "sessions.py", "fraud/pipeline.py"]


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_have_no_findings(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pipeline = runpy.run_path(str(ROOT / "examples" / example))["pipeline"]
    assert pipeline.check(facts=Facts(cores=2)).open == ()


def test_demo_has_no_findings(tmp_path: Path) -> None:
    assert demo_pipeline(tmp_path).check(checkpoint=tmp_path / "none", facts=Facts(cores=2)).all == ()


def test_findings_stand_the_worst_first_and_tell_why_and_what_to_do() -> None:
    stream = rows().map(restless_map, output="k string, v double, t timestamp")
    text = str(sw.Pipeline("p", stream.to(files("rows")), stream.dead_letters.drop()).check(facts=Facts()))
    first, error, warning = text.split("\n\n")
    assert first == "pipeline p: 1 error, 1 warning"
    assert error.startswith("error SW301 step `rows.map`: restless_map uses uuid.uuid4 (line ")
    assert "\n  why " in error
    assert "\n  fix " in error
    assert warning.startswith("warning SW403 stream `rows`: its dead letters are dropped\n")


def test_reason_is_shown_and_the_finding_no_longer_counts() -> None:
    stream = rows()
    pipeline = sw.Pipeline("p", stream.to(files("r")), stream.dead_letters.drop(), accept={"SW403": "a trial"})
    found = pipeline.check(facts=Facts())
    assert str(found) == (
        "pipeline p: no findings, 1 accepted\n\nwarning SW403 stream `rows`: its dead letters are dropped\n"
        "  accepted a trial"
    )
    assert not found.fails(strict=True)
    assert list(found) == []
    assert [finding.code for finding in dropping("late").check(facts=Facts())] == ["SW402"]


def test_error_fails_and_a_warning_does_only_when_strict() -> None:
    assert mapped(restless_map).check(facts=Facts()).fails()
    assert not dropping("late").check(facts=Facts()).fails()
    assert dropping("late").check(facts=Facts()).fails(strict=True)
    assert not windowed().check(facts=Facts()).fails(strict=True)


def test_findings_as_json() -> None:
    [finding] = json.loads(dropping("late").check(facts=Facts()).to_json())["findings"]
    assert finding["code"] == "SW402"
    assert finding["severity"] == "warning"
    assert finding["where"] == "step `w`"
    assert finding["accepted"] is None


@pytest.mark.parametrize(
    "accept, code",
    [({"SW999": "x"}, "ACCEPT_CODE"), ({"SW403": " "}, "ACCEPT_REASON"), ({"SW403": None}, "ACCEPT_REASON"),
     (["SW403"], "ACCEPT_KIND")],
)  # fmt: skip
def test_unknown_codes_and_missing_reasons_are_refused(accept: dict[str, str], code: str) -> None:
    stream = rows()
    with pytest.raises(sw.DefinitionError) as refused:
        sw.Pipeline("p", stream.to(files("r")), kept(stream), accept=accept)
    assert refused.value.code == code


def test_near_miss_of_a_code_is_offered() -> None:
    stream = rows()
    with pytest.raises(sw.DefinitionError, match=r"did you mean `SW403`\?"):
        sw.Pipeline("p", stream.to(files("r")), kept(stream), accept={"SW0403": "x"})


@pytest.mark.parametrize(
    "master, cores", [("local[3]", 3), ("local", 1), ("local[4, 2]", 4), ("spark://host:7077", None)]
)
def test_cores_of_a_master(master: str, cores: int | None) -> None:
    assert master_cores(master) == cores


def test_folders_of_a_log_are_its_partitions(tmp_path: Path) -> None:
    for name in ("0", "1", ".hidden"):
        (tmp_path / name).mkdir()
    plan = windowed(rows(source=sw.sources.log(tmp_path))).plan()
    assert facts_of_run(plan).partitions == {"rows": 2}


def test_checkpoint_tells_how_often_it_was_started(tmp_path: Path) -> None:
    plan = windowed().plan()
    assert facts_of_run(plan, tmp_path).starts is None
    for starts in (1, 2):
        for _ in range(2):  # a run holds the lock twice: before Spark starts, and while it runs
            with held(tmp_path):
                open_checkpoint(tmp_path, plan, partitions=2)
        begin_run(history_folder(tmp_path), now_ms=0)
        assert facts_of_run(plan, tmp_path).starts == starts


def test_damaged_checkpoint_tells_nothing(tmp_path: Path) -> None:
    plan = windowed().plan()
    with held(tmp_path):
        open_checkpoint(tmp_path, plan, partitions=2)
    (tmp_path / "slackwater" / "manifest.json").write_text("{")
    assert facts_of_run(plan, tmp_path).partitions == {}


def measured(checkpoint: Path, behind_ms: list[int]) -> None:
    """Write the lateness of a run's rows in a checkpoint, as its monitor does."""
    sketch = LatenessSketch()
    sketch.observe(-np.array(behind_ms), newest_before_ms=0)
    write_facts(history_folder(checkpoint) / LATENESS, lateness_facts({"rows": {"0": sketch}}))


def test_last_run_tells_the_lateness_of_all_its_rows(tmp_path: Path) -> None:
    pipeline = windowed()
    with held(tmp_path):
        open_checkpoint(tmp_path, pipeline.plan(), partitions=2)
    measured(tmp_path, [0] * 976 + [61_000] * 24)
    # Most batches are small, and have no late row.
    history = History(folder=history_folder(tmp_path))
    for batch in range(100):
        late = StreamRecord(rows=10, lateness_s={"0.99": 61.0 if batch < 24 else 0.0})
        history.append(BatchRecord(batch=batch, at_ms=0, now_ms=0, streams={"rows": late}))
    history.close()
    assert facts_of_run(pipeline.plan(), tmp_path).p99_ms["rows"] == pytest.approx(61_000, rel=0.02)
    assert "SW104" in [finding.code for finding in pipeline.check(checkpoint=tmp_path).all]


def test_few_rows_say_nothing_about_one_in_a_hundred(tmp_path: Path) -> None:
    plan = windowed().plan()
    with held(tmp_path):
        open_checkpoint(tmp_path, plan, partitions=2)
    measured(tmp_path, [60_000] * 999)
    assert facts_of_run(plan, tmp_path).p99_ms == {}


def test_history_of_the_last_run_tells_hot_keys_whatever_idle_batches_followed(tmp_path: Path) -> None:
    plan = windowed().plan()
    with held(tmp_path):
        open_checkpoint(tmp_path, plan, partitions=2)
    history = History(folder=history_folder(tmp_path))
    for batch in range(250):
        share = [0.5, 0.3, 0.1][batch] if batch < 3 else None
        hot = StepRecord(largest_key="ada" if share in (0.5, 0.3) else "bob", largest_share=share)
        streams = {"rows": StreamRecord(rows=800 if share else 0)}
        history.append(BatchRecord(batch=batch, at_ms=batch, now_ms=0, streams=streams, steps={"d": hot}))
    history.close()
    facts = facts_of_run(plan, tmp_path)
    assert facts.hot_keys["d"].key == "ada"
    assert facts.hot_keys["d"].share == pytest.approx(0.8 / 3)
    assert facts.age_ms == 249


def test_history_of_the_last_run_tells_few_keys_and_how_long_it_was(tmp_path: Path) -> None:
    plan = stepped(lambda keyed: keyed.deduplicate(within="1h", name="d")).plan()
    with held(tmp_path):
        open_checkpoint(tmp_path, plan, partitions=2)
    begin_run(history_folder(tmp_path), now_ms=0)
    history = History(folder=history_folder(tmp_path))
    for batch, number in enumerate([3, 2, 3]):
        steps = {
            "d": StepRecord(largest_key="ada", largest_share=0.2, keys=number),
            "e": StepRecord(largest_key="ada", largest_share=0.2, keys=number if batch else None),
        }
        streams = {"rows": StreamRecord(rows=400)}
        history.append(BatchRecord(batch=batch, at_ms=60_000 * batch, now_ms=0, streams=streams, steps=steps))
    history.close()
    facts = facts_of_run(plan, tmp_path, facts=Facts(cores=8))
    assert (facts.keys, facts.age_ms) == ({"d": 3}, 120_000)
    assert [finding.code for finding in check_plan(plan, facts=facts).all] == ["SW204", "SW502"]


def test_topics_tell_how_long_they_keep_records(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = windowed(rows(source=sw.sources.kafka("localhost:1", topic="t"), idle_after="1m"), lateness="2d").plan()

    def described(_cluster: Cluster) -> Any:  # noqa: ANN401  as the client has it
        config = {"retention.ms": Mock(value="86400000"), "cleanup.policy": Mock(value="delete")}
        return Mock(describe_configs=lambda asked, **_: {each: Mock(result=lambda: config) for each in asked})

    monkeypatch.setattr(Cluster, "admin", property(described))
    facts = facts_of_topics(plan, facts=Facts())
    assert facts.retention_ms == {"rows": 86_400_000}
    assert [finding.code for finding in check_plan(plan, facts=facts).all] == ["SW105"]


def test_kafka_that_does_not_answer_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = windowed(rows(source=sw.sources.kafka("localhost:1", topic="t"), idle_after="1m"), lateness="2d").plan()
    monkeypatch.setattr(Cluster, "retention_ms", Mock(side_effect=OSError("nobody there")))
    assert facts_of_topics(plan, facts=Facts()).retention_ms == {}

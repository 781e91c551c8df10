"""The command line as a user meets it: its exit code, and what it says where."""

from __future__ import annotations

import importlib.metadata
import io
import os
import re
import subprocess
import sys
import tomllib
import warnings
from collections import Counter as Counts
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import polars as pl
import pytest

import slackwater as sw
from slackwater.base import version
from slackwater.engine.batch_stats import BatchStats, StreamStats
from slackwater.engine.enrichment.stats import LookupStats
from slackwater.eventtime.clock import Clock, StreamTime
from slackwater.observe.metrics.report import BatchReport
from slackwater.plan.plan import OutputPlan
from slackwater.spark.failures import jvm_ended
from slackwater.spark.session_conf import check_master, session_conf, with_retries
from slackwater.tools.cli.main import main
from slackwater.tools.cli.progress import ProgressLines, line, places

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[3]
GOOD = """
import slackwater as sw

rows = sw.stream("rows", sw.sources.log("data")).decode(sw.formats.json("k string, t timestamp")).event_time("t")
counts = rows.key_by("k").window(sw.tumbling("1m")).aggregate(n=sw.count())
{name} = sw.Pipeline("p", counts.to(sw.sinks.console()), counts.late.drop(), rows.dead_letters.drop())

if __name__ == "__main__":
    raise SystemExit("started by hand")
"""


@dataclass(frozen=True, kw_only=True)
class Done:
    """A command that has ended."""

    returncode: int
    stdout: str
    stderr: str


def slackwater(*arguments: str, cwd: Path, columns: int = 100) -> Done:
    """Run a command in this process, as its own would be; `test_version_…` starts one that is."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    imported = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(), redirect_stdout(out), redirect_stderr(err):
        patch.chdir(cwd)
        patch.setattr(sys, "argv", ["slackwater", *arguments])
        patch.setattr(sys, "path", list(sys.path))
        patch.setattr(warnings, "showwarning", warnings.showwarning)
        for name, value in {"COLUMNS": str(columns), "NO_COLOR": "1", "TERM": "dumb"}.items():
            patch.setenv(name, value)
        patch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
        try:
            main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    for name in set(sys.modules) - imported:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(cwd)):
            del sys.modules[name]  # the next command may have a file of the same name
    return Done(returncode=code, stdout=out.getvalue(), stderr=err.getvalue())


def assert_one_sentence(done: Done, code: str) -> None:
    assert done.returncode == 1
    assert done.stdout == ""
    assert re.fullmatch(rf"\[{code}\] .+\n", done.stderr)


def test_help_names_every_verb(tmp_path: Path) -> None:
    done = slackwater("--help", cwd=tmp_path)
    assert done.returncode == 0
    assert all(verb in done.stdout for verb in ("run", "explain", "demo"))


def test_version_is_that_of_the_package(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "slackwater", "--version"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout) == (0, f"slackwater {sw.__version__}\n")


def test_version_stands_in_one_place(tmp_path: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" not in project["project"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": f"{version.__name__}.VERSION"}
    assert importlib.metadata.version("slackwater") == version.VERSION == sw.__version__


def test_no_arguments_show_the_help(tmp_path: Path) -> None:
    done = slackwater(cwd=tmp_path)
    assert "Usage: " in done.stdout + done.stderr


@pytest.mark.parametrize(
    "verb, options",
    [
        ("run", ["--bounded", "--master", "--checkpoint", "--trigger", "--fail-if-dead"]),
        ("demo", ["--seconds", "--rate", "--folder", "--seed"]),
        ("explain", []),
    ],
)
def test_help_of_a_verb_names_its_options(verb: str, options: list[str], tmp_path: Path) -> None:
    done = slackwater(verb, "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert all(option in done.stdout for option in options)


def test_explain_prints_the_plan_of_the_example(tmp_path: Path) -> None:
    done = slackwater("explain", str(ROOT / "examples" / "purchases.py"), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    for words in (
        "pipeline purchases   16 key groups",
        f"source purchases: log {tmp_path}/data/purchases (JSON lines)",
        "watermark: largest event time - 10s",
        "step per_minute",
        "window    tumbling 1m, allowed lateness 5m",
        f"late per_minute.late: files {tmp_path}/out/late (Parquet)   exactly once",
        "dead letters purchases.dead_letters",
    ):
        assert words in done.stdout


@pytest.mark.parametrize("example", ["purchases.py", "sessions.py"])
def test_example_defines_a_pipeline(example: str, tmp_path: Path) -> None:
    assert slackwater("explain", str(ROOT / "examples" / example), cwd=tmp_path).returncode == 0


@pytest.mark.parametrize("name", ["pipeline", "whatever"])
def test_only_pipeline_of_a_file_is_found_whatever_its_name(name: str, tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(GOOD.format(name=name))
    assert slackwater("explain", "p.py", cwd=tmp_path).returncode == 0


def test_file_is_not_started_by_hand_when_it_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(GOOD.format(name="pipeline"))
    assert "started by hand" not in slackwater("explain", "p.py", cwd=tmp_path).stderr


def test_file_may_import_what_stands_beside_it(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("NAME = 'p'")
    (tmp_path / "p.py").write_text("import beside\n" + GOOD.format(name="pipeline"))
    assert slackwater("explain", "p.py", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize("verb", ["run", "explain"])
def test_file_that_is_missing_is_one_sentence(verb: str, tmp_path: Path) -> None:
    assert_one_sentence(slackwater(verb, "nowhere.py", cwd=tmp_path), "PIPELINE_FILE_MISSING")


def test_file_without_a_pipeline_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("x = 1\n")
    done = slackwater("explain", "p.py", cwd=tmp_path)
    assert_one_sentence(done, "PIPELINE_FILE_CHOICE")
    assert "`p.py` defines none; add pipeline = sw.Pipeline(...)" in done.stderr


def test_file_with_two_pipelines_is_one_sentence_that_names_them(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(GOOD.format(name="first") + "second = first\n")
    done = slackwater("explain", "p.py", cwd=tmp_path)
    assert_one_sentence(done, "PIPELINE_FILE_CHOICE")
    assert "defines first, second" in done.stderr


@pytest.mark.parametrize(
    "text, words",
    [
        ("x = (\n", "line 1: SyntaxError"),
        ("import nosuchmodule\n", "line 1: ModuleNotFoundError: No module named 'nosuchmodule'"),
        ("\n\nx = y\n", "line 3: NameError: name 'y' is not defined"),
    ],
)
def test_file_that_fails_is_one_sentence_with_the_line(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(text)
    done = slackwater("explain", "p.py", cwd=tmp_path)
    assert_one_sentence(done, "PIPELINE_FILE_FAILED")
    assert words in done.stderr


def test_bad_definition_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(GOOD.format(name="pipeline").replace('tumbling("1m")', 'tumbling("0s")'))
    assert_one_sentence(slackwater("explain", "p.py", cwd=tmp_path), "DURATION_TOO_SHORT")


def test_unknown_master_is_one_sentence_before_spark_starts(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "file.py").write_text(GOOD.format(name="pipeline"))
    done = slackwater("run", "file.py", "--master", "nonsense", cwd=tmp_path)
    assert_one_sentence(done, "SPARK_MASTER")
    assert "got `nonsense`" in done.stderr


@pytest.mark.parametrize(
    "master",
    ["local", "local[*]", "local[4]", "local[2,3]", "local-cluster[2,1,1024]", "spark://a:7077", "yarn", "k8s://a"],
)
def test_master_of_any_kind_is_taken(master: str) -> None:
    check_master(master)


@pytest.mark.parametrize(
    "master, started",
    [
        (None, "local[*,4]"),
        ("local", "local[1,4]"),
        ("local[*]", "local[*,4]"),
        ("local[3]", "local[3,4]"),
        ("local[2,1]", "local[2,1]"),
        ("local[ 2 , 3 ]", "local[ 2 , 3 ]"),
        ("local-cluster[2,1,1024]", "local-cluster[2,1,1024]"),
        ("spark://a:7077", "spark://a:7077"),
    ],
)
def test_killed_worker_is_retried_on_every_master_unless_its_failures_are_given(
    master: str | None, started: str
) -> None:
    assert session_conf(master, "p", {})["spark.master"] == started
    assert with_retries(started) == started


def test_jvm_that_was_killed_is_one_sentence() -> None:
    process = subprocess.Popen(["sleep", "60"])
    process.kill()
    spark = SimpleNamespace(sparkContext=SimpleNamespace(_gateway=SimpleNamespace(proc=process)))
    assert "exited while the job was running: killed (SIGKILL); restart" in str(jvm_ended(cast("SparkSession", spark)))


def test_bad_definition_is_reported_with_the_users_line(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("import slackwater as sw\n\ndef hourly():\n    return sw.tumbling('soon')\n")
    (tmp_path / "p.py").write_text("import beside\n\nbeside.hourly()\n")
    done = slackwater("explain", "p.py", cwd=tmp_path)
    assert_one_sentence(done, "DURATION_UNREADABLE")
    assert done.stderr.endswith(f" ({tmp_path / 'beside.py'}, line 4)\n")


def test_definition_that_the_pipeline_refuses_is_shown_with_the_line_of_the_call(tmp_path: Path) -> None:
    text = GOOD.format(name="pipeline").replace(".key_by(", '.where("amuont > 0")\\\n.key_by(')
    (tmp_path / "p.py").write_text(text)
    line = next(at for at, written in enumerate(text.splitlines(), start=1) if "amuont" in written)
    for command in ("explain", "check"):
        done = slackwater(command, "p.py", cwd=tmp_path)
        assert_one_sentence(done, "UNKNOWN_COLUMN")
        assert done.stderr.endswith(f"p.py, line {line})\n")


def test_demo_wipes_no_folder_that_is_not_its_own(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    done = slackwater("demo", "--folder", "mine", cwd=tmp_path)
    assert_one_sentence(done, "DEMO_FOLDER")
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"


def ended(*batches: dict[str, int], quiet: bool = False) -> list[str]:
    """Return what is said at the end of a run, after batches with so many rows of each output."""
    rows = sw.stream("rows", sw.sources.log("/data")).decode(sw.formats.json("k string, t timestamp")).event_time("t")
    counts = rows.key_by("k").window(sw.tumbling("1m"), name="counts").aggregate(n=sw.count())
    pipeline = sw.Pipeline(
        "p",
        counts.to(sw.sinks.files("/out")),
        counts.to(sw.sinks.console()),
        counts.late.drop(),
        rows.dead_letters.to(sw.sinks.files("/dead", format="json")),
    )
    clock = Clock(batch=0, now_ms=0, streams={"rows": StreamTime()})
    progress = ProgressLines(out=io.StringIO(), quiet=quiet)
    for number, out in enumerate(batches):
        progress.batch(
            BatchReport(batch=number, seconds=1, stats=BatchStats(), clock=clock, next_clock=clock, rows_out=out)
        )
    progress.out = said = io.StringIO()
    progress.end(pipeline.plan().outputs)
    return said.getvalue().splitlines()


def test_end_of_a_run_says_how_many_rows_went_where() -> None:
    assert ended({"counts": 1_200, "counts.late": 3}, {"counts": 34, "rows.dead_letters": 1})[1:] == [
        "  counts             1,234 rows  files /out (Parquet) and console",
        "  counts.late            3 rows  dropped (counted)",
        "  rows.dead_letters      1 row   files /dead (JSON lines)",
    ]


def test_end_of_a_run_says_where_nothing_went_unless_it_is_dropped() -> None:
    assert ended()[1:] == [
        "  counts             0 rows  files /out (Parquet) and console",
        "  rows.dead_letters  0 rows  files /dead (JSON lines)",
    ]


@pytest.mark.parametrize("verbose, lines", [(False, 6), (True, 101)])
def test_job_in_which_nothing_happens_says_so_once_a_minute(*, verbose: bool, lines: int) -> None:
    now, out = [0.0], io.StringIO()
    progress = ProgressLines(out=out, verbose=verbose, clock=lambda: now[0])
    clock = Clock(batch=0, now_ms=0, streams={"rows": StreamTime()})

    def batch(number: int, rows: int) -> None:
        now[0] += 3
        stats = BatchStats(streams={"rows": StreamStats(rows=rows)})
        progress.batch(BatchReport(batch=number, seconds=1, stats=stats, clock=clock, next_clock=clock, rows_out={}))

    batch(0, 5)
    for number in range(1, 50):
        batch(number, 0)
    batch(50, 1)
    assert out.getvalue().splitlines()[-1].startswith("batch 50  1 row  1 row/s")
    for number in range(51, 101):
        batch(number, 0)
    assert len(out.getvalue().splitlines()) == lines, "the batches with rows, and one for each full minute between"


def report(*, rows: int) -> BatchReport:
    clock = Clock(batch=0, now_ms=0, streams={"rows": StreamTime()})
    stats = BatchStats(streams={"rows": StreamStats(rows=rows)})
    return BatchReport(batch=0, seconds=1, stats=stats, clock=clock, next_clock=clock, rows_out={})


def test_batches_without_a_line_of_their_own_are_counted_in_the_next() -> None:
    out, now = io.StringIO(), [0.0]
    progress = ProgressLines(out=out, clock=lambda: now[0])
    for at in (0.0, 0.5, 1.0, 2.5, 5.0):
        now[0] = at
        progress.batch(report(rows=1))
    said = out.getvalue().splitlines()
    assert [each.endswith("(2 more batches since the last line)") for each in said] == [False, True, False]
    assert len(said) == 3


def test_line_of_a_batch_says_what_this_run_did() -> None:
    assert line(report(rows=1), Counts(panes=1, late=2, dead=1)).endswith("this run 1 pane, 2 late, 1 dead letter")


def test_line_of_a_batch_says_what_its_lookups_did() -> None:
    looked = report(rows=1)
    asked = LookupStats(requests=3, misses=2_000, hits=5, errors=1, latency=Counts({42: 3}))
    looked.stats.lookups["orders.lookup"] = asked
    looked.stats.lookups["cities"] = LookupStats(hits=7)
    assert line(looked, Counts()).endswith("  lookups 2,000 asked, 12 cached, p50 38 ms, p99 38 ms, 1 error")
    del looked.stats.lookups["orders.lookup"]
    assert line(looked, Counts()).endswith("  lookups 0 asked, 7 cached")


def test_quiet_run_says_nothing_at_its_end() -> None:
    assert ended({"counts": 5}, quiet=True) == []


def test_output_without_a_sink_is_no_place() -> None:
    inner = OutputPlan(name="inner", kind="rows", schema=pl.Schema(), sinks=())
    assert places([inner], {"inner": 5}) == []


def test_help_of_the_demo_breaks_no_line_at_80_columns(tmp_path: Path) -> None:
    said = slackwater("demo", "--help", cwd=tmp_path, columns=80).stdout.partition("Examples:")[0]
    lines = [line.strip() for line in said.splitlines()]
    short = [line for line, following in pairwise(lines) if following and line and len(line) < 60]
    assert short == []


def test_end_of_a_run_says_how_many_rows_were_ignored_and_never_shown() -> None:
    said = io.StringIO()
    progress = ProgressLines(out=said)
    progress.totals.update({"ignored": 1_200, "unshown": 3})
    progress.end([])
    assert said.getvalue().endswith("0 dead letters, 1,200 ignored, 3 never shown\n")


def test_end_of_a_run_says_which_batch_a_sink_is_owed() -> None:
    said = io.StringIO()
    ProgressLines(out=said).end([], owed=7)
    assert said.getvalue().splitlines()[1:] == ["batch 7 is not delivered yet: restart with the same checkpoint"]

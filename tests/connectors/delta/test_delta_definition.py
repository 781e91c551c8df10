"""Delta sinks and sources as users write them: what is refused before Spark is reached."""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

import slackwater as sw
from slackwater.base.errors import DefinitionError, RunError
from slackwater.connectors.delta import jars as connector
from slackwater.connectors.delta.jars import check_delta_session, delta_session
from slackwater.connectors.delta.sink import definition, delta
from slackwater.connectors.delta.sink.errors import explained
from slackwater.connectors.delta.sink.table import LastCommit
from slackwater.connectors.delta.source.definition import delta as delta_source
from slackwater.connectors.sink import Slot, Unavailable
from slackwater.operators.identity import Identity

RESULTS = pl.Schema(
    {
        "user": pl.String(),
        "window_start": pl.Datetime("us", "UTC"),
        "window_end": pl.Datetime("us", "UTC"),
        "total": pl.Int64(),
        "pane_index": pl.Int64(),
        "is_retraction": pl.Boolean(),
    }
)


def test_sink_says_what_it_takes_and_does() -> None:
    assert delta("/lake/t").takes == {"append", "update"}
    assert delta("/lake/t", changelog=True).takes == {"append", "update", "retract"}
    merged = delta("/lake/t", merge_on=["user", "window_start"])
    assert merged.takes == {"append", "update", "retract"}
    assert str(merged) == "delta /lake/t (one row for each user, window_start)"
    assert merged.place == "/lake/t"
    assert str(pickle.loads(pickle.dumps(merged))) == str(merged)  # noqa: S301  our own


def test_path_may_be_relative_or_a_uri() -> None:
    assert delta("lake/t").path == str(Path("lake/t").absolute())
    assert delta("s3a://bucket/t/").path == "s3a://bucket/t"


@pytest.mark.parametrize(
    "options, words",
    [
        ({"delivery": "twice"}, r"SINK_OPTION.*`delivery` of delta must be one of"),
        ({"merge_on": ["user", "user"]}, r"SINK_OPTION.*`merge_on` of delta must be .*distinct names"),
        ({"partition_by": [1]}, r"SINK_OPTION.*`partition_by` of delta"),
        ({"optimize_every": 0}, r"SINK_OPTION.*`optimize_every` of delta must be a number of batches; got 0"),
        ({"optimize_every": True}, r"SINK_OPTION.*got True"),
        ({"schema_evolution": "yes"}, r"SINK_OPTION.*`schema_evolution` of delta must be True or False; got 'yes'"),
        ({"changelog": "no"}, r"SINK_OPTION.*`changelog` of delta must be True or False; got 'no'"),
        ({"merge_on": "user", "changelog": True}, r"SINK_OPTION.*`changelog`.*leave out one of changelog and merge_on"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(DefinitionError, match=words):
        delta("/lake/t", **options)


def slot(schema: pl.Schema, identity: Identity | None = None) -> Slot:
    return Slot(pipeline="p", output="totals", schema=schema, identity=identity)


@pytest.mark.parametrize("path", ["", " ", None, 3])
def test_unusable_path_is_refused(path: Any) -> None:  # noqa: ANN401
    with pytest.raises(DefinitionError, match=r"DELTA_PATH.*the Delta sink takes the path of a table"):
        delta(path)


def test_column_that_the_rows_do_not_have_is_refused() -> None:
    with pytest.raises(DefinitionError, match=r"DELTA_COLUMN_UNKNOWN.*`partition_by`.*did you mean `user`\?"):
        delta("/lake/t", partition_by="usr").check(slot(RESULTS))


def test_key_that_is_carried_out_and_not_stored_is_refused() -> None:
    with pytest.raises(DefinitionError, match=r"DELTA_COLUMN_UNKNOWN.*`merge_on`.*`is_retraction` is not"):
        delta("/lake/t", merge_on="is_retraction").check(slot(RESULTS))


@pytest.mark.parametrize(
    "names, words", [(["a b"], "contains one of them"), (["User", "user"], "`User` equals `user`")]
)
def test_name_that_delta_cannot_store_is_refused(names: list[str], words: str) -> None:
    with pytest.raises(DefinitionError, match=rf"DELTA_COLUMN_NAME.*{words}"):
        delta("/lake/t").check(slot(pl.Schema(dict.fromkeys(names, pl.String()))))


def test_key_by_which_windows_would_overwrite_one_another_is_refused() -> None:
    window = Identity(keys=("user",), bounds=("window_start", "window_end"), version="pane_index")
    with pytest.raises(
        DefinitionError, match=r"SINK_KEYS_OVERWRITE.*write merge_on=\['total', 'user', 'window_start'\]"
    ):
        delta("/lake/t", merge_on="total").check(slot(RESULTS, window))
    delta("/lake/t", merge_on=["user", "window_end"]).check(slot(RESULTS, window))


@pytest.mark.parametrize(
    "options, is_refused", [({}, True), ({"changelog": True}, False), ({"merge_on": ["k", "window_start"]}, False)]
)
def test_retractions_need_a_key_or_a_changelog(tmp_path: Path, options: dict[str, Any], *, is_refused: bool) -> None:
    source = sw.sources.log(tmp_path)
    events = sw.stream("events", source).decode(sw.formats.json("k string, ts long")).event_time("ts")
    results = events.key_by("k").window(sw.tumbling("1m"), accumulation="retracting").aggregate(n=sw.count())
    ends = (results.to(delta("/lake/t", **options)), results.late.drop(), events.dead_letters.drop())
    if is_refused:
        with pytest.raises(DefinitionError, match=r"SINK_CANNOT_TAKE.*retractions.*delta /lake/t"):
            sw.Pipeline("p", *ends).plan()
    else:
        sw.Pipeline("p", *ends).plan()


def test_session_conf_has_the_two_lines_and_the_jars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connector, "delta_jars", lambda: ["a.jar", "b.jar"])
    conf = delta("/lake/t").session_conf()
    assert conf["spark.jars"] == "a.jar,b.jar"
    assert conf["spark.sql.extensions"] == "io.delta.sql.DeltaSparkSessionExtension"
    assert conf["spark.sql.catalog.spark_catalog"] == "org.apache.spark.sql.delta.catalog.DeltaCatalog"


def test_session_that_was_started_without_delta_gets_the_two_lines() -> None:
    util = SimpleNamespace(Utils=SimpleNamespace(classIsLoadable=lambda _name: False))
    java = SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(spark=SimpleNamespace(util=util))))
    session: Any = SimpleNamespace(conf=SimpleNamespace(get=lambda _name, default: default), _jvm=java)
    with pytest.raises(RunError, match=r"(?s)DELTA_SESSION.*spark_catalog and the connector's jars") as said:
        check_delta_session(session)
    assert '.config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")' in str(said.value)
    assert '.config("spark.sql.catalog.spark_catalog", ' in str(said.value)


def test_without_spark_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    monkeypatch.setattr(SparkSession, "getActiveSession", classmethod(lambda _cls: None))
    with pytest.raises(RunError, match=r"DELTA_NO_SPARK.*slackwater run"):
        delta_session()


@dataclass
class Thrown:
    """A Java exception, as far as it is looked at."""

    name: str
    message: str
    cause: Thrown | None = None
    above: str = "java.lang.Exception"

    def getClass(self) -> Any:  # noqa: ANN401, N802
        above = SimpleNamespace(getName=lambda: self.above, getSuperclass=lambda: None)
        return SimpleNamespace(getName=lambda: self.name, getSuperclass=lambda: above)

    def getMessage(self) -> str:  # noqa: N802
        return self.message

    def getCause(self) -> Thrown | None:  # noqa: N802
        return self.cause


def raised(*chain: tuple[str, str], above: str = "java.lang.Exception") -> Exception:
    from pyspark.errors import PySparkException

    thrown: Thrown | None = None
    for name, message in reversed(chain):
        thrown = Thrown(name, message, thrown, above if thrown is None else "java.lang.Exception")
    error = PySparkException("wrapped")
    error._origin = thrown  # type: ignore[attr-defined]
    return error


SPARK = ("org.apache.spark.SparkException", "Job aborted")


def test_right_that_is_lacking_is_reported() -> None:
    error = raised(SPARK, ("java.nio.file.AccessDeniedException", "/lake/t/_delta_log"))
    with (
        pytest.raises(RunError, match=r"DELTA_NO_PERMISSION.*during batch 3: /lake/t/_delta_log"),
        explained(delta("/lake/t"), doing="batch 3"),
    ):
        raise error


@pytest.fixture
def java(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be a session, as far as it is looked at, without Delta tables; its files are this machine's."""

    def mkdirs(path: SimpleNamespace) -> bool:
        if Path(path.text).is_file() or Path(path.text).parent.is_file():
            raise raised(("org.apache.hadoop.fs.ParentNotDirectoryException", "Parent path is not a directory"))
        try:
            Path(path.text).mkdir(parents=True, exist_ok=True)
        except OSError:
            return False  # as Java has it
        return True

    files = SimpleNamespace(
        exists=lambda path: Path(path.text).exists(),
        listStatus=lambda path: list(Path(path.text).iterdir()),
        mkdirs=mkdirs,
    )
    fs = SimpleNamespace(Path=lambda text: SimpleNamespace(text=text, getFileSystem=lambda _conf: files))
    hadoop = SimpleNamespace(fs=fs)
    tables = SimpleNamespace(DeltaTable=SimpleNamespace(isDeltaTable=lambda *_: False))
    java = SimpleNamespace(
        org=SimpleNamespace(apache=SimpleNamespace(hadoop=hadoop)),
        io=SimpleNamespace(delta=SimpleNamespace(tables=tables)),
    )
    state = SimpleNamespace(newHadoopConf=lambda: None)
    session: Any = SimpleNamespace(_jvm=java, _jsparkSession=SimpleNamespace(sessionState=lambda: state))
    monkeypatch.setattr(definition, "delta_session", lambda: session)


@pytest.mark.usefixtures("java")
def test_folder_that_cannot_be_made_is_a_matter_of_rights_or_of_the_path(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    words = r"DELTA_NO_PERMISSION.*during the start: {}; grant the job's user access or choose another path"
    with pytest.raises(RunError, match=words.format("cannot create a folder at `/proc/x`")):
        delta("/proc/x").prepare(slot(RESULTS))
    with pytest.raises(RunError, match=words.format("Parent path is not a directory")):
        delta(tmp_path / "file" / "t").prepare(slot(RESULTS))


@pytest.mark.usefixtures("java")
def test_table_that_went_between_two_starts_is_not_made_anew(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"DELTA_TABLE_GONE.*the Delta table at .* no longer exists.*--take-over"):
        delta(tmp_path / "t").prepare(Slot(pipeline="p", output="totals", schema=RESULTS, delivered_before=True))
    assert not (tmp_path / "t").exists()


def test_log_that_is_no_folder_for_a_while_is_waited_for() -> None:
    name = "org.apache.hadoop.fs.ParentNotDirectoryException"
    with pytest.raises(Unavailable, match="store gone"), explained(delta("/lake/t"), doing="batch 3"):
        raise raised(SPARK, (name, "store gone"), above="java.io.IOException")


@pytest.mark.parametrize("name", ["java.net.ConnectException", "java.io.IOException"])
def test_trouble_that_may_pass_is_unavailable(name: str) -> None:
    with pytest.raises(Unavailable, match="store gone"), explained(delta("/lake/t"), doing="batch 3"):
        raise raised(SPARK, (name, "store gone"), above="java.io.IOException")


def test_other_trouble_is_reported_in_one_line() -> None:
    error = raised(("org.apache.spark.sql.AnalysisException", "CHECK constraint broken\nat Somewhere.scala"))
    with (
        pytest.raises(RunError, match=r"DELTA_REFUSED.*rejected batch 3: CHECK constraint broken; fix") as said,
        explained(delta("/lake/t"), doing="batch 3"),
    ):
        raise error
    assert "scala" not in str(said.value)


@pytest.mark.parametrize(
    "note", [None, "", "by hand", '{"slackwater": 3}', '["slackwater"]', '{"slackwater": {"app": "b"}}']
)
def test_commits_of_others_are_not_taken_for_ours(note: str | None) -> None:
    assert LastCommit.from_note(note, "a") is None


def test_commit_is_read_back_from_its_note_for_its_output_alone() -> None:
    commit = LastCommit(number=3, writer="w")
    assert json.loads(commit.to_note("a"))["slackwater"] == {"app": "a", "number": 3, "writer": "w", "mark": None}
    assert LastCommit.from_note(commit.to_note("a"), "a") == commit
    assert LastCommit.from_note(commit.to_note("b"), "a") is None


@dataclass
class Table:
    """A log written by hand."""

    folder: Path
    fields: list[dict[str, Any]] = field(default_factory=list)

    def commit(self, version: int, *names: str) -> None:
        log = self.folder / "_delta_log"
        log.mkdir(exist_ok=True)
        lines = ['{"commitInfo":{}}']
        if names:
            fields = [{"name": name, "type": "long", "nullable": True, "metadata": {}} for name in names]
            schema = json.dumps({"type": "struct", "fields": fields})
            lines.append(json.dumps({"metaData": {"schemaString": schema}}, separators=(",", ":")))
        (log / f"{version:020d}.json").write_text("\n".join(lines))


def test_columns_of_a_source_are_those_of_the_newest_commit_that_tells_them(tmp_path: Path) -> None:
    table = Table(tmp_path)
    table.commit(0, "a")
    table.commit(1, "a", "b")
    table.commit(2)
    assert delta_source(tmp_path).schema == {"a": pl.Int64(), "b": pl.Int64()}


def test_columns_of_a_source_may_be_in_a_checkpoint_alone(tmp_path: Path) -> None:
    table = Table(tmp_path)
    table.commit(0, "a", "b")
    text = json.loads((tmp_path / "_delta_log" / f"{0:020d}.json").read_text().splitlines()[1])["metaData"][
        "schemaString"
    ]
    rows = pl.DataFrame({"metaData": [None, {"schemaString": text}]})
    rows.write_parquet(tmp_path / "_delta_log" / f"{0:020d}.checkpoint.parquet")
    (tmp_path / "_delta_log" / f"{0:020d}.json").unlink()
    table.commit(1)
    assert delta_source(tmp_path).schema == {"a": pl.Int64(), "b": pl.Int64()}


def test_changes_have_columns_of_their_own() -> None:
    source = delta_source("/lake/t", schema="id long", read_changes=True)
    assert source.schema.names() == ["id", "_change_type", "_commit_version", "_commit_timestamp"]
    assert dict(source.options)["readChangeFeed"] == "true"


@pytest.mark.parametrize(
    "start, option",
    [
        (12, ("startingVersion", "12")),
        ("latest", ("startingVersion", "latest")),
        ("2026-03-01T01:00:00+01:00", ("startingTimestamp", "2026-03-01T00:00:00.000Z")),
        (datetime(2026, 3, 1, tzinfo=UTC), ("startingTimestamp", "2026-03-01T00:00:00.000Z")),
    ],
)
def test_source_starts_at_a_version_or_a_time(start: Any, option: tuple[str, str]) -> None:  # noqa: ANN401
    assert option in delta_source("/lake/t", schema="id long", start=start).options


@pytest.mark.parametrize("start", [-1, True, "soon", "2026-03-01T00:00:00", None])
def test_start_that_cannot_be_is_refused(start: Any) -> None:  # noqa: ANN401
    with pytest.raises(DefinitionError, match=r"DELTA_SOURCE_START.*a version or a time with a time zone"):
        delta_source("/lake/t", schema="id long", start=start)


def test_source_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match=r"DELTA_SOURCE_MISSING.*there is none at"):
        delta_source(tmp_path / "nothing")


def test_source_that_only_spark_can_reach_needs_its_columns() -> None:
    with pytest.raises(DefinitionError, match=r"DELTA_SOURCE_SCHEMA.*`s3a://lake/t` is not a local path"):
        delta_source("s3a://lake/t")
    assert str(delta_source("s3a://lake/t", schema="id long")) == "delta s3a://lake/t from earliest"


def test_changes_are_read_or_passed_over_not_both() -> None:
    with pytest.raises(DefinitionError, match=r"DELTA_SOURCE_CHANGES.*remove one of them"):
        delta_source("/lake/t", schema="id long", read_changes=True, ignore_changes=True)


@pytest.mark.parametrize("files", [0, True, "9"])
def test_files_of_a_batch_are_a_number(files: Any) -> None:  # noqa: ANN401
    with pytest.raises(DefinitionError, match=r"DELTA_SOURCE_FILES.*a positive integer"):
        delta_source("/lake/t", schema="id long", max_files_per_batch=files)


def test_other_failures_of_a_query_keep_their_words() -> None:
    assert delta_source("/lake/t", schema="id long").explained(ValueError("/lake/t: something else")) is None

"""Jars by their coordinates: what is said when they cannot be had. (That they can be had, the broker's tests show.)"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pyspark
import pytest

from slackwater.base.errors import RunError
from slackwater.base.jars import cache, jars
from slackwater.connectors.delta.jars import delta_jars
from slackwater.connectors.kafka.jars import connector_jars

NONSENSE = ("org.slackwater:no-such-thing:1.0",)


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def maven_that(does: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "mvn"
    command.write_text(f"#!/bin/sh\n{does}\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}:/usr/bin:/bin")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))


def java_that(does: str, tmp_path: Path) -> None:
    (tmp_path / "home" / "bin").mkdir(parents=True)
    command = tmp_path / "home" / "bin" / "java"
    command.write_text(f"#!/bin/sh\n{does}\n")
    command.chmod(0o755)


def no_maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(shutil, "which", lambda _: None)


def test_without_maven_sparks_own_resolver_fetches_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_maven(tmp_path, monkeypatch)
    java_that(f'echo "$@" > {tmp_path}/call; cat ivy.xml settings.xml >> {tmp_path}/call; mkdir jars', tmp_path)
    monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", "https://mirror.example/maven/")
    assert jars(NONSENSE).is_dir()
    call = (tmp_path / "call").read_text()
    assert re.search(r"-jar \S+/pyspark/jars/ivy-[\d.]+\.jar ", call)
    assert '<dependency org="org.slackwater" name="no-such-thing" rev="1.0"' in call
    assert 'root="https://mirror.example/maven/"' in call


def test_without_maven_the_error_names_the_coordinates_and_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_maven(tmp_path, monkeypatch)
    java_that("echo '....... (3kB)'; echo '  :: org.slackwater#no-such-thing;1.0: not found'; exit 1", tmp_path)
    with pytest.raises(RunError) as raised:
        jars(NONSENSE)
    assert raised.value.code == "JARS_UNAVAILABLE"
    assert (
        "org.slackwater:no-such-thing:1.0 could not be resolved: Spark's Ivy: "
        "org.slackwater#no-such-thing;1.0: not found; "
    ) in str(raised.value)
    assert str(cache()) in str(raised.value)


def test_where_maven_fails_sparks_own_resolver_fetches_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maven_that("echo '[ERROR] JAVA_HOME is not defined correctly'; exit 1", tmp_path, monkeypatch)
    java_that("grep -q tokens ivy.xml && mkdir jars", tmp_path)
    folder = jars(NONSENSE, pinned=("org.slackwater:tokens:1.0",))
    assert folder == jars(NONSENSE, pinned=("org.slackwater:tokens:1.0",))


def test_where_both_fail_both_say_why_in_a_sentence_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maven_that("echo '[ERROR] JAVA_HOME is not defined correctly.'; exit 1", tmp_path, monkeypatch)
    java_that("echo '  :: org.slackwater#no-such-thing;1.0: not found'; exit 1", tmp_path)
    causes = "Maven: JAVA_HOME is not defined correctly. Spark's Ivy: org.slackwater#no-such-thing;1.0: not found; "
    with pytest.raises(RunError, match=rf"JARS_UNAVAILABLE.*: {re.escape(causes)}"):
        jars(NONSENSE)


def test_java_that_cannot_be_run_is_a_cause_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maven_that("exit 3", tmp_path, monkeypatch)
    with pytest.raises(RunError, match=r"Maven: exit code 3\. Spark's Ivy: .*No such file or directory"):
        jars(NONSENSE)


def test_version_is_pinned_only_where_the_exact_one_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maven_that(f"echo x >> {tmp_path}/calls; grep -q tokens pom.xml && mkdir jars", tmp_path, monkeypatch)
    pinned = jars(NONSENSE, pinned=("org.slackwater:tokens:1.0",))
    assert (tmp_path / "calls").read_text() == "x\nx\n", "first as it is, then pinned"
    assert jars(NONSENSE, pinned=("org.slackwater:tokens:1.0",)) == pinned
    assert (tmp_path / "calls").read_text() == "x\nx\n", "then from the cache"


def test_exact_version_needs_no_pin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maven_that(f"cat pom.xml >> {tmp_path}/calls; mkdir jars", tmp_path, monkeypatch)
    jars(NONSENSE, pinned=("org.slackwater:tokens:1.0",))
    assert "tokens" not in (tmp_path / "calls").read_text()


@pytest.mark.parametrize("jars_of, name", [(connector_jars, "Kafka"), (delta_jars, "Delta")])
def test_another_minor_release_of_spark_is_named_with_the_one_that_has_a_connector(
    jars_of: Callable[[], list[str]], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pyspark, "__version__", "4.3.1")
    sentence = rf"{name} connector.*pyspark 4\.3\.1 is installed, and the connector is for 4\.2\.0; run `pip install"
    with pytest.raises(RunError, match=sentence):
        jars_of()


def test_connector_of_another_patch_release_is_named_where_it_cannot_be_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maven_that("echo '[ERROR] Could not find artifact'; exit 1", tmp_path, monkeypatch)
    monkeypatch.setattr(pyspark, "__version__", "4.2.7")
    with pytest.raises(RunError, match=r"Kafka connector for 4\.2\.0 \(installed: pyspark 4\.2\.7\)"):
        connector_jars()


def test_jar_that_cannot_be_had_is_an_error_with_mavens_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maven_that("echo 'Could not find artifact'; exit 1", tmp_path, monkeypatch)
    with pytest.raises(RunError, match=r"JARS_UNAVAILABLE.*no-such-thing:1\.0.*Could not find artifact"):
        jars(NONSENSE)
    assert not [path for path in cache().iterdir() if path.is_dir()], "nothing half-fetched stays"


def test_jars_are_fetched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maven_that(f"mkdir jars; touch jars/a.jar; echo x >> {tmp_path}/calls", tmp_path, monkeypatch)
    first, second = jars(NONSENSE), jars(NONSENSE)
    assert first == second
    assert [path.name for path in first.iterdir()] == ["a.jar"]
    assert (tmp_path / "calls").read_text() == "x\n"

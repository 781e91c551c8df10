"""Jars by their coordinates: what is said when they cannot be had. (That they can be had, the broker's tests show.)"""

from __future__ import annotations

from pathlib import Path

import pytest

from slackwater.errors import RunError
from slackwater.ground.jars import cache, jars

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


def test_without_maven_the_error_names_the_coordinates_and_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(RunError, match=r"JARS_NO_MAVEN.*org\.slackwater:no-such-thing:1\.0"):
        jars(NONSENSE)


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

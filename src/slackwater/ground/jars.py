"""Jars by their coordinates: fetched once by Maven, kept in a cache, found there ever after."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

from slackwater.errors import fault

_POM: Final = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>slackwater</groupId><artifactId>jars</artifactId><version>1</version><packaging>pom</packaging>
  <dependencyManagement><dependencies>
{pinned}
  </dependencies></dependencyManagement>
  <dependencies>
{wanted}
  </dependencies>
</project>
"""
_DEPENDENCY: Final = (
    "    <dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"
)
_MOST_WORDS: Final = 600


def jars(coordinates: tuple[str, ...], *, pinned: tuple[str, ...] = ()) -> Path:
    """Return the folder with the jars of `coordinates` and all they depend on; fetched if it is not there yet.

    `pinned` are versions of what they depend on, where those they ask for are not to be had.
    """
    folder = cache() / hashlib.sha256("\n".join([*coordinates, "", *pinned]).encode()).hexdigest()[:16]
    if folder.exists():
        return folder
    said = ", ".join(coordinates)
    if shutil.which("mvn") is None:
        raise fault("JARS_NO_MAVEN", coordinates=said, folder=folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        pom = _POM.format(pinned=_dependencies(pinned), wanted=_dependencies(coordinates))
        (Path(work) / "pom.xml").write_text(pom)
        fetched = subprocess.run(
            ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=jars"],  # noqa: S607  the user's Maven
            cwd=work,
            capture_output=True,
            text=True,
            check=False,
        )
        if fetched.returncode:
            words = (fetched.stdout + fetched.stderr).strip()[-_MOST_WORDS:]
            raise fault("JARS_UNAVAILABLE", coordinates=said, cause=words)
        try:
            # Whoever else fetched them meanwhile has the same jars.
            (Path(work) / "jars").rename(folder)
        except OSError:
            if not folder.exists():
                raise
    return folder


def cache() -> Path:
    """Return where jars are kept: `$XDG_CACHE_HOME/slackwater/jars`, or below `~/.cache`."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "slackwater" / "jars"


def _dependencies(coordinates: tuple[str, ...]) -> str:
    return "\n".join(_DEPENDENCY.format(*map(escape, name.split(":"))) for name in coordinates)

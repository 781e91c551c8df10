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

BROKER: Final = ("org.apache.kafka:kafka_2.13:4.3.1",)

_POM: Final = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>slackwater</groupId><artifactId>jars</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""
_DEPENDENCY: Final = (
    "    <dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"
)
_MOST_WORDS: Final = 600


def jars(coordinates: tuple[str, ...]) -> Path:
    """Return the folder with the jars of `coordinates` and all they depend on; fetched if it is not there yet."""
    folder = cache() / hashlib.sha256("\n".join(coordinates).encode()).hexdigest()[:16]
    if folder.exists():
        return folder
    said = ", ".join(coordinates)
    if shutil.which("mvn") is None:
        raise fault("JARS_NO_MAVEN", coordinates=said, folder=folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        dependencies = "\n".join(_DEPENDENCY.format(*map(escape, name.split(":"))) for name in coordinates)
        (Path(work) / "pom.xml").write_text(_POM.format(dependencies=dependencies))
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

"""Jars by their coordinates: fetched once and kept in a cache.

They are fetched with Maven, if it is installed, with its settings and mirrors. If it is not installed or fails, they
are fetched with Ivy, which is among PySpark's jars and is Spark's own resolver: from Maven Central, or like Spark from
the repository in `DEFAULT_ARTIFACT_REPOSITORY`.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from slackwater.base.errors import fault

_Resolver = Callable[[tuple[str, ...], tuple[str, ...], Path], list[str]]
"""Returns the command that fetches coordinates, with pinned versions, when run in a folder."""

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
_IVY: Final = """<ivy-module version="2.0">
  <info organisation="slackwater" module="jars"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{wanted}
{pinned}
  </dependencies>
</ivy-module>
"""
_IVY_WANTED: Final = "    <dependency org={} name={} rev={} conf='default->default'/>"
_IVY_PINNED: Final = "    <override org={} module={} rev={}/>"
_IVY_SETTINGS: Final = """<ivysettings>
  <settings defaultResolver="central"/>
  <caches defaultCacheDir="${{ivy.settings.dir}}/cache"/>
  <resolvers><ibiblio name="central" m2compatible="true" root={repository}/></resolvers>
</ivysettings>
"""
_CENTRAL: Final = "https://repo1.maven.org/maven2/"
_CAUSE: Final = re.compile(r"^\[ERROR\] (.+)$|^\s*(?:::|\[NOT FOUND *\]) *(\S+#\S+.*)$", re.MULTILINE)
_MAX_TEXT: Final = 600


def jars(coordinates: tuple[str, ...], *, pinned: tuple[str, ...] = (), what: str = "jars") -> Path:
    """Return the folder with the jars of `coordinates` and their dependencies; fetch them if they are not cached.

    `pinned` are versions of dependencies, used only if the versions that the jars ask for are not available. `what`
    names the jars in an error.
    """
    ways = [(coordinates, ())] + ([((*coordinates, *pinned), pinned)] if pinned else [])
    folders = [
        cache() / hashlib.sha256("\n".join([*wanted, "", *fixed]).encode()).hexdigest()[:16] for wanted, fixed in ways
    ]
    for folder in folders:
        if folder.exists():
            return folder
    causes: list[str] = []
    for name, resolver in _resolvers():
        cause = ""
        for (wanted, fixed), folder in zip(ways, folders, strict=True):
            cause = _fetched(resolver, wanted, fixed, folder)
            if not cause:
                return folder
        causes.append(f"{name}: {cause.rstrip('.')}")
    asked = ", ".join(ways[-1][0])
    raise fault("JARS_UNAVAILABLE", what=what, coordinates=asked, cause=". ".join(causes), folder=folders[-1])


def cache() -> Path:
    """Return the folder of cached jars: `$XDG_CACHE_HOME/slackwater/jars`, or below `~/.cache`."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "slackwater" / "jars"


def _resolvers() -> list[tuple[str, _Resolver]]:
    """Return the available resolvers with their names, in the order in which they are tried."""
    maven: list[tuple[str, _Resolver]] = [("Maven", _maven)] if shutil.which("mvn") else []
    if (java := _java()) is not None:
        return [*maven, ("Spark's Ivy", partial(_ivy, java))]
    if not maven:
        raise fault("JAVA_MISSING")
    return maven


def _fetched(resolver: _Resolver, coordinates: tuple[str, ...], pinned: tuple[str, ...], folder: Path) -> str:
    """Fetch jars into `folder` with a resolver; return why that failed, or an empty string."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        command = resolver(coordinates, pinned, Path(work))
        try:
            fetched = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)  # noqa: S603  our own arguments
        except OSError as error:
            return str(error)
        if fetched.returncode or not (Path(work) / "jars").is_dir():
            return _cause(fetched.stdout + fetched.stderr) or f"exit code {fetched.returncode}"
        try:
            # Another process may have fetched the same jars meanwhile.
            (Path(work) / "jars").rename(folder)
        except OSError:
            if not folder.exists():
                raise
    return ""


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin/java" if home else shutil.which("java")


def _maven(coordinates: tuple[str, ...], pinned: tuple[str, ...], work: Path) -> list[str]:
    pom = _POM.format(pinned=_lines(_DEPENDENCY, pinned, escape), wanted=_lines(_DEPENDENCY, coordinates, escape))
    (work / "pom.xml").write_text(pom, encoding="utf-8")
    return ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=jars"]


def _ivy(java: str, coordinates: tuple[str, ...], pinned: tuple[str, ...], work: Path) -> list[str]:
    import pyspark  # noqa: PLC0415  takes half a second, and most jars are in the cache

    repository = os.environ.get("DEFAULT_ARTIFACT_REPOSITORY") or _CENTRAL
    (work / "settings.xml").write_text(_IVY_SETTINGS.format(repository=quoteattr(repository)), encoding="utf-8")
    asked = _IVY.format(
        wanted=_lines(_IVY_WANTED, coordinates, quoteattr), pinned=_lines(_IVY_PINNED, pinned, quoteattr)
    )
    (work / "ivy.xml").write_text(asked, encoding="utf-8")
    resolver = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    files = ["-settings", "settings.xml", "-ivy", "ivy.xml"]
    found = ["-types", "jar", "bundle", "-retrieve", "jars/[artifact]-[revision](-[classifier]).[ext]"]
    return [java, "-jar", str(resolver), "-warn", *files, "-confs", "default", *found]


def _lines(form: str, coordinates: tuple[str, ...], quoted: Callable[[str], str]) -> str:
    return "\n".join(form.format(*map(quoted, name.split(":"))) for name in coordinates)


def _cause(output: str) -> str:
    """Return a resolver's first error in one line, without its progress and advice."""
    found = [" ".join(filter(None, groups)) for groups in _CAUSE.findall(output)]
    return " ".join((found[0] if found else output.strip()[-_MAX_TEXT:]).split())[:_MAX_TEXT]

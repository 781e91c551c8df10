"""Spark's connectors, which are separate jars: only those for the installed release of PySpark are used."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from slackwater.base.errors import fault
from slackwater.base.jars import jars

_VERSION: Final = re.compile(r"-\d[\w.]*$")


def connector(name: str, coordinates: tuple[str, ...], *, spark: str, pinned: tuple[str, ...] = ()) -> list[str]:
    """Return the jars of a connector that PySpark lacks; they are fetched when first needed.

    `spark` is the release that the connector was built for. It works with every patch release of that minor release.
    """
    import pyspark  # noqa: PLC0415  takes half a second, and definitions do not need it

    installed = pyspark.__version__
    if installed.split(".")[:2] != spark.split(".")[:2]:
        raise fault("CONNECTOR_RELEASE", name=name, installed=installed, spark=spark, minor=spark.rpartition(".")[0])
    what = f"Spark's {name} connector for {spark} (installed: pyspark {installed})"
    present = {_artifact(path) for path in (Path(pyspark.__file__).parent / "jars").glob("*.jar")}
    fetched = sorted(jars(coordinates, pinned=pinned, what=what).glob("*.jar"))
    return [str(path) for path in fetched if _artifact(path) not in present]


def _artifact(path: Path) -> str:
    return _VERSION.sub("", path.stem)

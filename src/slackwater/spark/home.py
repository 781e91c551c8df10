"""The Spark home for Spark's scripts and its JVM.

The JVM makes its Python processes import PySpark from `python/lib/pyspark.zip` in the Spark home. Python caches no
bytecode for zipped modules, so every process compiles PySpark, which takes a second. If the installed PySpark is the
same one, the JVM gets a home without that zip, and its processes import the installed package.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import sysconfig
from pathlib import Path
from typing import Final

from slackwater.base.jars import cache

_NEEDED: Final = ("bin", "conf", "jars")


def spark_home(*, local: bool) -> Path:
    """Return the Spark home for a new JVM; `local` if its Python processes will run on this machine."""
    if (given := os.environ.get("SPARK_HOME")) is not None:
        return Path(given)
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None, "a dependency"
    assert spec.origin is not None, "a package with a file"
    installed = Path(spec.origin).parent
    is_theirs = os.environ.get("PYSPARK_PYTHON", sys.executable) == sys.executable
    if not local or not is_theirs or installed.parent != Path(sysconfig.get_path("purelib")):
        return installed
    try:
        return _linked(installed)
    except OSError:
        return installed  # the cache is not writable; the installed home is only slower


def _linked(installed: Path) -> Path:
    """Return a folder with links to the parts of `installed` that a JVM needs; it is created once."""
    targets = [installed / name for name in _NEEDED if (installed / name).is_dir()]
    name = hashlib.blake2b("\n".join(map(str, targets)).encode(), digest_size=8).hexdigest()
    home = cache().parent / "spark" / name
    if home.is_dir():
        return home
    made = home.with_name(f".{name}-{os.getpid()}")
    made.mkdir(parents=True)
    for target in targets:
        (made / target.name).symlink_to(target)
    try:
        made.rename(home)
    except OSError:
        for link in made.iterdir():
            link.unlink()
        made.rmdir()
        if not home.is_dir():  # else another process has just created it
            raise
    return home

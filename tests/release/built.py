"""The distributions as `make dist` builds them, from a copy of the checkout, and environments to install them into."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("pyproject.toml", "MANIFEST.in", "README.md", "CHANGELOG.md", "LICENSE")


def build(folder: Path) -> tuple[Path, Path]:
    """Build the source distribution and, from it, the wheel; return both. The checkout stays as it is."""
    copy = folder / "checkout"
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in SOURCES:
        shutil.copy(ROOT / name, copy / name)
    command(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", copy, cwd=folder)
    [sdist] = (folder / "dist").glob("*.tar.gz")
    [wheel] = (folder / "dist").glob("*.whl")
    return sdist, wheel


def empty_environment(folder: Path) -> Path:
    """Make a virtual environment with nothing in it; return its Python."""
    venv.create(folder, symlinks=True)
    return folder / "bin" / "python"


def borrow_packages(python: Path) -> None:
    """Let an environment see the packages of this one, behind its own.

    A `.pth` file of a folder that a `.pth` file adds is not read: an editable install of Slackwater stays out of sight.
    """
    purelib = next(python.parents[1].glob("lib/python*/site-packages"))
    (purelib / "borrowed.pth").write_text(f"{sysconfig.get_path('purelib')}\n{sysconfig.get_path('platlib')}\n")


def install(python: Path, *arguments: str | Path) -> None:
    """Install into the environment of `python`, with this environment's pip."""
    command(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", *arguments, cwd=python.parents[1])


def command(*parts: str | Path, cwd: Path) -> str:
    """Run a command without the checkout on Python's path; return what it printed, fail with it if it failed."""
    hidden = {"PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "VIRTUAL_ENV"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(
        [str(part) for part in parts], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{' '.join(map(str, parts))}\n{done.stdout}\n{done.stderr}"
    return done.stdout

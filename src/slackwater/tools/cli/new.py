"""`slackwater new NAME`: a small project to start from."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from slackwater.base.errors import counted, fault, listed
from slackwater.base.folders import plain_path
from slackwater.base.names import checked_name
from slackwater.tools.cli.options import at_home

_PROJECT: Final = Path(__file__).parent / "project"
_SUFFIX: Final = ".template"
"""Files with this suffix are written without it, and with the project's name in place of `_NAME`.

It keeps them from being taken for modules of this package.
"""
_NAME: Final = "{{name}}"
_DOTTED: Final = frozenset({"gitignore"})
"""Names that get a dot: files that begin with one are easily left out of a wheel."""


def new(
    folder: Annotated[
        Path,
        typer.Argument(
            callback=at_home,
            metavar="NAME",
            help="Folder for the project; its last part names the pipeline. It must be empty, or not exist yet.",
        ),
    ],
) -> None:
    """Create a project to start from: a pipeline, its test, a Makefile and a little data.

    The pipeline adds up orders per customer and minute. Among its data are an order that is late, one that is far too
    late, one that is broken and one from a clock that runs ahead, so that every output has rows. In the project,
    `make test` tests the pipeline in memory, `make run` runs it on Spark and prints its outputs, and `make` lists the
    targets.

    [dim]Examples:[/dim]

      slackwater new shop

      slackwater new ~/projects/shop
    """
    name = checked_name(plain_path(folder).name, "project")
    _check_empty(folder)
    files = project_files(name)
    try:
        for path, text in files.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise fault("PROJECT_UNWRITTEN", path=folder, cause=error.strerror or error) from error
    typer.echo(f"wrote {counted(len(files), 'file')} to {folder}; next:\n")
    typer.echo("\n".join(f"    {line}" for line in _next_steps(folder)))


def project_files(name: str) -> dict[str, str]:
    """Return the files of a project called `name`: their text by their path, in the order to write them.

    The files of a log are read by the time at which they were written, so their order matters.
    """
    found = sorted(path for path in _PROJECT.rglob("*") if path.is_file())
    return {_path(path): path.read_text(encoding="utf-8").replace(_NAME, name) for path in found}


def _path(template: Path) -> str:
    plain = template.with_name(template.name.removesuffix(_SUFFIX))
    named = plain.with_name(f".{plain.name}") if plain.name in _DOTTED else plain
    return named.relative_to(_PROJECT).as_posix()


def _check_empty(folder: Path) -> None:
    """Raise an error unless a project can be written to `folder` without touching other files."""
    try:
        held = sorted(path.name for path in folder.iterdir())
    except FileNotFoundError:
        return
    except OSError as error:
        if folder.is_file():
            raise fault("PROJECT_FOLDER", path=folder, found="is a file") from None
        raise fault("PROJECT_UNWRITTEN", path=folder, cause=error.strerror or error) from error
    if held:
        raise fault("PROJECT_FOLDER", path=folder, found=f"contains {listed(held, most=3)}")


def _next_steps(folder: Path) -> list[str]:
    python = _python()
    steps = [] if folder.resolve() == Path.cwd() else [f"cd {folder}"]
    if importlib.util.find_spec("pytest") is None:
        steps.append(f"{python or 'python3'} -m pip install pytest")
    given = f" PYTHON={python}" if python else ""
    return [*steps, f"make test{given}", f"make run{given}"]


def _python() -> str | None:
    """Return this Python if `make` would find another one as `python3`; None otherwise."""
    found = shutil.which("python3")
    is_this = found is not None and Path(found).parent.resolve() == Path(sys.executable).parent.resolve()
    return None if is_this else sys.executable

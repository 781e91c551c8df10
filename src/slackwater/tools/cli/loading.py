"""Loading the pipeline defined in a user's file."""

from __future__ import annotations

import os
import runpy
import sys
import traceback
from pathlib import Path
from typing import Any, Final

from slackwater.base.errors import DefinitionError, SlackwaterError, fault, near_miss
from slackwater.pipeline import Pipeline

_PACKAGE: Final = Path(__file__).resolve().parents[2]
_NAME: Final = "__pipeline__"
"""The module name of the file while it runs.

No module of that name can be imported, so its functions and classes are pickled by value for the workers; and it is not
`__main__`, so that `if __name__ == "__main__":` still means that the file was run directly.
"""


def load_pipeline(file: Path) -> Pipeline:
    """Return the pipeline in `file`: the variable `pipeline`, or the only pipeline in it."""
    if not file.is_file():
        beside = [path.name for path in file.parent.glob("*.py")] if file.parent.is_dir() else []
        is_folder = file.is_dir()
        found = "is a folder" if is_folder else f"does not{near_miss(file.stem, beside)}"
        advice = "give a .py file" if is_folder else "check the path"
        raise fault("PIPELINE_FILE_MISSING", file=file, found=found, advice=advice)
    _add_to_path(str(file.resolve().parent))
    pipelines = {name: value for name, value in _run(file).items() if isinstance(value, Pipeline)}
    if isinstance(pipelines.get("pipeline"), Pipeline):
        return pipelines["pipeline"]
    if len(pipelines) != 1:
        names = ", ".join(sorted(pipelines)) or "none"
        advice = "name the one to run `pipeline`" if pipelines else "add pipeline = sw.Pipeline(...)"
        raise fault("PIPELINE_FILE_CHOICE", file=file, found=names, advice=advice)
    return next(iter(pipelines.values()))


def _run(file: Path) -> dict[str, Any]:
    try:
        return runpy.run_path(str(file), run_name=_NAME)
    except DefinitionError as error:
        error.where = error.where or _place(error)
        raise
    except SlackwaterError:
        raise
    except SyntaxError as error:
        raise fault("PIPELINE_FILE_FAILED", file=file, line=error.lineno, cause=f"SyntaxError: {error.msg}") from error
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
        cause = f"{type(error).__name__}: {error}"
        raise fault("PIPELINE_FILE_FAILED", file=file, line=lines[-1] if lines else "?", cause=cause) from error


def _place(error: DefinitionError) -> str | None:
    """Return the user's file and line that caused an error: the innermost one outside this package."""
    frames = traceback.extract_tb(error.__traceback__)
    begun = next((at for at, frame in enumerate(frames) if "runpy" in frame.filename), len(frames))
    theirs = [
        frame
        for frame in frames[begun:]
        if "runpy" not in frame.filename and not Path(frame.filename).is_relative_to(_PACKAGE)
    ]
    return f"{theirs[-1].filename}, line {theirs[-1].lineno}" if theirs else None


def _add_to_path(folder: str) -> None:
    """Make modules in the file's folder importable, here and in Spark's local workers."""
    sys.path.insert(0, folder)
    known = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    os.environ["PYTHONPATH"] = os.pathsep.join([folder, *known])

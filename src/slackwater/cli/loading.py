"""Loading the pipeline that a user's file defines."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from slackwater.errors import fault
from slackwater.pipeline import Pipeline


def load_pipeline(file: Path) -> Pipeline:
    """Return the pipeline in `file`: the variable `pipeline`, or the only one there is.

    The file runs as `__main__`, so that its functions and classes travel to the workers by value.
    """
    if not file.is_file():
        raise fault("PIPELINE_FILE_MISSING", file=file)
    sys.path.insert(0, str(file.resolve().parent))
    main = sys.modules["__main__"]
    # Names that stand in `__main__` are pickled by value, and looked up there when they refer to each other.
    defined = runpy.run_path(str(file), run_name="__main__")
    vars(main).update({name: value for name, value in defined.items() if not name.startswith("__")})
    found = {name: value for name, value in defined.items() if isinstance(value, Pipeline)}
    if isinstance(found.get("pipeline"), Pipeline):
        return found["pipeline"]
    if len(found) != 1:
        raise fault("PIPELINE_FILE_CHOICE", file=file, found=sorted(found) or "none")
    return next(iter(found.values()))

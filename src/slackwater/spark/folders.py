"""Checks of the folders that both the driver and the executors must see."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from slackwater.base.errors import fault
from slackwater.plan.enrichments import lookups
from slackwater.plan.plan import Plan

if TYPE_CHECKING:
    from pyspark import SparkContext


def check_folders(plan: Plan, checkpoint: Path, context: SparkContext) -> None:
    """Reject logs that do not exist, and folders that executors on other machines cannot see."""
    check_logs(plan)
    if str(context.master).startswith("local"):
        return
    if not seen_by_all(context, str(checkpoint)):
        raise fault("CHECKPOINT_UNSHARED", path=checkpoint)
    if lookups(plan) and not seen_by_all(context, str(checkpoint), writable=True):
        raise fault("CHECKPOINT_READ_ONLY", path=checkpoint)
    for stream, path in _logs(plan).items():
        if not seen_by_all(context, path):
            raise fault("LOG_FOLDER_UNSHARED", path=path, stream=stream)


def check_logs(plan: Plan) -> None:
    """Reject logs that do not exist; needs no Spark."""
    for stream, path in _logs(plan).items():
        if not Path(path).is_dir():
            raise fault("LOG_FOLDER_MISSING", path=path, stream=stream)


def _logs(plan: Plan) -> dict[str, str]:
    return {source.name: folder for source in plan.sources if (folder := source.source.folder) is not None}


def seen_by_all(context: SparkContext, path: str, *, writable: bool = False) -> bool:
    """Return whether all executors that are up by now see the folder `path`, and with `writable` may write to it."""
    slots = 2 * max(1, context.defaultParallelism)
    needed = os.W_OK | os.X_OK if writable else os.F_OK
    looks = context.parallelize(range(slots), slots).map(lambda _: Path(path).is_dir() and os.access(path, needed))
    return all(looks.collect())

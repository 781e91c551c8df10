"""The causes of job failures: turning Spark's stack traces into the one sentence that users need."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from slackwater.base.durable import full_disk
from slackwater.base.errors import RunError, SlackwaterError, fault
from slackwater.base.errors.catalogue import CATALOGUE
from slackwater.engine.checkpoint.checkpoint import Checkpoint
from slackwater.engine.checkpoint.damage import damage_of
from slackwater.engine.checkpoint.lock import Lease
from slackwater.observe.metrics.failing import note_failure
from slackwater.plan.plan import Plan
from slackwater.spark.intake import Intakes

_NOT_CONNECTED: Final = "failed to connect back"
_NOTED: Final = re.compile(r"File file:(/.*?)/state/[0-9]+/_stateSchema/.* does not exist")
"""Matches Spark's error for a missing state schema, which contains the checkpoint's path as Spark recorded it."""
_CRASHED: Final = "Python worker exited unexpectedly (crashed)"
_END_S: Final = 2.0
"""How long to wait for a JVM that is being killed to exit."""
_OURS: Final = re.compile(r"slackwater\.\S+: \[([A-Z0-9_]+)\] (.+)")


def reason_of(error: Exception, lease: Lease, checkpoint: Checkpoint, spark: SparkSession) -> SlackwaterError | None:
    """Return why a run failed: a replaced driver, a JVM that ended, a full disk, a moved or damaged checkpoint."""
    # A replaced driver may fail in many ways, mostly on Spark's files; the replacement is always the reason.
    if (lost := lease.lost()) is not None:
        return lost
    if isinstance(error, Py4JError | OSError) and (ended := jvm_ended(spark)) is not None:
        return ended
    if isinstance(error, SlackwaterError):
        return None
    return _of_surroundings(error, checkpoint) or damage_of(checkpoint.path, error)


def note_failing_batch(error: Exception, checkpoint: Checkpoint, intakes: Intakes) -> None:
    """Record for the status of the job that a batch has failed, if one was started."""
    try:
        if checkpoint.is_amid_batch():
            code = error.code if isinstance(error, SlackwaterError) else type(error).__name__
            batch, rows = checkpoint.next_batch(), intakes.reads(checkpoint.next_clock())
            note_failure(checkpoint.path, batch=batch, code=code, rows=rows, now_ms=round(1_000 * time.time()))
    except Exception as failed:  # noqa: BLE001  nothing depends on it, and the job has an error to report
        error.add_note(f"the status cannot show the batch that failed: {type(failed).__name__}: {failed}")


def _of_surroundings(error: Exception, checkpoint: Checkpoint) -> SlackwaterError | None:
    """Return what is wrong with the disk, the workers or the checkpoint's place."""
    if (why := full_disk(error)) is not None:
        return fault("DISK_FULL", path=_full_folder(checkpoint.path, error), why=why)
    if _CRASHED in str(error):
        return fault("WORKER_CRASHED", batch=checkpoint.next_batch())
    if (noted := _NOTED.search(str(error))) is not None and Path(noted[1]) != checkpoint.path:
        return fault("CHECKPOINT_MOVED", path=checkpoint.path, found=noted[1])
    return None


def _full_folder(checkpoint: Path, error: Exception) -> str | Path:
    """Return the file that could not be written, if it is known; or else the folder with the least space."""
    if isinstance(error, OSError) and error.filename is not None:
        return str(error.filename)
    return min((checkpoint, Path(tempfile.gettempdir())), key=lambda folder: shutil.disk_usage(folder).free)


def jvm_ended(spark: SparkSession) -> SlackwaterError | None:
    """Return an error if Spark's JVM was started by this process and has ended."""
    process: subprocess.Popen[bytes] | None = getattr(spark.sparkContext._gateway, "proc", None)  # noqa: SLF001  no public way
    if process is None:
        return None
    try:
        code = process.wait(_END_S)
    except subprocess.TimeoutExpired:
        return None
    how = f"exit code {code}" if code >= 0 else f"killed ({signal.Signals(-code).name})"
    return fault("JVM_ENDED", how=how)


def cause_of(error: Exception, plan: Plan, intakes: Intakes) -> Exception:
    """Return the known cause of a query's failure, or else the failure itself."""
    known = (source.source.explained(error) for source in plan.sources)
    return next(filter(None, known), None) or intakes.loss() or error


def is_worker_missing(error: Exception) -> bool:
    """Return whether a new worker missed Spark's time limit, as can happen on a busy machine."""
    return _NOT_CONNECTED in str(error)


def unwrapped(error: BaseException) -> BaseException:
    """Return the Slackwater error that made a worker fail, or else `error` itself."""
    if isinstance(error, RunError):
        return error
    for code, message in _OURS.findall(str(error)):
        if code in CATALOGUE:
            found = RunError(code, message)
            found.__cause__ = error
            return found
    return error

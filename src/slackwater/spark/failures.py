"""What is behind a failure of a job: Spark gives stacks of calls, and here is the one sentence that users read."""

from __future__ import annotations

import re
from typing import Final

from slackwater.checkpoint.checkpoint import Checkpoint
from slackwater.checkpoint.damage import damage_of
from slackwater.checkpoint.lock import Lease
from slackwater.errors import RunError, SlackwaterError
from slackwater.errors.catalogue import CATALOGUE
from slackwater.planning.plan import Plan
from slackwater.spark.intake import Intake

_NOT_CONNECTED: Final = "failed to connect back"
_OURS: Final = re.compile(r"slackwater\.\S+: \[([A-Z0-9_]+)\] (.+)")


def reason_of(error: Exception, lease: Lease, checkpoint: Checkpoint) -> SlackwaterError | None:
    """Return why a run has failed, if the driver was replaced or its checkpoint is damaged."""
    # Whatever a driver that was replaced stumbles over, files of Spark's above all, this is the reason.
    if (lost := lease.lost()) is not None:
        return lost
    return None if isinstance(error, SlackwaterError) else damage_of(checkpoint.path, error)


def cause_of(error: Exception, plan: Plan, intake: Intake) -> Exception:
    """Return what is known to be behind a failure of the query, else the failure itself."""
    known = (source.source.explained(error) for source in plan.sources)
    return next(filter(None, known), None) or intake.loss() or error


def is_worker_missing(error: Exception) -> bool:
    """Return whether a fresh worker has missed Spark's time limit, as it may on a busy machine."""
    return _NOT_CONNECTED in str(error)


def unwrapped(error: BaseException) -> BaseException:
    """Return the error of ours that made a worker fail, so that users read a sentence; else `error` itself."""
    if isinstance(error, RunError):
        return error
    for code, message in _OURS.findall(str(error)):
        if code in CATALOGUE:
            found = RunError(code, message)
            found.__cause__ = error
            return found
    return error

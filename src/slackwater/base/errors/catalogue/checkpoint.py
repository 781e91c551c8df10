"""Errors of checkpoints, sorted by code."""

from __future__ import annotations

from typing import Final

MESSAGES: Final[dict[str, str]] = {
    "BATCH_HALF_DELIVERED": (
        "a partly delivered batch must be completed by the version of the pipeline that started it; batch {batch} in "
        "`{path}` was started by a different version, or with other --skip-rows; run that once more, or pass "
        "--accept-changes if the batch's rows may differ"
    ),
    "CHECKPOINT_FINISHED": (
        "a bounded run advances the watermark to the end of time, so any later row would be late; the run of `{path}` "
        "is finished; pass a new checkpoint{outputs}"
    ),
    "CHECKPOINT_FOREIGN": (
        "a checkpoint must have been created by Slackwater; `{path}` is the checkpoint of another Spark query; "
        "choose another folder"
    ),
    "CHECKPOINT_FORMAT": (
        "a checkpoint must be in a format that this version can read; `{path}` is in format {got}, this version "
        "reads format {known}; use the version of Slackwater that wrote it"
    ),
    "CHECKPOINT_IN_USE": (
        "only one driver can use a checkpoint at a time; `{path}` is in use by {owner} since {since}, last heartbeat "
        "{silent} ago; keep that driver, or stop it and start again; if its machine is gone, start again after "
        "{stale} without a heartbeat"
    ),
    "CHECKPOINT_KEY_GROUPS": (
        "the number of key groups is fixed when a checkpoint is created; `{path}` has {found}, the pipeline has "
        "{mine}; set key_groups={found}, or start with a new checkpoint"
    ),
    "CHECKPOINT_LOST": (
        "a driver delivers only while it holds the lock on its checkpoint; this driver lost `{path}`: {how}; keep "
        "the other driver, or stop it and restart this one; no row was delivered twice"
    ),
    "CHECKPOINT_MOVED": (
        "a checkpoint must stay where it was created, because Spark stores absolute paths in it; `{path}` was created "
        "at `{found}`; move it back, or make `{found}` a link to it"
    ),
    "CHECKPOINT_OF_ANOTHER": (
        "a checkpoint belongs to one pipeline; `{path}` belongs to `{found}`, this is `{mine}`; choose another folder"
    ),
    "CHECKPOINT_SOURCES": (
        "the sources of a checkpoint cannot change; `{path}` has {found}, the pipeline has {mine}; start with a new "
        "checkpoint"
    ),
    "CHECKPOINT_STEP_CHANGED": (
        "a step must match its saved state; step `{step}` differs from what was saved in `{path}`: {changes}; revert "
        "the change, or start with a new checkpoint"
    ),
    "CHECKPOINT_STEP_GONE": (
        "a step with saved state cannot be removed; `{path}` has state of step `{step}`, which is not in the "
        "pipeline; restore the step, give a renamed step its old name, or start with a new checkpoint"
    ),
    "CHECKPOINT_STEP_NEW": (
        "a step cannot be added to an existing checkpoint; step `{step}` is not in `{path}`; give a renamed step its "
        "old name, or start with a new checkpoint"
    ),
}

"""What errors and notices of checkpoints say, by code, sorted."""

from __future__ import annotations

from typing import Final

MESSAGES: Final[dict[str, str]] = {
    "BATCH_HALF_DELIVERED": (
        "a batch whose delivery was begun must be finished by the same code; batch {batch} of "
        "`{path}` was begun by a different version of this pipeline; run that version once more, or "
        "accept that its rows may differ with --accept-changes"
    ),
    "CHECKPOINT_FINISHED": (
        "a bounded run ends time for its checkpoint, and every later row would be late; `{path}` is "
        "finished; start with a new checkpoint, and new folders for the outputs{outputs}"
    ),
    "CHECKPOINT_FOREIGN": (
        "a checkpoint must have been made by Slackwater; `{path}` is a checkpoint of another Spark "
        "query; choose another folder"
    ),
    "CHECKPOINT_FORMAT": (
        "a checkpoint must have a format this version knows; `{path}` has format {got}, known is "
        "{known}; use the version of Slackwater that wrote it"
    ),
    "CHECKPOINT_IN_USE": (
        "a checkpoint is run by one driver at a time; `{path}` is in use by {owner} since {since}, last "
        "heartbeat {silent} ago; leave that driver running, or stop it first; if its machine is gone, start "
        "again after {stale} without a heartbeat"
    ),
    "CHECKPOINT_KEY_GROUPS": (
        "the number of key groups is fixed when a checkpoint is made; `{path}` has {found}, the "
        "pipeline says {mine}; keep key_groups={found}, or start with a new checkpoint"
    ),
    "CHECKPOINT_LOST": (
        "a driver delivers only while it holds the lock of its checkpoint; `{path}` is no longer its own: "
        "{how}; leave the other driver running, or stop it and start this one again; nothing was doubled"
    ),
    "CHECKPOINT_OF_ANOTHER": (
        "a checkpoint belongs to one pipeline; `{path}` belongs to `{found}`, this is `{mine}`; choose another folder"
    ),
    "CHECKPOINT_SOURCES": (
        "a checkpoint's sources cannot change; `{path}` has {found}, the pipeline has {mine}; start "
        "with a new checkpoint"
    ),
    "CHECKPOINT_STEP_CHANGED": (
        "a step's state must fit the step; `{part}` of step `{step}` in `{path}` is {found}, the "
        "pipeline says {mine}; change it back, or start with a new checkpoint"
    ),
    "CHECKPOINT_STEP_GONE": (
        "a step with state must not vanish silently; `{step}` in `{path}` is not in the pipeline any "
        "more; put it back, give a renamed step its old name, or start with a new checkpoint"
    ),
    "CHECKPOINT_STEP_NEW": (
        "a checkpoint's steps cannot change; `{step}` is not in `{path}`; give a renamed step its old "
        "name, or start with a new checkpoint"
    ),
    "CLOCK_MISSING": (
        "every batch needs its clock; `{path}` for batch {batch} is missing; restore the checkpoint "
        "folder as a whole, or start with a new one"
    ),
}

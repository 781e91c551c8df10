"""Errors of reading the state of a job, sorted by code."""

from __future__ import annotations

from typing import Final

MESSAGES: Final[dict[str, str]] = {
    "STATE_READ_BATCH": (
        "state can be read as of the batches that Spark still keeps; batch {batch} is not among those of `{path}`, "
        "which are {first} to {last}; choose one of them, or omit --batch for the newest"
    ),
    "STATE_READ_CHECKPOINT": (
        "state is read from the checkpoint of a pipeline; `{path}` has none; run the pipeline first, or give its "
        "folder with --checkpoint"
    ),
    "STATE_READ_FAILED": (
        "Spark must be able to load the state of a batch; it could not load batch {batch} of `{path}`: {cause}; read "
        "the checkpoint at the path where its job ran, or try another batch with --batch"
    ),
    "STATE_READ_KEY_COLUMNS": (
        "a key has one value for each of its columns; step `{step}` has the key columns {columns}, got `{got}`; "
        "separate the values with commas, in this order, or name them as in --key name=value,name=value"
    ),
    "STATE_READ_KEY_MISSING": (
        "a key has state as long as a step remembers something about it; {steps} held nothing for `{key}` after batch "
        "{batch}; check the value, or try an earlier batch with --batch"
    ),
    "STATE_READ_KEY_TYPE": (
        "a key is given by values of its columns' types; step `{step}` has the key column {column}, got `{got}`; write "
        "numbers in digits, times as 2026-03-01T12:00:00, and booleans as true or false"
    ),
    "STATE_READ_NOTHING": (
        "state can be read once a batch is committed; `{path}` has none yet; try again when the job has run a batch"
    ),
    "STATE_READ_OUT": (
        "`--format parquet` writes the rows of one step to a file; got {got}; give --out and, with --key, --step"
    ),
    "STATE_READ_OUT_FAILED": (
        "the output file must be in a folder that exists; `{path}` was not written: {cause}; choose another path"
    ),
    "STATE_READ_STEP": ("state belongs to keyed steps; `{path}` has no step `{step}`{hint}; its steps are {known}"),
    "STATE_READ_STEP_CHANGED": (
        "the rows of a step are read by the definition that stored them; step `{step}` of `{path}` {changes}; use "
        "the version of the file that the job runs, or omit --key to see its size"
    ),
}

"""Errors of patterns, sorted by code."""

from __future__ import annotations

from typing import Final

MESSAGES: Final[dict[str, str]] = {
    "NOT_A_PATTERN": (
        '`match` takes a pattern; got {got}; use sw.sequence(small="amount < 1", large="amount > 500", within="1m"), '
        "sw.times(...) or sw.absent(...)"
    ),
    "PATTERN_ALL_OPTIONAL": (
        "a pattern needs a step that is not optional, or every row would match it; got only optional steps: {got}; "
        "make one of them required"
    ),
    "PATTERN_COLUMN_TAKEN": (
        "results have the key, the columns of each step as step_column, the number of rows of a repeated step as "
        "step_count, and first_time, last_time and event_time; got `{column}` twice in step `{step}`; rename the "
        "pattern's step or the column"
    ),
    "PATTERN_CONTIGUITY": '`contiguity` must be "relaxed" or "strict"; got {got}; omit it to use "relaxed"',
    "PATTERN_EMPTY": (
        'a sequence needs at least one step; got none; write, for example, sw.sequence(small="amount < 1", '
        'large="amount > 500", within="1m")'
    ),
    "PATTERN_NEVER": (
        "a condition that no row can meet makes a pattern pointless; got `{got}` in `{step}`; correct the condition"
    ),
    "PATTERN_QUANTIFIER": (
        "the bounds of a step must be whole numbers from 0 to {top}, the upper one at least 1 and not below the lower "
        "one; got at least {least}, at most {most} in {what}; swap or correct the numbers"
    ),
    "PATTERN_QUANTIFIER_TWICE": (
        "the number of rows of a step must be written only once; got {got} with a sw.step(...) that has one too; "
        "remove it from the name or from sw.step"
    ),
    "PATTERN_QUANTIFIER_UNREADABLE": (
        "the number of rows of a step is written {signs} after its name; got {got}; correct it"
    ),
    "PATTERN_REFERENCE_AMBIGUOUS": (
        "a condition must refer to a step or to a column, not to what may be either; got `{name}`, which is both, in "
        "`{step}`; rename the step"
    ),
    "PATTERN_REFERENCE_LATER": (
        "a condition may refer to its own step and to earlier ones; got the later step `{name}` in `{step}`; write the "
        "comparison in the condition of `{name}`"
    ),
    "PATTERN_REFERENCE_UNKNOWN": (
        "a condition may refer to its own step and to earlier ones; got `{name}` in `{step}`{hint}; the steps so far "
        "are {known}"
    ),
    "PATTERN_REFERENCE_WHOLE": (
        "a condition refers to a column of a step's row; got the step `{name}` alone in `{step}`; write {name}.column"
    ),
    "PATTERN_SKIP": '`skip` must be "past_last" or "next_row"; got {got}; omit it to use "past_last"',
    "PATTERN_STEPS": (
        "the steps of a sequence are named conditions; got {got}; write them as small=..., large=..., or as a "
        "dictionary of names and conditions"
    ),
    "PATTERN_STEP_NAME": (
        "a step's name must consist of letters, digits and `_`, must not start with a digit or `__`, and may end with "
        "a number of rows, {signs}; got {got}; choose another name, because results show it"
    ),
    "PATTERN_STEP_TWICE": "every step of a pattern needs a unique name; got `{name}` twice; rename one",
    "PATTERN_TIMES": "`n` of times must be a whole number from 1 to {most}; got {got}; n=3 looks for three rows",
    "PATTERN_TIMES_STEPS": (
        '`times` takes one condition; got {got}; write, for example, sw.times(failed="not ok", n=3, within="10m")'
    ),
    "PATTERN_TOO_LONG": (
        "a pattern has at most {most} steps; got {got}; turn rows of the same kind into one repeated step"
    ),
    "PATTERN_WITHIN": (
        'a pattern needs a time limit, or its state would grow forever; got no `within`; add, for example, within="10m"'
    ),
}

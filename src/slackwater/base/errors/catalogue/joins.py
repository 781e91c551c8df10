"""Errors of joins, sorted by code."""

from __future__ import annotations

from typing import Final

MESSAGES: Final[dict[str, str]] = {
    "ATTACH_ON": (
        "`on` of `attach` takes the name of a column that both streams have, or a list of names; got {got} on stream "
        '`{stream}`; if the names differ, rename one first, for example with branch.select(id="other_id")'
    ),
    "ATTACH_TIMES": (
        "`attach` takes a branch of the same stream, whose rows have the same event times; got `{stream}`, with the "
        "times of {of_stream}, and `{branch}`, with those of {of_branch}; use .key_by(...).join(other, between=...)"
    ),
    "JOIN_BETWEEN": (
        "`between` takes a lower and an upper bound on how much later the other row may be; got {got}; write, for "
        'example, between=("-5m", "1h"), or between=("0s", "1h") if it is never earlier'
    ),
    "JOIN_BETWEEN_ORDER": (
        "the lower bound of `between` must not be above the upper one; got {lower} and {upper}; write the earlier one "
        "first"
    ),
    "JOIN_COLUMN_TAKEN": (
        "`{column}` is added by the join; the {side} rows of step `{step}` already have a column of that name; rename "
        "it with .select or .with_columns before key_by"
    ),
    "JOIN_HOW": '`how` of this join must be one of {known}; got {got}; omit it to use "inner"',
    "JOIN_KEYS_NUMBER": (
        "both sides of a join must be keyed by the same number of columns; step `{step}` has {left} on the left and "
        "{right} on the right; key both by the columns that make rows match"
    ),
    "JOIN_KEY_TYPES": (
        "keys of a join must have the same type on both sides; step `{step}` has {left} on the left and {right} on "
        "the right; cast one of them with .with_columns before key_by"
    ),
    "JOIN_LATE": '`late` of a join must be "output" or "process"; got {got}; omit it to use "output"',
    "JOIN_NAMES_COLLIDE": (
        "columns of a join's results must have different names; got {got} twice in step `{step}`; choose other "
        "`suffixes`, or rename one with .select before key_by"
    ),
    "JOIN_ON_MATCH": (
        "`on_match` must be true or false for each pair, and read columns as left.name and right.name; got {got} in "
        'step `{step}`, where {cause}; correct it, for example on_match="right.amount <= left.amount"'
    ),
    "JOIN_OTHER": ("the other side of this join must be {takes}; got {got} for stream `{stream}`; {remedy}"),
    "JOIN_SUFFIXES": (
        '`suffixes` takes two strings, for left and right columns that share a name; got {got}; omit it to use ("", '
        '"_right")'
    ),
    "JOIN_VERSIONS_TTL": (
        "`versions_ttl` must state how long a version lasts if it is not replaced; got none; write, for example, "
        'versions_ttl="30d", or versions_ttl=sw.FOREVER to keep the last version of every key'
    ),
    "JOIN_WINDOWS_DIFFER": (
        "both sides of a window join must have the same windows and the same allowed lateness; got {left} on the left "
        "and {right} on the right; give both the same"
    ),
    "JOIN_WINDOW_KIND": (
        "a window join needs windows that depend on a row's time alone, so that both sides have the same ones; got "
        "{got}; use tumbling, hopping, cumulative or calendar windows, or .join(other, between=...) for rows near each "
        "other"
    ),
    "JOIN_WINDOW_LATENESS": (
        "an outer window join emits unmatched rows when their window is complete, and cannot retract them; got "
        'how="{how}" with allowed lateness {got}; use how="inner", or no allowed lateness and a larger '
        "`out_of_orderness`"
    ),
    "JOIN_WINDOW_OPTIONS": (
        "a window join emits its pairs when a window is complete; got a trigger, an accumulation or semantics for the "
        "windows of `{stream}`; remove them"
    ),
    "VERSIONS_FORMAT": (
        "`versions` takes a stream that is decoded with sw.formats.debezium; got {got} in `{stream}`; key other "
        "streams with .key_by(...), and define what ends a version with join_as_of(..., deleted=...)"
    ),
}

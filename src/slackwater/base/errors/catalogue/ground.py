"""Errors of durations, expressions, folders, secrets and jars, sorted by code."""

from __future__ import annotations

from typing import Final

MESSAGES: Final[dict[str, str]] = {
    "CHECKPOINT_DAMAGED": (
        "checkpoint files must not be modified; `{path}` is damaged: {why}; restore all of `{checkpoint}` from a "
        "backup, or start with a new checkpoint and new output locations"
    ),
    "COLUMN_NAME": (
        "a column name must be non-empty text without NUL and without lone surrogates, and not `*` or `^…$`, which "
        "Polars expands to several columns; got {got}{place}; rename the column"
    ),
    "CONNECTOR_RELEASE": (
        "Spark's {name} connector must match Spark's minor version; pyspark {installed} is installed, and the "
        "connector is for {spark}; run `pip install 'pyspark~={minor}.0'`"
    ),
    "DISK_FULL": (
        "a job needs space for its files; `{path}` could not be written: {why}; free space there and restart: the job "
        "continues where it stopped"
    ),
    "DURATION_TOO_FINE": "{what} must be a whole number of milliseconds; got {got}; round it",
    "DURATION_TOO_LONG": "{what} must be shorter than a hundred years; got {got}; check its unit",
    "DURATION_TOO_SHORT": '{what} must be {rule}; got {got}; try "30s", "5m" or "1h30m"',
    "DURATION_UNREADABLE": (
        "{what} must be a timedelta or a string of numbers and units (ms, s, m, h, d, w); got {got}; {advice}"
    ),
    "EXPRESSION_AMBIGUOUS": (
        "a string must not be both a column name and a SQL expression; got `{got}` in `{step}`; write "
        "pl.col({got!r}) for the column"
    ),
    "EXPRESSION_CLOCK": (
        "an expression must give the same value whenever a batch is processed; got `{clock}` in `{got}`; use the event "
        "time, or .processing_time() if results should depend on processing time"
    ),
    "EXPRESSION_FORMAT": (
        "times in text need a format, because a guessed one depends on the rows around it; got {got} in `{step}`; give "
        """the format, for example .str.to_datetime("%Y-%m-%dT%H:%M:%S%#z"), or strptime(day, '%Y-%m-%d') in SQL"""
    ),
    "EXPRESSION_KIND": (
        'an expression must be a column name, a SQL string or a Polars expression; got {got}; write "amount > 0" or '
        'pl.col("amount") > 0'
    ),
    "EXPRESSION_NAME_TWICE": (
        "the columns of a step must have different names; got {got} in `{step}`, which produces a name twice; remove "
        'one, or rename it with .alias("…")'
    ),
    "EXPRESSION_NOT_A_ROW_VALUE": (
        "an expression on rows must compute one value per row, from that row alone; got {got} in `{step}`, which may "
        "read other rows, and rows arrive in chunks of any size; use an aggregate of a keyed step, or a `map` that "
        "handles each row on its own"
    ),
    "EXPRESSION_NOT_ONE_COLUMN": (
        "an expression must produce exactly one column here; got {got} in `{step}`, which produces {count}; name a "
        "single column"
    ),
    "EXPRESSION_NOT_PORTABLE": (
        "an expression and the Python functions in it must be picklable, so that Spark's workers can load them; got "
        "{got} in `{step}`: {cause}; create locks, connections and clients inside the function"
    ),
    "EXPRESSION_SQL": ("a SQL expression must be valid; got `{got}`: {cause}; {advice}"),
    "EXPRESSION_TYPE": (
        "an expression must fit the types of its columns; got {got} in `{step}`: {cause}; cast a column or change "
        "the expression"
    ),
    "FOLDER_REMOTE": (
        "{what} must be a folder shared by the driver and the executors; got `{got}`; give a local or mounted path"
    ),
    "JARS_UNAVAILABLE": (
        "{what} must be downloaded once, with its dependencies; {coordinates} could not be resolved: {cause}; check "
        "the network and the mirror (~/.m2/settings.xml for Maven, DEFAULT_ARTIFACT_REPOSITORY for Spark's Ivy), or "
        "copy these jars and their dependencies to {folder}"
    ),
    "NOT_A_FOLDER": '{what} must be the path of a folder; got {got}; write, for example, "data/orders"',
    "PREDICATE_TYPE": (
        "a condition must be a boolean; got {got} of type {dtype} in `{step}`; compare it with a value, as in "
        '"amount > 0"'
    ),
    "SECRET_MISSING": (
        "a secret must be available where it is used; `{name}` is not in the environment, and {path} cannot be read: "
        "{cause}; set the variable `{name}`, or point `{name}_FILE` to a file that contains it"
    ),
    "SECRET_NAME": (
        'a secret is referenced by name; got a {got}; write sw.secret("KAFKA_PASSWORD") and set that variable'
    ),
    "UNKNOWN_COLUMN": (
        "a column must exist where it is used; got `{name}` in `{step}`{hint}; the rows there have {known}"
    ),
}

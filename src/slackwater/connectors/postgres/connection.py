"""Connections to a server, and what its errors mean for a job."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlsplit

from slackwater.base.errors import RunError, fault, refuse
from slackwater.base.secrets import Secret, holds_credentials, is_confidential
from slackwater.connectors.postgres.logins import login_remedy
from slackwater.connectors.sink import Unavailable

if TYPE_CHECKING:
    import psycopg

_SCHEMES: Final = ("postgresql", "postgres")
_SETTINGS: Final = {
    # Each side notices a silently dropped connection within a minute.
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
_TRANSACTION: Final = b"""
SELECT set_config('lock_timeout', '30s', true),
       -- A client that froze lets go of its locks before the one that waits for them gives up.
       set_config('idle_in_transaction_session_timeout', '20s', true),
       set_config('tcp_keepalives_idle', '30', true),
       set_config('tcp_keepalives_interval', '10', true),
       set_config('tcp_keepalives_count', '3', true),
       set_config('synchronous_commit', CASE current_setting('synchronous_commit')
                  WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, true)
"""
_PASSING_CLASSES: Final = ("08", "53", "57P", "58")
"""Connection lost; disk or connections exhausted; shutting down or starting up; system errors."""
_PASSING: Final = frozenset(
    {
        "25006",  # read-only: a standby before promotion, or a server being moved
        "25P03",  # transaction idle for too long
        "40001",  # serialisation
        "40P01",  # deadlock
        "55P03",  # lock not available in time
        "57014",  # cancelled, by an administrator or the server's time limit
    }
)
_REMEDIES: Final = {
    "21000": "Postgres treats two of the keys as equal: compare the types and collations of the columns",
    "23505": "set upsert_on to the columns of that constraint, or drop it",
    "42501": "grant the user the revoked privileges again",
}
_OPTION: Final = re.compile(r"(?:-c\s*|--)([^\s=]+)")
_OPTION_VALUE: Final = re.compile(r"(?:=|(?<!\S)(?!-))([^\s=]{4,})(?!\S)")
_NULL: Final = "23502"
_REMEDY: Final = "alter the table to accept these rows, or fix them in the pipeline"
_SHOWN: Final = 300


def psycopg_module() -> ModuleType:
    """Return the module `psycopg`; raises with instructions if it is not installed."""
    try:
        import psycopg  # noqa: PLC0415  only Postgres users need it
    except ImportError as error:  # a broken installation names the library it lacks
        raise fault("POSTGRES_CLIENT_MISSING", cause=error) from error
    return psycopg


def check_url(url: object) -> str:
    """Return `url` if it is valid and contains no password; errors never repeat its content."""
    if not isinstance(url, str):
        raise refuse("POSTGRES_URL", got=f"a {type(url).__name__}")
    try:
        parts = urlsplit(url)
        given = dict(parse_qsl(parts.query, keep_blank_values=True))
    except ValueError as error:
        raise refuse("POSTGRES_URL", got="an invalid URL") from error
    if parts.scheme not in _SCHEMES:
        raise refuse("POSTGRES_URL", got="a URL that does not start with postgresql://")
    if holds_credentials(url) or any(map(is_confidential, _OPTION.findall(given.get("options", "")))):
        raise refuse("POSTGRES_URL_PASSWORD")
    if parts.fragment:
        raise refuse("POSTGRES_URL", got="a URL with a `#`")
    if not parts.path.strip("/"):
        raise refuse("POSTGRES_URL", got=f"{shown_server(url)!r} without a database")
    return url


def shown_server(url: str) -> str:
    """Return the hosts and the database of a URL, for display."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2] or dict(parse_qsl(parts.query)).get("host", "")
    return f"{host}{parts.path}"


def connect(url: str, password: Secret | None) -> psycopg.Connection[Any]:
    """Connect; raises `Unavailable` if the server cannot be reached, and a fault if it rejects the login."""
    module, settings = psycopg_module(), connection_settings(url, password)
    try:
        connection: psycopg.Connection[Any] = module.connect(**settings, autocommit=True, prepare_threshold=None)
    except module.OperationalError as error:
        raise not_connected(error, url, settings) from error
    connection.isolation_level = module.IsolationLevel.READ_COMMITTED
    return connection


def connection_settings(url: str, password: Secret | None) -> dict[str, Any]:
    """Return the settings of a connection; raises a fault if the URL cannot be parsed."""
    module = psycopg_module()
    try:
        given = module.conninfo.conninfo_to_dict(url)
    except module.ProgrammingError as error:
        words, is_of_a_value, _ = _words(error).partition(' in percent-encoded value: "')
        cause = words if is_of_a_value else words.partition(' token: "')[0]  # the value follows
        raise fault("POSTGRES_URL_SETTING", server=repr(shown_server(url)), cause=cause) from error
    secrets = {} if password is None else {"password": password.reveal()}
    fixed = {"application_name": "slackwater", **_SETTINGS}
    return {**fixed, **given, **secrets, "client_encoding": "UTF8"}


def not_connected(error: psycopg.Error, url: str, settings: Mapping[str, Any]) -> Unavailable | RunError:
    """Return why connecting failed: `Unavailable` if the server cannot be reached, a fault if it rejects the login."""
    remedy = login_remedy(str(error))  # with several hosts, the errors of all of them
    why = _words(error)
    for value in _OPTION_VALUE.findall(settings.get("options") or ""):
        why = why.replace(value, "…")
    if remedy is not None:
        return fault("POSTGRES_LOGIN", server=shown_server(url), why=why, remedy=remedy)
    return Unavailable(why)


@contextmanager
def transaction(
    connection: psycopg.Connection[Any], *, sink: object, doing: str, keys: Collection[str] = ()
) -> Iterator[None]:
    """Run the body as one transaction; the server's errors become ours, and mention what it was `doing`.

    `keys` are the columns by which rows are replaced: a null in one of them has its own error.
    """
    module = psycopg_module()
    try:
        with connection.transaction():
            connection.execute(_TRANSACTION)
            yield
    except module.Error as error:
        raise _translated(error, sink, doing, keys) from error


def _translated(error: psycopg.Error, sink: object, doing: str, keys: Collection[str]) -> Unavailable | RunError:
    state = error.sqlstate
    if (away := passing(error)) is not None:
        return away
    why = server_words(error)
    if state == _NULL and error.diag.column_name in keys:
        return fault("POSTGRES_NULL_KEY", sink=sink, doing=doing, column=error.diag.column_name, why=why)
    return fault("POSTGRES_REFUSED", sink=sink, doing=doing, why=why, remedy=_REMEDIES.get(state or "", _REMEDY))


def passing(error: psycopg.Error) -> Unavailable | None:
    """Return the error as `Unavailable` if it may be transient; None if not."""
    state = error.sqlstate
    may_pass = (
        isinstance(error, psycopg_module().OperationalError)
        if state is None
        else state in _PASSING or state.startswith(_PASSING_CLASSES)
    )
    return Unavailable(_words(error)) if may_pass else None


def server_words(error: psycopg.Error) -> str:
    """Return the server's error message with its details."""
    details = [_words(error), error.diag.message_detail, (error.diag.context or "").partition("\n")[0]]
    return "; ".join(f"{detail:.{_SHOWN}}" for detail in details if detail)


def _words(error: psycopg.Error) -> str:
    text = error.diag.message_primary or " ".join(str(error).partition("\n\t")[0].split())  # guesses follow the tab
    return f"{text:.{_SHOWN}}"

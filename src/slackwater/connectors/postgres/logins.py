"""Distinguishes a server that rejects our login from one that cannot be reached.

libpq hides the server's error code while connecting, so the English message decides. In any other language the server
counts as unreachable, and its own message is still shown.
"""

from __future__ import annotations

import re
from typing import Final

_REMEDIES: Final = (
    # In order; the first match is shown.
    (r"no password supplied", 'give the user\'s password, as in password=sw.secret("NAME")'),
    (r"(password|SASL) authentication failed", "correct the user in the URL, or the password"),
    (r'role ".*" does not exist', "correct the user in the URL, or run CREATE USER"),
    (r'role ".*" is not permitted to log in', "run ALTER ROLE … LOGIN, or use another user"),
    (r'database ".*" does not exist', "correct the database in the URL, or run CREATE DATABASE"),
    (r"permission denied for database", "run GRANT CONNECT ON DATABASE … TO …"),
    (r"pg_hba\.conf", "allow this user, database and address in pg_hba.conf, or connect as it requires"),
    (r"authentication failed", "use the method that the server's pg_hba.conf requires, or change it there"),
    (
        r"does not support SSL|certificate verify failed|certificate file|server certificate",
        "correct sslmode and sslrootcert in the URL, or the server's certificate",
    ),
)


def login_remedy(text: str) -> str | None:
    """Return the remedy for the message of a rejected login; None if the message is about something else."""
    return next((remedy for words, remedy in _REMEDIES if re.search(words, text)), None)

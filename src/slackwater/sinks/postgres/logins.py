"""A server that is there but does not let us in, told from one that is not there.

libpq keeps the server's error code to itself while it connects, so the words have to do: those of a server, or a libpq,
that speaks English. In any other language it is a server that cannot be reached, and its own words are still shown.
"""

from __future__ import annotations

import re
from typing import Final

_REMEDIES: Final = (
    # In the order they are looked for; the first that fits is said.
    (r"no password supplied", 'give the user\'s password, as in password=sw.secret("NAME")'),
    (r"(password|SASL) authentication failed", "mend the user in the URL, or the password"),
    (r'role ".*" does not exist', "mend the user in the URL, or have it made with CREATE USER"),
    (r'role ".*" is not permitted to log in', "have it allowed with ALTER ROLE … LOGIN, or take another user"),
    (r'database ".*" does not exist', "mend the database in the URL, or have it made with CREATE DATABASE"),
    (r"permission denied for database", "have it allowed with GRANT CONNECT ON DATABASE … TO …"),
    (r"pg_hba\.conf", "have this user, database and address allowed in pg_hba.conf, or connect as it asks for"),
    (r"authentication failed", "log in as the server's pg_hba.conf asks for, or have that changed"),
    (
        r"does not support SSL|certificate verify failed|certificate file|server certificate",
        "mend sslmode and sslrootcert in the URL, or the server's certificate",
    ),
)


def login_remedy(said: str) -> str | None:
    """Return what to do about words with which a server kept us out; None if they are about something else."""
    return next((remedy for words, remedy in _REMEDIES if re.search(words, said)), None)

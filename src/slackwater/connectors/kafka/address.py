"""Kafka addresses on the command line: SERVERS, and the options of a secured listener after a `?`."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

from slackwater.base.errors import refuse
from slackwater.base.secrets import secret
from slackwater.connectors.kafka.connection import Connection, connection, sasl, tls

_TLS: Final = ("ca", "certificate", "key", "key_password")
_SASL: Final = ("user", "password", "mechanism")
_MECHANISM: Final = "SCRAM-SHA-512"
_SECRET_NAME: Final = re.compile(r"[A-Z][A-Z0-9_]*")


def cluster_at(address: str) -> Connection:
    """Parse `HOST:PORT,…` or `HOST:PORT,…?ca=ca.pem&user=orders&password=KAFKA_PASSWORD`.

    `tls` alone encrypts with the system's certificates; `ca`, `certificate` and `key` are PEM files. `password` and
    `key_password` are names of secrets, never the secrets themselves, because others can see an address.
    """
    servers, _, text = address.partition("?")
    given = {name: unquote(value) for name, _, value in (part.partition("=") for part in text.split("&") if part)}
    unknown = sorted(set(given) - {"tls", *_TLS, *_SASL})
    if unknown:
        raise _refused(f"got `{unknown[0]}`")
    for name in ("password", "key_password"):
        if name in given and not _SECRET_NAME.fullmatch(given[name]):
            raise _refused(f"`{name}` must be the name of a secret, in capitals")
    if any(name in given for name in _SASL) and not {"user", "password"} <= set(given):
        raise _refused("`user` and `password` go together")
    encrypted = login = None
    if any(name in given for name in ("tls", *_TLS)):
        encrypted = tls(
            ca=given.get("ca"),
            certificate=given.get("certificate"),
            key=given.get("key"),
            key_password=secret(given["key_password"]) if "key_password" in given else None,
        )
    if "user" in given:
        login = sasl(given.get("mechanism", _MECHANISM), given["user"], secret(given["password"]))
    return connection(servers, tls=encrypted, sasl=login)


def topic_at(address: str) -> tuple[Connection, str] | None:
    """Parse `SERVERS/TOPIC`, with options as in `cluster_at`; None if it names no topic."""
    place, mark, options = address.partition("?")
    servers, _, topic = place.partition("/")
    if not servers or not topic or "/" in topic:
        return None
    return cluster_at(f"{servers}{mark}{options}"), topic


def _refused(got: str) -> Exception:
    return refuse("KAFKA_ADDRESS", got=got)

"""How to connect to a cluster: servers, TLS and SASL, defined once for both Kafka clients.

Spark's connector uses the settings of the Java client; lag, groups and producing use librdkafka, which has its own.
Secrets are revealed only in `for_java` and `for_librdkafka`, when a client is about to be created.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from slackwater.base.errors import fault, refuse
from slackwater.base.folders import given_path
from slackwater.base.secrets import Secret, shown_url

_MECHANISMS: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_SERVER: Final = re.compile(r"\s*((?:SASL_)?(?:PLAINTEXT|SSL)://)?[^\s@/?;#]+:\d+\s*", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Tls:
    """A TLS connection; the files are PEM and are read on the driver."""

    ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    key_password: Secret | None = None
    verify_host: bool = True


@dataclass(frozen=True, kw_only=True)
class Sasl:
    """SASL credentials: a user name and a password."""

    mechanism: str
    username: str
    password: Secret


@dataclass(frozen=True, kw_only=True)
class Connection:
    """A cluster and how to connect to it; holds no secret values."""

    servers: str
    tls: Tls | None = None
    sasl: Sasl | None = None

    def for_java(self) -> dict[str, str]:
        """Return the settings for a Java client."""
        settings = {"bootstrap.servers": self.servers, "security.protocol": self._protocol}
        if self.tls is not None:
            tls = self.tls
            if tls.ca:
                settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": _pem(tls.ca)}
            if tls.certificate and tls.key:
                settings |= {
                    "ssl.keystore.type": "PEM",
                    "ssl.keystore.certificate.chain": _pem(tls.certificate),
                    "ssl.keystore.key": _pem(tls.key),
                }
            if tls.key_password:
                settings["ssl.key.password"] = tls.key_password.reveal()
            if not tls.verify_host:
                settings["ssl.endpoint.identification.algorithm"] = ""
        if self.sasl is not None:
            module = _MECHANISMS[self.sasl.mechanism]
            name, password = _quoted(self.sasl.username), _quoted(self.sasl.password.reveal())
            settings["sasl.mechanism"] = self.sasl.mechanism
            settings["sasl.jaas.config"] = f"{module} required username={name} password={password};"
        return settings

    def for_librdkafka(self) -> dict[str, str]:
        """Return the settings for a confluent-kafka client."""
        settings = {"bootstrap.servers": self.servers, "security.protocol": self._protocol}
        if self.tls is not None:
            tls = self.tls
            files = {
                "ssl.ca.location": tls.ca,
                "ssl.certificate.location": tls.certificate,
                "ssl.key.location": tls.key,
            }
            for name, path in files.items():
                if path:
                    _check_readable(path)
                    settings[name] = path
            if tls.key_password:
                settings["ssl.key.password"] = tls.key_password.reveal()
            settings["ssl.endpoint.identification.algorithm"] = "https" if tls.verify_host else "none"
        if self.sasl is not None:
            settings["sasl.mechanism"] = self.sasl.mechanism
            settings["sasl.username"] = self.sasl.username
            settings["sasl.password"] = self.sasl.password.reveal()
        return settings

    @property
    def _protocol(self) -> str:
        return ("SASL_" if self.sasl else "") + ("SSL" if self.tls else "PLAINTEXT")

    def __str__(self) -> str:
        safety = {"SSL": " (TLS)", "SASL_SSL": " (TLS, SASL)", "SASL_PLAINTEXT": " (SASL)", "PLAINTEXT": ""}
        return f"{self.servers}{safety[self._protocol]}"


def tls(
    *,
    ca: str | Path | None = None,
    certificate: str | Path | None = None,
    key: str | Path | None = None,
    key_password: Secret | None = None,
    verify_host: bool = True,
) -> Tls:
    """Encrypt the connection: `tls(ca="ca.pem")`; `certificate` and `key` (PEM files) authenticate the client."""
    if (certificate is None) != (key is None):
        raise refuse("KAFKA_TLS_PAIR", got="certificate" if key is None else "key")
    if key_password is not None and not isinstance(key_password, Secret):
        raise refuse("SECRET_EXPECTED", what="key_password")
    return Tls(
        ca=None if ca is None else str(given_path(ca)),
        certificate=None if certificate is None else str(given_path(certificate)),
        key=None if key is None else str(given_path(key)),
        key_password=key_password,
        verify_host=verify_host,
    )


def sasl(mechanism: str, username: str, password: Secret) -> Sasl:
    """Authenticate: `sasl("SCRAM-SHA-512", "orders", secret("KAFKA_PASSWORD"))`; also SCRAM-SHA-256, PLAIN."""
    if mechanism not in _MECHANISMS:
        raise refuse("KAFKA_SASL_MECHANISM", got=repr(mechanism), known=", ".join(_MECHANISMS))
    if not isinstance(password, Secret):
        raise refuse("SECRET_EXPECTED", what="password")
    return Sasl(mechanism=mechanism, username=str(username), password=password)


def connection(servers: str, *, tls: Tls | None = None, sasl: Sasl | None = None) -> Connection:
    """Check the arguments and return a connection."""
    if not isinstance(servers, str) or not all(map(_SERVER.fullmatch, servers.split(","))):
        raise refuse("KAFKA_SERVERS", got=repr(shown_url(servers) if isinstance(servers, str) else servers))
    for what, given, kind in (("tls", tls, Tls), ("sasl", sasl, Sasl)):
        if given is not None and not isinstance(given, kind):
            raise refuse("KAFKA_SECURITY", what=what, got=type(given).__name__)
    return Connection(servers=servers, tls=tls, sasl=sasl)


def _pem(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise fault("KAFKA_PEM", path=path, cause=error) from error


def _check_readable(path: str) -> None:
    """Refuse an unreadable file, because the client's own message would blame the cluster."""
    if not os.access(path, os.R_OK):
        cause = "it cannot be read" if Path(path).exists() else "no such file"
        raise fault("KAFKA_PEM", path=path, cause=cause)


def _quoted(text: str) -> str:
    escaped: Mapping[int, str] = str.maketrans({"\\": "\\\\", '"': '\\"'})
    return '"' + text.translate(escaped) + '"'

"""Errors and notices of Kafka clusters and topics, sorted by code."""

from __future__ import annotations

from typing import Final

MESSAGES: Final[dict[str, str]] = {
    "BROKER_FAILED": (
        "this command needs a local Kafka broker; the broker failed to start, and its log {log} ends with: {ending}; "
        "fix the cause, or delete the folder to start with an empty broker"
    ),
    "BROKER_PORT": (
        "the broker needs a free port; {port} is in use; stop the process that listens on it, or choose another port "
        "with `--port`"
    ),
    "EXPORT_FOLDER": (
        "a topic is exported to an empty folder; `{folder}` already contains {count}; choose another folder, or "
        "append to this one with `--append`"
    ),
    "KAFKA_ADDRESS": (
        "a Kafka address may have tls, ca, certificate, key, key_password, user, password and mechanism after `?`, "
        "with passwords given as names of secrets; {got}; write, for example, "
        "'localhost:9093?ca=ca.pem&user=orders&password=KAFKA_PASSWORD', with the password in that variable"
    ),
    "KAFKA_CLIENT_MISSING": (
        "reading Kafka's lag, groups and topics requires the package confluent-kafka; it is not installed; run `pip "
        "install 'slackwater[kafka]'`"
    ),
    "KAFKA_NO_TOPIC": (
        "a topic must exist before it is read or written; {servers} has no topic `{topic}`{near}; correct the name, "
        "or create it with `slackwater kafka topic {topic} --servers {servers}`"
    ),
    "KAFKA_PEM": "TLS requires its PEM files on the driver; got `{path}`: {cause}; check the path and its permissions",
    "KAFKA_REFUSED": (
        "Kafka must accept the request; {servers} replied: {cause}; check the name, the servers and your permissions"
    ),
    "KAFKA_SASL_MECHANISM": (
        "the SASL mechanism must be one of {known}; got {got}; use one of these, or TLS with a client certificate"
    ),
    "KAFKA_SECURITY": "`{what}` takes the result of sw.kafka.{what}(...); got {got}; write {what}=sw.kafka.{what}(...)",
    "KAFKA_SERVERS": 'Kafka servers must be given as "host:port,host:port"; got {got}; try "localhost:9092"',
    "KAFKA_TLS_PAIR": (
        "a client certificate and its key must be given together; got only `{got}`; give both, or neither"
    ),
    "KAFKA_UNREACHABLE": (
        "the Kafka cluster must be reachable; {servers} does not respond: {cause}; check servers, network, TLS and "
        "SASL, or start a local broker with `slackwater kafka up`"
    ),
    "KAFKA_WAITING": "no broker at {servers} responds; retrying (Ctrl-C stops)",
    "PLAY_EMPTY": (
        "a log must contain files to be played; `{path}` contains none; check the path, or write a log with "
        "slackwater.connectors.log.writing"
    ),
    "PLAY_KEY": (
        "the field of the key must be in the records; none of the first records of `{path}` has `{key}`{hint}; choose "
        "one of {known}, or omit --key"
    ),
    "PLAY_UNDELIVERED": (
        "every record of a log must reach its topic; {delivered} of {folder} did, then {servers} failed: {cause}; "
        "fix the cause and play the log into a new topic, because this one already has those records"
    ),
}

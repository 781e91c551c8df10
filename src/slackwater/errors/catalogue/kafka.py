"""What errors and notices of Kafka clusters and topics say, by code, sorted."""

from __future__ import annotations

from typing import Final

MESSAGES: Final[dict[str, str]] = {
    "BROKER_FAILED": (
        "a Kafka broker must start from its jars and settings; it did not, its log {log} ends with: "
        "{words}; mend what it says, or remove the folder to start with an empty one"
    ),
    "BROKER_PORT": (
        "a broker needs a port of its own; {port} is taken; stop whoever listens there, or choose another with `--port`"
    ),
    "EXPORT_FOLDER": (
        "a topic is written into a folder of its own; `{folder}` holds {count} already; choose "
        "another folder, or add to this one with `--append`"
    ),
    "KAFKA_ADDRESS": (
        "an address of Kafka may have tls, ca, certificate, key, key_password, user, password and mechanism after `?`, "
        "where passwords are names of secrets; got {got}; write for example "
        "'localhost:9093?ca=ca.pem&user=orders&password=KAFKA_PASSWORD', with the password in that variable"
    ),
    "KAFKA_CLIENT_MISSING": (
        "Kafka's lag, groups and topics need the package confluent-kafka; it is not installed; run "
        "`pip install 'slackwater[kafka]'`"
    ),
    "KAFKA_NO_TOPIC": (
        "a topic must exist before it is read or written; {servers} has no `{topic}`{near}; correct "
        "the name, or create it with `slackwater kafka topic {topic} --servers {servers}`"
    ),
    "KAFKA_PEM": ("TLS needs its PEM files on the driver; got `{path}`: {cause}; check the path and who may read it"),
    "KAFKA_REFUSED": (
        "Kafka must take what is asked of it; {servers} said: {cause}; check the name, the servers "
        "and what you may do there"
    ),
    "KAFKA_SASL_MECHANISM": (
        "the SASL mechanism must be one of {known}; got {got}; ask for another way in, or use TLS "
        "with a client certificate"
    ),
    "KAFKA_SECURITY": (
        "`{what}` takes what sw.kafka.{what}(...) returns; got {got}; write {what}=sw.kafka.{what}(...)"
    ),
    "KAFKA_SERVERS": ('Kafka\'s servers are given as "host:port,host:port"; got {got}; try "localhost:9092"'),
    "KAFKA_TLS_PAIR": ("a client certificate and its key go together; got only `{got}`; give both, or neither"),
    "KAFKA_UNREACHABLE": (
        "what reads or writes Kafka needs its cluster; {servers} does not answer: {cause}; check "
        "servers, network, TLS and SASL, or start one here with `slackwater kafka up`"
    ),
    "KAFKA_WAITING": (
        "Kafka should answer all the time; no broker of {servers} does now; it is waited for, and Ctrl-C stops"
    ),
    "PLAY_EMPTY": (
        "a log must hold files to be played; `{path}` holds none; check the path, or write some with "
        "slackwater.sources.log.writing"
    ),
    "PLAY_UNDELIVERED": (
        "every record of a log must reach its topic; {delivered} of {folder} did, then {servers} "
        "said: {cause}; mend that, and play the log into a new topic, for those are in this one"
    ),
}

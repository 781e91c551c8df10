"""Where dead letters are stored and where they are sent: a folder, or `kafka://SERVERS/TOPIC`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from slackwater.base.errors import refuse
from slackwater.base.folders import local_folder
from slackwater.base.secrets import shown_url
from slackwater.connectors.kafka.address import topic_at
from slackwater.connectors.kafka.connection import Connection

_KAFKA: Final = "kafka://"


@dataclass(frozen=True, kw_only=True)
class Folder:
    """The folder of a files sink or of a log."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)


@dataclass(frozen=True, kw_only=True)
class Topic:
    """A topic of a Kafka cluster."""

    connection: Connection
    name: str

    def __str__(self) -> str:
        return f"{_KAFKA}{self.connection.servers}/{self.name}"


Where = Folder | Topic


def where_of(text: str, *, what: str) -> Where:
    """Parse a folder or topic as users write it; `what` names its purpose in the error."""
    if not text.startswith(_KAFKA):
        return Folder(path=Path(local_folder(text, what=what)))
    found = topic_at(text.removeprefix(_KAFKA))
    if found is None:
        raise refuse("DEAD_LETTERS_TOPIC", what=what, got=repr(shown_url(text)))
    return Topic(connection=found[0], name=found[1])

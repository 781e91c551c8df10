"""What a job of the matrix writes to: a sink, its server, and a way to read back all that is visible in it."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Protocol

import polars as pl

import slackwater as sw
from slackwater.connectors.delta.jars import delta_session_conf, jvm
from slackwater.connectors.delta.sink.table import DeltaPlace
from slackwater.connectors.postgres.server import LocalServer
from slackwater.connectors.sink import Sink
from slackwater.spark.session import spark_session
from tests.connectors.http.receiver import Receiver
from tests.connectors.kafka.proxy import Rough
from tests.connectors.kafka.sinks import records, settle
from tests.connectors.kafka.topics import until
from tests.connectors.redis.servers import RedisServer, redis_program

Content = Counter[str]

UNEXPLAINED: Final[Mapping[str, str]] = {
    "new": r"SINK_OF_ANOTHER_RUN.*start from the checkpoint that wrote them",
    "copied": r"SINK_OF_A_COPY.*start from the newest checkpoint.*--take-over",
    "missing": r"SINK_MARK_MISSING.*restore what was deleted.*--take-over",
}
"""What is said, with its choices, to a new checkpoint, a copied one, and one whose mark is gone from the sink."""


def sink_of(kind: str, address: str, place: str, key: str) -> Sink:
    """Return a sink that writes to `place` and takes retractions; any process can make it."""
    window = [key, "window_start"]
    match kind:
        case "files":
            return sw.sinks.files(Path(address) / place, changelog=True)
        case "kafka":
            return sw.sinks.kafka(address, place, key=key, changelog=True, create=2)
        case "postgres":
            return sw.sinks.postgres(address, _name(place), upsert_on=window, create=True)
        case "redis":
            return sw.sinks.redis(address, key=window, prefix=place)
        case "http":
            host, _, refused = address.partition(" ")
            rejected = sw.sinks.files(Path(refused) / f"rejected-{place}")
            return sw.sinks.http(f"{host}/{place}", key=key, rejected=rejected)
        case "delta":
            return sw.sinks.delta(Path(address) / place, merge_on=window)
    message = f"no sink of kind {kind}"
    raise ValueError(message)


class Server(Protocol):
    """What can be killed and started again, with what it had committed."""

    def start(self) -> object:
        """Start, and be ready."""

    def kill(self) -> None:
        """Be gone at once."""


class Target(ABC):
    """A sink of one kind, with its server; every job writes to a place of its own."""

    kind: str
    address: str
    server: Server | None = None
    refuses: Mapping[str, str] = UNEXPLAINED
    """The cases that are an error, and its words; any other must give the right rows."""

    @abstractmethod
    def __init__(self, folder: Path) -> None:
        """Start the server, if there is one, with its data below `folder`."""

    def sink(self, place: str, key: str = "k") -> Sink:
        """Return a sink that writes to `place`."""
        return sink_of(self.kind, self.address, place, key)

    @abstractmethod
    def rows(self, place: str) -> list[dict[str, Any]]:
        """Return the rows that a reader sees there."""

    def content(self, place: str) -> Content:
        """Return the rows as they are compared: without the watermark, which moves on with every start as well."""
        kept = [{name: value for name, value in row.items() if name != "watermark"} for row in self.rows(place)]
        return Counter(json.dumps(row, sort_keys=True, default=str) for row in kept)

    @abstractmethod
    def forget_mark(self, place: str) -> None:
        """Take away what the sink remembers of batches, and leave the rows."""

    def cut(self) -> bool:
        """Cut every connection to the server; False where there is none."""
        return False

    def crash(self, gone_s: float) -> bool:
        """Kill the server, and start it again after a while; False where there is none."""
        if self.server is None:
            return False
        self.server.kill()
        time.sleep(gone_s)
        self.server.start()
        return True

    @abstractmethod
    def close(self) -> None:
        """Let go of the server."""


class Files(Target):
    """Folders of Parquet files."""

    kind = "files"

    def __init__(self, folder: Path) -> None:
        self.address = str(folder / "files")

    def rows(self, place: str) -> list[dict[str, Any]]:
        """Return the rows of all batches."""
        return sw.sinks.read_files(Path(self.address) / place).collect().to_dicts()

    def forget_mark(self, place: str) -> None:
        """Delete the marks from the batches' folders."""
        for mark in (Path(self.address) / place).glob("batch-*/_mark.json"):
            mark.unlink()

    def close(self) -> None:
        """Leave the folders to the test's own."""


class Kafka(Target):
    """Topics of a broker, read as committed."""

    kind = "kafka"

    def __init__(self, folder: Path) -> None:
        self.server = self.broker = Rough(home=folder / "broker")
        self.broker.start()
        self.topics = self.broker.topics
        self.address = self.topics.servers

    def rows(self, place: str) -> list[dict[str, Any]]:
        """Return all committed records."""
        settle(self.topics, place)
        return [json.loads(record.value()) for record in records(self.topics, place)]

    def forget_mark(self, place: str) -> None:
        """Delete the topic of the marks."""
        admin = self.topics.cluster.admin
        ours = re.compile(rf"slackwater\.marks\..*\.{place}(-\w+)?")
        marks = [name for name in admin.list_topics().topics if ours.fullmatch(name)]
        for gone in admin.delete_topics(marks).values():
            gone.result()
        until(lambda: not self.topics.cluster.partitions(marks), "the marks to be gone")

    def cut(self) -> bool:
        """Cut the way to the broker."""
        self.broker.proxy.cut()
        return True

    def close(self) -> None:
        """Stop the broker."""
        self.broker.close()


class Postgres(Target):
    """Tables with a row for each key."""

    kind = "postgres"

    def __init__(self, folder: Path) -> None:
        # Not in a folder of pytest's: those are closed to all other users, and for root the server is one.
        self.folder = tempfile.TemporaryDirectory(prefix="slackwater-matrix-")
        self.server = self.database = LocalServer(folder=Path(self.folder.name) / "data").start()
        self.address = self.database.url()

    def rows(self, place: str) -> list[dict[str, Any]]:
        """Return the table."""
        with self.database.connect() as database:
            asked = database.execute(f"SELECT * FROM {_name(place)}".encode())  # noqa: S608  our own name
            names = [column.name for column in asked.description or ()]
            return [dict(zip(names, row, strict=True)) for row in asked.fetchall()]

    def cut(self) -> bool:
        """Let the server end every session but this one."""
        with self.database.connect() as database:
            database.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        return True

    def forget_mark(self, place: str) -> None:
        """Empty the ledger of the table."""
        with self.database.connect() as database:
            database.execute("DELETE FROM slackwater_ledger WHERE sink LIKE %s", [f"%{_name(place)}%"])

    def close(self) -> None:
        """Stop the server."""
        self.database.stop()
        self.folder.cleanup()


class Redis(Target):
    """Hashes of one prefix each."""

    kind = "redis"

    def __init__(self, folder: Path) -> None:
        program = redis_program()
        assert program is not None
        self.server = self.redis = RedisServer(program=program, home=folder / "redis")
        self.redis.start()
        self.address = self.redis.url

    def rows(self, place: str) -> list[dict[str, Any]]:
        """Return the hashes."""
        hashes = self.redis.hashes(f"{place}:*")
        return [{"key": key.removeprefix(place), **fields} for key, fields in hashes.items()]

    def forget_mark(self, place: str) -> None:
        """Delete the marks' keys."""
        with self.redis.client() as client:
            client.delete(*client.scan_iter(match=f"{place}:marks:*"))

    def cut(self) -> bool:
        """Let the server end every session."""
        with self.redis.client() as client:
            client.client_kill_filter(_type="normal", skipme=True)
        return True

    def close(self) -> None:
        """Stop the server."""
        self.redis.kill()


class Http(Target):
    """A receiver that honours the idempotency key, place by place: it knows a row again, whoever sends it."""

    kind = "http"
    refuses: Mapping[str, str] = {}

    def __init__(self, folder: Path) -> None:
        self.server = self.receiver = Receiver()
        self.receiver.start()
        self.folder = folder
        self.address = f"{self.receiver.url} {folder}"

    def rows(self, place: str) -> list[dict[str, Any]]:
        """Return what was taken."""
        taken = {seen.key: seen.body for seen in self.receiver.seen if seen.path.endswith(f"/{place}")}
        return list(taken.values())

    def forget_mark(self, place: str) -> None:
        """Delete the folder of refused rows: nothing is remembered of the others."""
        shutil.rmtree(self.folder / f"rejected-{place}")

    def cut(self) -> bool:
        """Cut every connection, and go on listening."""
        self.receiver.cut()
        return True

    def close(self) -> None:
        """Stop the receiver."""
        self.receiver.kill()


class Delta(Target):
    """Tables with a row for each key."""

    kind = "delta"

    def __init__(self, folder: Path) -> None:
        self.address = str(folder / "delta")

    def rows(self, place: str) -> list[dict[str, Any]]:
        """Return the rows of the newest version."""
        return pl.DataFrame(self._place(place).frame.toArrow()).to_dicts()

    def forget_mark(self, place: str) -> None:
        """Make the table anew, with the same rows and a log that tells of nothing else."""
        table = self._place(place)
        schema, rows = table.schema, table.frame.collect()
        shutil.rmtree(table.path)
        jvm(table.spark).org.apache.spark.sql.delta.DeltaLog.clearCache()
        table.spark.createDataFrame(rows, schema).write.format("delta").save(table.path)

    def close(self) -> None:
        """There is no server."""

    def _place(self, place: str) -> DeltaPlace:
        spark = spark_session(master=None, name="matrix", conf=delta_session_conf())
        return DeltaPlace(spark=spark, path=str(Path(self.address) / place))


TARGETS: dict[str, type[Target]] = {kind.kind: kind for kind in (Files, Kafka, Postgres, Redis, Http, Delta)}


def _name(place: str) -> str:
    return place.replace("-", "_").replace(".", "_")

"""Runs a single Kafka broker in KRaft mode for development and tests: no security, no replicas, data in a folder."""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from slackwater.base.backoff import came_true
from slackwater.base.errors import fault
from slackwater.base.jars import jars

JARS: Final = (
    "org.apache.kafka:kafka_2.13:4.3.1",
    "org.slf4j:slf4j-simple:1.7.36",  # without it the broker logs nothing, not even why it fails to start
)
_PATIENCE_S: Final = 60.0
_READY: Final = "Kafka Server started"
_TAIL: Final = 1_500
_STARTED: Final[dict[int, subprocess.Popen[bytes]]] = {}
"""The brokers started by this process, by process id."""
_SETTINGS: Final = """process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://localhost:{port},CONTROLLER://localhost:{controller_port}
advertised.listeners=PLAINTEXT://localhost:{port}
controller.listener.names=CONTROLLER
controller.quorum.voters=1@localhost:{controller_port}
log.dirs={data}
num.partitions=1
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
group.initial.rebalance.delay.ms=0
"""


@dataclass(frozen=True, kw_only=True)
class Broker:
    """A broker that is running, or ran, in `folder`."""

    folder: str
    port: int
    controller_port: int
    pid: int

    @property
    def servers(self) -> str:
        """The address that clients connect to."""
        return f"localhost:{self.port}"

    @property
    def is_alive(self) -> bool:
        """Whether its process is running."""
        return b"kafka.Kafka" in _command_of(self.pid)  # another process may have its number by now


def up(folder: Path, *, port: int = 9092, heap_mb: int = 512, settings: Mapping[str, str] | None = None) -> Broker:
    """Start a broker on the data in `folder`, or return the one running there; it is ready when this returns.

    `settings` are additional broker properties, which override the defaults.
    """
    folder = folder.absolute()
    known = find(folder)
    if known is not None and known.is_alive:
        return known
    if shutil.which("java") is None:
        raise fault("JAVA_MISSING")
    if not _is_free(port):
        raise fault("BROKER_PORT", port=port)
    (folder / "data").mkdir(parents=True, exist_ok=True)
    controller_port = free_port()
    properties = folder / "server.properties"
    ours = _SETTINGS.format(port=port, controller_port=controller_port, data=folder / "data")
    # If a setting occurs twice, the last line wins.
    theirs = "".join(
        f"{name}={value.replace('{controller_port}', str(controller_port))}\n"
        for name, value in (settings or {}).items()
    )
    properties.write_text(ours + theirs, encoding="utf-8")
    java = [
        "java",
        f"-Xmx{heap_mb}m",
        "-cp",
        f"{jars(JARS)}/*",
    ]
    log = folder / "broker.log"
    if not (folder / "data" / "meta.properties").exists():
        _format(java, properties, log)
    command = [*java, "kafka.Kafka", str(properties)]
    with log.open("wb") as out:
        # In its own session, so that it outlives this process and does not receive Ctrl-C.
        process = subprocess.Popen(  # noqa: S603  our own arguments
            command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, start_new_session=True
        )
    _STARTED[process.pid] = process
    broker = Broker(folder=str(folder), port=port, controller_port=controller_port, pid=process.pid)
    (folder / "broker.json").write_text(json.dumps(asdict(broker)))
    _await_ready(process, log)
    return broker


def down(folder: Path) -> bool:
    """Stop the broker of `folder` and keep its data; return False if none was running."""
    broker = find(folder.absolute())
    if broker is None:
        return False
    was_alive = broker.is_alive
    if was_alive:
        os.kill(broker.pid, signal.SIGTERM)
    while not came_true(lambda: not broker.is_alive, within_s=_PATIENCE_S):
        os.kill(broker.pid, signal.SIGKILL)
    if (process := _STARTED.pop(broker.pid, None)) is not None:
        process.wait()  # otherwise it would remain a zombie
    return was_alive


def find(folder: Path) -> Broker | None:
    """Return the broker last started in `folder`, or None."""
    try:
        return Broker(**json.loads((folder / "broker.json").read_text()))
    except FileNotFoundError:
        return None


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return int(probe.getsockname()[1])


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("localhost", port))
        except OSError:
            return False
    return True


def _format(java: list[str], settings: Path, log: Path) -> None:
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    command = [*java, "kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "-c", str(settings)]
    with log.open("wb") as out:
        done = subprocess.run(command, stdout=out, stderr=out, check=False)  # noqa: S603  our own arguments
    if done.returncode:
        raise fault("BROKER_FAILED", log=log, ending=_tail(log))


def _await_ready(process: subprocess.Popen[bytes], log: Path) -> None:
    def is_ready() -> bool:
        return _READY in log.read_text(errors="replace")

    came_true(lambda: is_ready() or process.poll() is not None, within_s=_PATIENCE_S)
    if not is_ready():
        process.kill()
        raise fault("BROKER_FAILED", log=log, ending=_tail(log))


def _tail(log: Path) -> str:
    return log.read_text(errors="replace").strip()[-_TAIL:]


def _command_of(pid: int) -> bytes:
    """Return the command line of a process; empty if there is no such process."""
    if Path("/proc/self").exists():
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return b""
    return subprocess.run(["ps", "-ww", "-o", "command=", "-p", str(pid)], capture_output=True, check=False).stdout  # noqa: S603, S607  macOS has no /proc

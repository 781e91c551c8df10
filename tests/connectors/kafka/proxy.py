"""A broker that is killed, and reached by a way that can be cut: all connections at once, as a pulled cable does."""

from __future__ import annotations

import contextlib
import socket
import threading
from dataclasses import dataclass, field
from pathlib import Path

from slackwater.connectors.kafka import broker
from tests.connectors.kafka.topics import Topics


@dataclass(kw_only=True)
class Proxy:
    """Passes on what comes to `port` to the server at `to_port`, on this machine."""

    port: int
    to_port: int
    cuts: int = 0
    _pairs: list[tuple[socket.socket, socket.socket]] = field(default_factory=list)
    _listener: socket.socket = field(init=False)

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("localhost", self.port))
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Cut every connection; new ones are taken."""
        pairs, self._pairs = self._pairs, []
        self.cuts += len(pairs)
        for pair in pairs:
            for end in pair:
                with contextlib.suppress(OSError):  # one side may have gone by itself
                    end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Take no more connections."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes who waits for one
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # closed
            try:
                server = socket.create_connection(("localhost", self.to_port))
            except OSError:
                client.close()
                continue
            self._pairs.append((client, server))
            for ends in ((client, server), (server, client)):
                threading.Thread(target=_pass_on, args=ends, daemon=True).start()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)
    source.close()


@dataclass(kw_only=True)
class Rough:
    """A broker with its data in `home`, which clients reach by the proxy alone."""

    home: Path
    port: int = field(default_factory=broker.free_port)
    proxy: Proxy = field(init=False)
    topics: Topics = field(init=False)

    def __post_init__(self) -> None:
        self.proxy = Proxy(port=broker.free_port(), to_port=self.port)
        self.topics = Topics(servers=f"localhost:{self.proxy.port}")

    def start(self) -> None:
        """Start the broker, unless it runs."""
        settings = {
            "advertised.listeners": f"PLAINTEXT://localhost:{self.proxy.port}",
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
        }
        broker.up(self.home, port=self.port, heap_mb=256, settings=settings)

    def kill(self) -> None:
        """Kill the broker."""
        found = broker.find(self.home)
        assert found is not None
        process = broker._STARTED[found.pid]
        process.kill()
        process.wait()

    def close(self) -> None:
        """Stop the broker."""
        broker.down(self.home)
        self.proxy.close()

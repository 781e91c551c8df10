"""A way to a real server that can be slow, frozen or gone, and come back at the same address."""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from slackwater.connectors.kafka.broker import free_port

Due = queue.SimpleQueue[tuple[float, bytes]]
"""Bytes, and when they are to be sent on; none of them at the end."""


@dataclass(kw_only=True)
class Gate:
    """Forwards connections to a server."""

    connect: Callable[[], socket.socket]
    delay_s: float = 0.0
    """How long every answer takes on top."""
    connect_delay_s: float = 0.0
    """How long a new connection takes on top."""
    port: int = field(default_factory=free_port)
    frozen: threading.Event = field(default_factory=threading.Event)
    """Set while connections are accepted and nothing is answered."""
    _listener: socket.socket | None = None
    _open: list[socket.socket] = field(default_factory=list)

    def start(self) -> Gate:
        self._listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()
        return self

    def shut(self) -> None:
        """Refuse new connections, and cut those that are open."""
        listener, self._listener = self._listener, None
        if listener is not None:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        for each in self._open:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._open.clear()

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = listener.accept()
                near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                far = self.connect()
                self._open += [near, far]
                threading.Thread(target=self._forward, args=(near, far), daemon=True).start()

    def _forward(self, near: socket.socket, far: socket.socket) -> None:
        """Forward one connection until both sides are done."""
        time.sleep(self.connect_delay_s)
        asked: Due = queue.SimpleQueue()
        answered: Due = queue.SimpleQueue()
        work = [
            (self._take, (near, asked, lambda: 0.0)),
            (self._take, (far, answered, lambda: self.delay_s)),
            (self._send, (asked, far, threading.Event())),
            (self._send, (answered, near, self.frozen)),
        ]
        threads = [threading.Thread(target=target, args=args, daemon=True) for target, args in work]  # type: ignore[arg-type]  # of two kinds
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        near.close()
        far.close()

    def _take(self, source: socket.socket, due: Due, delay_s: Callable[[], float]) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 20):
                due.put((time.monotonic() + delay_s(), data))
        due.put((0.0, b""))

    def _send(self, due: Due, target: socket.socket, frozen: threading.Event) -> None:
        """Send what has waited long enough: every byte is late by the delay, and none by more."""
        with contextlib.suppress(OSError):
            while (waiting := due.get())[1]:
                at, data = waiting
                time.sleep(max(0.0, at - time.monotonic()))
                while frozen.is_set():
                    time.sleep(0.01)
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)

"""A server that speaks no protocol: whatever it is asked, it sends the same bytes, and then hangs or hangs up."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self


@dataclass(kw_only=True)
class Imposter:
    """Answers every request of every connection with `parts`, one after another."""

    parts: Iterable[bytes] = ()
    hangs_up: bool = False
    """Whether the connection ends after the answer; otherwise it stays open, and nothing more is sent."""
    pause_s: float = 0.0
    """Between the parts."""
    connections: int = 0
    _over: threading.Event = field(default_factory=threading.Event)
    _open: list[socket.socket] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port: int = self._listener.getsockname()[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for each in self._open:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                self.connections += 1
                self._open.append(near)
                threading.Thread(target=self._answer, args=(near,), daemon=True).start()

    def _answer(self, near: socket.socket) -> None:
        with near, contextlib.suppress(OSError):
            while asked := near.recv(1 << 16):
                if b"SETINFO" in asked:  # a Redis client introduces itself first
                    near.sendall(b"+OK\r\n" * asked.count(b"SETINFO"))
                    continue
                for part in self.parts:
                    near.sendall(part)
                    if self._over.wait(self.pause_s):
                        return
                if self.hangs_up:
                    return

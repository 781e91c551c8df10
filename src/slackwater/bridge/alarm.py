"""Waking a thread that waits for the network: from a signal's handler, or from another thread."""

from __future__ import annotations

import contextlib
import select
import socket


class Alarm:
    """Something to wait for besides a socket. `ring` may be called from anywhere, also when all is over."""

    def __init__(self) -> None:
        self._bell, self._ear = socket.socketpair()
        self._bell.settimeout(0.0)
        self._ear.settimeout(0.0)

    def fileno(self) -> int:
        """Return what `poll` waits for."""
        return self._ear.fileno()

    def ring(self) -> None:
        """End a wait, or the next one."""
        # Full means that it rings anyway; closed, that nobody waits.
        with contextlib.suppress(OSError):
            self._bell.send(b"!")

    def wait(self, timeout_s: float) -> None:
        """Wait until it rings, or for so long."""
        poll = select.poll()
        poll.register(self._ear, select.POLLIN)
        poll.poll(timeout_s * 1000)

    def hush(self) -> None:
        """Take note of every ring so far."""
        with contextlib.suppress(BlockingIOError):
            while self._ear.recv(64):
                pass

    def close(self) -> None:
        """Let go of the sockets."""
        self._bell.close()
        self._ear.close()

"""Wakes a thread that waits for the network, from a signal handler or from another thread."""

from __future__ import annotations

import contextlib
import select
import socket


class Alarm:
    """Something to wait for besides a socket. `ring` may be called from anywhere, even after `close`."""

    def __init__(self) -> None:
        self._bell, self._ear = socket.socketpair()
        self._bell.settimeout(0.0)
        self._ear.settimeout(0.0)

    def fileno(self) -> int:
        """Return the file descriptor for `poll`."""
        return self._ear.fileno()

    def ring(self) -> None:
        """End the current wait, or the next one."""
        # If the buffer is full, it rings anyway; if the socket is closed, nobody waits.
        with contextlib.suppress(OSError):
            self._bell.send(b"!")

    def wait(self, timeout_s: float) -> None:
        """Wait until it rings, for at most `timeout_s` seconds."""
        poll = select.poll()
        poll.register(self._ear, select.POLLIN)
        poll.poll(timeout_s * 1000)

    def hush(self) -> None:
        """Discard all rings so far."""
        with contextlib.suppress(BlockingIOError):
            while self._ear.recv(64):
                pass

    def close(self) -> None:
        """Close the sockets."""
        self._bell.close()
        self._ear.close()

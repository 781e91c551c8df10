"""Clients that mean no good, on the loopback: slow ones, stuck ones, and any bytes."""

from __future__ import annotations

import http.client
import random
import resource
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress

SLOW = 1_100
NORMAL = 200
_PATHS = ("/", "/static/main.js", "/api/history", "/api/samples", "/api/job", "/api/status", "/metrics")


@contextmanager
def many_sockets() -> Iterator[None]:
    """Let this process open the sockets of all clients."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 3 * SLOW)), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def slow_clients(port: int, count: int = SLOW) -> Iterator[list[socket.socket]]:
    """Have `count` clients that never finish their requests."""
    with ExitStack() as stack:
        clients = []
        for _ in range(count):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
            with suppress(OSError):  # it may have been replaced already
                client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
            clients.append(client)
        yield clients


@contextmanager
def stuck_listeners(port: int, count: int) -> Iterator[None]:
    """Have `count` clients that request the events and never read them."""
    with ExitStack() as stack:
        for _ in range(count):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            client.sendall(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        yield


def normal_clients(port: int, count: int = NORMAL, paths: tuple[str, ...] = _PATHS) -> list[int]:
    """Return the statuses that `count` ordinary clients get, twenty at a time."""
    with ThreadPoolExecutor(20) as pool:
        return list(pool.map(lambda number: status_of(port, paths[number % len(paths)]), range(count)))


def status_of(port: int, path: str) -> int:
    """Return the status of one request, after its whole response has arrived."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


def fuzzed(port: int, count: int, seed: int) -> set[bytes]:
    """Send `count` requests that are anything but well made; return the statuses of the responses."""
    dice = random.Random(seed)
    found = set()
    for _ in range(count):
        with socket.create_connection(("127.0.0.1", port), timeout=20) as client, suppress(ConnectionError):
            client.sendall(_request(dice))
            with suppress(OSError):  # not connected any more
                client.shutdown(socket.SHUT_WR)
            found.add(client.recv(12)[9:])
    return found


def _request(dice: random.Random) -> bytes:
    name = bytes(dice.choices(b"ab/%.?&=;\\\"'<>0 \x00\xff\xc3", k=dice.choice([1, 5, 40, 300, 5_000])))
    path = dice.choice([b"/", b"/static/", b"/api/job?job=", b"/api/history?", b"/export?", b"/api/events?token=", b""])
    method = dice.choice([b"GET", b"HEAD", b"POST", b"OPTIONS", b"TRACE", b"\xff", b"G" * dice.choice([1, 40_000])])
    lines = [method + b" " + path + name.replace(b" ", b"+") + b" HTTP/1." + dice.choice([b"0", b"1", b"9", b"x"])]
    lines += [b"Host: " + dice.choice([b"localhost", b"127.0.0.1", b"evil", b""])]
    lines += dice.sample(
        [
            b"Content-Length: " + dice.choice([b"-1", b"5", b"99999999999", b"x"]),
            b"Transfer-Encoding: chunked",
            b"Upgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Key: x",
            b"Expect: 100-continue",
            b"Authorization: Bearer \xff\xfe",
            b"Accept: application/openmetrics-text; version=9.9.9; escaping=\xff",
            b"X: " + b"x" * dice.choice([10, 100_000]),
            b": no name",
            b"Cookie: " + name.replace(b"\x00", b""),
        ],
        k=dice.randrange(4),
    )
    whole = b"\r\n".join(lines) + b"\r\n\r\n" + dice.randbytes(dice.choice([0, 0, 10, 2_000]))
    return dice.choice([whole, whole, whole + whole, whole[: dice.randrange(len(whole))], dice.randbytes(200)])

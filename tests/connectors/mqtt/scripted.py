"""The broker's side of MQTT 5 and 3.1.1, played by the test itself, packet by packet."""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

CONNECT, CONNACK, PUBLISH, PUBACK, SUBSCRIBE, SUBACK, PINGREQ, DISCONNECT = 1, 2, 3, 4, 8, 9, 12, 14
PATIENCE_S: Final = 20.0


@dataclass(frozen=True, kw_only=True)
class Packet:
    kind: int
    body: bytes

    @property
    def number(self) -> int:
        """The message's number, of a PUBACK."""
        return int.from_bytes(self.body[:2], "big")


@dataclass(kw_only=True)
class Peer:
    """One connection of the bridge, seen from the broker."""

    socket: socket.socket
    version: int = 0
    client_id: str = ""
    connect: bytes = b""
    subscribe: bytes = b""

    def welcome(self, *, resumed: bool = False, reason: int = 0) -> None:
        """Take CONNECT and answer it."""
        packet = self.next(CONNECT)
        self.connect, self.version = packet.body, packet.body[6]
        at = 10 + (1 + packet.body[10] if self.version == 5 else 0)
        length = int.from_bytes(packet.body[at : at + 2], "big")
        self.client_id = packet.body[at + 2 : at + 2 + length].decode()
        self.send(CONNACK << 4, bytes([resumed, reason]) + self._no_properties())

    def grant(self, reason: int = 1) -> None:
        """Take SUBSCRIBE and answer it."""
        packet = self.next(SUBSCRIBE)
        self.subscribe = packet.body
        self.send(SUBACK << 4, packet.body[:2] + self._no_properties() + bytes([reason]))

    def publish(
        self,
        number: int,
        payload: bytes,
        *,
        topic: bytes = b"s/1",
        qos: int = 1,
        dup: bool = False,
        properties: bytes = b"",
    ) -> None:
        head = struct.pack(">H", len(topic)) + topic + (struct.pack(">H", number) if qos else b"")
        extra = bytes([len(properties)]) + properties if self.version == 5 else b""
        self.send(PUBLISH << 4 | dup << 3 | qos << 1, head + extra + payload)

    def acknowledged(self, count: int) -> list[int]:
        """Return the numbers of the next `count` acknowledgements."""
        return [self.next(PUBACK).number for _ in range(count)]

    def rest(self) -> list[Packet]:
        """Return everything that comes until the bridge ends the connection."""
        packets = []
        while (packet := self._read()) is not None:
            packets.append(packet)
        return packets

    def has_sent(self) -> bool:
        """Return whether there is anything of the bridge's that was not looked at."""
        self.socket.settimeout(0.0)
        try:
            return bool(self.socket.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return False
        finally:
            self.socket.settimeout(PATIENCE_S)

    def next(self, kind: int) -> Packet:
        packet = self._read()
        assert packet is not None, "the bridge has closed the connection"
        assert packet.kind == kind, packet
        return packet

    def send(self, first: int, body: bytes) -> None:
        length, left = bytearray(), len(body)
        while True:
            left, digit = left >> 7, left & 127
            length.append(digit | (128 if left else 0))
            if not left:
                break
        self.socket.sendall(bytes([first]) + length + body)

    def close(self) -> None:
        self.socket.close()

    def _no_properties(self) -> bytes:
        return b"\0" if self.version == 5 else b""

    def _read(self) -> Packet | None:
        first = self.socket.recv(1)
        if not first:
            return None
        length = shift = 0
        while True:
            [digit] = self.socket.recv(1)
            length |= (digit & 127) << shift
            shift += 7
            if digit < 128:
                break
        body = b""
        while len(body) < length:
            body += self.socket.recv(length - len(body))
        return Packet(kind=first[0] >> 4, body=body)


@dataclass(kw_only=True)
class ScriptedBroker:
    listener: socket.socket
    context: ssl.SSLContext | None = None
    peers: list[Peer] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"localhost:{self.listener.getsockname()[1]}"

    def accept(self) -> Peer:
        connected, _ = self.listener.accept()
        connected.settimeout(PATIENCE_S)
        peer = Peer(socket=self.context.wrap_socket(connected, server_side=True) if self.context else connected)
        self.peers.append(peer)
        return peer

    def meet(self, *, resumed: bool = False, subscribes: bool = True) -> Peer:
        """Take a connection as far as a broker does that has no objections."""
        peer = self.accept()
        peer.welcome(resumed=resumed)
        if subscribes:
            peer.grant()
        return peer


@contextmanager
def scripted_broker(context: ssl.SSLContext | None = None) -> Iterator[ScriptedBroker]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE_S)
        broker = ScriptedBroker(listener=listener, context=context)
        yield broker
        for peer in broker.peers:
            peer.close()

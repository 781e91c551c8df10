"""amqtt as a broker in a process of its own: `python -m tests.connectors.mqtt.amqtt_broker PORT`.

amqtt 0.12.1 speaks MQTT 3.1.1 alone, keeps sessions in memory alone, and keeps none for anonymous clients.
What it has sent and not seen acknowledged it forgets when the client goes away, or after 5 s, where MQTT
wants it sent again (4.4.0-1): `keep_in_flight` mends that, by giving it back what it has dropped.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable

from amqtt.broker import Broker  # type: ignore[import-untyped]
from amqtt.mqtt.protocol.handler import ProtocolHandler  # type: ignore[import-untyped]
from amqtt.session import OUTGOING, ApplicationMessage  # type: ignore[import-untyped]

Flow = Callable[[ProtocolHandler, ApplicationMessage], Awaitable[None]]


def keep_in_flight(flow: Flow) -> Flow:
    """Wrap amqtt's handling of a message with QoS 1 so that one that is not acknowledged stays with its session."""

    async def kept(handler: ProtocolHandler, message: ApplicationMessage) -> None:
        session = handler.session
        try:
            await flow(handler, message)
        finally:
            is_ours = getattr(message, "direction", None) == OUTGOING and message.packet_id is not None
            if is_ours and message.puback_packet is None and session is not None:
                session.inflight_out[message.packet_id] = message

    return kept


async def serve(port: int) -> None:
    broker = Broker(
        {
            "listeners": {"default": {"type": "tcp", "bind": f"127.0.0.1:{port}"}},
            "plugins": {"amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": False}},
        }
    )
    await broker.start()
    print("ready", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    ProtocolHandler._handle_qos1_message_flow = keep_in_flight(ProtocolHandler._handle_qos1_message_flow)
    asyncio.run(serve(int(sys.argv[1])))

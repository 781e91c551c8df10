"""Real MQTT brokers, as processes that a test may stop and start: amqtt, and Mosquitto where it is installed."""

from __future__ import annotations

import getpass
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

from slackwater.connectors.kafka.broker import free_port
from tests.connectors.mqtt.at_work import until

KINDS: Final = ["amqtt", *(["mosquitto"] if shutil.which("mosquitto") else [])]
USER: Final = "bridge"
_MOSQUITTO: Final = """listener {port} 127.0.0.1
allow_anonymous true
persistence true
persistence_location {folder}/
user {user}
max_queued_messages 0
"""


@dataclass(kw_only=True)
class RealBroker:
    """A broker; its data, if it keeps any, is in `folder`."""

    kind: str
    folder: Path
    port: int
    _process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def version(self) -> str:
        """The newest version of MQTT that it speaks."""
        return "3.1.1" if self.kind == "amqtt" else "5"

    def start(self) -> None:
        if self.kind == "amqtt":
            command = [sys.executable, "-m", "tests.connectors.mqtt.amqtt_broker", str(self.port)]
        else:
            settings = self.folder / "mosquitto.conf"
            settings.write_text(_MOSQUITTO.format(port=self.port, folder=self.folder, user=getpass.getuser()))
            command = ["mosquitto", "-c", str(settings)]
        with (self.folder / "broker.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        until(self._answers, what=f"a broker at port {self.port}")

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(30)
            self._process = None

    def publish(self, messages: Iterable[tuple[str, bytes]], *, retain: bool = False) -> None:
        """Publish with QoS 1; returns when the broker has taken all of it."""
        version = mqtt.MQTTv311 if self.kind == "amqtt" else mqtt.MQTTv5
        client = mqtt.Client(CallbackAPIVersion.VERSION2, protocol=version)
        client.username_pw_set(USER)
        client.connect("127.0.0.1", self.port)
        client.loop_start()
        sent = [client.publish(topic, payload, qos=1, retain=retain) for topic, payload in messages]
        for each in sent:
            each.wait_for_publish(30)
        assert all(each.is_published() for each in sent)
        client.disconnect()
        client.loop_stop()

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.folder / "broker.log").read_text()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


def real_broker(kind: str, folder: Path) -> RealBroker:
    folder.mkdir(exist_ok=True)
    broker = RealBroker(kind=kind, folder=folder, port=free_port())
    broker.start()
    return broker

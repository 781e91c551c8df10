"""`slackwater bridge mqtt` as a user meets it."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, ClassVar

import pytest
from typer.testing import CliRunner

from slackwater.base.errors import DefinitionError
from slackwater.base.secrets import secret
from slackwater.connectors.mqtt.definition import MqttBridge
from slackwater.connectors.mqtt.running import Tally
from slackwater.tools.cli import bridge as command

NEEDED = ["mqtt", "--broker", "host:1884", "--topic", "a/#", "--topic", "b"]


class Recorded:
    """Stands for a running bridge, which ends at once."""

    definitions: ClassVar[list[MqttBridge]] = []

    def __init__(self, definition: MqttBridge, **_said: Any) -> None:  # noqa: ANN401  callbacks
        self.definitions.append(definition)

    def run(self) -> Tally:
        return Tally(received=3, written=3, acknowledged=2, without_ack=1)

    def stop(self) -> None:
        """What a signal would call; there is nothing left to stop."""


def test_options_reach_the_bridge(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(command, "RunningBridge", Recorded)
    options = ["--qos", "0", "--client-id", "me", "--username", "u", "--password-secret", "P", "--tls-ca", "ca.pem"]
    more = ["--mqtt-version", "3.1.1", "--flush-every", "2s", "--max-batch", "7", "--partitions", "3", "--raw"]
    done = CliRunner().invoke(command.bridge, [*NEEDED, "--to", str(tmp_path), *options, *more])
    assert done.exit_code == 0, done.output
    assert Recorded.definitions.pop() == MqttBridge(
        host="host",
        port=1884,
        topics=("a/#", "b"),
        to=str(tmp_path),
        qos=0,
        client_id="me",
        username="u",
        password=secret("P"),
        uses_tls=True,
        tls_ca="ca.pem",
        version="3.1.1",
        flush_every_ms=2_000,
        max_batch=7,
        partitions=3,
        is_raw=True,
    )
    assert done.stdout == (
        f"wrote 3 messages, acknowledged 2, 1 arrived with QoS 0, which a broker does not send again, to {tmp_path}\n"
    )


def test_a_mistake_is_refused_before_anything_is_connected_to(tmp_path: Path) -> None:
    done = CliRunner().invoke(command.bridge, [*NEEDED, "--to", str(tmp_path), "--qos", "2"])
    assert isinstance(done.exception, DefinitionError)
    assert done.exception.code == "MQTT_BRIDGE_OPTION"


def test_payloads_that_had_to_be_wrapped_are_in_the_summary() -> None:
    words = command.summary(Tally(written=2_000, acknowledged=2_000, wrapped=5))
    assert (
        words == "wrote 2,000 messages, acknowledged 2,000, 5 payloads did not fit on one line and became JSON objects"
    )


def test_progress_is_shown_now_and_then_and_notices_always() -> None:
    out = io.StringIO()
    lines = command.BridgeLines(out=out, every_s=0.0)
    lines.update(Tally(received=1_500, written=1_000))
    lines.noticed("[MQTT_AWAY] gone")
    first, second = out.getvalue().splitlines()
    assert first.startswith("1,500 messages, ")
    assert first.endswith(" a second, 500 waiting to be acknowledged")
    assert second == "[MQTT_AWAY] gone"


def test_quiet_leaves_progress_out_and_no_notice() -> None:
    out = io.StringIO()
    lines = command.BridgeLines(is_quiet=True, out=out, every_s=0.0)
    lines.update(Tally(received=1_500))
    lines.noticed("connected")
    assert out.getvalue() == "connected\n"

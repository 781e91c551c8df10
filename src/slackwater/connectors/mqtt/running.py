"""Runs an MQTT bridge: no message is acknowledged before it is durable.

A message goes through these steps; a crash between any two of them loses nothing, because the broker resends
unacknowledged messages:

1. it is read from the broker, if there is room, and added to the batch;
2. the batch is passed to the target when it is full or old enough, while the next one is collected;
3. the target reports that the whole batch is durable;
4. each of its messages is acknowledged, only on the connection on which it arrived.

A crash or a lost connection between 3 and 4 causes duplicates: delivery is at least once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

from slackwater.base.backoff import Backoff
from slackwater.base.errors import fault, notice
from slackwater.connectors.mqtt.alarm import Alarm
from slackwater.connectors.mqtt.definition import MqttBridge
from slackwater.connectors.mqtt.link import Link, paho
from slackwater.connectors.mqtt.messages import Message
from slackwater.connectors.mqtt.targets import BridgeTarget, open_target

_MAX_HELD_BYTES: Final = 64 << 20
_BACKOFF: Final = Backoff(first_s=0.25, longest_s=30.0)
_LONGEST_TURN_S: Final = 1.0


@dataclass(kw_only=True)
class Tally:
    """The counts of messages that a bridge has handled so far."""

    received: int = 0
    written: int = 0
    acknowledged: int = 0
    without_ack: int = 0
    """Received messages with QoS 0, which a broker never resends."""
    wrapped: int = 0
    """Written messages whose raw payloads had to be written as JSON objects."""

    @property
    def held(self) -> int:
        """The number of messages in memory that are not durable yet."""
        return self.received - self.written


@dataclass(kw_only=True)
class Batch:
    """Messages that are written and acknowledged together, each with the connection on which it arrived."""

    items: list[tuple[Link, Message]] = field(default_factory=list)
    size: int = 0
    began: float = 0.0

    def add(self, link: Link, message: Message) -> None:
        """Add a message; the first one starts the clock."""
        if not self.items:
            self.began = time.monotonic()
        self.items.append((link, message))
        self.size += len(message.payload)


class RunningBridge:
    """A running bridge. `run` blocks until `stop`, which may be called from a signal handler or another thread.

    `on_progress` is called at least about once a second; `on_notice` is called with messages for the operator.
    """

    def __init__(
        self,
        definition: MqttBridge,
        *,
        on_progress: Callable[[Tally], None] = lambda _: None,
        on_notice: Callable[[str], None] = lambda _: None,
    ) -> None:
        paho()
        self.tally = Tally()
        self._definition = definition
        self._on_progress = on_progress
        self._on_notice = on_notice
        self._is_stopping = False
        self._alarm = Alarm()
        self._link: Link | None = None
        self._try_at = 0.0
        self._failures = 0
        self._was_up = False
        self._subscribes = True
        self._judged: Link | None = None
        self._batch = Batch()
        self._writing: Batch | None = None
        self._done: Future[None] | None = None

    def stop(self) -> None:
        """Make `run` write and acknowledge the messages it holds, and return."""
        self._is_stopping = True
        self._alarm.ring()

    def run(self) -> Tally:
        """Connect and transfer messages until `stop`; raise if the broker refuses or the target fails."""
        try:
            target = open_target(self._definition)
            with ThreadPoolExecutor(1, thread_name_prefix="slackwater-bridge") as writer:
                while not self._is_stopping:
                    self._carry_on(target, writer)
                self._finish(target, writer)
            target.close()
        finally:
            if self._link is not None:
                self._link.close()
            self._alarm.close()
        return self.tally

    def _carry_on(self, target: BridgeTarget, writer: ThreadPoolExecutor) -> None:
        self._settle(target)
        if self._writing is None and self._is_due():
            self._hand_over(target, writer)
        link = self._connected_link()
        if link is None:
            self._alarm.wait(min(self._until_due_s(), max(0.0, self._try_at - time.monotonic())))
        else:
            link.turn(
                self._alarm.fileno(),
                self._until_due_s(),
                on_message=lambda message: self._take(link, message),  # 1
                may_read=self._has_room,
            )
            self._look_at(link)
        self._alarm.hush()
        self._on_progress(self.tally)

    def _take(self, link: Link, message: Message) -> None:
        self._batch.add(link, message)
        self.tally.received += 1
        self.tally.without_ack += message.qos == 0

    def _hand_over(self, target: BridgeTarget, writer: ThreadPoolExecutor) -> None:
        self._writing, self._batch = self._batch, Batch()
        self._done = writer.submit(target.write, [message for _, message in self._writing.items])  # 2
        self._done.add_done_callback(lambda _: self._alarm.ring())

    def _settle(self, target: BridgeTarget, *, waits: bool = False) -> None:
        """Acknowledge the batch that was being written, if it is finished; errors of the target are raised here."""
        if self._writing is None or self._done is None or not (waits or self._done.done()):
            return
        self._done.result()  # 3
        batch, self._writing, self._done = self._writing, None, None
        self.tally.written += len(batch.items)
        self.tally.wrapped = target.wrapped
        self.tally.acknowledged += sum(link.acknowledge(message) for link, message in batch.items)  # 4

    def _finish(self, target: BridgeTarget, writer: ThreadPoolExecutor) -> None:
        self._settle(target, waits=True)
        if self._batch.items:
            self._hand_over(target, writer)
            self._settle(target, waits=True)

    def _is_due(self) -> bool:
        batch = self._batch
        is_full = len(batch.items) >= self._definition.max_batch or batch.size >= _MAX_HELD_BYTES // 2
        return is_full or (bool(batch.items) and self._until_due_s() <= 0)

    def _until_due_s(self) -> float:
        if not self._batch.items or self._writing is not None:
            return _LONGEST_TURN_S  # the end of the write wakes this thread
        due = self._batch.began + self._definition.flush_every_ms / 1000
        return min(_LONGEST_TURN_S, max(0.0, due - time.monotonic()))

    def _has_room(self) -> bool:
        if self._writing is None:
            return not self._is_due()  # reading on would delay a batch that can be written now
        count = len(self._batch.items) + len(self._writing.items)
        return count < self._definition.max_held and self._batch.size + self._writing.size < _MAX_HELD_BYTES

    def _connected_link(self) -> Link | None:
        """Return the link, opening a new one if it is time for another attempt, or None."""
        if self._link is None and time.monotonic() >= self._try_at:
            try:
                self._link = Link(self._definition, subscribes=self._subscribes)
            except (OSError, UnicodeError) as error:  # UnicodeError: an invalid host name
                self._missed(str(error))
        return self._link

    def _look_at(self, link: Link) -> None:
        if link.refusal is not None and not (self._was_up and link.may_retry):
            raise link.refusal
        if self._was_up and self._judged is not link and link.is_answered and not link.is_resumed:
            self._miss_session(link)
        if link.lost is not None:
            self._link = None
            self._missed(link.lost)
        elif link.is_up and (self._failures or not self._was_up):
            self._arrive(link)

    def _arrive(self, link: Link) -> None:
        definition = self._definition
        kind = "resuming its session" if link.is_resumed else "a new session"
        self._on_notice(f"connected to {definition.broker} as {definition.client_id}, {kind}")
        self._was_up, self._failures, self._judged = True, 0, link
        # A resumed session has its subscriptions; subscribing again would bring the retained messages again.
        self._subscribes = False

    def _miss_session(self, link: Link) -> None:
        """Report, once per connection, that the session is lost; its subscriptions must be granted again."""
        self._judged, self._subscribes = link, True
        definition = self._definition
        self._on_notice(notice("MQTT_SESSION_LOST", broker=definition.broker, client_id=definition.client_id))

    def _missed(self, cause: str) -> None:
        """Schedule the next attempt; the very first one must succeed, because its failure is usually a mistake."""
        definition = self._definition
        if not self._was_up:
            raise fault("MQTT_UNREACHABLE", broker=definition.broker, cause=cause)
        self._failures += 1
        wait_s = _BACKOFF.pause_s(self._failures)
        self._try_at = time.monotonic() + wait_s
        self._on_notice(notice("MQTT_AWAY", broker=definition.broker, cause=cause, wait=f"{wait_s:.1f} s"))

"""A shop's customers and their phones: generated purchases with everything that can go wrong on the way.

Most purchases arrive immediately. Some phones lose their network for minutes and send queued purchases when they are
back; some were off for hours. A few records are broken, and one phone's clock is wrong.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND: Final = 1_000
_MINUTE: Final = 60 * _SECOND
_HOUR: Final = 60 * _MINUTE

USERS: Final = 4_000
PARTITIONS: Final = 4
COUNTRIES: Final = ("AT", "CH", "DE", "DK", "FR", "IT", "NL", "PL")
_SHARES: Final = (4, 5, 30, 4, 24, 17, 8, 8)

NETWORK_MS: Final = 4 * _SECOND
"""The mean delay from a purchase to its arrival."""
HOT: Final = 0.1
"""The share of purchases by a few customers."""
OUTAGE: Final = 0.0015
"""The share of purchases after which the phone loses its network, for 20 seconds to 7 minutes."""
OUTAGE_MS: Final = (20 * _SECOND, 7 * _MINUTE)
RETURN: Final = 0.0008
"""The share of purchases at which another phone comes back that was off for one to five hours."""
RETURN_MS: Final = (1 * _HOUR, 5 * _HOUR)
BROKEN: Final = 0.005
"""The share of records that arrive broken."""
AHEAD: Final = 0.002
"""The share of purchases from the phone whose clock is wrong."""
AHEAD_BY_MS: Final = 3 * _HOUR
AHEAD_USER: Final = 1_234

DAMAGES: Final = ("truncated", "wrong type", "invalid UTF-8", "no time", "not JSON")


@dataclass(kw_only=True)
class Phones:
    """All phones of the shop's customers; `tick` advances their time and returns the records they send."""

    seed: int
    now_ms: int
    """The true time in the customers' world."""
    made: int = 0
    damaged: Counter[str] = field(default_factory=Counter)
    """The number of records that must become dead letters, by what is wrong with them."""
    _dice: random.Random = field(init=False)
    _homes: list[str] = field(init=False)
    _offline: dict[int, list[tuple[int, bytes]]] = field(default_factory=dict)
    _back: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._dice = random.Random(self.seed)
        self._homes = self._dice.choices(COUNTRIES, _SHARES, k=USERS)

    def tick(self, until_ms: int, purchases: int) -> list[tuple[int, bytes]]:
        """Advance the time to `until_ms` with this many purchases; return (partition, record) in order of arrival."""
        arrived: list[tuple[int, bytes]] = []
        span = max(1, until_ms - self.now_ms)
        for number in range(purchases):
            self.now_ms += span * (number + 1) // purchases - span * number // purchases
            arrived += self._come_back(self.now_ms)
            arrived += self._purchase()
        self.now_ms = max(self.now_ms, until_ms)
        return arrived

    def all_back(self) -> list[tuple[int, bytes]]:
        """Bring all phones back online at the end, and return the records they send."""
        return self._come_back(max((time for time, _ in self._back), default=0))

    def _purchase(self) -> list[tuple[int, bytes]]:
        dice = self._dice
        chance = dice.random()
        if chance < AHEAD:
            self.damaged["clock ahead"] += 1
            return [self._record(AHEAD_USER, self.now_ms + AHEAD_BY_MS)]
        user = self._customer()
        if user in self._offline:
            self._offline[user].append(self._record(user, self.now_ms))
            return []
        sent_ms = self.now_ms - min(int(dice.expovariate(1 / NETWORK_MS)), 5 * NETWORK_MS)
        arrived = [self._damage(self._record(user, sent_ms))]
        fate = dice.random()
        if fate < OUTAGE:
            self._offline[user] = []
            heapq.heappush(self._back, (self.now_ms + dice.randint(*OUTAGE_MS), user))
        elif fate < OUTAGE + RETURN:
            off_ms = dice.randint(*RETURN_MS)
            arrived += [
                self._record(user, self.now_ms - off_ms - dice.randrange(_MINUTE)) for _ in range(dice.randint(1, 10))
            ]
        return arrived

    def _customer(self) -> int:
        """Return the customer of a purchase: a few buy all day long."""
        dice = self._dice
        user = int(dice.paretovariate(1)) - 1 if dice.random() < HOT else dice.randrange(USERS)
        return user if user < USERS and user != AHEAD_USER else 0

    def _come_back(self, now_ms: int) -> list[tuple[int, bytes]]:
        sent: list[tuple[int, bytes]] = []
        while self._back and self._back[0][0] <= now_ms:
            _, user = heapq.heappop(self._back)
            sent += self._offline.pop(user)
        return sent

    def _record(self, user: int, placed_ms: int) -> tuple[int, bytes]:
        self.made += 1
        placed = (_EPOCH + timedelta(milliseconds=placed_ms)).isoformat(timespec="milliseconds")
        text = (
            f'{{"event_id":"e{self.made:08d}","user_id":"u{user:04d}","country":"{self._homes[user]}",'
            f'"cents":{self._dice.randint(99, 19_999)},"placed_at":"{placed.replace("+00:00", "Z")}"}}'
        )
        return user % PARTITIONS, text.encode()

    def _damage(self, sent: tuple[int, bytes]) -> tuple[int, bytes]:
        """Break a record now and then, in all ways equally often."""
        if self._dice.random() >= BROKEN:
            return sent
        partition, record = sent
        how = self._dice.choice(DAMAGES)
        self.damaged[how] += 1
        match how:
            case "truncated":
                return partition, record[: self._dice.randrange(2, len(record) - 1)]
            case "wrong type":
                quoted = record.replace(b'"cents":', b'"cents":"about ', 1)
                return partition, quoted.replace(b',"placed', b'","placed', 1)
            case "invalid UTF-8":
                return partition, record.replace(b'"user_id":"u', b'"user_id":"\xff\xfe', 1)
            case "no time":
                return partition, record[: record.index(b',"placed_at"')] + b"}"
            case _:
                return partition, b"<html><body>502 Bad Gateway</body></html>"

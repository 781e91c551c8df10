"""Writes payments with stolen cards, late and broken records into `data/payments`, and profiles beside them."""

import json
import random
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import slackwater as sw

BEGIN = datetime(2026, 3, 1, 12, tzinfo=UTC)
COUNTRIES = ["DE", "FR", "US", "BR"]


def payments(count=2_000, cards=60, seed=7):
    """Return payments in the order they happened, as (time, record)."""
    dice = random.Random(seed)
    made = []

    def pay(card, seconds, amount, country):
        at = BEGIN + timedelta(seconds=seconds)
        record = {"payment": f"p{len(made):05d}", "card": card, "amount": round(amount, 2), "country": country}
        made.append((at, {**record, "at": at.isoformat()}))

    for number in range(count):
        card, seconds = f"card-{dice.randrange(cards):03d}", number * 2 + dice.random()
        pay(card, seconds, dice.uniform(5, 80), home(card) if dice.random() < 0.95 else dice.choice(COUNTRIES))
        if dice.random() < 0.01:  # a stolen card: tested, then used
            pay(card, seconds + 3, dice.uniform(0.5, 1.5), "US")
            pay(card, seconds + dice.uniform(10, 50), dice.uniform(200, 900), "US")
        if dice.random() < 0.01:  # a burst
            for step in range(6):
                pay(card, seconds + 4 + 5 * step, dice.uniform(20, 60), home(card))
    return sorted(made, key=lambda each: each[0])


def home(card):
    """Return where a card's owner lives."""
    return COUNTRIES[int(card[-3:]) % len(COUNTRIES)]


def arrivals(made, seed=11):
    """Return the records as they arrive: a few seconds out of order, some minutes late, some broken."""
    dice = random.Random(seed)
    delayed = []
    for at, record in made:
        delay = dice.expovariate(1 / 3) if dice.random() < 0.99 else dice.uniform(30, 300)
        text = json.dumps(record)
        delayed.append((at + timedelta(seconds=delay), text if dice.random() < 0.995 else text[:-9]))
    return [text for _, text in sorted(delayed)]


def main(folder="data", count=2_000):
    """Write the log and the profiles."""
    made = payments(count)
    cards = sorted({record["card"] for _, record in made})
    known = {
        card: {"home": home(card), "monthly_limit": 1_000.0 + 500 * (number % 5)}
        for number, card in enumerate(cards[:-1])  # the last card is one that the profile store does not know
    }
    Path(folder).mkdir(parents=True, exist_ok=True)
    Path(folder, "profiles.json").write_text(json.dumps(known))
    with sw.LogWriter(Path(folder, "payments")) as log:
        for number, text in enumerate(arrivals(made), 1):
            log.append(text)
            if number % 200 == 0:
                log.flush()
    print(f"wrote {len(made)} payments of {len(cards)} cards to {folder}/payments")


if __name__ == "__main__":
    main(*sys.argv[1:2])

"""Recomputes every decision from the raw log, in plain Python, and compares it with what the pipeline wrote.

It takes no late row and no dead letter on trust: a payment is late only behind a much newer one, and a dead letter only
for a reason that is in the log.
"""

import json
import sys
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl

SPANS = {"last_minute": 60, "last_5_minutes": 300, "last_hour": 3600}
OUT_OF_ORDERNESS = timedelta(seconds=20)


def records(folder):
    """Return the payments of the log that can be read, in the order of the log, and the number of other records."""
    found, broken = [], 0
    for file in sorted(Path(folder, "payments").rglob("*.jsonl")):
        for line in file.read_text().splitlines():
            try:
                found.append({**json.loads(line), "partition": file.parent.name})
            except ValueError:
                broken += 1
    return found, broken


def may_be_late(payments):
    """Return the ids of the payments that come after one of their partition that is more than 20 seconds newer.

    No other can be behind the watermark. Whether one of these is behind it depends on where the batches end.
    """
    newest, found = {}, set()
    for payment in payments:
        at, partition = datetime.fromisoformat(payment["at"]), payment["partition"]
        newest[partition] = max(at, newest.get(partition, at))
        if newest[partition] - at > OUT_OF_ORDERNESS:
            found.add(payment["payment"])
    return found


def decide(payments, profiles):
    """Return the decision on each payment, by its id: `payments` are those that count, in the order of the log."""
    by_card = {}
    for order, payment in enumerate(payments):
        by_card.setdefault(payment["card"], []).append((datetime.fromisoformat(payment["at"]), order, payment))
    decided = {}
    for card, mine in by_card.items():
        mine.sort(key=lambda each: each[:2])
        tested = _tested(mine)
        for number, (at, _, payment) in enumerate(mine):
            before = mine[: number + 1]
            facts = {
                name: sum(at - other < timedelta(seconds=span) for other, _, _ in before)
                for name, span in SPANS.items()
            }
            spent = round(sum(o["amount"] for other, _, o in before if at - other < timedelta(hours=1)), 2)
            profile, tested_by = profiles[card], tested.get(payment["payment"])
            score = 40 * (facts["last_minute"] > 3) + 20 * (facts["last_5_minutes"] > 8)
            score += 30 * (spent > 5 * profile["monthly_limit"] / 100) + 20 * (payment["country"] != profile["home"])
            score += 50 * (tested_by is not None)
            decision = "decline" if score >= 70 else "review" if score >= 40 else "approve"
            decided[payment["payment"]] = (card, decision, *facts.values(), tested_by)
    return decided


def _tested(mine):
    """Return, by the id of a large payment, the small one that came before it within a minute."""
    found, number = {}, 0
    while number < len(mine):
        at, _, small = mine[number]
        if small["amount"] < 2:
            for later in range(number + 1, len(mine)):
                when, _, large = mine[later]
                if when - at > timedelta(minutes=1):
                    break
                if large["amount"] > 100 * small["amount"]:
                    found[large["payment"]] = small["payment"]
                    number = later  # the next match begins after this one
                    break
        number += 1
    return found


def differences(decisions, late, dead, folder="data"):
    """Return what differs between the outputs written and the recomputed ones: nothing, if all is right."""
    profiles = json.loads(Path(folder, "profiles.json").read_text())
    payments, broken = records(folder)
    refused = {each["payment"] for each in payments if each["amount"] <= 0 or each["card"] not in profiles}
    (late_ones, _), (dead_ones, unreadable) = _payments(late["row"]), _payments(dead["payload"])
    wrong = [f"{payment}: late, but behind no newer one" for payment in sorted(late_ones - may_be_late(payments))]
    wrong += [f"{payment}: a dead letter without a reason" for payment in sorted(dead_ones - refused)]
    wrong += [f"{payment}: must be a dead letter, and is not" for payment in sorted(refused - dead_ones)]
    if unreadable != broken:
        wrong.append(f"{broken} records cannot be read, but {unreadable} such dead letters were written")
    gone = late_ones | refused
    expected = decide([payment for payment in payments if payment["payment"] not in gone], profiles)
    columns = ["payment", "card", "decision", *SPANS, "tested_by"]
    found = {payment: tuple(facts) for payment, *facts in decisions.select(columns).rows()}
    twice = decisions.filter(decisions["payment"].is_duplicated())["payment"].unique().sort()
    wrong += [f"{payment}: written twice" for payment in twice]
    return wrong + [
        f"{payment}: expected {expected.get(payment)}, got {found.get(payment)}"
        for payment in sorted(expected.keys() | found.keys())
        if expected.get(payment) != found.get(payment)
    ]


def _payments(texts):
    """Return the ids of the payments in late rows or dead letters, and the number of those that cannot be read."""
    found, unreadable = set(), 0
    for text in texts:
        try:
            found.add(json.loads(text)["payment"])
        except ValueError:
            unreadable += 1
    return found, unreadable


def main():
    """Compare, say what differs, and return 1 if anything does."""
    for needed in ("data/payments", "data/profiles.json"):
        if not Path(needed).exists():
            sys.exit(f"{needed} is missing: run make_data.py and the pipeline in this folder first")

    def read(output):
        found = list(Path("out", output).glob("*/*.parquet"))
        if not found and output == "decisions":
            sys.exit("out/decisions has no decisions: run the pipeline here first")
        return pl.read_parquet(found) if found else pl.DataFrame({"row": [], "payload": []})

    decisions, late = read("decisions"), read("late")
    wrong = differences(decisions, late, read("dead_letters"))
    for line in wrong[:20]:
        print(line)
    print(f"{decisions.height} decisions, {len(_payments(late['row'])[0])} late payments, {len(wrong)} differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

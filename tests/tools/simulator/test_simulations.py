"""A simulation accounts for every event, and agrees with a plain recomputation."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache

import pytest

from slackwater.observe.metrics.record import BatchRecord
from slackwater.tools.simulator.account import ACCOUNTS
from slackwater.tools.simulator.events import START_MS, made_events
from slackwater.tools.simulator.presets import PRESETS
from slackwater.tools.simulator.running import Simulation, simulate
from slackwater.tools.simulator.settings import Settings
from tests.tools.simulator.plain import Plain


def small(settings: Settings) -> Settings:
    """Return settings that are as telling, and take a fraction of a second."""
    return replace(settings, rate=min(settings.rate, 8), duration_ms=180_000, batch_every_ms=15_000)


def counted(simulation: Simulation) -> Counter[str]:
    """Return the accounts that are not empty."""
    return +Counter({name: getattr(simulation.account, name) for name in ACCOUNTS})


CASES = {
    **{name: small(preset.settings) for name, preset in PRESETS.items()},
    **{f"{name}, remedied": small(preset.remedied) for name, preset in PRESETS.items()},
    "hopping": small(replace(PRESETS["phones"].settings, window="hopping", allowed_lateness_ms=10_000)),
    "bot, remembered": small(replace(PRESETS["bot"].settings, allowed_lateness_ms=20_000, delay_p99_ms=60_000)),
    "bot, cut and remembered": small(replace(PRESETS["bot"].remedied, allowed_lateness_ms=20_000, delay_p99_ms=60_000)),
    "each offline": small(replace(PRESETS["phones"].settings, offline_share=20, offline_for_ms=60_000)),
}


@cache
def simulated(case: str) -> Simulation:
    return simulate(CASES[case])


@pytest.mark.parametrize("case", CASES)
def test_every_event_is_in_the_account_that_a_plain_recomputation_finds(case: str) -> None:
    simulation = simulated(case)
    assert counted(simulation).total() == simulation.account.events
    assert counted(simulation) == Plain(settings=CASES[case]).run()


def test_presets_show_what_their_sentences_promise() -> None:
    before = {name: simulated(name).account for name in PRESETS}
    after = {name: simulated(f"{name}, remedied").account for name in PRESETS}
    assert before["phones"].late > 2 * after["phones"].late
    assert (after["phones"].delay_ms[0] or 0) - (before["phones"].delay_ms[0] or 0) == 30_000
    assert before["tunnel"].late > 30
    assert (after["tunnel"].late, after["tunnel"].corrected) == (0, before["tunnel"].late)
    assert before["tunnel"].delay_ms == after["tunnel"].delay_ms
    assert before["bot"].oldest_open_ms == 180_000
    assert after["bot"].oldest_open_ms < 90_000
    assert before["stalled"].late == after["stalled"].late == 0
    assert (before["stalled"].delay_ms[2] or 0) > 90_000
    assert (after["stalled"].delay_ms[2] or 0) < 75_000
    assert before["clock-ahead"].late > 500
    assert after["clock-ahead"].late < 20
    assert after["clock-ahead"].dead > 5


def test_same_settings_give_the_same_simulation() -> None:
    one, other = simulated("tunnel"), simulate(CASES["tunnel"])
    assert one.account == other.account
    assert one.lateness == other.lateness
    assert [drawn(record) for record in one.records] == [drawn(record) for record in other.records]


def drawn(record: BatchRecord) -> BatchRecord:
    """Return a record without the bytes of its state: how well that is packed depends on the order of its rows."""
    return replace(record, steps={name: replace(step, state_bytes=0) for name, step in record.steps.items()})


def test_another_seed_gives_other_events() -> None:
    settings = CASES["phones"]
    assert not made_events(settings).equals(made_events(replace(settings, seed=18)))
    assert made_events(settings).equals(made_events(replace(settings)))


def test_delays_have_the_quantiles_that_were_asked_for() -> None:
    for delay, p99 in (("lognormal", 45_000), ("exponential", 33_200)):
        settings = Settings(rate=60, delay=delay)  # type: ignore[arg-type]  # each is one of them
        events = made_events(settings)
        lateness = events["arrived"] - events["ts"]
        assert lateness.quantile(0.5) == pytest.approx(5_000, rel=0.05)
        assert lateness.quantile(0.99) == pytest.approx(p99, rel=0.08)


def test_share_of_events_that_go_offline_is_the_one_that_was_asked_for() -> None:
    settings = Settings(
        rate=40,
        keys=500,
        duration_ms=600_000,
        offline_share=20,
        offline_for_ms=60_000,
        delay_p50_ms=500,
        delay_p99_ms=2_000,
    )
    events = made_events(settings)
    held = (events["arrived"] - events["ts"]) > 5_000
    assert held.mean() == pytest.approx(0.2, abs=0.04)


def test_nothing_of_a_stalled_partition_arrives_until_it_is_back() -> None:
    events = made_events(CASES["stalled"]).filter(partition="0")
    arrived = events["arrived"] - START_MS
    assert arrived.is_between(60_000, 149_999).sum() == 0
    assert (arrived == 150_000).sum() > 200


@pytest.mark.parametrize(
    "trigger, accumulation", [("early", "discarding"), ("late_at_close", "retracting"), ("final", "discarding")]
)
def test_triggers_and_accumulations_account_for_every_event(trigger: str, accumulation: str) -> None:
    changed = {"trigger": trigger, "accumulation": accumulation, "allowed_lateness_ms": 20_000}
    settings = replace(CASES["phones"], duration_ms=120_000, **changed)  # type: ignore[arg-type]  # each is one of them
    account = simulate(settings).account
    assert sum(getattr(account, name) for name in ACCOUNTS) == account.events
    assert bool(account.ignored) == (trigger == "final")
    assert bool(account.corrected) == (trigger != "final")
    assert (account.panes_per_window > 1.5) == (trigger == "early")

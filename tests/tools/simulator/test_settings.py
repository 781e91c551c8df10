"""Settings as text: from the command line, and from addresses that anyone may write."""

from __future__ import annotations

import random
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.base.errors import RunError, SlackwaterError
from slackwater.tools.simulator.controls import CONTROLS, read, written
from slackwater.tools.simulator.events import made_events
from slackwater.tools.simulator.presets import PRESETS, preset_named
from slackwater.tools.simulator.settings import OWN, SERVED, Settings, check_limits
from slackwater.tools.simulator.sweep import Sweep


def test_every_setting_has_a_control_and_every_control_a_setting() -> None:
    assert {control.field for control in CONTROLS.values()} == {each.name for each in fields(Settings)}


@pytest.mark.parametrize("name", CONTROLS)
def test_every_place_of_a_control_is_a_value_of_its_setting(name: str) -> None:
    control = CONTROLS[name]
    for text in control.steps:
        settings = read({name: text}, Settings())
        assert control.shown(settings) == text
    assert control.help.endswith(".")


@pytest.mark.parametrize("name", PRESETS)
def test_presets_come_back_from_what_an_address_says_of_them(name: str) -> None:
    preset = PRESETS[name]
    assert read(written(preset.remedied, preset.settings), preset.settings) == preset.remedied
    assert read(written(preset.settings, Settings()), Settings()) == preset.settings
    check_limits(preset.settings, SERVED)
    assert preset.about.endswith(".")


@pytest.mark.parametrize(
    "name, text",
    [
        ("rate", "0"),
        ("rate", "-1"),
        ("rate", "1e3"),
        ("rate", "１２"),  # noqa: RUF001  digits of another script
        ("rate", "9" * 5_000),
        ("window", "sliding"),
        ("window", "TUMBLING"),
        ("out_of_orderness", "none"),
        ("out_of_orderness", "soon"),
        ("out_of_orderness", "-5s"),
        ("out_of_orderness", "2h"),
        ("out_of_orderness", "9" * 5_000 + "s"),
        ("idle_after", "0s"),
        ("seed", ""),
    ],
)
def test_impossible_value_is_refused_with_the_rule(name: str, text: str) -> None:
    words = rf"^\[SIMULATE_SETTING\] `{name}` must be (a|one of) .*; got .*; try "
    with pytest.raises(RunError, match=words) as caught:
        read({name: text}, Settings())
    assert len(str(caught.value)) < 400


def test_tail_of_delays_below_their_median_is_refused() -> None:
    words = r"`delay_p99` must be a duration of at least `delay_p50`, 10s; got 5s; try 20s$"
    with pytest.raises(RunError, match=words):
        check_limits(read({"delay_p50": "10s", "delay_p99": "5s"}, Settings()), OWN)
    check_limits(read({"delay_p50": "1m", "delay": "exponential"}, Settings()), OWN)


def test_unknown_setting_and_preset_offer_the_near_miss() -> None:
    with pytest.raises(RunError, match=r"SIMULATE_SETTING_UNKNOWN.*did you mean `out_of_orderness`"):
        read({"out_of_ordernes": "1s"}, Settings())
    with pytest.raises(RunError, match=r"SIMULATE_PRESET.*did you mean `tunnel`"):
        preset_named("tunel")


@pytest.mark.parametrize(
    "changes, what",
    [
        ({"rate": 1_000}, "events"),
        ({"batch_every_ms": 500}, "batches"),
        ({"partitions": 64}, "batches times partitions"),
        ({"window": "hopping", "window_size_ms": 3_600_000}, "windows for each event"),
    ],
)
def test_browser_may_not_ask_for_too_much(changes: dict[str, int], what: str) -> None:
    settings = replace(Settings(), **changes)  # type: ignore[arg-type]  # by name
    with pytest.raises(RunError, match=rf"SIMULATE_TOO_LARGE.* {what}; got"):
        check_limits(settings, SERVED)
    if what != "windows for each event":
        check_limits(settings, replace(OWN, events=1_000_000))


def test_simulation_without_a_batch_is_refused() -> None:
    with pytest.raises(RunError, match="SIMULATE_TOO_SHORT"):
        check_limits(replace(Settings(), duration_ms=1_000), OWN)


TEXTS = st.one_of(
    st.text(max_size=30),
    st.sampled_from([text for control in CONTROLS.values() for text in control.steps]),
    st.from_regex(r"[0-9]{1,12}(ms|s|m|h|d|w)?", fullmatch=True),
)


@given(st.dictionaries(st.one_of(st.sampled_from(list(CONTROLS)), st.text(max_size=10)), TEXTS, max_size=8))
def test_any_text_is_settings_within_the_limits_or_an_error_with_a_code(asked: dict[str, str]) -> None:
    try:
        settings = read(asked, Settings())
        check_limits(settings, SERVED)
    except SlackwaterError as error:
        assert error.code in str(error)  # noqa: PT017  both ways are right
        return
    assert settings.events <= SERVED.events


def test_any_settings_within_the_limits_make_events() -> None:
    dice = random.Random(5)
    for _ in range(30):
        settings = read({name: dice.choice(control.steps) for name, control in CONTROLS.items()}, Settings())
        settings = replace(settings, duration_ms=60_000, rate=2)
        events = made_events(settings)
        assert events.height == settings.events
        assert events["id"].n_unique() == events.height
        assert events["arrived"].is_sorted()


@pytest.mark.parametrize(
    "text, values",
    [
        ("out_of_orderness=0s..60s", [0, 10_000, 20_000, 30_000, 40_000, 50_000, 60_000]),
        ("out-of-orderness = 0s..60s , 25s", [0, 25_000, 50_000, 60_000]),
        ("allowed_lateness=1m..2m,3", [60_000, 90_000, 120_000]),
        ("max_ahead=0s..2ms,7", [0, 1, 2]),
    ],
)
def test_sweep_has_a_step_or_a_number_of_values(text: str, values: list[int]) -> None:
    assert list(Sweep.parse(text).values_ms) == values


@pytest.mark.parametrize(
    "text, said",
    [
        ("", "does not have this form"),
        ("out_of_orderness", "does not have this form"),
        ("rate=1..5", "`rate` is not a duration"),
        ("out_of_ordernes=0s..5s", "did you mean `out_of_orderness`"),
        ("out_of_orderness=5s..5s", "its end is not after its start"),
        ("out_of_orderness=0s..60s,1", "must have 2 to 60 values"),
        ("out_of_orderness=0s..60s,1ms", "gives 60,001"),
        ("out_of_orderness=0s..60s,0s", "neither a duration above zero nor a number"),
    ],
)
def test_malformed_sweep_is_refused_with_the_cause(text: str, said: str) -> None:
    with pytest.raises(RunError, match=r"^\[SIMULATE_SWEEP\]") as caught:
        Sweep.parse(text)
    assert said in str(caught.value)


def test_sweep_stays_within_the_bounds_of_its_setting() -> None:
    with pytest.raises(RunError, match=r"^\[SIMULATE_SETTING\] `out_of_orderness`"):
        Sweep.parse("out_of_orderness=0s..5h")

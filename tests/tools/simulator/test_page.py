"""The simulator's page: what its server serves and refuses, and that a slider changes the picture in a real browser."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Iterator
from urllib.parse import quote, urlencode, urlsplit

import pytest
from starlette.requests import Request

from slackwater.base.errors import RunError
from slackwater.tools.simulator.account import ACCOUNTS
from slackwater.tools.simulator.app import SimulatorPage
from slackwater.tools.simulator.controls import CONTROLS
from slackwater.tools.simulator.presets import PRESETS
from slackwater.tools.simulator.server import SimulatorServer
from tests.browser import Tab, browser, found
from tests.conftest import Needs
from tests.observe.page.test_app import HOSTILE, asked
from tests.observe.page.test_in_browser import ORANGE

SMALL = {"duration": "2m", "batch_every": "10s", "rate": "10", "window_size": "20s"}


@pytest.fixture(scope="module")
def server() -> Iterator[SimulatorServer]:
    with SimulatorServer({"preset": "phones", **SMALL}) as served:
        yield served


def test_page_has_no_code_inside_and_loads_nothing_from_elsewhere(server: SimulatorServer) -> None:
    status, headers, page = asked(server, "/")
    assert status == 200
    assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self';")
    assert "<style" not in page
    assert " style=" not in page
    assert re.findall(r"<script[^>]*>[^<]", page) == []
    for name in re.findall(r"(?:src|href)=\"(?!data:,)([^\"]*)\"", page):
        assert asked(server, f"/{name}")[0] == 200
    assert asked(server, "/", Host="evil.example")[0] == 400
    assert asked(server, "/api/job")[0] == 404


def test_controls_have_a_label_and_a_sentence_and_presets_their_story(server: SimulatorServer) -> None:
    known = json.loads(asked(server, "/api/controls")[2])
    assert [each["name"] for each in known["controls"]] == list(CONTROLS)
    assert all(each["label"] and each["help"].endswith(".") for each in known["controls"])
    assert [each["name"] for each in known["presets"]] == list(PRESETS)
    for each in known["presets"]:
        assert each["look"].endswith(".")
        assert each["then"].endswith(".")
        assert each["settings"].keys() == CONTROLS.keys() > each["remedy"].keys()


def test_simulation_is_what_the_query_asks_for(server: SimulatorServer) -> None:
    query = {"preset": "phones", **SMALL, "out_of_orderness": "7s"}
    status, _, text = asked(server, f"/api/simulation?{urlencode(query)}")
    shown = json.loads(text)
    assert status == 200
    assert shown["settings"] == {**shown["settings"], **SMALL, "out_of_orderness": "7s"}
    assert len(shown["records"]) == 12
    assert shown["job"]["streams"] == [{"name": "events", "slack_ms": 7_000}]
    assert [part["name"] for part in shown["account"]["parts"]] == list(ACCOUNTS)
    assert sum(part["rows"] for part in shown["account"]["parts"]) == shown["account"]["events"] == 1_200
    exported = asked(server, f"/export?{urlencode(query)}")
    assert exported[0] == 200
    assert '"pipeline": "simulation"' in exported[2]


def test_any_query_is_answered_with_a_simulation_or_a_sentence(server: SimulatorServer) -> None:
    dice = random.Random(11)
    values = ["", "none", "-1", "1e9", "99999999999999999999s", HOSTILE, "%", "\x00", "０", "9" * 3_000, "inf", "nan"]  # noqa: RUF001  digits of another script
    names = [*CONTROLS, "preset", "token", "job", HOSTILE, "__class__", "seed "]
    for _ in range(150):
        pairs = [(dice.choice(names), dice.choice(values)) for _ in range(dice.randrange(1, 4))]
        status, headers, text = asked(server, f"/api/simulation?{urlencode({**SMALL, **dict(pairs)})}")
        assert status in (200, 400)
        assert headers["content-type"] == "application/json"
        if status == 400:
            assert re.match(r"\[SIMULATE_[A-Z_]+\] ", json.loads(text)["error"])
            assert len(text) < 2_000
    for raw in ("?&&&==", "?%ff=%ff", f"?{quote('a' * 8_000)}", "?preset=phones&preset=tunel", "?rate[]=1"):
        assert asked(server, f"/api/simulation{raw}")[0] in (200, 400, 414, 431)


def test_request_is_refused_while_many_wait() -> None:
    page = SimulatorPage(token=None)
    page._waiting = 8
    with pytest.raises(RunError, match=r"^\[SIMULATE_BUSY\].* at most 8 waiting;"):
        asyncio.run(page._simulated(Request({"type": "http", "query_string": b"preset=bot", "headers": []})))


def test_page_beyond_the_loopback_needs_its_token() -> None:
    with SimulatorServer({"preset": "bot"}, host="0.0.0.0") as server:  # noqa: S104  what is tried
        query = urlsplit(server.address).query
        assert re.fullmatch(r"token=\S{20,}&preset=bot", query)
        for path in ("/", "/api/controls", "/api/simulation", "/export"):
            assert asked(server, path)[0] == 403
            assert asked(server, f"{path}?token=x")[0] == 403
        assert asked(server, f"/api/controls?{query}")[0] == 200


@pytest.fixture
def tab(needs: Needs) -> Iterator[Tab]:
    program = found()
    needs(program, "the page is tried in Chromium")
    with browser(str(program)) as opened:
        made = opened()
        made.resize(360, 900)
        yield made
        assert made.trouble == []


def moved(tab: Tab, name: str, text: str) -> None:
    """Move a slider to a value, as a person does."""
    steps = CONTROLS[name].steps
    tab.value(
        f"{{ const slider = document.getElementById('set-{name}'); slider.value = {steps.index(text)}; "
        "slider.dispatchEvent(new Event('input', { bubbles: true })); }"
    )


def test_slider_changes_the_picture_the_figures_and_the_address(tab: Tab, server: SimulatorServer) -> None:
    tab.open(server.address)
    tab.until("document.querySelector('[data-account=late]') !== null")
    assert tab.value("document.documentElement.scrollWidth") <= 360
    late = "Number(document.querySelector('[data-account=late] b').innerText)"
    before, dots = tab.value(late), tab.value(ORANGE)
    assert before > 0
    assert dots > 20
    moved(tab, "out_of_orderness", "1m")
    tab.until(f"{late} === 0")
    assert f"was {before}" in tab.text("[data-account=late]")
    tab.until(f"{ORANGE} < {dots / 2}")
    assert "out_of_orderness=1m" in tab.value("location.search")
    assert tab.value("document.getElementById('set-out_of_orderness').getAttribute('aria-valuetext')") == "1m"
    assert "out_of_orderness = 1m (was 10s)" in tab.text("#changed")
    # Shared, the address gives the same simulation; and a wrong one says what is wrong.
    shared = tab.value("location.href")
    tab.open(shared)
    tab.until(f"document.querySelector('[data-account=late]') !== null && {late} === 0")
    tab.value("document.getElementById('reset').click()")
    tab.until("document.getElementById('changed').hidden")
    assert "out_of_orderness" not in tab.value("location.search")
    tab.open(shared.replace("out_of_orderness=1m", "out_of_orderness=never"))
    tab.until("!document.getElementById('error').hidden")
    assert tab.text("#error").startswith("[SIMULATE_SETTING] `out_of_orderness` must be a duration from 0s to 1h;")
    tab.forget()  # the browser logs that it was refused

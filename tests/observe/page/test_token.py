"""The token of a page beyond the loopback: kept by the user, or new; weak ones are refused and none is shown."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from typer.testing import CliRunner

from slackwater.base import secrets
from slackwater.base.errors import RunError
from slackwater.observe.page.job_feed import JobFeed
from slackwater.observe.page.server import PageServer
from slackwater.tools.cli.main import app
from slackwater.tools.simulator.server import SimulatorServer
from tests.observe.page.made_up import job
from tests.observe.page.test_app import asked

TOKEN = "kept-0123456789_abcdef"  # noqa: S105  of no page but these
NAME = "SLACKWATER_PAGE_TOKEN"


def served() -> PageServer:
    return PageServer([JobFeed(job())], host="0.0.0.0")  # noqa: S104  what is tried


@pytest.fixture(params=["variable", "file", "mounted"])
def kept(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Keep a token in each place where secrets are."""
    (tmp_path / NAME).write_text(f"{TOKEN}\n")
    if request.param == "variable":
        monkeypatch.setenv(NAME, TOKEN)
    elif request.param == "file":
        monkeypatch.setenv(f"{NAME}_FILE", str(tmp_path / NAME))
    else:
        monkeypatch.setattr(secrets, "_MOUNTED", tmp_path)
    return TOKEN


def test_token_that_is_kept_is_the_same_at_each_start(kept: str) -> None:
    for _ in range(2):
        with served() as server:
            assert urlsplit(server.address).query == f"token={kept}"
            assert kept not in server.printed
            assert server.printed.endswith("/?token=<SLACKWATER_PAGE_TOKEN>")
            assert asked(server, f"/api/job?token={kept}")[0] == 200
            assert asked(server, f"/api/job?token={kept}x")[0] == 403
    with SimulatorServer({}, host="0.0.0.0") as simulator:  # noqa: S104  what is tried
        assert asked(simulator, f"/api/controls?token={kept}")[0] == 200


def test_token_is_new_at_each_start_if_none_is_kept() -> None:
    with served() as one, served() as other:
        assert one.printed == one.address, "nobody else knows it"
        assert urlsplit(one.address).query != urlsplit(other.address).query


def test_page_on_the_loopback_needs_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, TOKEN)
    with PageServer([JobFeed(job())]) as server:
        assert "token" not in server.address
        assert asked(server, "/api/job")[0] == 200


@pytest.mark.parametrize(
    "weak, got",
    [
        ("", "0 characters"),
        ("hush-hush", "9 characters"),
        ("hush hush hush hush hush", "other characters"),
        ("hush&token=0123456789", "other characters"),
    ],
)
def test_token_that_is_weak_or_fits_no_address_is_refused_and_not_shown(
    weak: str, got: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NAME, weak)
    with pytest.raises(RunError, match=rf"^\[PAGE_TOKEN\].*got {got};") as raised:
        served()
    assert "hush" not in str(raised.value)


def test_file_of_the_token_that_cannot_be_read_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{NAME}_FILE", str(tmp_path / "none"))
    with pytest.raises(RunError, match=r"^\[SECRET_MISSING\].*SLACKWATER_PAGE_TOKEN"):
        served()


def test_status_of_a_page_takes_the_token_that_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, TOKEN)
    with served() as server:
        address = server.address.partition("?")[0]
        done = CliRunner().invoke(app, ["status", "--url", address, "--json"])
        assert json.loads(done.output)[0]["pipeline"] == "purchases"
        wrong = CliRunner().invoke(app, ["status", "--url", f"{address}?token=x"]).exception
    assert isinstance(wrong, RunError)
    assert (wrong.code, TOKEN in str(wrong)) == ("STATUS_URL", False)

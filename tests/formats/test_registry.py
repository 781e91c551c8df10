"""The client of the schema registry: what it asks, what it keeps, how it fails, and what it never shows."""

from __future__ import annotations

import pickle
import socket
from dataclasses import dataclass
from typing import Any

import pytest

from slackwater.base.errors import DefinitionError, RunError
from slackwater.formats import Registry, registry
from slackwater.formats.registry import Reference
from tests.formats.registry_server import RegistryServer, running_registry

SUBJECT = "orders-value"
PASSWORD = "swordfish!"  # noqa: S105  made up


@dataclass(frozen=True)
class Hidden:
    """A secret that knows where its value is, and does not have it."""

    name: str

    def reveal(self) -> str:
        values = {"password": PASSWORD, "token": "t0ken", "wrong": "wr0ng", "two lines": "t0\nken", "accent": "tökén"}
        return values[self.name]


def paths(server: RegistryServer) -> list[str]:
    return [request.path for request in server.requests]


def test_a_schema_is_asked_for_once_in_a_process(server: RegistryServer) -> None:
    number = server.register(SUBJECT, '"string"')
    for _ in range(3):
        found = registry(server.url).schema(number)
        assert found is not None
        assert (found.id, found.text, found.kind, found.references) == (number, '"string"', "AVRO", ())
    assert paths(server) == [f"/schemas/ids/{number}"]


def test_an_unknown_id_is_asked_for_again_because_it_may_be_registered_meanwhile(server: RegistryServer) -> None:
    client = registry(server.url)
    assert client.schema(1) is None
    server.register(SUBJECT, '"long"')
    found = client.schema(1)
    assert found is not None
    assert found.text == '"long"'


@pytest.mark.parametrize("number", [-1, 2**31, 2**32 - 1])
def test_an_id_that_no_registry_gives_is_not_asked_for(number: int, server: RegistryServer) -> None:
    assert registry(server.url).schema(number) is None
    assert paths(server) == []


def test_the_latest_version_is_asked_for_every_time(server: RegistryServer) -> None:
    client = registry(server.url + "/")
    server.register(SUBJECT, '"string"')
    assert client.latest(SUBJECT).version == 1
    server.register(SUBJECT, '"bytes"')
    latest = client.latest(SUBJECT)
    assert (latest.version, latest.id, latest.text) == (2, 2, '"bytes"')


def test_a_version_is_found_by_number_and_none_that_does_not_exist(server: RegistryServer) -> None:
    client = registry(server.url)
    server.register("a/b c", '"string"')
    found = client.version("a/b c", 1)
    assert found is not None
    assert found.text == '"string"'
    assert client.version("a/b c", 2) is None
    assert client.version("nobody", 1) is None
    assert paths(server)[0] == "/subjects/a%2Fb%20c/versions/1"


def test_a_schema_is_registered_with_its_references(server: RegistryServer) -> None:
    client = registry(server.url)
    first = client.register("money", '{"type":"fixed","name":"Money","size":8}')
    second = client.register(SUBJECT, '"Money"', [Reference(name="Money", subject="money", version=1)])
    assert (first, second) == (1, 2)
    found = client.schema(second)
    assert found is not None
    assert found.references == (Reference(name="Money", subject="money", version=1),)


def test_an_unknown_subject_is_refused_when_the_pipeline_is_built(server: RegistryServer) -> None:
    with pytest.raises(DefinitionError, match=r"got `order-value`, which http://127.0.0.1:\d+ does not have") as caught:
        registry(server.url).latest("order-value")
    assert caught.value.code == "REGISTRY_SUBJECT"


def test_a_user_and_a_password_are_sent(server: RegistryServer) -> None:
    server.register(SUBJECT, '"string"')
    server.require_basic("ada", PASSWORD)
    assert registry(server.url, auth=("ada", Hidden("password"))).latest(SUBJECT).id == 1


def test_a_bearer_token_is_sent(server: RegistryServer) -> None:
    server.register(SUBJECT, '"string"')
    server.require_bearer("t0ken")
    assert registry(server.url, auth=Hidden("token")).latest(SUBJECT).id == 1


@pytest.mark.parametrize("auth", [None, ("ada", Hidden("wrong")), Hidden("wrong")])
def test_a_login_that_is_denied_is_reported_and_not_tried_again(auth: Any, server: RegistryServer) -> None:  # noqa: ANN401
    server.require_basic("ada", PASSWORD)
    with pytest.raises(RunError, match=r"got HTTP 401 for /schemas/ids/1 from http://") as caught:
        registry(server.url, auth=auth).schema(1)
    assert caught.value.code == "REGISTRY_DENIED"
    assert "wrong" not in str(caught.value)
    assert len(server.requests) == 1


def test_schemas_kept_for_one_user_are_not_given_to_another(server: RegistryServer) -> None:
    server.register(SUBJECT, '"string"')
    server.require_basic("ada", PASSWORD)
    assert registry(server.url, auth=("ada", Hidden("password"))).schema(1) is not None
    with pytest.raises(RunError, match="REGISTRY_DENIED"):
        registry(server.url, auth=("bob", Hidden("password"))).schema(1)


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_passing_failure_is_tried_again(status: int, server: RegistryServer) -> None:
    server.register(SUBJECT, '"string"')
    server.fail_next(status, times=3)
    assert registry(server.url).schema(1) is not None
    assert len(server.requests) == 4


def test_a_failure_that_lasts_fails_the_batch(server: RegistryServer) -> None:
    server.fail_next(503, times=4)
    with pytest.raises(RunError, match=r"no response from http://127.0.0.1:\d+ in 4 attempts \(HTTP 503\)") as caught:
        registry(server.url).schema(1)
    assert caught.value.code == "REGISTRY_UNREACHABLE"


def test_a_registry_that_hangs_is_not_waited_for(server: RegistryServer) -> None:
    server.hang_next(times=4)
    with pytest.raises(RunError, match=r"4 attempts \(.*timed out") as caught:
        registry(server.url, timeout="20ms").schema(1)
    assert caught.value.code == "REGISTRY_UNREACHABLE"


def test_a_registry_that_is_not_there_fails_the_batch() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(RunError, match="refused") as caught:
            registry(url, auth=("ada", Hidden("password"))).schema(1)
    assert caught.value.code == "REGISTRY_UNREACHABLE"
    assert PASSWORD not in str(caught.value)


@pytest.mark.parametrize(
    "status, body, words",
    [
        (404, b"<html>no such page</html>", "HTTP 404 without a JSON object"),
        (404, b'{"error_code":404,"message":"HTTP 404 Not Found"}', "HTTP 404, 'HTTP 404 Not Found'"),
        (200, b"[1]", "HTTP 200 without a JSON object"),
        (200, b"[" * 100_000, "HTTP 200 without a JSON object"),
        (200, b'{"id":1}', "a response without a schema (KeyError 'schema')"),
        (200, b'{"schema":"x","references":[{}]}', "a response without a schema"),
        (422, b'{"error_code":42201,"message":"Invalid schema"}', "HTTP 422, 'Invalid schema'"),
    ],
)
def test_an_answer_of_another_kind_is_an_error_and_no_unknown_schema(
    status: int, body: bytes, words: str, server: RegistryServer
) -> None:
    server.fail_next(status, body=body)
    with pytest.raises(RunError) as caught:
        registry(server.url).schema(1)
    assert caught.value.code == "REGISTRY_ANSWER"
    assert f"got {words}" in str(caught.value)


def test_credentials_do_not_follow_a_redirection_to_another_server(server: RegistryServer) -> None:
    with running_registry() as other:
        server.redirect_next(f"{other.url}/schemas/ids/1")
        with pytest.raises(RunError, match="got HTTP 302"):
            registry(server.url, auth=("ada", Hidden("password"))).schema(1)
        assert other.requests == []


@pytest.mark.parametrize("name", ["two lines", "accent"])
def test_a_token_that_no_header_can_hold_is_not_shown(name: str, server: RegistryServer) -> None:
    with pytest.raises(RunError, match=r"one line of printable ASCII; got other characters .* for http://") as caught:
        registry(server.url, auth=Hidden(name)).schema(1)
    assert caught.value.code == "REGISTRY_TOKEN"
    assert not {"t0", "ken", "tökén"} & set(str(caught.value).split())
    assert paths(server) == []


@pytest.mark.parametrize("auth", [("ada", Hidden("password")), Hidden("password")])
def test_credentials_are_not_shown(auth: Any) -> None:  # noqa: ANN401
    client = registry("http://host:8081", auth=auth)
    assert PASSWORD not in repr(client)
    assert str(client) == "http://host:8081"


def test_the_value_of_a_secret_does_not_travel() -> None:
    client = registry("http://host:8081", auth=("ada", Hidden("password")))
    travelled = pickle.dumps(client)
    assert PASSWORD.encode() not in travelled
    assert pickle.loads(travelled) == client  # noqa: S301  our own bytes


def test_a_registry_may_be_part_of_what_is_hashed() -> None:
    assert hash(registry("http://host:8081", auth=Hidden("token"))) == hash(registry("http://host:8081"))


@pytest.mark.parametrize(
    "url, words",
    [
        ("host:8081", "got 'host:8081'"),
        ("ftp://host", "got 'ftp://host'"),
        ("http://", "got 'http://'"),
        ("http://host/?x=1", "got 'http://host/?…'"),
        (8081, "got 8081"),
        ("http://ada@host", "got 'http://…@host'"),
        (f"http://ada:{PASSWORD}@host:8081", "got 'http://…@host:8081'"),
        (f"http://host:8081?token={PASSWORD}", "got 'http://host:8081?…'"),
        ("http://[::1", "got 'http://[::1'"),
        ("http://host:port", "got 'http://host:port'"),
        ("http://host/\nX: y", "got 'http://host/\\nX: y'"),
    ],
)
def test_an_unusable_address_is_refused(url: Any, words: str) -> None:  # noqa: ANN401
    with pytest.raises(DefinitionError) as caught:
        registry(url)
    assert caught.value.code == "REGISTRY_ADDRESS"
    assert words in str(caught.value)
    assert PASSWORD not in str(caught.value)


@pytest.mark.parametrize("auth", [3, (), ("ada", 3), (3, Hidden("token")), ["ada", "x"], {}])
def test_credentials_of_another_kind_are_refused(auth: Any) -> None:  # noqa: ANN401
    with pytest.raises(DefinitionError, match="must be a pair of user and password or a bearer token") as caught:
        registry("http://host:8081", auth=auth)
    assert caught.value.code == "REGISTRY_AUTH"


def test_a_timeout_of_zero_is_refused() -> None:
    with pytest.raises(DefinitionError, match="registry `timeout` must be longer than zero"):
        registry("http://host:8081", timeout="0s")


def test_registry_is_what_the_function_makes() -> None:
    assert isinstance(registry("https://host/prefix/"), Registry)
    assert registry("https://host/prefix/").url == "https://host/prefix"
    assert registry("http://[::1]:8081").url == "http://[::1]:8081"


@pytest.mark.parametrize("auth", [PASSWORD, ("ada", PASSWORD), (PASSWORD,)])
def test_credentials_in_the_open_are_refused_and_not_repeated(auth: Any) -> None:  # noqa: ANN401
    with pytest.raises(DefinitionError, match="SECRET_EXPECTED") as caught:
        registry("http://host:8081", auth=auth)
    assert PASSWORD not in str(caught.value)

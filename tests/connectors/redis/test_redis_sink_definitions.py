"""What a Redis sink may be told: its options, and the columns of its output."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from slackwater.base.errors import DefinitionError
from slackwater.connectors.redis.sink import redis
from slackwater.connectors.sink import Slot


@pytest.mark.parametrize(
    "options, words",
    [
        ({"key": "usr"}, r"`key` .*has no column `usr` \(did you mean `user`\?\)"),
        ({"key": "user", "columns": ["orders", "sum"]}, r"`columns` .*has no column `sum`"),
        ({"key": "ratio"}, r"`key` .*has `ratio` of type Float64"),
        ({"key": ["user", "tags"]}, r"`key` .*has `tags` of type List"),
        ({"key": ["user", "orders", "ratio_text", "tags_text"]}, r"has no column `ratio_text`"),
    ],
)
def test_columns_that_the_output_does_not_have_are_an_error(options: dict[str, Any], words: str) -> None:
    schema = pl.Schema({"user": pl.String(), "orders": pl.Int64(), "ratio": pl.Float64(), "tags": pl.List(pl.String())})
    with pytest.raises(DefinitionError, match=rf"REDIS_COLUMN.*{words}"):
        redis("redis://localhost", **options).check(Slot(pipeline="test", output="results", schema=schema))


def test_output_of_keys_alone_is_an_error() -> None:
    slot = Slot(pipeline="test", output="results", schema=pl.Schema({"user": pl.String()}))
    with pytest.raises(DefinitionError, match=r"REDIS_COLUMN.*no column besides the key"):
        redis("redis://localhost", key="user").check(slot)


@pytest.mark.parametrize(
    "url, options, words",
    [
        ("http://host?password=hush", {}, r"a URL without a password; got http://host\?…"),
        ("redis://:hush@host", {}, r"without a password; got redis://.*…@host; write password=sw.secret"),
        ("http://host", {}, "redis://host:6379/0"),
        ("redis://", {}, "redis://host:6379/0"),
        ("redis://host:port", {}, "an invalid URL"),
        (7, {}, "write it as a string"),
        ("redis://host?ssl_cert_reqs=none", {}, "without settings"),
        ("redis://host", {"ca": "ca.pem"}, "write rediss://"),
        ("redis://host", {"key": []}, "at least one column"),
        ("redis://host", {"key": 7}, "a column name, or a list of distinct names; got 7"),
        ("redis://host", {"key": ["a", "a"]}, "each once"),
        ("redis://host", {"columns": ["user"]}, "columns other than the key; got `user` in both"),
        ("redis://host", {"prefix": ""}, "a string; got ''; write, for example, prefix"),
        ("redis://host", {"delivery": "twice"}, "one of exactly_once, at_least_once, at_most_once"),
    ],
)
def test_definition_that_cannot_be_right_is_refused(url: Any, options: dict[str, Any], words: str) -> None:  # noqa: ANN401
    with pytest.raises(DefinitionError, match=rf"SINK_OPTION.*of the Redis sink must be.*{words}") as refused:
        redis(url, **{"key": "user"} | options)
    assert "hush" not in str(refused.value)


def test_password_must_be_a_secret() -> None:
    with pytest.raises(DefinitionError, match=r"SECRET_EXPECTED.*`password`"):
        redis("redis://host", key="user", password="hush")  # type: ignore[arg-type]  # noqa: S106

"""What a stream does not have is an `AttributeError`, as of any object."""

from __future__ import annotations

import copy
import pickle

import pytest

import slackwater as sw


def test_an_attribute_that_nothing_has_is_an_attribute_error() -> None:
    stream = sw.stream("a", sw.testing.rows_source("k string, ts long"))
    assert not hasattr(stream, "no_such_thing")
    with pytest.raises(AttributeError, match="'Stream' object has no attribute 'no_such_thing'"):
        stream.no_such_thing  # type: ignore[attr-defined]  # noqa: B018  the point of the test
    with pytest.raises(AttributeError, match="'KeyedStream' object has no attribute 'where'"):
        stream.key_by("k").where  # type: ignore[attr-defined]  # noqa: B018  as above


def test_streams_can_be_copied() -> None:
    keyed = sw.stream("a", sw.testing.rows_source("k string, ts long")).key_by("k")
    assert copy.copy(keyed).keys == ("k",)
    assert pickle.loads(pickle.dumps(keyed)).stream.name == "a"  # noqa: S301  made here

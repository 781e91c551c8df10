"""The contract of every decoder: whatever the bytes, no exception, each record in its place, no neighbour harmed.

What a record means is compared with a model of its format in the format's own tests.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from slackwater.formats import Format, avro, csv, json, protobuf
from slackwater.formats.base import Decoded
from slackwater.formats.json import proof as json_proof
from tests.formats.avro.test_avro_fuzz import spoiled as spoiled_avro
from tests.formats.csv import test_csv_fuzz as csv_records
from tests.formats.debezium import debezium_damage as debezium
from tests.formats.debezium.debezium_samples import written
from tests.formats.json.test_json_fuzz import chunks as json_chunks
from tests.formats.protobuf.test_protobuf_fuzz import RICH_MESSAGE
from tests.formats.protobuf.test_protobuf_fuzz import record_of as protobuf_record
from tests.formats.spoiling import cut, drop, flip

Column = list[bytes | None]
DICE: Final = st.randoms(use_true_random=False)


def spoiled(dice: random.Random, good: list[bytes]) -> Column:
    """Return good records, and some of them spoiled, in any order."""
    spoil: list[Callable[[random.Random, bytes], bytes]] = [cut, flip, drop]
    bad = [dice.choice(spoil)(dice, dice.choice(good) or b"0") for _ in range(dice.randrange(8))]
    mixed: Column = [*good, *bad]
    dice.shuffle(mixed)
    return mixed


def of_csv(dice: random.Random) -> tuple[Format, Column]:
    ddl = dice.choice(csv_records.SCHEMAS)
    good = [csv_records.record_of(dice, ddl, {}) for _ in range(6)]
    return csv(ddl), [*good, *(csv_records.spoil(dice, record) for record in good)]


def of_debezium(dice: random.Random) -> tuple[Format, Column]:
    good = [dice.choice(debezium.GOOD) for _ in range(6)]
    return debezium.FORM, [*good, *(debezium.damaged(record, dice) for record in good)]


FORMATS: Final[dict[str, st.SearchStrategy[tuple[Format, Any]]]] = {
    "json": json_chunks().map(lambda chunk: (json(chunk[0]), chunk[1])),
    "csv": DICE.map(of_csv),
    "avro": spoiled_avro().map(lambda case: (avro(case.reader), case.records)),
    "protobuf": DICE.map(
        lambda dice: (protobuf(RICH_MESSAGE), spoiled(dice, [protobuf_record(dice, RICH_MESSAGE) for _ in range(4)]))
    ),
    "debezium": DICE.map(of_debezium),
    "debezium, any JSON": st.lists(debezium.JSON.map(written) | st.binary(max_size=30), max_size=8).map(
        lambda records: (debezium.FORM, [*records, *debezium.GOOD[:3]])
    ),
}
"""For each format, strategies for a definition and a column of records, good and spoiled."""
each = pytest.mark.parametrize("kind", FORMATS)


@pytest.fixture(autouse=True)
def _learn_from_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_proof, "_FEWEST", 1)


def decode(form: Format, records: Column) -> Decoded:
    return form.decoder().decode(pl.Series(records, dtype=pl.Binary))


def check_places(form: Format, records: Column, found: Decoded) -> None:
    """See that there is a row for each record, and that the bad ones are reported in order, with words, and null."""
    assert found.frame.schema == form.schema
    assert found.frame.height == len(records)
    bad = found.bad["index"].to_list()
    assert bad == sorted(set(bad))
    assert set(bad) <= set(range(len(records)))
    assert all(found.bad["reason"])
    assert all(found.bad["message"])
    assert all(value is None for at in bad for value in found.frame.row(at))


def check_alone(form: Format, records: Column, place: int, together: Decoded) -> None:
    """See that a record is read alone as it is among others."""
    alone = decode(form, records[place : place + 1])
    assert_frame_equal(alone.frame, together.frame[place : place + 1])
    flaws = together.bad.filter(pl.col("index") == place)
    assert_frame_equal(alone.bad.drop("index"), flaws.drop("index"))


@each
@given(data=st.data())
def test_spoiled_records_are_reported_in_their_places_and_harm_no_other(kind: str, data: st.DataObject) -> None:
    form, records = data.draw(FORMATS[kind])
    dice, column = data.draw(DICE), pl.Series(records, dtype=pl.Binary)
    decoder = form.decoder()
    found = decoder.decode(column)
    check_places(form, records, found)
    for place in dice.sample(range(len(records)), min(2, len(records))):
        check_alone(form, records, place, found)

    decoder.decode(column.reverse())
    again = decoder.decode(column)
    assert_frame_equal(again.frame, found.frame)
    assert_frame_equal(again.bad, found.bad)

    unread = [name for name in form.schema if name in form.optional and dice.random() < 0.5]
    kept = [name for name in form.schema if name not in unread] or form.schema.names()[:1]
    narrow = form.narrow_decoder(unread).decode(column)
    assert_frame_equal(narrow.frame.select(kept), found.frame.select(kept))
    assert_frame_equal(narrow.bad, found.bad)


@each
@given(data=st.data())
def test_noise_and_nulls_are_reported_or_read_and_raise_nothing(kind: str, data: st.DataObject) -> None:
    form, records = data.draw(FORMATS[kind])
    noise: Column = data.draw(st.lists(st.none() | st.binary(max_size=30), max_size=12))
    check_places(form, [*noise, *records[:3]], decode(form, [*noise, *records[:3]]))


def test_undamaged_records_are_all_good() -> None:
    assert decode(debezium.FORM, list(debezium.GOOD)).bad.is_empty()

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator

import pytest

from slackwater.base.errors import (
    DefinitionError,
    RunError,
    cause_of,
    counted,
    fault,
    listed,
    near_miss,
    refuse,
    render,
)
from slackwater.base.errors.catalogue import CATALOGUE
from tests.base.error_codes import notices, placeholders, uses


def test_catalogue_is_sorted() -> None:
    assert list(CATALOGUE) == sorted(CATALOGUE)


def test_codes_are_made_of_capital_words() -> None:
    assert [code for code in CATALOGUE if not re.fullmatch(r"[A-Z]+(_[A-Z]+)*", code)] == []


def test_every_message_renders_with_its_facts_filled_in() -> None:
    for code, template in CATALOGUE.items():
        facts = {name: f"<{name}>" for name in placeholders(template)}
        message = render(code, **facts)
        assert all(fact in message for fact in facts.values()), code
        assert "{" not in message, code


NAMES = {"Avro", "CSV", "Debezium", "JSON", "Kafka", "Maven", "Postgres", "Spark", "Spark's", "TLS"}


def misshapen(code: str) -> Iterator[str]:
    """Yield what is wrong with the shape of a message."""
    first, *_, last = parts = CATALOGUE[code].split("; ")
    if len(parts) < 3 and code not in notices():
        yield f"{code}: an error has three parts, with semicolons between them"
    if not all(part.strip() == part and part for part in parts):
        yield f"{code}: a part is empty, or has blanks around it"
    if not (first[0] in "`{" or first[0].islower() or first.split()[0] in NAMES):
        yield f"{code}: a message begins with a small letter, or with a name"
    if last.endswith((".", "!")):
        yield f"{code}: a message has no full stop at its end"


def test_message_of_an_error_has_the_rule_then_what_was_got_then_what_to_do() -> None:
    assert [wrong for code in CATALOGUE for wrong in misshapen(code)] == []


def test_notices_are_the_messages_of_warnings() -> None:
    assert {"KAFKA_WAITING", "SINK_BACK"} <= notices()
    assert "SINK_GAVE_UP" not in notices()


def test_every_code_that_is_raised_is_in_the_catalogue() -> None:
    assert [f"{use.place} {use.code}" for use in uses() if use.code not in CATALOGUE] == []


def test_every_code_that_is_raised_gets_its_facts() -> None:
    known = [use for use in uses() if use.code in CATALOGUE and use.facts is not None]
    missing = {f"{use.place} {use.code}": placeholders(CATALOGUE[use.code]) - (use.facts or set()) for use in known}
    assert {place: facts for place, facts in missing.items() if facts} == {}
    assert len(known) > 500, "most places name their facts"


def test_every_code_of_the_catalogue_is_raised_somewhere() -> None:
    assert sorted(set(CATALOGUE) - {use.code for use in uses()}) == []


def test_a_code_is_either_refused_or_a_fault_never_both() -> None:
    refused = {use.code for use in uses() if use.is_refusal}
    faults = {use.code for use in uses() if not use.is_refusal}
    assert sorted(refused & faults) == []


@pytest.mark.parametrize("number, shown", [(0, "0 rows"), (1, "1 row"), (2_000, "2,000 rows")])
def test_what_is_counted_has_its_number(number: int, shown: str) -> None:
    assert counted(number, "row") == shown


def test_cause_is_one_line_of_what_an_error_says() -> None:
    assert cause_of(ValueError("no such thing\n\nResolved plan until failure:\n\t---> FAILED HERE")) == (
        "ValueError: no such thing"
    )
    assert cause_of(KeyError()) == "KeyError"


def test_error_shows_its_code_before_its_message() -> None:
    error = refuse("PIPELINE_EMPTY", pipeline="orders")
    assert isinstance(error, DefinitionError)
    assert str(error).startswith("[PIPELINE_EMPTY] a pipeline needs at least one output; got none in `orders`;")
    assert error.code == "PIPELINE_EMPTY"


def test_error_survives_the_way_from_a_worker_to_the_driver() -> None:
    error = fault("CHECKPOINT_FINISHED", path="/tmp/somewhere", outputs="")  # noqa: S108  a text, not a file
    again = pickle.loads(pickle.dumps(error))  # noqa: S301  our own bytes
    assert isinstance(again, RunError)
    assert (again.code, str(again)) == (error.code, str(error))


@pytest.mark.parametrize(
    "name, known, hint",
    [
        ("usr_id", ["amount", "user_id"], " (did you mean `user_id`?)"),
        ("flighst", ["orders.window", "flights.window"], " (did you mean `flights.window`?)"),
        ("weight", ["amount", "user_id"], ""),
    ],
)
def test_near_miss_offers_the_closest_name_also_by_what_stands_before_its_dot(
    name: str, known: list[str], hint: str
) -> None:
    assert near_miss(name, known) == hint


def test_long_list_has_its_first_names_and_the_number_of_the_others() -> None:
    assert listed(["a", "b", "c"], most=3) == "a, b, c"
    assert listed(map(str, range(15)), most=3) == "0, 1, 2 and 12 more"
    assert listed([]) == "none"


def test_long_list_begins_with_what_was_probably_meant() -> None:
    assert listed(["id", "total", "amount"], near="amonut", most=2) == "amount, id and 1 more"
    assert listed(["id", "total", "amount"], near="amonut") == "id, total, amount"

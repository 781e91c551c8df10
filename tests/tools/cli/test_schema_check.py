"""`slackwater schema check`: what it says about a change, and the exit code it gives."""

# ruff: noqa: E501  one change a line, with its level and why

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given
from typer.testing import CliRunner, Result

from slackwater.base.errors import DefinitionError
from slackwater.formats.avro.compat import compare_avro
from slackwater.formats.avro.parser import AvroParser
from slackwater.tools.cli.schema import schema as commands
from tests.formats.avro.avro_model import BadError, UnreadableError, decode
from tests.formats.avro.avro_schemas import Written, evolved

app = typer.Typer()
app.add_typer(commands, name="schema")


def order(*fields: Any) -> dict[str, Any]:  # noqa: ANN401
    listed = [{"name": each[0], "type": each[1], **({"default": each[2]} if len(each) > 2 else {})} for each in fields]
    return {"type": "record", "name": "Order", "fields": listed}


def check(folder: Path, old: object, new: object, *options: str) -> Result:
    paths = []
    for name, declared in (("old", old), ("new", new)):
        is_ddl = isinstance(declared, str)
        path = folder / f"{name}.{'ddl' if is_ddl else 'avsc'}"
        path.write_text(str(declared) if is_ddl else json.dumps(declared))
        paths.append(str(path))
    return CliRunner().invoke(app, ["schema", "check", *paths, *options])


ID = order(("id", "long"))
WITH_NOTE = order(("id", "long"), ("note", "string"))
WITH_DEFAULT = order(("id", "long"), ("note", "string", ""))
AS_INT = order(("id", "int"))
AS_TEXT = order(("id", "string"))
ONE, TWO = ({"type": "enum", "name": "E", "symbols": symbols} for symbols in (["A"], ["A", "B"]))


@pytest.mark.parametrize(
    "old, new, level, why",
    [
        (ID, ID, "full", []),
        (ID, WITH_DEFAULT, "full", []),
        (WITH_NOTE, ID, "backward", ["field `note`: the writer has no such field, and the reader has no default for it"]),
        (ID, WITH_NOTE, "forward", ["field `note`: the writer has no such field, and the reader has no default for it"]),
        (AS_INT, ID, "backward", ["field `id`: the writer has long, the reader int"]),
        (ID, AS_TEXT, "none", ["field `id`: the writer has long, the reader string", "field `id`: the writer has string, the"]),
        (order(("e", ONE)), order(("e", TWO)), "backward", ["field `e`: the reader's enum `E` lacks B of the writer's, and"]),
        (order(("e", TWO)), order(("e", {**ONE, "default": "A"})), "full", []),
        (order(("a", "int")), order(("a", ["null", "int"])), "backward", ["field `a`: the writer has null, the reader int"]),
        (
            order(("a", ["null", "int", "string"])),
            order(("a", ["string", "long"])),
            "none",
            ["field `a`: the writer has null, the reader union of string, long", "field `a`: the writer has long, the reader"],
        ),
        (
            order(("a", {"type": "array", "items": {**order(("x", "int")), "name": "Item"}})),
            order(("a", {"type": "array", "items": {**order(("x", "bytes")), "name": "Item"}})),
            "none",
            ["field `a[].x`: the writer has int, the reader bytes"],
        ),
        (
            order(("t", {"type": "int", "logicalType": "date"})),
            order(("t", {"type": "long", "logicalType": "timestamp-millis"})),
            "none",
            ["field `t`: the writer has int (date), the reader long (timestamp-millis)"],
        ),
        (
            order(("p", {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2})),
            order(("p", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2})),
            "backward",
            ["field `p`: the writer has bytes (decimal(9,2)), the reader bytes (decimal(5,2))"],
        ),
        (
            order(("p", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2})),
            order(("p", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 3})),
            "none",
            ["field `p`: the writer has bytes (decimal(9,2)), the reader bytes (decimal(9,3))"],
        ),
    ],
)  # fmt: skip
def test_a_change_of_an_avro_schema_is_judged_and_explained_by_field(
    old: object, new: object, level: str, why: list[str], tmp_path: Path
) -> None:
    done = check(tmp_path, old, new)
    assert done.stdout.startswith(f"{level}: ")
    assert done.exit_code == (0 if level == "full" else 1)
    lines = [line.strip() for line in done.stdout.splitlines() if line.startswith("  ")]
    assert all(any(line.startswith(words) for line in lines) for words in why)
    assert bool(lines) == bool(why)


def test_what_neither_side_can_read_stands_under_its_side(tmp_path: Path) -> None:
    done = check(tmp_path, order(("id", "int"), ("x", "int")), order(("id", "long"), ("y", "int")))
    assert done.stdout.splitlines() == [
        "none: neither version can read records of the other",
        "the new version cannot read records of the old:",
        "  field `y`: the writer has no such field, and the reader has no default for it",
        "the old version cannot read records of the new:",
        "  field `id`: the writer has long, the reader int",
        "  field `x`: the writer has no such field, and the reader has no default for it",
    ]


@pytest.mark.parametrize(
    "old, new, need, code",
    [
        (ID, WITH_DEFAULT, "full", 0),
        (ID, WITH_DEFAULT, "backward", 0),
        (ID, WITH_DEFAULT, "forward", 0),
        (AS_INT, ID, "backward", 0),
        (AS_INT, ID, "forward", 1),
        (AS_INT, ID, "full", 1),
        (ID, AS_INT, "forward", 0),
        (ID, AS_INT, "backward", 1),
        (ID, AS_TEXT, "backward", 1),
        (ID, AS_TEXT, "sideways", 2),
    ],
)
def test_exit_code_says_whether_what_is_needed_is_there(
    old: object, new: object, need: str, code: int, tmp_path: Path
) -> None:
    assert check(tmp_path, old, new, "--need", need).exit_code == code


@pytest.mark.parametrize(
    "old, new, level",
    [
        ("id bigint", "id bigint, note string", "full"),
        ("id int", "id bigint", "backward"),
        ("id bigint", "id int", "forward"),
        ("id int", "id double", "backward"),
        ("id int", "id decimal(10,0)", "backward"),
        ("id int", "id decimal(10,1)", "none"),
        ("p decimal(5,2)", "p decimal(6,3)", "backward"),
        ("p decimal(5,2)", "p decimal(5,3)", "none"),
        ("f double", "f float", "forward"),
        ("t timestamp", "t string", "backward"),
        ("t timestamp", "t date", "none"),
        ("s struct<a:int,b:string>", "s struct<a:bigint>", "backward"),
        ("l array<struct<a:int>>, m map<string,int>", "l array<struct<a:string>>, m map<string,int>", "none"),
        ("a boolean", "a int", "none"),
    ],
)
def test_a_change_of_a_json_declaration_is_judged_by_its_types(old: str, new: str, level: str, tmp_path: Path) -> None:
    assert check(tmp_path, old, new).stdout.startswith(f"{level}: ")


def test_a_nested_field_of_a_json_declaration_is_named(tmp_path: Path) -> None:
    done = check(tmp_path, "l array<struct<a:int>>", "l array<struct<a:boolean>>")
    assert "  field `l[].a`: the writer has int, the reader boolean" in done.stdout


@pytest.mark.parametrize(
    "old, new, code, words",
    [
        (ID, "id bigint", "SCHEMA_KINDS", "got Avro and DDL; compare two Avro schemas"),
        ("id bigint", ID, "SCHEMA_KINDS", "got DDL and Avro"),
        (ID, {"type": "nope"}, "AVRO_SCHEMA", "new.avsc`; use null, boolean"),
        ("id bignit", "id bigint", "BAD_SCHEMA", "unknown type `bignit`"),
    ],
)
def test_files_that_cannot_be_compared_are_refused(
    old: object, new: object, code: str, words: str, tmp_path: Path
) -> None:
    error = check(tmp_path, old, new).exception
    assert isinstance(error, DefinitionError)
    assert error.code == code
    assert words in str(error)


def test_a_file_that_is_missing_is_refused(tmp_path: Path) -> None:
    error = CliRunner().invoke(app, ["schema", "check", str(tmp_path / "a.avsc"), str(tmp_path / "b.avsc")]).exception
    assert isinstance(error, DefinitionError)
    assert (error.code, "a.avsc` (No such file or directory)" in str(error)) == ("SCHEMA_FILE", True)


@given(case=evolved())
def test_what_is_backward_compatible_has_no_record_that_the_new_version_cannot_read(case: Written) -> None:
    found = compare_avro(AvroParser().parse(case.writer), AvroParser().parse(case.reader))
    lost = []
    for record in case.records:
        try:
            decode(case.writer, case.reader, record)
        except UnreadableError:
            lost.append(record)
        except BadError:
            continue
    assert not lost or found.backward

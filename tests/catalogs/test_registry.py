"""The registry of import formats: what documents and help say of it, and what follows from it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from normata.catalogs.documents import ImportFormat, MediaType
from normata.catalogs.reading import Input, read_inputs
from normata.catalogs.registry import FORMATS, by_media_type
from normata.cli import importing
from normata.core.changes.source import FaultyInput, Row
from normata.core.http.operation import ChangeOperation
from normata.operations import OPERATIONS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("one", FORMATS, ids=lambda one: one.name)
def test_every_format_is_in_the_docs_and_in_the_help(one: ImportFormat) -> None:
    types = ", ".join(f"`{media_type.name}`" for media_type in one.media_types)
    row = f"| {one.name} | {types} | {f'`{one.extra}`' if one.extra else 'none'} |"
    assert row in (ROOT / "docs" / "operations.md").read_text("utf-8")
    assert one.name in " ".join((importing.import_.__doc__ or "").split())
    if one.extra:
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
        assert one.extra in extras


def test_both_imports_take_every_media_type_of_a_format() -> None:
    paths = ("/imports/", "/catalogs/")
    imports = [one for one in OPERATIONS if one.path in paths and isinstance(one, ChangeOperation)]
    imports.sort(key=lambda one: paths.index(one.path))
    assert len(imports) == 2
    expected = {media_type.name for one in FORMATS for media_type in one.media_types}
    for operation in imports:
        assert set(operation.body_formats) == expected
    assert all(one.name in operation.description for one in FORMATS for operation in imports[:1])
    assert {one for formats in by_media_type().values() for one in formats} == set(FORMATS)


def test_a_format_may_be_neither_json_nor_yaml() -> None:
    plain = ImportFormat(
        name="plain list",
        recognizes=lambda document: document.text.startswith("\tplain"),
        read=lambda document, _, __: ([Row("frameworks", document.file, "", framework(document.text))], []),
        media_types=(MediaType("text/plain", {"type": "string"}),),
    )
    content = b"\tplain: ["
    with pytest.raises(FaultyInput, match="1 fault"):
        read_inputs([Input("list", "list", lambda: content)])
    [row] = read_inputs([Input("list", "list", lambda: content, [*FORMATS, plain])]).rows
    assert row.values["id"] == content.decode()


def framework(identifier: str) -> dict[str, object]:
    return {"id": identifier, "identifier": identifier, "name": "Plain"}

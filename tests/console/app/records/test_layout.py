"""Which fields of each kind come first, and what the values of its states look like."""

from __future__ import annotations

import pytest

from normata.console.app.records import layout
from normata.console.app.records.layout import first_of, form_layout
from normata.console.states import meaning
from normata.records.base import Restorable
from normata.records.fields import fields_of
from tests.records.shapes import KINDS

_SAYS_NOTHING = {"UNKNOWN"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_form_has_each_field_once_and_few_first(kind: type[Restorable]) -> None:
    parts = form_layout(kind)
    shown = [field.name for part in parts for field in part]
    assert sorted(shown) == sorted(field.name for field in fields_of(kind) if field.is_typed)
    first = [field.name for field in (*parts.written, *parts.chosen)]
    assert first[0] == next(field.name for field in fields_of(kind) if field.is_title)
    assert len(first) <= (6 if kind.path in layout._FIRST else 5)
    assert {field.name for field in first_of(kind)} == set(first)


@pytest.mark.parametrize("path", layout._FIRST)
def test_the_fields_that_are_listed_are_there(path: str) -> None:
    kind = next(one for one in Restorable.kinds if one.path == path)
    assert set(layout._FIRST[path]) == {field.name for field in first_of(kind)}


def test_what_an_address_names_is_seen() -> None:
    kind = next(one for one in Restorable.kinds if one.path == "tasks")
    assert "policyId" in [field.name for field in form_layout(kind, ["policyId", "slug"]).chosen]
    assert "slug" in [field.name for field in form_layout(kind, ["policyId", "slug"]).seldom]


@pytest.mark.parametrize("kind", KINDS)
def test_every_known_state_has_a_colour_and_a_shape(kind: type[Restorable]) -> None:
    states = [field for field in fields_of(kind) if field.name in ("status", "severity", "priority")]
    without = {value for field in states for value in field.known if meaning(value) is None}
    assert without <= _SAYS_NOTHING

"""What the fields of kinds are, told from their declarations."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from normata.core.schema.table import Due
from normata.records.base import Restorable
from normata.records.fields import fields_of, referring_to
from normata.records.kinds import Asset, Policy, Task
from tests.records.shapes import KINDS, SHAPES

# The sorts that a field of each type on the wire may have.
_SORTS = {
    "string": {"text", "prose", "reference", "foreign"},
    "time": {"moment"},
    "integer": {"count"},
    "number": {"number"},
    "enum": {"token"},
    "boolean": {"flag"},
    "any": {"document"},
    "files": {"files"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_has_its_sort(kind: type[Restorable]) -> None:
    shape = SHAPES[kind.path]
    fields = {field.name: field for field in fields_of(kind)}
    assert fields.keys() == shape.fields.keys()
    for name, sort in shape.fields.items():
        assert fields[name].sort in _SORTS[sort], name
        assert fields[name].may_be_null == shape.nullable(name), name
    assert sum(field.is_title for field in fields.values()) == 1
    assert not any(fields[name].is_writable for name in ("id", "organizationId", "createdAt", "archivedAt"))


def test_sorts_of_texts_and_ids() -> None:
    fields = {field.name: field for field in fields_of(Task)}
    assert (fields["title"].sort, fields["description"].sort) == ("text", "prose")
    assert (fields["policyId"].sort, fields["policyId"].target) == ("reference", "policies")
    assert (fields["trainingId"].sort, fields["trainingId"].target) == ("foreign", "")
    assert fields["assigneeMemberId"].target == "memberships"
    assert [field.name for field in fields.values() if field.is_responsible] == ["assigneeMemberId"]
    assert fields["status"].known[0] == fields["status"].default == "TODO"


def test_what_refers_to_a_kind() -> None:
    assert [(kind, field.name) for kind, field in referring_to("assets")] == [(Task, "assetId"), (Asset, "parentId")]
    assert [(kind, field.name) for kind, field in referring_to("policies")] == [(Task, "policyId")]
    assert referring_to("labels") == ()


@pytest.mark.parametrize("kind", KINDS)
def test_what_still_has_to_be_done(kind: type[Restorable]) -> None:
    """A date counts for a live record, until one of its statuses or another date ends it."""
    for field in fields_of(kind):
        if field.ends is None:
            continue
        statuses: list[Any] = ["OTHER", *field.ends.at]
        for archived, status, ended in product((None, "2026-01-01"), statuses, (None, "2026-01-01")):
            others = {one.name: None for one in fields_of(kind)}
            once = {_wire(name): ended for name in field.ends.once}
            at = {field.name: "2126-01-01T00:00:00.000Z"}
            record = {**others, **once, **at, "archivedAt": archived, "status": status}
            is_ended = status in field.ends.at or (ended is not None and bool(field.ends.once))
            assert field.is_open(record) == (archived is None and not is_ended)
            past = record | {field.name: "2026-01-01T00:00:00.000Z"}
            assert field.is_open(past) == (field.is_open(record) and not field.ends.ends_by_passing)
            assert not field.is_open({**record, field.name: None})


def test_no_other_field_has_an_end() -> None:
    assert [field.name for field in fields_of(Policy) if field.ends == Due(at=("RETIRED",))] == ["nextReviewAt"]


def _wire(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)

"""Restores that are refused: who asks for what, and the answer. Nothing of it is written."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from normata.records.base import Restorable
from normata.records.kinds import Label
from tests import stored, world
from tests.records.restoring import add_archived, restore, written
from tests.records.shapes import KINDS, WITH_SLUG
from tests.served import Headers, Served, refused, removal_of
from tests.world import ALPHA, BETA, record_id


class Case(NamedTuple):
    """Who asks for what, and the answer."""

    state: str
    status: int
    code: str
    user: str = "editor"
    scope: str = "write"
    organization: str = ALPHA


CASES = {
    "live": Case("live", 409, "not_archived"),
    "unknown": Case("unknown", 404, "not_found"),
    "of another kind": Case("another kind's", 404, "not_found"),
    "foreign": Case("archived", 404, "not_found", organization=BETA),
    "foreign and live": Case("live", 404, "not_found", organization=BETA),
    "by a foreigner": Case("archived", 404, "not_found", user="foreigner"),
    "by a member of nothing": Case("archived", 404, "not_found", user="nobody"),
    "by a viewer": Case("archived", 403, "forbidden", user="viewer"),
    "live, by a viewer": Case("live", 403, "forbidden", user="viewer"),
    "unknown, by a viewer": Case("unknown", 404, "not_found", user="viewer"),
    "with a read-only token": Case("archived", 403, "forbidden", scope="read", user="owner"),
}


@pytest.fixture(scope="module")
def headers(shared: Served) -> dict[tuple[str, str], Headers]:
    """The headers of all users and scopes that ask."""
    return {(case.user, case.scope): shared.bearer(case.user, scope=case.scope) for case in CASES.values()}


@pytest.mark.parametrize("kind", KINDS)
def test_a_refusal_changes_nothing(
    shared: Served, headers: dict[tuple[str, str], Headers], kind: type[Restorable]
) -> None:
    before = written(shared, kind)
    for case in CASES.values():
        row_id = record_id(kind, case.state, case.organization)
        if case.state == "another kind's":
            row_id = record_id(Restorable.kinds[Restorable.kinds.index(kind) - 1], "archived")
        refused(restore(shared, kind, row_id, headers[case.user, case.scope]), case.status, case.code)
    assert written(shared, kind) == before


@pytest.mark.parametrize("kind", WITH_SLUG)
def test_a_taken_slug_is_a_conflict_that_names_its_holder(shared: Served, kind: type[Restorable]) -> None:
    """It is named to those who might have restored the record, and to nobody else."""
    answers = {
        "editor": (409, "slug_taken", record_id(kind, "namesake")),
        "viewer": (403, "forbidden", None),
        "foreigner": (404, "not_found", None),
    }
    before = written(shared, kind)
    for user, (status, code, holder) in answers.items():
        response = restore(shared, kind, record_id(kind, "taken"), shared.bearer(user))
        assert refused(response, status, code).get("conflictingId") == holder
    assert written(shared, kind) == before


@pytest.mark.parametrize("kind", WITH_SLUG)
def test_a_slug_is_free_again_once_its_holder_is_archived(shared: Served, kind: type[Restorable]) -> None:
    one, other = f"one {kind.path}", f"other {kind.path}"
    add_archived(shared, kind, one, slug=f"{kind.path}-changing")
    add_archived(shared, kind, other, slug=f"{kind.path}-changing")
    headers = shared.bearer("editor")
    assert restore(shared, kind, one, headers).status_code == 200
    assert refused(restore(shared, kind, other, headers), 409, "slug_taken")["conflictingId"] == one
    shared.load({kind.path: [{"id": one, "archivedAt": world.ARCHIVED}]})
    assert restore(shared, kind, other, headers).status_code == 200
    assert refused(restore(shared, kind, one, headers), 409, "slug_taken")["conflictingId"] == other


def test_the_same_slug_elsewhere_is_no_conflict(shared: Served) -> None:
    """Slugs are unique among live records of one kind and organization; other kinds and organizations do not count."""
    add_archived(shared, Label, "wanderer", slug="elsewhere")
    shared.load(
        {
            "labels": [{"id": "beta-label", "organizationId": BETA, "name": "x", "slug": "elsewhere"}],
            "variables": [{"id": "alpha-variable", "organizationId": ALPHA, "name": "x", "slug": "elsewhere"}],
        }
    )
    assert restore(shared, Label, "wanderer", shared.bearer("editor")).status_code == 200


def test_a_role_is_looked_up_at_every_request(service: Served) -> None:
    """A member who has become a viewer, or has left, is refused from the next request on, whatever their token."""
    headers = service.bearer("admin")
    add_archived(service, Label, "second")
    assert restore(service, Label, record_id(Label, "archived"), headers).status_code == 200
    service.load({"memberships": [{"id": "member-admin", "role": "viewer"}]})
    refused(restore(service, Label, "second", headers), 403, "forbidden")
    service.sql(*removal_of("member-admin"))
    refused(restore(service, Label, "second", headers), 404, "not_found")
    assert stored.row(service.database, Label, "second")["archived_at"] is not None

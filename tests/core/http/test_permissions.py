"""The table of permissions, held against the service: every operation, by everybody, with tokens of every scope.

tests/test_docs.py compares the table with the committed one.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest

from normata.comments.model import Comment
from normata.core.http.operation import ChangeOperation, Operation, ReadOperation
from normata.core.http.permissions import WHO, Who, document, may
from normata.core.http.roles import SCOPES, scope_suffices
from normata.operations import OPERATIONS
from normata.records.assurance import Risk
from normata.records.kinds import Policy
from normata.soa_versions.model import SoaVersion
from normata.views.model import SavedView
from tests import stored
from tests.core.http.samples import all_operations, operations, sample
from tests.served import Headers, Served
from tests.world import ALPHA, BETA

# Which user of the world is meant.
USERS: dict[Who, str] = {who: "nobody" if who == "no member" else who for who in WHO}


@cache
def lines() -> list[str]:
    """The lines of the table."""
    return document(OPERATIONS).splitlines()


def cells(operation: Operation) -> tuple[str, dict[str, str]]:
    """The scope that the table tells for an operation, and its cell for everybody."""
    place = f"`{operation.method} {operation.path}`"
    table = [line for line in lines() if line.startswith("|")]
    (row,) = (line for line in table if f" {place} " in line)
    head, found = ([cell.strip() for cell in line.strip("|").split("|")] for line in (table[0], row))
    told = dict(zip(head, found, strict=True))
    return told.pop("Scope"), {who: told[who] for who in WHO}


@all_operations()
def test_every_operation_has_its_row(operation: Operation) -> None:
    assert cells(operation) == (operation.scope, {who: may(operation, who) for who in WHO})


def test_there_is_no_row_of_anything_else() -> None:
    rows = [line for line in lines() if line.startswith("| `")]
    assert len(rows) == len(OPERATIONS)


@pytest.fixture(scope="module")
def headers(shared: Served) -> dict[tuple[str, str], Headers]:
    """A token of everybody and of every scope."""
    return {(who, scope): shared.bearer(user, scope=scope) for who, user in USERS.items() for scope in SCOPES}


@pytest.fixture(autouse=True, scope="module")
def unchanged(shared: Served, headers: dict[tuple[str, str], Headers]) -> Iterator[None]:
    """Nothing is changed here: what changes something is asked what it would do, with the same checks."""
    del headers  # they come first
    before = stored.everything(shared.database)
    yield
    assert stored.everything(shared.database) == before


@pytest.mark.long
@operations()
def test_the_service_does_what_the_table_says(
    operation: Operation, shared: Served, headers: dict[tuple[str, str], Headers]
) -> None:
    scope_wanted, allowed = cells(operation)
    # What names nobody's organization is everybody's own; what names one is seen by its members.
    names_one = sample(operation, ALPHA) != sample(operation, BETA)
    wrong = []
    for organization in (ALPHA, BETA):
        for who, user in USERS.items():
            wanted = sample(operation, organization, user=user if organization == ALPHA else None)
            if isinstance(operation, ChangeOperation):
                wanted = wanted.but(query=wanted.query | {"dryRun": "true"})
            sees = organization == ALPHA and who not in ("no member", "operator")
            for scope in SCOPES:
                response = wanted.send(shared.client, headers[who, scope])
                if not scope_suffices(scope, scope_wanted):  # type: ignore[arg-type] # as the table has it
                    expected = 403
                elif not sees and names_one and operation.authority != "operator":
                    expected = 404
                elif allowed[who] == "yes" or operation.authority == "self":
                    expected = 200
                else:  # also where it is their own alone: this is about somebody else
                    expected = 403
                challenged = "insufficient_scope" in response.headers.get("www-authenticate", "")
                should_be = expected == 403 and not scope_suffices(scope, scope_wanted)  # type: ignore[arg-type]
                if (response.status_code, challenged) != (expected, should_be):
                    wrong.append((who, scope, organization, expected, response.text[:300]))
    assert wrong == []


def test_what_is_ones_own_takes_no_larger_role(shared: Served, headers: dict[tuple[str, str], Headers]) -> None:
    """The cells that the test above cannot see: everybody may leave, and save views for themselves."""
    tried = set()
    for operation in (one for one in OPERATIONS if one.own_role is not None):
        for role in ("viewer", "auditor", "editor"):
            own = sample(operation, row_id=f"member-{role}").but(query={"dryRun": "true"})
            if operation.about in (Comment, Policy, Risk, SavedView, SoaVersion):
                continue  # their own tests do that, with a viewer's own
            if operation.operation_id == "createSavedView":
                own = own.but(body=own.body | {"isShared": False})
            tried.add(operation.operation_id)
            may_not = role == "auditor" and operation.operation_id == "createSavedView"
            assert own.send(shared.client, headers[role, "admin"]).status_code == (403 if may_not else 200)
    assert tried == {"removeMember", "createSavedView"}


def test_auditors_read_everything_and_change_what_is_their_own() -> None:
    """By declaration; `test_the_service_does_what_the_table_says` holds each cell against the service."""
    of_organization = [one for one in OPERATIONS if one.authority == "organization"]
    may_auditor = {one.operation_id for one in of_organization if may(one, "auditor")}
    reads = {one.operation_id for one in of_organization if isinstance(one, ReadOperation)}
    # The address of a webhook may be all that its receiver knows its senders by. Its events say where it leads.
    assert reads - may_auditor == {"listWebhooks", "getWebhook"}
    assert may_auditor - reads == {
        *("markNotificationRead", "markNotificationUnread", "markNotificationsRead", "removeMember")
    }
    # What a viewer may do, and an auditor, who takes no part in what is audited, may not.
    viewers_alone = {one.operation_id for one in of_organization if may(one, "viewer") == "yes"} - may_auditor
    assert viewers_alone == {"acknowledgePolicy", "createComment"}

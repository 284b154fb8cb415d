"""A request for every operation that there is, made from its declaration and the world of the tests.

The rules:

- What has a query about an organization takes it as ``organizationId``, and of other required parameters an example.
- An ``{id}`` in the path names a row of the table that the operation is ``about``, of that organization. Of a record it
  is the archived one where the operation can answer that a record is not archived, and else the live one. Of any other
  table it is the first row that the world has of the organization, also by its framework, else the first that is
  nobody's own; of a framework that it has adopted, where the row is of a framework. Of a control it is one that the
  organization has stated, of a framework that is to be adopted one that is not. What the operation changes or removes
  is the organization's own. A match that is to count again is one that the organization has set aside.
- An organization is the one that the request is about. A member is the organization's service account, whom nobody
  misses, and a user is that service account; but where the operation changes records, it is who answers for them.
- A token is one of whoever asks, where the operation is about their own, and else that of the service account.
- A notification is one of whoever asks: one that is read where the operation's address says that it becomes unread, and
  else an unread one.
- A body is the declared ``body_example``, with the organization, its member, a framework that it has adopted, and such
  controls in place of the demo's.
  The version of a policy is the one in review. A ``riskId`` is that of a live risk, an ``itemId`` that of an item of
  the review, and a ``changeId`` that of a change that the world has. What it names under ``records``, by kind and id,
  are the records of the world: archived or live as for an ``{id}``. Records that it links, or comments on, are live
  ones. ``rows`` are of the organization's checklist.

An operation that none of this fits makes its tests fail with a sentence that says what is missing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from operator import attrgetter
from typing import Any, NoReturn, TypeVar
from urllib.parse import quote, unquote
from zlib import crc32

import pytest
from httpx2 import Response

from normata.audits.model import ChecklistRow
from normata.comments.model import Comment
from normata.core.http.operation import ChangeOperation, Operation, ReadOperation
from normata.core.http.roles import ROLES
from normata.core.schema.paging import OrganizationQuery
from normata.core.schema.table import Table
from normata.demo.files import ORGANIZATION as DEMO
from normata.errors import NotArchived, NothingToUndo
from normata.frameworks.model import Control, ControlMatch, FrameworkAdoption, SetAsideMatch
from normata.identity.model import AccessToken, Invitation, Membership, Organization
from normata.identity.sign_in_model import Session
from normata.notifications.model import Notification
from normata.operations import OPERATIONS
from normata.records.archiving import ArchiveEntry
from normata.records.assurance import Risk
from normata.records.base import Restorable
from normata.records.kinds import Policy
from tests import world
from tests.cells import each
from tests.client import TestClient
from tests.entitlements.rows import item_id
from tests.webhooks import rows as webhooks
from tests.world import ALPHA, record_id

DEMO_MEMBER = "member-dana"
DEMO_FRAMEWORK = "iso-27001-2022"
DEMO_CONTROLS = ("iso-27001-2022:A.5.11", "nist-csf-2.0:PR.AA-01")  # those in the examples

Test = TypeVar("Test", bound=Callable[..., None])

JSON = {"Content-Type": "application/json"}


def operations(chosen: Callable[[Operation], object] = lambda _: True, name: str = "operation") -> pytest.MarkDecorator:
    """Run a test once for each operation, or for those that are chosen."""
    return pytest.mark.parametrize(name, [pytest.param(one, id=one.operation_id) for one in OPERATIONS if chosen(one)])


def all_operations(
    chosen: Callable[[Operation], object] = lambda _: True,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test that leaves everything as it is for all operations together, or for those that are chosen."""
    return each("operation", filter(chosen, OPERATIONS), show=attrgetter("operation_id"))


def families(chosen: Callable[[Operation], object] = lambda _: True) -> Callable[[Test], Test]:
    """Run a test once for each operation, but of an operation that every kind of record has, for one kind alone.

    For tests with many cases: the operations of all kinds are made by the same code. Each test has another kind, so
    that together they have them all.
    """

    def decorate(test: Test) -> Test:
        kinds = [kind.path for kind in Restorable.kinds]
        kind = kinds[crc32(test.__name__.encode()) % len(kinds)]
        others = {path for path in kinds if path != kind}
        decorated: Test = operations(lambda one: chosen(one) and one.path.split("/")[1] not in others)(test)
        return decorated

    return decorate


def takes_body(operation: Operation) -> bool:
    """Whether its requests may have a body."""
    return isinstance(operation, ChangeOperation) and operation.takes_body


def takes_query(operation: Operation) -> bool:
    """Whether its requests name an organization in their query."""
    query = operation.query if isinstance(operation, ReadOperation | ChangeOperation) else None
    return query is not None and issubclass(query, OrganizationQuery)


@dataclass(frozen=True)
class Sample:
    """A request."""

    operation: Operation
    path: str
    query: dict[str, str] = field(default_factory=dict)
    body: Any = None

    def send(
        self,
        client: TestClient,
        headers: dict[str, str],
        *,
        method: str | None = None,
        path: str | None = None,
        content: bytes | None = None,
    ) -> Response:
        """The answer to it; to another method, path or body where they are given."""
        if content is None and self.body is not None:
            content, headers = json.dumps(self.body).encode(), JSON | headers
        return client.request(
            method or self.operation.method,
            path or self.path,
            params=self.query,
            content=content,
            headers=headers,
            follow_redirects=False,
        )

    @property
    def row_id(self) -> str:
        """The id in its path."""
        return unquote(self.path.split("/")[self.operation.path.split("/").index("{id}")])

    def but(self, **changes: Any) -> Sample:
        """The same, but for these parts."""
        return replace(self, **changes)


def sample(
    operation: Operation, organization_id: str = ALPHA, *, row_id: str | None = None, user: str | None = None
) -> Sample:
    """A request that succeeds for whoever may make it; about another row where ``row_id`` names one.

    Where rows have a user, it is about a row of ``user``: of whoever has the least role that suffices, unless it is
    said.
    """
    names = re.findall(r"{(\w+)}", operation.path)
    if names not in ([], ["id"]):
        _fail(operation, f"its path names {', '.join(names)}, and only an id is known")
    path = operation.path
    if names:
        path = path.replace("{id}", quote(row_id or _id_of(operation, organization_id, user), safe=""))
    query = {"organizationId": organization_id} | _required(operation) if takes_query(operation) else {}
    body = _body(operation, organization_id) if isinstance(operation, ChangeOperation) else None
    return Sample(operation, path, query, body)


def _required(operation: Operation) -> dict[str, str]:
    """The other parameters that a request must have, as their examples have them."""
    query = operation.query if isinstance(operation, ReadOperation | ChangeOperation) else None
    found = {}
    for name, one in query.model_fields.items() if query is not None else ():
        if one.is_required() and name != "organization_id":
            if not one.examples:
                _fail(operation, f"its query requires {name}, which has no example")
            found[one.alias or name] = str(one.examples[0])
        formats = operation.formats if isinstance(operation, ReadOperation) else None
        first = None if formats is None else next(iter(formats.by_name.values()))
        if name == "format" and first is not None and first.media_type != "application/json":
            found[name] = "json"  # which all reports have
    return found


def enough(operation: Operation) -> str:
    """The user of the world who has the least role that suffices; whoever runs the instance where that is needed."""
    if operation.authority == "operator":
        return "operator"
    return next(role for role in ROLES if operation.admits(role))


def most(operation: Operation) -> str:
    """The user of the world who may do the most."""
    return "operator" if operation.authority == "operator" else ROLES[-1]


def by_role(operation: Operation) -> bool:
    """Whether a role in an organization decides who may do it."""
    return operation.authority == "organization"


def harmless_first(operations: Iterable[Operation]) -> list[Operation]:
    """Operations in an order in which each finds what it is about: what takes it away comes last."""

    def harm(operation: Operation) -> tuple[bool, ...]:
        removes = operation.method == "DELETE"
        ends_all = _does(operation, Organization, "UPDATE") and removes
        archives = _does(operation, ArchiveEntry, "INSERT")
        # What was changed again since cannot be undone any more.
        return (
            isinstance(operation, ChangeOperation),
            NothingToUndo not in operation.errors,
            ends_all,
            removes,
            archives,
            operation.operation_id == "finalizeRecord",  # what is final is not changed
        )

    return sorted(operations, key=harm)


def about_others(operation: Operation) -> Iterator[Sample]:
    """Requests about rows of every other kind: there is nothing at these addresses."""
    ids = {row["id"] for row in _every(operation.about)} if operation.about else set()
    for kind in Restorable.kinds:
        other = record_id(kind, "archived")
        if kind is not operation.about and other not in ids:
            yield sample(operation, row_id=other)


@cache
def _world() -> dict[str, list[dict[str, Any]]]:
    """The bundle of the world, made once. Nobody here changes it."""
    return world.bundle()


_OF_PUBLISHED = (
    *("getPolicyDraft", "putPolicyDraft", "discardPolicyDraft", "acknowledgePolicy", "getPolicyChanges"),
    *("remindOfPolicy", "getPolicyDocument"),
)

# The policy of the world from which each step is possible.
_POLICIES = {
    "approvePolicy": "reviewed",
    "rejectPolicy": "rejected",
    "withdrawPolicy": "withdrawn",
    "publishPolicy": "approved",
    **dict.fromkeys(("retirePolicy", "reviewPolicy"), "retired"),
    **dict.fromkeys(_OF_PUBLISHED, "published"),
}


# The assessment of a vendor of the world from which each step is possible.
_ASSESSMENTS = {
    "putVendorAnswers": "sent",
    "revokeVendorLink": "sent",
    "getVendorAnswers": "answered",
    "submitVendorAssessment": "answered",
    "reviewVendorAssessment": "submitted",
    "reopenVendorAssessment": "reopened",
}


def _id_of(operation: Operation, organization_id: str, user: str | None) -> str:
    return "backup" if operation.path.startswith("/policy-templates/") else _row_id(operation, organization_id, user)


def _row_id(operation: Operation, organization_id: str, user: str | None) -> str:
    table = operation.about
    if table is None:
        _fail(operation, "its path has an id, but there is no `about` that says of which table")
    if issubclass(table, Restorable):
        accepts = _does(operation, Risk, "UPDATE") and operation.path.endswith("/accept/")
        stands = _POLICIES.get(operation.operation_id) or _ASSESSMENTS.get(operation.operation_id)
        verifies = operation.path.endswith("/verify/")
        state = "namesake" if accepts or verifies else stands or _state(operation)
        return record_id(table, state, organization_id)
    if table is Notification:
        asking = user or (enough(operation) if organization_id == ALPHA else "foreigner")
        if asking == "editor":
            return "note-00" if operation.path.endswith("/unread/") else "note-01"
        return f"note-{'read' if operation.path.endswith('/unread/') else 'unread'}-{asking}"
    if table is AccessToken:
        asking = user or (enough(operation) if organization_id == ALPHA else "foreigner")
        return f"token-{asking}" if operation.authority == "self" else f"token-robot-{organization_id}"
    if table is Session:
        return f"session-{user or (enough(operation) if organization_id == ALPHA else 'foreigner')}"
    rows = _rows(table, organization_id, own=_does(operation, table, "UPDATE", "DELETE"))
    if _does(operation, FrameworkAdoption, "INSERT"):
        adoptions = _world()["frameworkAdoptions"]
        adopted = {row["frameworkId"] for row in adoptions if row["organizationId"] == organization_id}
        rows = sorted(rows, key=adopted.__contains__)
    if table is Comment:  # of an owner: nobody changes one of somebody else
        rows = ["comment-owner" if organization_id == ALPHA else "comment-foreigner"]
    if table is Membership and any(_does(operation, kind, "UPDATE") for kind in Restorable.kinds):
        rows = [world.RESPONSIBLE[organization_id]]
    if table is ControlMatch and _does(operation, SetAsideMatch, "DELETE") and not _does(operation, table, "DELETE"):
        rows = [world.SET_ASIDE]
    if not rows:
        _fail(operation, f"the world has no row of {table.__name__} that belongs to {organization_id}")
    return rows[0]


def _does(operation: Operation, table: type[Table], *actions: str) -> bool:
    """Whether it does this to rows of a table. Those that it changes or removes can be the organization's own only."""
    writes = operation.writes if isinstance(operation, ChangeOperation) else ()
    return any(write.table == table.__tablename__ and write.action in actions for write in writes)


def _rows(table: type[Table], organization_id: str, *, own: bool = False) -> list[str]:
    """The ids of the rows of a table that an operation may be about, the best first; no more than its own if so."""
    bundle = _world()

    def of_organization(array: str, name: str) -> set[str]:
        return {row[name] for row in bundle[array] if row.get("organizationId") == organization_id}

    if table is Organization:
        return [organization_id]
    frameworks = of_organization("frameworks", "id")
    there = _every(table)
    rows = [
        row for row in there if row.get("organizationId") == organization_id or row.get("frameworkId") in frameworks
    ]
    if not own:
        adopted = {None, *of_organization("frameworkAdoptions", "frameworkId")} - frameworks
        rows += [row for row in there if row.get("organizationId") is None and row.get("frameworkId") in adopted]
    if table is Membership:
        rows.sort(key=lambda row: row["id"] != f"member-robot-{organization_id}")
    if table is Control:
        stated = of_organization("controlCoverages", "controlId")
        rows.sort(key=lambda row: row["id"] not in stated)
    return [row["id"] for row in rows]


def _every(table: type[Table]) -> Sequence[dict[str, Any]]:
    """The rows that the world has of a table, as a bundle has them."""
    others = {Invitation: world.invitations, AccessToken: world.tokens, Session: world.sessions} | webhooks.TABLES
    return others[table]() if table in others else _world().get(table.array, ())


def _body(operation: ChangeOperation, organization_id: str) -> Any:
    if not operation.takes_body:
        return None
    if operation.body_required and operation.body_example is None:
        _fail(operation, "its body is required, but there is no `body_example`")
    text = json.dumps(operation.body_example)
    controls = _rows(Control, organization_id) or [row["id"] for row in _world()["controls"]]
    replaced = {
        DEMO: organization_id,
        DEMO_MEMBER: f"member-robot-{organization_id}",
        DEMO_FRAMEWORK: next(
            (row["frameworkId"] for row in _world()["frameworkAdoptions"] if row["organizationId"] == organization_id),
            "fw-nowhere",
        ),
        **dict(zip(DEMO_CONTROLS, controls, strict=False)),
    }
    for name, found in replaced.items():
        text = text.replace(json.dumps(name), json.dumps(found))
    body = json.loads(text)
    if operation.about is Policy and isinstance(body, dict) and "version" in body:
        body["version"] = 1  # that in review
    if isinstance(body, dict) and "riskId" in body:
        body["riskId"] = record_id(Risk, "live", organization_id)
    if isinstance(body, dict) and "itemIds" in body:
        body["itemIds"] = [item_id(organization_id)]
    for decision in body.get("decisions", ()) if isinstance(body, dict) else ():
        decision["itemId"] = item_id(organization_id)
    if isinstance(body, dict) and "changeId" in body:
        body["changeId"] = world.change_id(organization_id)
    if isinstance(body, dict):
        for end in (link[side] for link in (body, *body.get("links", ())) for side in ("from", "to") if side in link):
            end["id"] = next(
                (record_id(kind, "live", organization_id) for kind in Restorable.kinds if kind.path == end["kind"]),
                end["id"],
            )
    for row in body.get("rows", ()) if isinstance(body, dict) else ():
        row["id"] = _rows(ChecklistRow, organization_id, own=True)[0]
    if isinstance(body, dict) and "about" in body:
        kind = next(kind for kind in Restorable.kinds if kind.path == body["about"]["kind"])
        body["about"]["id"] = record_id(kind, "live", organization_id)
    for record in body.get("records", ()) if isinstance(body, dict) else ():
        kind = next(kind for kind in Restorable.kinds if kind.path == record["kind"])
        record["id"] = record_id(kind, _state(operation), organization_id)
    return body


def _state(operation: Operation) -> str:
    """The state in which it finds the records that it is about."""
    return "archived" if NotArchived in operation.errors else "live"


def _fail(operation: Operation, reason: str) -> NoReturn:
    pytest.fail(
        f"tests/core/http/samples.py cannot make a request for {operation.operation_id}: {reason}", pytrace=False
    )

"""The operations of webhooks."""

from __future__ import annotations

import time
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.types import now
from normata.core.http.change_endpoint import as_null
from normata.core.http.operation import ChangeOperation, ListOperation, Operation, ReadOperation
from normata.core.http.outgoing import Outgoing
from normata.core.http.request import Request
from normata.core.schema.paging import OrganizationId, OrganizationQuery, Page, PageQuery
from normata.core.schema.table import new_id
from normata.core.schema.wire import Input, Wire
from normata.events.keys import Signer
from normata.events.log import LAST_NUMBER
from normata.events.proofs import size_of
from normata.webhooks import commands, queries
from normata.webhooks.commands import CHANGE_WRITES, CREATION_WRITES, REMOVAL_WRITES, REPLAY_WRITES, ROTATION_WRITES
from normata.webhooks.deliveries import secrets_of
from normata.webhooks.messages import test_message
from normata.webhooks.model import MOST_NAMES, Format, Name, Reason, Url, Webhook
from normata.webhooks.queries import NewWebhook, WebhookAnswer
from normata.webhooks.secrets import SecretBox
from normata.webhooks.sender import attempt_at

_URL = (
    "The address that events are sent to, by POST: `https`, with the name of a host or a public address, and without"
    " user and fragment. Addresses that are not public take the operator's list."
)
_KINDS = "The kinds of rows whose events are sent, by their names in paths and bundles, such as `policies`; empty: all."
_ACTIONS = "The actions that are sent, such as `restore`; empty: all."
_FORMAT = (
    "What is sent: `THIN`, the ids and the number of an event; `FULL`, also its sealed body, as `GET /events/log/` has"
    " it; `SLACK`, a sentence as Slack's incoming webhooks take it."
)

_Names = Annotated[list[Name], Field(max_length=MOST_NAMES)]


class WebhookPage(Page[WebhookAnswer]):
    """A page of webhooks."""


class WebhookCreation(Input):
    """A new webhook."""

    organization_id: OrganizationId
    url: Annotated[Url, Field(description=_URL)]
    kinds: Annotated[_Names, Field(default_factory=list, description=_KINDS)]
    actions: Annotated[_Names, Field(default_factory=list, description=_ACTIONS)]
    format: Annotated[Format, Field(description=_FORMAT)] = "THIN"


def _nothing() -> None:
    """The default of a field that is left out; so OpenAPI shows none."""


class WebhookPatch(Input):
    """The changes of a webhook. Omitted fields stay as they are."""

    url: Annotated[Url, Field(default_factory=_nothing, description=_URL)]
    kinds: Annotated[_Names, Field(default_factory=_nothing, description=_KINDS)]
    actions: Annotated[_Names, Field(default_factory=_nothing, description=_ACTIONS)]
    format: Annotated[Format, Field(default_factory=_nothing, description=_FORMAT)]
    is_active: Annotated[
        bool,
        Field(
            default_factory=_nothing,
            description="Whether events are sent. If it was disabled, it goes on with the event that it was at.",
        ),
    ]


class Replay(Input):
    """Where a webhook goes on."""

    number: Annotated[int, Field(ge=0, le=LAST_NUMBER, description="The number of the event that is next.")]


class TestResult(Wire):
    """What has become of a test."""

    id: str = Field(description="The `webhook-id` of the message.")
    status: int | None = Field(description="The status of the answer; null if there was none.")
    reason: Reason | None = Field(description="Why it was no success; null if it was one.")
    milliseconds: int | None = Field(description="How long it took. Null in a dry run, which sends nothing.")


class _Tested(NamedTuple):
    row: Any
    message_id: str


def _present(unit: UnitOfWork, row: Any) -> dict[str, Any]:
    return queries.as_wire(row, size_of(unit, row.organization_id), unit.moment)


def _with_secret(unit: UnitOfWork, made: commands.WithSecret) -> dict[str, Any]:
    return {**_present(unit, made.row), "secret": made.secret}


def _box(request: Request) -> SecretBox:
    return SecretBox(request.means[Signer])


def _create(unit: UnitOfWork, request: Request) -> dict[str, Any]:
    body = request.body.model_dump(exclude={"organization_id"})
    networks = request.means[Outgoing].networks
    made = commands.create(unit, _box(request), networks, request.body.organization_id, body)
    return _with_secret(unit, made)


def _change(unit: UnitOfWork, request: Request) -> dict[str, Any]:
    body = request.body.model_dump(exclude_unset=True)
    return _present(unit, commands.change(unit, request.means[Outgoing].networks, request.id, body))


def _test(unit: UnitOfWork, request: Request) -> _Tested:
    commands.test(unit, request.id)
    return _Tested(unit.row(secrets_of(), {"webhook": request.id}), f"test_{new_id()}")


async def _send_test(request: Request, tested: _Tested, answer: Any) -> Any:
    """Send the message of a test, and put into the answer what has become of it."""
    moment, began = now(), time.monotonic()
    connection = await request.means[Outgoing].connection(tested.row.url)
    try:
        message = test_message(tested.row, tested.message_id, moment)
        attempt = await attempt_at(connection, message, tested.row, _box(request), moment)
    finally:
        await connection.aclose()
    took = round(1_000 * (time.monotonic() - began))
    return {**answer, "status": attempt.status, "reason": attempt.reason, "milliseconds": took}


def _itself(answer: Any) -> Any:
    return answer


_ID = "The id of the webhook."
_WEBHOOK: dict[str, Any] = {
    "id": "01a1f87c-691d-7204-a6da-d46c39e191fb",
    "organizationId": "org-harbourlight",
    "url": "https://warehouse.harbourlight.example/normata",
    "kinds": ["policies", "risks"],
    "actions": [],
    "format": "THIN",
    "isActive": True,
    "disabledAt": None,
    "disabledReason": None,
    "formerSecretUntil": None,
    "createdAt": "2026-11-20T09:14:03.120Z",
    "updatedAt": "2026-11-20T09:14:03.120Z",
    "delivery": {
        "nextNumber": 1_204,
        "behind": 0,
        "deliveredNumber": 1_199,
        "deliveredAt": "2026-11-20T11:02:41.003Z",
        "lastAt": "2026-11-20T11:02:41.003Z",
        "lastStatus": 204,
        "lastReason": None,
        "attempts": 0,
        "failingSince": None,
        "nextAttemptAt": None,
    },
}
_BODY = {name: _WEBHOOK[name] for name in ("organizationId", "url", "kinds", "actions", "format")}
_WITH_SECRET = _WEBHOOK | {"secret": "whsec_<SHOWN THIS ONCE>"}
_SHOWN_ONCE = """\

The answer has the secret, this once: note it. With an `Idempotency-Key` the answer is not stored either: a repeat is
answered 409 `answer_not_stored`. A dry run shows no secret: `secret` is null there."""

OPERATIONS: tuple[Operation, ...] = (
    ListOperation(
        path="/webhooks/",
        operation_id="listWebhooks",
        tag="Webhooks",
        summary="List webhooks",
        description="""\
The webhooks of the organization, the oldest first, each with how far it has come and why it fails. This requires the
role of an admin or an owner.""",
        role="admin",
        scope="admin",
        query=PageQuery,
        build=lambda transaction, request: queries.list_webhooks(transaction, request.query),
        answer=WebhookPage,
        answer_description="A page of webhooks.",
        example={"items": [_WEBHOOK], "total": 1, "totalIsExact": True, "page": 1, "limit": 100},
    ),
    ReadOperation(
        path="/webhooks/{id}/",
        operation_id="getWebhook",
        tag="Webhooks",
        summary="Get a webhook",
        description="One webhook with how far it has come and why it fails. It does not have the secret.",
        role="admin",
        scope="admin",
        about=Webhook,
        id_description=_ID,
        query=OrganizationQuery,
        build=lambda transaction, request: queries.one_webhook(transaction, request.organization_id, request.id),
        answer=WebhookAnswer,
        answer_description="The webhook.",
        example=_WEBHOOK,
    ),
    ChangeOperation(
        http_method="POST",
        path="/webhooks/",
        operation_id="createWebhook",
        tag="Webhooks",
        summary="Create a webhook",
        description=f"""\
Sends the events of the organization to an address from now on, one after the other in the order of their numbers, each
until the receiver has answered with a status from 200 to 299 (Standard Webhooks). Each message is signed with the
secret. The documentation says how a receiver verifies it.
{_SHOWN_ONCE}""",
        role="admin",
        scope="admin",
        body=WebhookCreation,
        body_required=True,
        body_example=_BODY,
        has_rules=True,
        work=_create,
        present=_itself,
        writes=CREATION_WRITES,
        creates=True,
        secret_fields=("secret",),
        answer=NewWebhook,
        answer_description="The webhook, with its secret.",
        example=_WITH_SECRET,
    ),
    ChangeOperation(
        http_method="PATCH",
        path="/webhooks/{id}/",
        operation_id="changeWebhook",
        tag="Webhooks",
        summary="Change a webhook",
        description="""\
Changes where events are sent, which, or in which format, and stops the webhook or lets it go on. Each change makes the
next attempt due at once. What happened while it was stopped is sent then; `POST /webhooks/{id}/replay/` leaves it
out.""",
        role="admin",
        scope="admin",
        about=Webhook,
        id_description=_ID,
        body=WebhookPatch,
        body_required=True,
        body_example={"kinds": ["policies", "risks", "incidents"]},
        has_rules=True,
        work=_change,
        present=_itself,
        writes=CHANGE_WRITES,
        answer=WebhookAnswer,
        answer_description="The webhook as it is now.",
        example=_WEBHOOK | {"kinds": ["policies", "risks", "incidents"]},
    ),
    ChangeOperation(
        http_method="DELETE",
        path="/webhooks/{id}/",
        operation_id="removeWebhook",
        tag="Webhooks",
        summary="Remove a webhook",
        description="""\
Removes a webhook with its secret. Nothing more is sent but the message that is on its way, and what follows it within a
quarter of a second.""",
        role="admin",
        scope="admin",
        about=Webhook,
        id_description=_ID,
        work=lambda unit, request: commands.remove(unit, request.id),
        present=as_null,
        writes=REMOVAL_WRITES,
        answer=None,
        answer_description="`null`: the webhook was removed.",
        example=None,
    ),
    ChangeOperation(
        http_method="POST",
        path="/webhooks/{id}/test/",
        operation_id="testWebhook",
        tag="Webhooks",
        summary="Test a webhook",
        description="""\
Sends a message of the type `test` at once, also if the webhook is stopped, and answers with what has become of it, ten
seconds later at most. It is sent once, and changes nothing of what is delivered. What has become of it is stored
nowhere: with an `Idempotency-Key`, a repeat sends nothing and is answered 409 `answer_not_stored`. A dry run sends
nothing either, and has nulls.""",
        role="admin",
        scope="admin",
        about=Webhook,
        id_description=_ID,
        work=_test,
        present=lambda tested: {"id": tested.message_id, "status": None, "reason": None, "milliseconds": None},
        writes=(),
        afterwards=_send_test,
        secret_fields=("status", "reason", "milliseconds"),  # shown once
        answer=TestResult,
        answer_description="What has become of it.",
        example={
            "id": "test_01a1f87c-691d-7204-a6da-d46c39e191fb",
            "status": 204,
            "reason": None,
            "milliseconds": 83,
        },
    ),
    ChangeOperation(
        http_method="POST",
        path="/webhooks/{id}/replay/",
        operation_id="replayWebhook",
        tag="Webhooks",
        summary="Go on with another event",
        description="""\
Lets a webhook go on with the event of a number: an earlier one, and all that follow it are sent again, with the same
`webhook-id`; or a later one, and those before it are left out. The `size` of the log is the number of the next event.
If the webhook is stopped, it goes on there once it is active.""",
        role="admin",
        scope="admin",
        about=Webhook,
        id_description=_ID,
        body=Replay,
        body_required=True,
        body_example={"number": 0},
        has_rules=True,
        work=lambda unit, request: _present(unit, commands.replay(unit, request.id, request.body.number)),
        present=_itself,
        writes=REPLAY_WRITES,
        answer=WebhookAnswer,
        answer_description="The webhook as it is now.",
        example=_WEBHOOK,
    ),
    ChangeOperation(
        http_method="POST",
        path="/webhooks/{id}/rotate/",
        operation_id="rotateWebhookSecret",
        tag="Webhooks",
        summary="Change the secret of a webhook",
        description=f"""\
Makes another secret. For 24 hours messages are signed with both, so that no message is lost while the receiver is
configured; then only with the new one. The one before these two is not valid any more.
{_SHOWN_ONCE}""",
        role="admin",
        scope="admin",
        about=Webhook,
        id_description=_ID,
        work=lambda unit, request: _with_secret(unit, commands.rotate(unit, _box(request), request.id)),
        present=_itself,
        writes=ROTATION_WRITES,
        secret_fields=("secret",),
        answer=NewWebhook,
        answer_description="The webhook, with its new secret.",
        example=_WITH_SECRET | {"formerSecretUntil": "2026-11-21T09:14:03.120Z"},
    ),
)

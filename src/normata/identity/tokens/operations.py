"""The operations of access tokens."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from normata import errors
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.http.operation import ChangeOperation, ListOperation, Operation, ReadOperation
from normata.core.http.request import Request
from normata.core.schema.paging import OrganizationId, OrganizationQuery, Page, Query
from normata.identity.model import AccessToken, User
from normata.identity.tokens import commands as token_life
from normata.identity.tokens.commands import NewToken, OwnQuery, ReachingQuery, Token, TokenWanted
from normata.identity.tokens.tokens import CREATION_WRITES, REVOCATION_WRITES, Issued


class TokenPage(Page[Token]):
    """A page of access tokens."""


class OwnTokenCreation(TokenWanted):
    """The caller's own token to create."""

    organization_id: Annotated[
        OrganizationId | None,
        Field(
            default_factory=lambda: None,
            description="The organization that it is narrowed to: its id or its slug. Left out or null: that of the"
            " token of the request, or all where that has none.",
        ),
    ]


class AccountTokenCreation(TokenWanted):
    """A token of a service account to create."""

    organization_id: Annotated[
        OrganizationId | None,
        Field(
            default_factory=lambda: None,
            description="The organization that it is narrowed to: the id or the slug of the service account's own, as"
            " if it were left out or null.",
        ),
    ]


def _make_own(unit: UnitOfWork, request: Request) -> Issued:
    return token_life.make_own(unit, request.caller, request.body, request.body.organization_id)


def _make_for_account(unit: UnitOfWork, request: Request) -> Issued:
    body = request.body
    return token_life.make_for_account(unit, request.caller, request.id, body, body.organization_id)


def _revoke_own(unit: UnitOfWork, request: Request) -> Any:
    caller = request.caller
    return token_life.revoke_own(unit, caller.user_id, request.id, narrowed_to=caller.narrowed_to)


_TOKEN: dict[str, Any] = {
    "id": "01a1f87c-691d-7204-a6da-d46c39e191fb",
    "userId": "user-dana",
    "organizationId": "org-harbourlight",
    "name": "Nightly export",
    "scope": "read",
    "createdAt": "2026-11-20T09:14:03.120Z",
    "expiresAt": "2027-02-18T09:14:03.120Z",
    "lastUsedAt": None,
    "revokedAt": None,
}
_SECRET = {"token": "nrm_<SHOWN THIS ONCE>"}
_PAGE = {"items": [_TOKEN], "total": 1, "totalIsExact": True, "page": 1, "limit": 100}
_REVOKED = _TOKEN | {"lastUsedAt": "2026-11-20T10:01:00.000Z", "revokedAt": "2026-11-20T10:02:41.507Z"}
_WANTED = {"name": "Nightly export", "scope": "read"}

_SHOWN_ONCE = """\
The answer has the token itself, this once: it is stored nowhere, so note it. With an `Idempotency-Key` the answer is
not stored either: a repeat is answered 409 `answer_not_stored`. Revoke the token then, and make another one with a new
key.
A dry run shows no token: `token` is null there."""
_EXPIRES = "Unless `expiresAt` says otherwise, it expires in 90 days. Null is for never."

OPERATIONS: tuple[Operation, ...] = (
    ListOperation(
        path="/me/tokens/",
        operation_id="listOwnTokens",
        tag="Tokens",
        summary="List your tokens",
        description="""\
Your own tokens, newest first, also those that were revoked or have expired; not the tokens themselves. A token that is
narrowed to an organization lists those that are narrowed to the same one.""",
        authority="self",
        query=OwnQuery,
        build=lambda transaction, request: token_life.list_own(transaction, request.caller, request.query),
        answer=TokenPage,
        answer_description="A page of tokens.",
        example=_PAGE,
    ),
    ReadOperation(
        path="/me/tokens/{id}/",
        operation_id="getOwnToken",
        tag="Tokens",
        summary="Get one of your tokens",
        description="""\
One of your own tokens; not the token itself. A token that is narrowed to an organization gets those that are narrowed
to the same one; others are not there.""",
        authority="self",
        about=AccessToken,
        id_description="The id of a token of your own.",
        query=Query,
        build=lambda transaction, request: token_life.one_own(transaction, request.caller, request.id),
        answer=Token,
        answer_description="The token.",
        example=_TOKEN,
    ),
    ChangeOperation(
        http_method="POST",
        path="/me/tokens/",
        operation_id="createOwnToken",
        tag="Tokens",
        summary="Create a token",
        description=f"""\
Creates a token of your own. Its scope is at most that of the token of the request. It reaches the organizations that
you are a member of, or the one that it is narrowed to. A token that is narrowed makes only tokens that are narrowed to
the same organization. {_EXPIRES}

{_SHOWN_ONCE}""",
        authority="self",
        role="viewer",
        scope="admin",
        body=OwnTokenCreation,
        body_required=True,
        body_example=_WANTED | {"organizationId": "org-harbourlight"},
        has_rules=True,
        work=_make_own,
        present=token_life.new_as_wire,
        writes=CREATION_WRITES,
        creates=True,
        secret_fields=("token",),
        answer=NewToken,
        answer_description="The token.",
        example=_TOKEN | _SECRET,
    ),
    ChangeOperation(
        http_method="DELETE",
        path="/me/tokens/{id}/",
        operation_id="revokeOwnToken",
        tag="Tokens",
        summary="Revoke one of your tokens",
        description="""\
Ends one of your own tokens for good, from the next request on. It may be the token of the request. To do so twice is
harmless. A token that is narrowed to an organization can end those that are narrowed to the same one.""",
        authority="self",
        role="viewer",
        scope="admin",
        about=AccessToken,
        id_description="The id of a token of your own.",
        work=_revoke_own,
        present=token_life.as_wire,
        writes=REVOCATION_WRITES,
        answer=Token,
        answer_description="The token as it is now.",
        example=_REVOKED,
    ),
    ListOperation(
        path="/tokens/",
        operation_id="listTokens",
        tag="Tokens",
        summary="List the tokens that reach the organization",
        description="""\
Every token that reaches the organization, newest first: those that are narrowed to it, those of its service accounts
included, and those of its members that are narrowed to none (`organizationId` is null). Of the latter the name is not
shown, because they reach other organizations as well.""",
        role="auditor",
        scope="admin",
        query=ReachingQuery,
        build=lambda transaction, request: token_life.list_reaching(transaction, request.query),
        answer=TokenPage,
        answer_description="A page of tokens.",
        example=_PAGE,
    ),
    ReadOperation(
        path="/tokens/{id}/",
        operation_id="getToken",
        tag="Tokens",
        summary="Get a token that reaches the organization",
        description="""\
One of the tokens that reach the organization, as the list of them has it; not the token itself. One that reaches other
organizations only is not there.""",
        role="auditor",
        scope="admin",
        about=AccessToken,
        id_description="The id of the token.",
        query=OrganizationQuery,
        build=lambda transaction, request: token_life.one_reaching(transaction, request.organization_id, request.id),
        answer=Token,
        answer_description="The token.",
        example=_TOKEN,
    ),
    ChangeOperation(
        http_method="DELETE",
        path="/tokens/{id}/",
        operation_id="revokeToken",
        tag="Tokens",
        summary="Revoke a token of the organization",
        description="""\
Ends a token that is narrowed to the organization for good, from the next request on, whoever's it is. To do so twice is
harmless. A token that is narrowed to none is its user's: 409 `token_spans_organizations`. Its user can revoke it; and
once the user is no member any more it does not reach the organization either.""",
        role="admin",
        scope="admin",
        about=AccessToken,
        id_description="The id of the token.",
        work=lambda unit, request: token_life.revoke_reaching(unit, request.id),
        present=token_life.as_wire,
        writes=REVOCATION_WRITES,
        answer=Token,
        answer_description="The token as it is now.",
        example=_REVOKED,
        errors=(errors.TokenSpansOrganizations,),
    ),
    ChangeOperation(
        http_method="POST",
        path="/service-accounts/{id}/tokens/",
        operation_id="createServiceAccountToken",
        tag="Tokens",
        summary="Create a token of a service account",
        description=f"""\
Creates a token of a service account. It is narrowed to the account's organization. Its scope is at most that of the
token of the request. {_EXPIRES} It is listed at `/tokens/`, and revoked there.

{_SHOWN_ONCE}""",
        role="admin",
        scope="admin",
        about=User,
        id_description="The id of the service account.",
        body=AccountTokenCreation,
        body_required=True,
        body_example=_WANTED,
        has_rules=True,
        work=_make_for_account,
        present=token_life.new_as_wire,
        writes=CREATION_WRITES,
        creates=True,
        made_at="/tokens/",
        secret_fields=("token",),
        answer=NewToken,
        answer_description="The token.",
        example=_TOKEN | {"userId": "user-inventory"} | _SECRET,
    ),
)

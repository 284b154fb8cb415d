"""Settings: service accounts and their tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from starlette.responses import Response

from normata.console.account.tokens import LIFETIMES
from normata.console.app.api_calls import ApiQuery, Fields, Following, Refusal
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.settings.members import roles_within
from normata.console.texts import text
from normata.core.db.types import now
from normata.core.http.problems import InvalidRequest
from normata.core.http.roles import AUDITOR, SCIM, SCOPES, TokenScope
from normata.identity.service_accounts.service_accounts import ServiceRole
from normata.identity.tokens.tokens import later
from normata.scim.endpoint import PATH as SCIM_PATH

_UNTYPED: Mapping[str, str] = {"name": "", "role": "viewer"}
_ROLES = get_args(ServiceRole)
_A_YEAR = LIFETIMES["365"]


async def show_list(page_request: OrganizationRequest) -> Response:
    """List the organization's service accounts."""
    return await _list_page(page_request)


async def create(page_request: OrganizationRequest) -> Response:
    """Create a service account, or one for an identity provider with its token, as ``step`` says."""
    page_request.require("admin")
    form = await page_request.fields()
    if form.get("step") == "connect":
        return await _connect(page_request, form)
    typed = {"name": form.get("name"), "role": form.get("role")}
    outcome = await page_request.change("createServiceAccount", body=typed, key=form.get("key"))
    if outcome.refusal is not None:
        return await _list_page(page_request, outcome.refusal, typed)
    return page_request.go(page_request.path("settings", "service-accounts", outcome.answer["id"]), "account_made")


async def show_one(page_request: OrganizationRequest) -> Response:
    """Show a service account with its tokens."""
    return await _account_page(page_request)


async def change(page_request: OrganizationRequest) -> Response:
    """Change or remove an account, or create or revoke a token of it, as ``step`` says."""
    page_request.require("admin")
    form, account_id = await page_request.fields(), page_request.param("id")
    match form.get("step"):
        case "change":
            typed = {"name": form.get("name"), "role": form.get("role")}
            outcome = await page_request.change("changeServiceAccount", row_id=account_id, body=typed)
            done = "account_changed"
        case "make_token":
            return await _make_token(page_request, account_id, form)
        case "revoke_token":
            outcome = await page_request.change("revokeToken", row_id=form.get("token"))
            done = "token_revoked"
        case "end":
            outcome = await page_request.change("removeServiceAccount", row_id=account_id)
            if outcome.refusal is None:
                return page_request.go(page_request.path("settings", "service-accounts"), "account_ended")
            done = ""
        case _:
            raise InvalidRequest(text("problem.form"))
    if outcome.refusal is not None:
        return await _account_page(page_request, outcome.refusal)
    return page_request.go(page_request.path("settings", "service-accounts", account_id), done)


async def _connect(page_request: OrganizationRequest, form: Fields) -> Response:
    """Create the service account of an identity provider, and show its token once."""
    body = {"name": text("app.accounts.connect.name"), "role": "admin"}
    token = {"name": text("app.accounts.connect.name"), "scope": SCIM, "expiresAt": later(now(), _A_YEAR)}
    making = Following("createServiceAccountToken", lambda _: token, lambda answers: str(answers[0]["id"]))
    outcome = await page_request.change("createServiceAccount", body=body, key=form.get("key"), then=[making])
    if outcome.refusal is not None:
        return await _list_page(page_request, outcome.refusal)
    account, made = outcome.answer
    return await _account_page(page_request, made=made, account=account)


async def _make_token(page_request: OrganizationRequest, account_id: str, form: Fields) -> Response:
    lifetime = LIFETIMES.get(form.get("days"))
    body: dict[str, Any] = {"name": form.get("token_name"), "scope": form.get("scope")}
    if lifetime is not None:
        body["expiresAt"] = later(now(), lifetime)
    key = form.get("key")
    outcome = await page_request.change("createServiceAccountToken", row_id=account_id, body=body, key=key)
    if outcome.refusal is not None:
        return await _account_page(page_request, outcome.refusal)
    return await _account_page(page_request, made=outcome.answer)


def _scopes(role: str) -> tuple[TokenScope, ...]:
    """The scopes that a token of an account with this role may have."""
    if role == AUDITOR:
        return SCOPES[:1]
    return (*SCOPES, SCIM) if role == "admin" else SCOPES


def _roles(page_request: OrganizationRequest) -> list[str]:
    return [role for role in roles_within(page_request.membership.role) if role in _ROLES]


async def _list_page(
    page_request: OrganizationRequest, refusal: Refusal | None = None, typed: Mapping[str, str] = _UNTYPED
) -> Response:
    found = await page_request.ask_one(ApiQuery("listServiceAccounts", page_request.place))
    return page_request.page(
        "app/settings/accounts.html",
        status=refusal.status if refusal else 200,
        accounts=found,
        roles=_roles(page_request),
        typed=typed,
        key=page_request.new_key(),
        refusal=refusal,
    )


async def _account_page(
    page_request: OrganizationRequest,
    refusal: Refusal | None = None,
    made: Mapping[str, Any] | None = None,
    account: Mapping[str, Any] | None = None,
) -> Response:
    account_id = page_request.param("id") if account is None else account["id"]
    queries = [ApiQuery("listTokens", {"userId": account_id, "activeOnly": "true", **page_request.place})]
    if account is None:
        queries.append(ApiQuery("getServiceAccount", id=account_id))
    tokens, *found = await page_request.ask(*queries)
    account = account or found[0]
    return page_request.page(
        "app/settings/account.html",
        status=refusal.status if refusal else 200,
        account=account,
        tokens=tokens,
        roles=_roles(page_request),
        scopes=_scopes(account["role"]),
        lifetimes=tuple(LIFETIMES),
        made=made,
        scim_address=page_request.console.site.url(SCIM_PATH.rstrip("/")),
        key=page_request.new_key(),
        refusal=refusal,
    )

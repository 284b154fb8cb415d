"""Settings: service accounts, which are programs that work in the organization, and their tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from starlette.responses import Response

from normata.console.account.tokens import LIFETIMES, SCOPES
from normata.console.app.api_calls import Fields, Question, Refusal
from normata.console.app.organization_request import OrganizationVisit
from normata.console.app.settings.members import roles_within
from normata.console.texts import text
from normata.core.db.types import now
from normata.core.http.problems import InvalidRequest
from normata.identity.service_accounts.service_accounts import ServiceRole
from normata.identity.tokens.tokens import later

_UNTYPED: Mapping[str, str] = {"name": "", "role": "viewer"}
_ROLES = get_args(ServiceRole)


async def show_list(visit: OrganizationVisit) -> Response:
    """The organization's service accounts."""
    return await _list_page(visit)


async def create(visit: OrganizationVisit) -> Response:
    """Make a service account."""
    form = await visit.fields()
    typed = {"name": form.get("name"), "role": form.get("role")}
    outcome = await visit.change("createServiceAccount", body=typed, key=form.get("key"))
    if outcome.refusal is not None:
        return await _list_page(visit, outcome.refusal, typed)
    return visit.go(visit.path("settings", "service-accounts", outcome.answer["id"]), "account_made")


async def show_one(visit: OrganizationVisit) -> Response:
    """A service account, and its tokens."""
    return await _account_page(visit)


async def change(visit: OrganizationVisit) -> Response:
    """Change an account, make or revoke a token of it, or end it, as ``step`` says."""
    form, account_id = await visit.fields(), visit.param("id")
    match form.get("step"):
        case "change":
            typed = {"name": form.get("name"), "role": form.get("role")}
            outcome = await visit.change("changeServiceAccount", row_id=account_id, body=typed)
            done = "account_changed"
        case "make_token":
            return await _make_token(visit, account_id, form)
        case "revoke_token":
            outcome = await visit.change("revokeToken", row_id=form.get("token"))
            done = "token_revoked"
        case "end":
            outcome = await visit.change("removeServiceAccount", row_id=account_id)
            if outcome.refusal is None:
                return visit.go(visit.path("settings", "service-accounts"), "account_ended")
            done = ""
        case _:
            raise InvalidRequest(text("problem.form"))
    if outcome.refusal is not None:
        return await _account_page(visit, outcome.refusal)
    return visit.go(visit.path("settings", "service-accounts", account_id), done)


async def _make_token(visit: OrganizationVisit, account_id: str, form: Fields) -> Response:
    lifetime = LIFETIMES.get(form.get("days"))
    body: dict[str, Any] = {"name": form.get("token_name"), "scope": form.get("scope")}
    if lifetime is not None:
        body["expiresAt"] = later(now(), lifetime)
    key = form.get("key")
    outcome = await visit.change("createServiceAccountToken", row_id=account_id, body=body, key=key)
    if outcome.refusal is not None:
        return await _account_page(visit, outcome.refusal)
    return await _account_page(visit, made=outcome.answer)


def _roles(visit: OrganizationVisit) -> list[str]:
    return [role for role in roles_within(visit.place.role) if role in _ROLES]


async def _list_page(
    visit: OrganizationVisit, refusal: Refusal | None = None, typed: Mapping[str, str] = _UNTYPED
) -> Response:
    found = await visit.ask_one(Question("listServiceAccounts", {"page": visit.query.get("page", "")}))
    return visit.page(
        "app/settings/accounts.html",
        status=refusal.status if refusal else 200,
        accounts=found,
        roles=_roles(visit),
        typed=typed,
        key=visit.new_key(),
        refusal=refusal,
    )


async def _account_page(
    visit: OrganizationVisit, refusal: Refusal | None = None, made: Mapping[str, Any] | None = None
) -> Response:
    account_id = visit.param("id")
    wanted = {"userId": account_id, "activeOnly": "true", "page": visit.query.get("page", "")}
    account, tokens = await visit.ask(Question("getServiceAccount", id=account_id), Question("listTokens", wanted))
    return visit.page(
        "app/settings/account.html",
        status=refusal.status if refusal else 200,
        account=account,
        tokens=tokens,
        roles=_roles(visit),
        scopes=SCOPES,
        lifetimes=tuple(LIFETIMES),
        made=made,
        key=visit.new_key(),
        refusal=refusal,
    )

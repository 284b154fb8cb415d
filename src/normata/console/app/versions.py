"""Versions of statements of applicability: those of a framework, one of them, what differs, and how one is verified."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from normata.console.app.api_calls import ApiQuery, Fields, Refusal
from normata.console.app.downloads import download_report
from normata.console.app.event_lines import value_text
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.records.references import names_of
from normata.console.filters import words
from normata.console.pages import HEADERS
from normata.console.texts import has_text, text
from normata.core.http.problems import InvalidRequest
from normata.core.schema.wire import encode
from normata.reports.statement import OTHERS
from normata.soa_versions.comparison import NOW
from normata.soa_versions.model import FILE_FORMATS

_MOST = "100"  # versions to compare with, and members to choose from
_LONGEST = 300  # characters of a value in a comparison


async def show_list(page_request: OrganizationRequest) -> Response:
    """The versions of the statement of a framework."""
    return await _list_page(page_request)


async def make(page_request: OrganizationRequest) -> Response:
    """Make a version of the present statement."""
    page_request.require("editor")
    form = await page_request.fields()
    framework_id = page_request.param("id")
    body: dict[str, Any] = {"frameworkId": framework_id, "title": form.get("title"), OTHERS: form.all(OTHERS)}
    body |= {name: form.get(name) for name in ("scope", "approverId") if form.get(name)}
    outcome = await page_request.change("createSoaVersion", body=body, key=form.get("key"))
    if outcome.refusal is not None:
        return await _list_page(page_request, form, outcome.refusal)
    return page_request.go(page_request.path("soa-versions", outcome.answer["id"]), "version_made")


async def _list_page(
    page_request: OrganizationRequest, form: Fields | None = None, refusal: Refusal | None = None
) -> Response:
    framework_id = page_request.param("id")
    framework, versions, adopted, people, organization = await page_request.ask(
        ApiQuery("getFramework", id=framework_id),
        ApiQuery("listSoaVersions", {"frameworkId": framework_id, **page_request.place}),
        ApiQuery("listFrameworks", {"adoptedOnly": "true", "sortColumn": "identifier"}),
        ApiQuery("listNames", {"kind": "people", "limit": _MOST}),
        ApiQuery("getOrganization", id=page_request.membership.organization_id),
    )
    return page_request.page(
        "app/versions.html",
        status=refusal.status if refusal else 200,
        framework=framework,
        versions=versions,
        further=[(one["id"], one["identifier"]) for one in adopted["items"] if one["id"] != framework_id],
        people=[(one["id"], one["label"]) for one in people["items"]],
        scope=form.get("scope") if form else organization["scope"] or "",
        form=form,
        key=page_request.new_key(),
        refusal=refusal,
    )


async def show_one(page_request: OrganizationRequest) -> Response:
    """A version: who is to approve it, its files, and what proves it."""
    return await _page(page_request)


async def approve(page_request: OrganizationRequest) -> Response:
    """Approve a version, as the member whom it names."""
    await page_request.fields()
    version_id = page_request.param("id")
    outcome = await page_request.change("approveSoaVersion", row_id=version_id)
    if outcome.refusal is not None:
        return await _page(page_request, outcome.refusal)
    return page_request.go(page_request.path("soa-versions", version_id), "version_approved")


async def _page(page_request: OrganizationRequest, refusal: Refusal | None = None) -> Response:
    version = await page_request.ask_one(ApiQuery("getSoaVersion", id=page_request.param("id")))
    of_framework = {"frameworkId": version["frameworkId"], "limit": _MOST}
    named = [("frameworks", version["frameworkId"]), ("memberships", version["approverId"])]
    names = await names_of(page_request, named)
    versions, organization = await page_request.ask(
        ApiQuery("listSoaVersions", of_framework),
        ApiQuery("getOrganization", id=page_request.membership.organization_id),
    )
    return page_request.page(
        "app/version.html",
        status=refusal.status if refusal else 200,
        me=version,
        framework=names.get(("frameworks", version["frameworkId"])),
        approver=names.get(("memberships", version["approverId"])),
        can_approve=version["state"] == "DRAFT"
        and version["erasedAt"] is None
        and version["approverId"] == organization["memberId"],
        formats=[name for name in FILE_FORMATS if version[f"{name}Sha256"] and version["erasedAt"] is None],
        others=[one for one in versions["items"] if one["id"] != version["id"]],
        hashes=[(name, version[f"{name}Sha256"]) for name in FILE_FORMATS if version[f"{name}Sha256"]],
        refusal=refusal,
    )


async def show_comparison(page_request: OrganizationRequest) -> Response:
    """What differs from a version to another one, or to the present state."""
    version_id, other = page_request.param("id"), page_request.query.get("with", "") or NOW
    version, compared = await page_request.ask(
        ApiQuery("getSoaVersion", id=version_id), ApiQuery("compareSoaVersion", {"with": other}, id=version_id)
    )
    return page_request.page("app/version_comparison.html", me=version, compared=compared, shown=_shown)


def _shown(field: str, value: Any) -> str:
    """A value of a statement in a comparison, in words."""
    if isinstance(value, dict):
        value = value.get("name") or value.get("identifier")
    if isinstance(value, list):
        value = [_named(one) for one in value]
        if field == "objections":
            value = [_worded("app.soa.objects_to", one) for one in value]
    elif field in _WORDS:
        value = _worded(_WORDS[field], value)
    return value_text({}, value, _LONGEST)


# The texts for the values of fields, by the beginnings of their keys.
_WORDS = {"implemented": "implemented", "coverageStatus": "status", "effectiveCoverageStatus": "status"}


def _worded(key: str, value: Any) -> Any:
    return text(f"{key}.{value}") if has_text(f"{key}.{value}") else value and words(value)


def _named(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    control = value.get("matchedControl", value)
    return " ".join(filter(None, (control.get("identifier"), control.get("name"))))


async def version_file(page_request: OrganizationRequest) -> Response:
    """A file of a version to download."""
    if not page_request.query.get("format"):
        raise InvalidRequest(text("problem.form"))
    return await download_report(page_request, "getSoaVersion", page_request.param("id"))


async def proof_file(page_request: OrganizationRequest) -> Response:
    """The proof of a version to download."""
    proof = await page_request.ask_one(ApiQuery("getSoaVersionProof", id=page_request.param("id")))
    disposition = f'attachment; filename="proof-of-version-{proof["number"]}.json"'
    headers = {**HEADERS, "Content-Type": "application/json", "Content-Disposition": disposition}
    return Response(encode(proof), headers=headers)


async def show_verification(page_request: OrganizationRequest) -> Response:
    """The page on which the browser verifies a file against a proof and a checkpoint; nothing of it is sent."""
    checkpoint = await page_request.ask_one(ApiQuery("getEventCheckpoint"))
    return page_request.page("app/verify.html", checkpoint=checkpoint)

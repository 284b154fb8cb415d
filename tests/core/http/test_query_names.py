"""Parameters that an operation does not have: refused, or ignored by the first operations unless `Prefer` is strict."""

from __future__ import annotations

from typing import Any

import pytest

from normata.core.http.negotiation import prefers_strict
from normata.core.http.operation import ChangeOperation, Operation, ReadOperation
from normata.operations import OPERATIONS
from normata.records.kinds import IntegrationCheck, Label
from tests.core.http.samples import JSON, all_operations, most, sample
from tests.served import Served
from tests.world import ALPHA, record_id

LENIENT = {
    *("GET /controls/", "GET /frameworks/", "GET /notifications/"),
    *(
        f"POST /{kind}/{{id}}/restore/"
        for kind in (
            *("tasks", "auditItems", "assets", "policies", "record-categories", "entitlement-reviews", "audits"),
            *("risk-reviews", "acronyms", "labels", "integration-checks", "incidents", "vendors", "records"),
            *("vulnerability-classes", "variables"),
        )
    ),
}
STRICT = {"Prefer": "handling=strict"}
CONTROLS = f"/controls/?organizationId={ALPHA}"
LABEL = f"/labels/{record_id(Label, 'archived')}/restore/"


def test_which_operations_are_lenient() -> None:
    assert {f"{one.method} {one.path}" for one in OPERATIONS if one.ignores_unknown} == LENIENT


@all_operations()
def test_every_operation_refuses_what_it_does_not_have(operation: Operation, shared: Served) -> None:
    """A lenient one if the client prefers that, and else nothing but slips. A change is not made."""
    request = sample(operation, user=most(operation))
    headers = shared.bearer(most(operation), scope="admin")

    def faults(name: str, more: dict[str, str]) -> list[dict[str, Any]]:
        response = request.but(query={**request.query, name: "1"}).send(shared.client, headers | more)
        assert response.status_code == 400, response.text
        applied = "handling=strict" if more and operation.ignores_unknown else None
        assert response.headers.get("preference-applied") == applied
        return [fault for fault in response.json()["errors"] if fault["name"] == name]

    for more in (STRICT,) if operation.ignores_unknown else (STRICT, {}):
        (fault,) = faults("unheard-of", more)
        assert (fault["in"], fault["code"]) == ("query", "unknown")
    slip = "organization_id" if "organizationId" in request.query else "dry_run"
    if slip == "organization_id" or isinstance(operation, ChangeOperation):
        for more in (STRICT, {}):
            (fault,) = faults(slip, more)
            assert fault["allowed"] == ["organizationId" if slip == "organization_id" else "dryRun"]
            assert fault["message"] == f"is not a known parameter; did you mean {fault['allowed'][0]}?"


@all_operations(lambda operation: operation.ignores_unknown)
def test_lenient_operations_ignore_the_rest(operation: Operation, shared: Served) -> None:
    request = sample(operation)
    trying = {} if isinstance(operation, ReadOperation) else {"dryRun": "true"}
    unknown = request.but(
        query=request.query
        | trying
        | {"utm_source": "x", "_": "7", "": "", "frameworkz": "x", "page[size]": "5", "frameworks[a]": "x"}
    )
    headers = shared.bearer(most(operation))
    for more in ({}, {"Prefer": "handling=lenient"}, {"Prefer": "return=minimal, respond-async"}):
        response = unknown.send(shared.client, headers | more)
        assert response.status_code == 200, response.text
        assert "preference-applied" not in response.headers
    response = request.but(query=request.query | trying).send(shared.client, headers | STRICT)
    assert response.status_code == 200, response.text
    assert response.headers["preference-applied"] == "handling=strict"


@pytest.mark.parametrize(
    ("sent", "allowed"),
    [
        *(("Limit", ["limit"]), ("as-of", ["asOf"]), ("asof", ["asOf"]), ("sort_column", ["sortColumn"])),
        *(("FRAMEWORKS[]", ["frameworks"]), ("frame-works[3]", ["frameworks"])),
    ],
)
def test_slips_are_refused_of_lenient_lists(sent: str, allowed: list[str], shared: Served) -> None:
    response = shared.client.get(CONTROLS, params={"organizationId": ALPHA, sent: "x"}, headers=shared.bearer("viewer"))
    (fault,) = response.json()["errors"]
    assert (response.status_code, fault["name"], fault["allowed"]) == (400, sent, allowed)


@pytest.mark.parametrize(
    ("sent", "allowed"),
    [("statu", ["status"]), ("updatedsinse", ["updatedSince"]), ("x" * 10_000, None), ("日本語", None), ("", None)],
)
def test_near_names_are_named_and_else_all(sent: str, allowed: list[str] | None, shared: Served) -> None:
    params = {"organizationId": ALPHA, sent: "x"}
    (fault,) = shared.client.get("/tasks/", params=params, headers=shared.bearer("viewer")).json()["errors"]
    assert fault["name"] == sent
    if allowed is not None:
        assert fault["allowed"][0] == allowed[0]
    else:
        assert {"organizationId", "limit", "status"} <= {*fault["allowed"]}
        assert fault["message"] == "is not a known parameter"


@pytest.mark.parametrize("form", ["frameworks[]", "frameworks[0]", "frameworks%5B12%5D"])
@pytest.mark.parametrize("path", ["/controls/", "/coverage/"])
def test_brackets_stay(path: str, form: str, shared: Served) -> None:
    address = f"{path}?organizationId={ALPHA}&{form}=own"
    assert shared.client.get(address, headers=shared.bearer("viewer") | STRICT).status_code == 200


def test_all_faults_are_reported_at_once(shared: Served) -> None:
    """Of a query, and of a body with it."""
    address = "/controls/?organization_id=x&limit=3&search_=y&other=1"
    response = shared.client.get(address, headers=shared.bearer("viewer") | STRICT)
    found = {(fault["name"], fault["code"]) for fault in response.json()["errors"]}
    assert found == {
        *(("organizationId", "required"), ("limit", "too_small")),
        *(("organization_id", "unknown"), ("search_", "unknown"), ("other", "unknown")),
    }
    check = f"/integration-checks/{record_id(IntegrationCheck, 'archived')}/restore/?dryrun=true&dryRun=perhaps"
    headers = shared.bearer("editor") | JSON | {"Idempotency-Key": '"'}
    response = shared.client.post(check, content='{"organizationId": 3}', headers=headers)
    assert {(fault["in"], fault["name"]) for fault in response.json()["errors"]} == {
        *(("query", "dryrun"), ("query", "dryRun"), ("header", "Idempotency-Key"), ("body", "organizationId")),
    }


def test_many_unknown_names_are_not_all_reported(shared: Served) -> None:
    query = "&".join(f"unknown{number}=1" for number in range(3_000))
    response = shared.client.get(f"/tasks/?organizationId={ALPHA}&{query}", headers=shared.bearer("viewer"))
    assert len(response.json()["errors"]) == 20


def test_nobody_without_a_token_learns_what_is_unknown(shared: Served) -> None:
    for method, path in (("GET", f"{CONTROLS}&asof=x"), ("POST", f"{LABEL}?dry_run=true")):
        assert shared.client.request(method, path, headers=STRICT).status_code == 401


def test_a_refused_restore_changes_nothing(service: Served) -> None:
    headers = service.bearer("editor")
    for sent, more in (("dry_run=true", {}), ("unheard=1", STRICT)):
        assert service.client.post(f"{LABEL}?{sent}", headers=headers | more).status_code == 400
    assert service.client.post(f"{LABEL}?unheard=1", headers=headers).json()["archivedAt"] is None


@pytest.mark.parametrize("path", ["/controls/", "/frameworks/", "/notifications/"])
def test_caches_tell_preferences_apart(path: str, service: Served) -> None:
    """A page and its tag are the same, but a request that is refused is so in spite of what is cached."""
    address, headers = f"{path}?organizationId={ALPHA}&unheard=1", service.bearer("viewer")
    plain = service.client.get(address, headers=headers)
    assert "prefer" in plain.headers["vary"].split(", ")
    known = headers | {"If-None-Match": plain.headers["etag"]}
    assert service.client.get(address, headers=known).status_code == 304
    assert service.client.get(address, headers=known | STRICT).status_code == 400
    again = service.client.get(address.removesuffix("&unheard=1"), headers=known | STRICT)
    assert (again.status_code, again.headers["preference-applied"]) == (304, "handling=strict")
    assert again.headers["vary"] == plain.headers["vary"]


@pytest.mark.parametrize(
    ("prefer", "is_strict"),
    [
        *((b"", False), (b"handling", False), (b"handling=", False), (b"handling=lenient", False), (b"strict", False)),
        *((b"handling=strict", True), (b"Handling = Strict ;x=y", True), (b'handling="strict"', True)),
        *((b"wait=10, handling=strict", True), (b'foo="a\\"b, c"; d, handling=strict', True)),
        # The first one counts, and what is in quotes is no preference.
        *((b"handling=lenient, handling=strict", False), (b"handling=strict,handling=lenient", True)),
        *((b'foo="a, handling=strict"', False), (b'foo="handling=strict', False), (b'"' * 100_001, False)),
        *((b'\\"' * 50_000, False), (b"handling=stricter", False), (b"mishandling=strict", False)),
    ],
)
def test_what_a_client_prefers(prefer: bytes, is_strict: bool) -> None:
    assert prefers_strict(prefer) is is_strict

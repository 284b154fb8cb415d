"""The shape of errors: one for all, whatever went wrong, with the headers that belong to the case."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from httpx2 import Response
from starlette.requests import Request

from normata.core.changes import idempotency
from normata.core.http.problems import ERROR_TYPES, Problem, RequestTimeout, problem
from normata.records.assurance import Risk
from normata.records.kinds import IntegrationCheck, Label
from tests.core.http.samples import JSON
from tests.files.clamd import MARKER, clamd
from tests.listing import LISTS
from tests.served import Served, served
from tests.world import ALPHA, change_id, record_id

MEMBERS = {"type", "title", "status", "code", "detail", "instance", "requestId", "errors"}
FAULT_MEMBERS = {"in", "name", "code", "message", "allowed"}
CHECK = f"/integration-checks/{record_id(IntegrationCheck, 'archived')}/restore/"
CONTROLS = "/controls/"


def get(service: Served, user: str = "viewer", headers: dict[str, str] | None = None, **params: str) -> Response:
    """The answer to a GET for alpha."""
    wanted = {"organizationId": ALPHA} | params
    return service.client.get(CONTROLS, params=wanted, headers=service.bearer(user) | (headers or {}))


def check(service: Served, content: str, headers: dict[str, str] = JSON) -> Response:
    """The answer to the restore of an integration check."""
    return service.client.post(CHECK, content=content, headers=service.bearer("editor") | headers)


def restore(service: Served, state: str, *, user: str = "editor", scope: str = "write") -> Response:
    """The answer to the restore of a label."""
    return service.client.post(f"/labels/{record_id(Label, state)}/restore/", headers=service.bearer(user, scope=scope))


def limited(service: Served) -> Response:
    """The answer to the second of two requests of a token that may send one a minute."""
    with served(service.url, rate_limit=1) as other:
        headers = other.bearer("viewer")
        other.client.get(CONTROLS, headers=headers)
        return other.client.get(CONTROLS, headers=headers)


def too_deep(service: Served) -> Response:
    """The answer to a page beyond the rows that have page numbers."""
    return service.client.get(f"/tasks/?organizationId={ALPHA}&page=101", headers=service.bearer("viewer"))


def broken(service: Served) -> Response:
    """The answer where a stored value is one that cannot be."""
    service.sql("UPDATE effective_coverage SET status = 7")
    return get(service)


def stalled(service: Served) -> Response:
    """The answer where the body does not come in time; `test_limits` has one that really does not."""

    async def wait(_: Request) -> bytes:
        raise RequestTimeout

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Request, "body", wait)
        return check(service, "{}")


def in_use(service: Served) -> Response:
    """The answer where a task refers to the statement that is taken back."""
    task = {"id": "in-use", "organizationId": ALPHA, "title": "x", "controlCoverageId": "say-sun.A.2"}
    service.load({"tasks": [task]})
    query = {"organizationId": ALPHA}
    return service.client.delete("/controls/sun.A.2/coverage/", params=query, headers=service.bearer("editor"))


def unassessed(service: Served) -> Response:
    """Confirm an assessment that nobody made."""
    body = {"organizationId": ALPHA}
    path = "/controls/sun.A.6/coverage/confirm/"
    return service.client.post(path, json=body, headers=service.bearer("editor"))


def undone(service: Served) -> Response:
    """The answer where nothing is left of a change that is to be undone."""
    body = {"organizationId": ALPHA, "changeId": change_id(ALPHA)}
    headers = service.bearer("editor")
    return [service.client.post("/controls/coverage/undo/", json=body, headers=headers) for _ in range(2)][-1]


def upload_beyond_the_quota(service: Served) -> Response:
    """The answer to an upload where the organization's files have all the room that there is."""
    with served(service.url, files_quota=1) as other:
        query = {"organizationId": ALPHA, "name": "a"}
        return other.client.post("/files/", params=query, content=b"a", headers=other.bearer("editor"))


def malware(service: Served) -> Response:
    """The answer to an upload in which the scanner finds something."""
    with clamd() as scanner, served(service.url, scanner=scanner.address) as other:
        query = {"organizationId": ALPHA, "name": "a"}
        return other.client.post("/files/", params=query, content=MARKER, headers=other.bearer("editor"))


def past_the_end_of_a_file(service: Served) -> Response:
    """The answer to a request for bytes that a file does not have."""
    headers = service.bearer("viewer") | {"Range": "bytes=1000-"}
    return service.client.get(f"/files/file-of-{ALPHA}/content/", params={"organizationId": ALPHA}, headers=headers)


def importing(service: Served) -> Response:
    """The answer where the organization has an import in progress."""
    headers = service.bearer("admin") | {"Content-Type": "text/csv"}
    with service.app.services.exclusive.hold(f"imports {ALPHA}"):
        query = {"organizationId": ALPHA, "name": "Docks"}
        return service.client.post("/imports/", params=query, content="identifier\n1\n", headers=headers)


def gone(service: Served) -> Response:
    """The answer where the schema is not the one that the service needs."""
    service.sql("DELETE FROM alembic_version")
    return service.client.get("/readyz/")


def archive(service: Served, state: str) -> Response:
    """The answer where a label is to be archived."""
    return service.client.post(f"/labels/{record_id(Label, state)}/archive/", headers=service.bearer("editor"))


def several(service: Served) -> Response:
    """The answer where one of several records cannot be archived."""
    records = [{"kind": "labels", "id": record_id(Label, state)} for state in ("live", "archived")]
    body = {"organizationId": ALPHA, "records": records}
    return service.client.post("/archive/", json=body, headers=service.bearer("editor"))


def about_people(service: Served, method: str, path: str, *sql: str, user: str = "owner", **body: str) -> Response:
    """The answer to a request about people, after what is to stand in its way."""
    service.sql(*sql)
    headers = service.bearer(user, scope="admin")
    return service.client.request(method, path, json=body or None, headers=headers)


KEYED = {"Idempotency-Key": "k"}


def keyed(service: Served, *, again: str, largest: int = 1_000_000) -> Response:
    """The answer to a second request with the same key: one that restores the record in this state."""
    headers = service.bearer("editor") | KEYED
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(idempotency, "MAX_ANSWER", largest)
        paths = [f"/labels/{record_id(Label, state)}/restore/" for state in ("archived", again)]
        return [service.client.post(path, headers=headers) for path in paths][-1]


def in_flight(service: Served) -> Response:
    """The answer where a request with the same key is being carried out."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(service.app.services.in_progress, "_keys", {("user-editor", "k")})
        return service.client.post(CHECK, headers=service.bearer("editor") | KEYED)


def approved_already(service: Served) -> Response:
    """The approval of a version that is no draft."""
    return service.client.post(f"/soa-versions/approved-soa-{ALPHA}/approve/", headers=service.bearer("owner"))


def not_rated(service: Served) -> Response:
    """The acceptance of a risk that has no residual values."""
    headers = service.bearer("editor")
    return service.client.post(f"/risks/{record_id(Risk, 'live')}/accept/", headers=headers)


def step_of(service: Served, state: str, step: str, body: object = None) -> Response:
    """The answer to the step of a policy."""
    path = f"/policies/policies-{state}-{ALPHA}/{step}/"
    return service.client.post(path, json=body, headers=service.bearer("owner"))


def without_files(service: Served) -> Response:
    """A file of a version that has none any more."""
    files = ", ".join(f"{name}_file = NULL" for name in ("json", "csv", "xlsx"))
    service.sql(f"UPDATE soa_version SET {files}, erased_at = created_at")
    query = {"organizationId": ALPHA, "format": "csv"}
    return service.client.get(f"/soa-versions/soa-{ALPHA}/", params=query, headers=service.bearer("viewer"))


# Of a single item of a batch, never of a whole answer.
ONLY_WITHIN = {(409, "external_id_taken")}

CASES: dict[str, tuple[int, str, Callable[[Served], Response]]] = {
    "query": (400, "validation", lambda service: get(service, limit="4", page="x", sortColumn="x")),
    "deep page": (400, "page_too_deep", too_deep),
    "body": (400, "validation", lambda service: check(service, '{"organizationId": 7}')),
    "no JSON": (400, "validation", lambda service: check(service, "{")),
    "no token": (401, "unauthenticated", lambda service: service.client.get(CONTROLS)),
    "bad token": (401, "unauthenticated", lambda service: get(service, headers={"Authorization": "Bearer x"})),
    "role": (403, "forbidden", lambda service: restore(service, "archived", user="viewer")),
    "scope": (403, "forbidden", lambda service: restore(service, "archived", scope="read")),
    "path": (404, "not_found", lambda service: service.client.get("/nothing/here/")),
    "organization": (404, "not_found", lambda service: get(service, organizationId="org-nowhere")),
    "record": (404, "not_found", lambda service: restore(service, "unknown")),
    "method": (405, "method_not_allowed", lambda service: service.client.put(CONTROLS)),
    "accept": (406, "not_acceptable", lambda service: get(service, headers={"Accept": "text/html"})),
    "time": (408, "request_timeout", stalled),
    "not rated": (409, "not_rated", not_rated),
    "wrong state": (409, "wrong_state", approved_already),
    "another version": (409, "wrong_version", lambda service: step_of(service, "reviewed", "approve", {"version": 2})),
    "no approver": (409, "no_approver", lambda service: step_of(service, "namesake", "submit")),
    "no files": (410, "files_erased", without_files),
    "undone": (409, "nothing_to_undo", undone),
    "unassessed": (409, "not_assessed", unassessed),
    "live": (409, "not_archived", lambda service: restore(service, "live")),
    "slug": (409, "slug_taken", lambda service: restore(service, "taken")),
    "referred to": (409, "in_use", in_use),
    "archived": (409, "archived", lambda service: archive(service, "archived")),
    "several records": (409, "records_refused", several),
    "removed member": (
        409,
        "member_removed",
        lambda service: about_people(
            service,
            "PATCH",
            "/members/member-viewer/",
            "UPDATE membership SET removed_at = '2026-01-02T00:00:00.000Z' WHERE id = 'member-viewer'",
            role="editor",
        ),
    ),
    "member already": (
        409,
        "already_member",
        lambda service: about_people(
            service, "POST", "/invitations/", organizationId=ALPHA, email="viewer@alpha.example", role="viewer"
        ),
    ),
    "quota exceeded": (409, "quota_exceeded", upload_beyond_the_quota),
    "malware found": (422, "malware_found", malware),
    "none of the bytes": (416, "range_not_satisfiable", past_the_end_of_a_file),
    "has responsibilities": (
        409,
        "has_responsibilities",
        lambda service: about_people(service, "PATCH", "/members/member-editor/", role="auditor"),
    ),
    "last owner": (409, "last_owner", lambda service: about_people(service, "DELETE", "/members/member-owner/")),
    "token of others": (
        409,
        "token_spans_organizations",
        lambda service: about_people(
            service,
            "DELETE",
            "/tokens/token-viewer/",
            "UPDATE access_token SET organization_id = NULL WHERE id = 'token-viewer'",
        ),
    ),
    "invitation that is over": (
        409,
        "invitation_closed",
        lambda service: about_people(
            service,
            "DELETE",
            "/invitations/invitation-org-alpha/",
            "UPDATE invitation SET accepted_at = '2026-01-02T00:00:00.000Z'",
        ),
    ),
    "under way": (409, "request_in_progress", in_flight),
    "importing": (409, "import_in_progress", importing),
    "not kept": (409, "answer_not_stored", lambda service: keyed(service, again="archived", largest=10)),
    "another request": (422, "key_reused", lambda service: keyed(service, again="live")),
    "precondition": (412, "precondition_failed", lambda service: get(service, headers={"If-Match": '"x"'})),
    "size": (413, "too_large", lambda service: check(service, " " * 100_000)),
    "type": (415, "unsupported_media_type", lambda service: check(service, "{}", {"Content-Type": "text/plain"})),
    "rate": (429, "too_many_requests", limited),
    "fault": (500, "internal", broken),
    "database": (503, "unavailable", gone),
}


@pytest.mark.parametrize("case", CASES)
def test_shape(case: str, service: Served) -> None:
    """Exactly the members of RFC 9457 with ours, faults where there are some, and the headers of the status."""
    status, code, ask = CASES[case]
    response = ask(service)
    body, headers = response.json(), response.headers
    assert response.status_code == status
    more = {"conflictingId"} if code in ("slug_taken", "in_use", "already_member") else set()
    more |= {"wrong_state": {"state", "allowed"}, "wrong_version": {"version"}}.get(code, set())
    assert body.keys() == MEMBERS | more
    assert (body["status"], body["code"]) == (status, code)
    assert body["type"] == f"https://normata.dev/problems/{code.replace('_', '-')}"
    assert body["instance"] == response.request.url.path
    assert all(type(body[name]) is str and body[name] for name in MEMBERS - {"status", "errors"})
    Problem.model_validate_json(response.content, strict=True)

    assert bool(body["errors"]) == (status == 400 or code == "records_refused")
    for fault in body["errors"]:
        assert fault.keys() == FAULT_MEMBERS
        assert fault["in"] == ("query" if case in ("query", "deep page") else "body")
        assert all(type(fault[name]) is str for name in FAULT_MEMBERS - {"allowed"})
        assert fault["allowed"] is None or all(type(value) is str for value in fault["allowed"])
        assert fault["message"] in body["detail"] or status == 409

    assert headers["content-type"] == "application/json"
    assert headers["x-request-id"] == body["requestId"]
    assert headers["x-content-type-options"] == "nosniff"
    assert "private" in headers["cache-control"]
    assert ("www-authenticate" in headers) == (status == 401 or case == "scope")
    assert ("allow" in headers) == (status == 405)
    assert ("retry-after" in headers) == (status in (429, 503) or code in ("request_in_progress", "import_in_progress"))
    if "retry-after" in headers:
        assert int(headers["retry-after"]) > 0


def test_every_sort_of_problem_is_among_the_cases() -> None:
    answered = {(status, code) for status, code, _ in CASES.values()} | ONLY_WITHIN
    assert {(sort.status, sort.code) for sort in ERROR_TYPES.values()} == answered


def test_a_code_has_one_status_and_title() -> None:
    assert len({(sort.code, sort.status, sort.title) for sort in ERROR_TYPES.values()}) == len(
        {sort.code for sort in ERROR_TYPES.values()}
    )


def test_what_is_no_problem_cannot_be_told_as_one() -> None:
    with pytest.raises(KeyError):
        problem(ValueError("a secret"), "/", "1")


def test_what_is_not_found_looks_the_same_whatever_it_was(service: Served) -> None:
    """But for the address."""
    bodies = [CASES[name][2](service).json() for name in ("path", "organization", "record")]
    for body in bodies:
        del body["instance"], body["requestId"]
    assert bodies[0] == bodies[1] == bodies[2]


def test_all_faults_of_a_query_at_once(shared: Served) -> None:
    """As the design shows them."""
    params = {"limit": "101", "page": "0", "adoptedOnly": "perhaps"}
    body = shared.client.get("/frameworks/", params=params, headers=shared.bearer("viewer")).json()
    assert sorted(body["errors"], key=lambda fault: str(fault["name"])) == [
        {
            "in": "query",
            "name": "adoptedOnly",
            "code": "invalid",
            "message": "must be true or false",
            "allowed": ["true", "false"],
        },
        {"in": "query", "name": "limit", "code": "too_large", "message": "must be at most 100", "allowed": None},
        {"in": "query", "name": "organizationId", "code": "required", "message": "is required", "allowed": None},
        {"in": "query", "name": "page", "code": "too_small", "message": "must be at least 1", "allowed": None},
    ]
    for fault in body["errors"]:
        assert f"{fault['name']} {fault['message']}" in body["detail"].split("; ")


def test_one_fault_reads_as_one_sentence(shared: Served) -> None:
    for operation in LISTS:
        params = {"organizationId": "x", "limit": "101"}
        response = shared.client.get(operation.path, params=params, headers=shared.bearer("viewer"))
        assert response.json()["detail"] == "limit must be at most 100"


def test_the_conflicting_record_is_named(shared: Served) -> None:
    assert restore(shared, "taken").json()["conflictingId"] == record_id(Label, "namesake")


@pytest.mark.parametrize("path", ["/no where/", "/é/", "/a%2Fb/", "/%00/", '/"<script>/', "/%ff/"])
def test_instance_is_the_path_as_it_was_sent(path: str, shared: Served) -> None:
    """A URI reference, in which an escaped slash stays escaped."""
    response = shared.client.get(path)
    assert response.status_code == 404
    instance = response.json()["instance"]
    assert instance.isascii()
    assert not set(instance) & set(' "<>\\^`{|}\0')
    assert instance == response.request.url.raw_path.decode()

"""What pages ask and what their forms do, recorded while all of them are visited and sent: docs/console.md tells it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

from normata.console.app.api_calls import ApiQuery, Outcome
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.routes import PAGES
from normata.operations import OPERATIONS
from normata.policies.model import PolicyVersion
from normata.records.archive.queries import KINDS
from tests import stored
from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA, Form, Parsed
from tests.console.browser import Browser
from tests.policies.rows import acknowledgement_row
from tests.test_structure import SOURCE
from tests.world import ALPHA as ALPHA_ID

_OPERATIONS = {operation.operation_id for operation in OPERATIONS}
_OF_KINDS = {one.operation_id for one in OPERATIONS if one.path.split("/")[1] in KINDS}
_ROUTES = [page.path for page in PAGES if page.get is not None]
_MOST = 1  # addresses of one route with the same filters, and forms of one sort
_PREFIX = "/app/{organization}/"


class Recorded:
    """What was asked and what was to be changed, by method and route."""

    def __init__(self) -> None:
        self.api_calls: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        self.changed: defaultdict[str, set[str]] = defaultdict(set)
        self.refused: dict[str, int] = {}


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Recorded:
    """A record of all visits. Changes are tried, and not made."""
    record = Recorded()
    requests, change, preview = OrganizationRequest.requests_of, OrganizationRequest.change, OrganizationRequest.preview

    def route(page_request: OrganizationRequest) -> str:
        return str(page_request.context.route).removeprefix(_PREFIX)

    def recording(page_request: OrganizationRequest, api_queries: Sequence[ApiQuery], *, is_noted: bool = True) -> Any:
        named = {api_query.operation for api_query in api_queries if is_noted}
        record.api_calls[page_request.request.method, route(page_request)] |= named
        return requests(page_request, api_queries, is_noted=is_noted)

    async def trying(page_request: OrganizationRequest, operation_id: str, **given: Any) -> Outcome:
        record.changed[route(page_request)].add(operation_id)
        outcome = await change(page_request, operation_id, **{**given, "dry_run": True})
        if outcome.refusal is not None or given.get("dry_run"):
            return outcome
        return Outcome(outcome.answer["answer"])

    async def foreseeing(
        page_request: OrganizationRequest, operation_id: str, *arguments: Any, **given: Any
    ) -> Outcome:
        record.changed[route(page_request)].add(operation_id)
        return await preview(page_request, operation_id, *arguments, **given)

    monkeypatch.setattr(OrganizationRequest, "requests_of", recording)
    monkeypatch.setattr(OrganizationRequest, "change", trying)
    monkeypatch.setattr(OrganizationRequest, "preview", foreseeing)
    return record


@pytest.mark.long
def test_every_link_and_form_works_and_the_documentation_tells_what_they_do(people: People, recorded: Recorded) -> None:
    """What is more, nothing is changed past the one road for changes: that is closed here."""
    said = {"organizationId": ALPHA_ID, "coverageStatus": "PARTIAL"}
    path, headers = "/controls/moon.A.5/coverage/", people.instance.bearer("owner")
    assert people.instance.client.put(path, json=said, headers=headers).status_code == 200
    comment = {"organizationId": ALPHA_ID, "about": {"kind": "controls", "id": "moon.A.5"}, "text": "Own"}
    assert people.instance.client.post("/comments/", json=comment, headers=headers).status_code == 201
    published = {"policy_id": f"policies-published-{ALPHA_ID}", "state": "PUBLISHED"}
    [in_force] = stored.rows(people.instance.database, PolicyVersion, **published)
    done = {"id": "in-force", "versionId": in_force["id"], "acknowledgedAt": "2026-05-01T00:00:00.000Z"}
    people.instance.load({"acknowledgements": [acknowledgement_row(ALPHA_ID, "member-viewer") | done]})
    browser = people["owner"]
    before = stored.everything(people.instance.database)

    pages = list(_visited(browser))
    sent: list[Form] = []
    forms = (form for _, parsed in pages for form in parsed.forms)
    for form in _few_alike(form for form in forms if form.method == "post" and form.action.startswith(ALPHA)):
        _send(browser, form, sent)

    assert stored.everything(people.instance.database) == before
    assert {route for _, route in recorded.api_calls} >= set(_ROUTES)
    told = dict(_told())
    api_calls = {route: found for (method, route), found in recorded.api_calls.items() if method == "GET"}
    assert _untold(api_calls, {route: asks for route, (asks, _) in told.items()}) == {}
    assert _untold(recorded.changed, {route: does for route, (_, does) in told.items()}) == {}
    assert len(set().union(*recorded.changed.values())) > 3


def _untold(found: Mapping[str, set[str]], told: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """What was found beyond what is told. Of a page of every kind the operations of the kinds are told by words."""
    beyond = {
        route: named - told[route] - (_OF_KINDS if "{kind}" in route else set()) for route, named in found.items()
    }
    return {route: named for route, named in beyond.items() if named}


def _visited(browser: Browser) -> Iterator[tuple[str, Parsed]]:
    """Pages as links lead to them from home, some addresses of each route. Every link is one that answers."""
    # The last ones have links on pages of kinds that are not visited.
    beginnings = (
        *("", "find/?search=moon", "controls/moon.A.5/", "risk-matrix/", f"files/file-of-{ALPHA_ID}/file/"),
        *(f"records/policies/policies-published-{ALPHA_ID}/", "new/policies/"),
        f"policies/policies-published-{ALPHA_ID}/acknowledgements/",
        f"records/incidents/incidents-live-{ALPHA_ID}/",
        f"entitlement-reviews/entitlement-reviews-live-{ALPHA_ID}/",
        *("comments/comment-owner/", f"audits/audits-live-{ALPHA_ID}/"),
        f"questionnaires/free-{ALPHA_ID}/",
        *(f"records/vendor-assessments/vendor-assessments-{state}-{ALPHA_ID}/" for state in ("sent", "submitted")),
    )
    addresses, counts = [f"{ALPHA}{beginning}" for beginning in beginnings], defaultdict[Any, int](int)
    for address in addresses:
        answer = browser.get(address)
        assert answer.status_code == 200, (address, answer.text[:500])
        if not answer.headers["content-type"].startswith("text/html"):
            continue
        parsed = Parsed(answer)
        yield address, parsed
        for link in parsed.links:
            path = urlsplit(link).path
            if not path.startswith(ALPHA) or link.partition("#")[0] in addresses:
                continue
            sort = _route_of(path.removeprefix(ALPHA)), tuple(name for name, _ in parse_qsl(urlsplit(link).query))
            counts[sort] += 1
            if counts[sort] <= _MOST:
                addresses.append(link.partition("#")[0])


def _route_of(path: str) -> str:
    found = [route for route in _ROUTES if re.fullmatch(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(route)), path)]
    return min(found, key=lambda route: (route.count("{"), route), default=path)


def _few_alike(forms: Iterable[Form]) -> Iterator[Form]:
    """Some forms of each sort: rows of a list have the same one."""
    counts: Counter[Any] = Counter()
    for form in forms:
        sort = _route_of(form.action.removeprefix(ALPHA)), tuple(form.fields), tuple(form.buttons)
        counts[sort] += 1
        if counts[sort] <= _MOST:
            yield form


def _send(browser: Browser, form: Form, sent: list[Form], depth: int = 2) -> None:
    """Press each button of a form, and those of forms in the answers. No answer is a failure of the service.

    What every page has, and what an answer shows again as it was, is sent once.
    """
    if form in sent:
        return
    sent.append(form)
    for button in form.buttons or [("", "")]:
        fields = {**form.fields, **form.choices, **dict([button] if button[0] else [])}
        headers = {"Sec-Fetch-Site": "same-origin", "Content-Type": "application/x-www-form-urlencoded"}
        answer = browser.client.post(form.action, content=urlencode(fields), headers=headers)
        # 415 is for forms that send a file, which this one does not have.
        assert answer.status_code in (200, 303, 400, 403, 409, 412, 415), (form, answer.text[:500])
        if depth and answer.status_code != 303 and answer.headers["content-type"].startswith("text/html"):
            for following in Parsed(answer).forms:
                if following.method == "post" and following.action == form.action:
                    _send(browser, following, sent, depth - 1)


def _told() -> Iterator[tuple[str, tuple[set[str], set[str]]]]:
    """What the documentation says that each page asks, and that its form does."""
    told = SOURCE.parents[1].joinpath("docs", "console.md").read_text("utf-8")
    for line in re.findall(r"^\| `/app/\{organization\}/.*$", told, re.MULTILINE):
        path, _, asks, does = (cell.strip() for cell in line.strip("|").split("|"))
        route = path.strip("`").removeprefix(_PREFIX)
        yield route, (set(re.findall(r"`(\w+)`", asks)) & _OPERATIONS, set(re.findall(r"`(\w+)`", does)) & _OPERATIONS)

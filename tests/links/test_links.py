"""Links between records, controls and members: made, listed from both ends, removed, archived, loaded, erased."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest
from httpx2 import Response

from normata.bundle.dumping import dump
from normata.erasure.erasing import erase
from normata.erasure.person import ErasureRequest
from normata.events.keys import Signer
from normata.links.commands import MAX_AT_ONCE
from normata.links.model import Link
from normata.settings import Settings
from tests import stored
from tests.databases import change, open_url
from tests.files.rows import contents
from tests.served import Served, served
from tests.world import ALPHA, ARCHIVED, BETA, USERS

Ask = Callable[..., Response]

POLICY = {"kind": "policies", "id": f"policies-live-{ALPHA}"}
TASK = {"kind": "tasks", "id": f"tasks-live-{ALPHA}"}
ARCHIVED_TASK = {"kind": "tasks", "id": f"tasks-archived-{ALPHA}"}
LABEL = {"kind": "labels", "id": f"labels-live-{ALPHA}"}
CONTROL = {"kind": "controls", "id": "sun.A.1"}
EDITOR = {"kind": "memberships", "id": "member-editor"}
AUDITOR = {"kind": "memberships", "id": "member-auditor"}


@pytest.fixture
def service(database_url: str) -> Iterator[Served]:
    """The application over a fresh copy of the test world."""
    with served(database_url) as opened:
        yield opened


@pytest.fixture
def ask(service: Served) -> Ask:
    """Asks as one of the world's users, of alpha unless the request says otherwise."""
    bearers = {user: service.bearer(user) for user in ("owner", "editor", "viewer", "auditor", "foreigner")}

    def ask(method: str, path: str = "/links/", *, user: str = "editor", **values: Any) -> Response:
        named = {"organizationId": ALPHA} | values
        sent: dict[str, Any] = {"POST": {"json": named}, "GET": {"params": named}}.get(method, {})
        return service.client.request(method, path, headers=bearers[user], **sent)

    return ask


def link(start: dict[str, str], relation: str, end: dict[str, str], **more: Any) -> dict[str, Any]:
    """The link in the body of a request."""
    return {"from": start, "relation": relation, "to": end, **more}


def of(ask: Ask, thing: dict[str, str], **query: Any) -> list[dict[str, Any]]:
    """The links of something."""
    found: list[dict[str, Any]] = ask("GET", user="viewer", **thing, **query).json()["items"]
    return found


def faults(response: Response) -> dict[str, str]:
    """The places and messages of an answer 400."""
    assert response.status_code == 400, response.text
    return {one["name"]: one["message"] for one in response.json()["errors"]}


def test_a_link_is_seen_from_both_ends_with_names_and_statuses(service: Served, ask: Ask) -> None:
    made = ask("POST", **link(POLICY, "IMPLEMENTS", CONTROL, note="Section 4"))
    assert (made.status_code, made.json()["note"]) == (201, "Section 4")
    assert of(ask, POLICY) == of(ask, CONTROL) == [made.json()]
    assert ask("GET", made.headers["location"]).json() == made.json()
    assert made.json()["from"] == POLICY | {
        "label": "policy live",
        "identifier": None,
        "status": "DRAFT",
        "isLive": True,
    }
    to = made.json()["to"]
    assert (to["identifier"], to["status"], to["isLive"]) == ("A.1", _effective(ask), True)
    assert of(ask, POLICY, relation="OWNS") == []
    several = {"kind": "policies", "id": [POLICY["id"], "policies-archived-org-alpha"]}
    assert ask("GET", **several).json()["items"] == [made.json()]

    # It is an event of both, and so is its end.
    assert ask("DELETE", f"/links/{made.json()['id']}/").json() is None
    assert ask("DELETE", f"/links/{made.json()['id']}/").status_code == 404
    assert of(ask, POLICY) == of(ask, CONTROL) == []
    for thing in (POLICY, CONTROL):
        events = ask("GET", f"/{thing['kind']}/{thing['id']}/events/", user="viewer").json()["items"]
        ours = [one for one in events if one["kind"] == "links"]
        assert [(one["action"], one["recordId"]) for one in ours] == [
            ("delete", made.json()["id"]),
            ("create", made.json()["id"]),
        ]
        assert ours[0]["before"]["fromId"] == POLICY["id"]
    # What is made again is another one.
    again = ask("POST", **link(POLICY, "IMPLEMENTS", CONTROL))
    assert (again.status_code, again.json()["note"]) == (201, None)
    assert again.json()["id"] != made.json()["id"]
    assert len(stored.rows(service.database, Link)) == 8 + 2


def _effective(ask: Ask) -> str:
    listed = ask("GET", "/controls/").json()["items"]
    return next(str(one["effectiveCoverageStatus"]) for one in listed if one["id"] == CONTROL["id"])


def test_the_same_link_again_is_the_same(service: Served, ask: Ask) -> None:
    first = ask("POST", **link(TASK, "RELATES", LABEL, note="Why"))
    # A relation without direction has the same link from either end.
    second = ask("POST", **link(LABEL, "RELATES", TASK))
    assert (first.status_code, second.status_code) == (201, 200)
    assert "location" in second.headers
    assert first.json() == second.json()
    assert (first.json()["from"]["id"], first.json()["to"]["id"]) == (LABEL["id"], TASK["id"])
    before = stored.everything(service.database)
    assert ask("POST", **link(TASK, "RELATES", LABEL)).json() == first.json()
    assert stored.everything(service.database) == before
    noted = ask("POST", **link(TASK, "RELATES", LABEL, note=None))
    assert (noted.status_code, noted.json()) == (200, first.json() | {"note": None})
    # One in the other direction is another one, and so is one of another relation.
    assert ask("POST", **link(TASK, "FOLLOWS", LABEL)).status_code == 201
    assert ask("POST", **link(LABEL, "FOLLOWS", TASK)).status_code == 201
    assert ask("POST", **link(LABEL, "ONE_OF_OUR_OWN", TASK)).status_code == 201


def test_both_ends_exist_here(service: Served, ask: Ask) -> None:
    before = stored.everything(service.database)
    foreign = {"kind": "tasks", "id": f"tasks-live-{BETA}"}
    for unknown in (foreign, {"kind": "tasks", "id": POLICY["id"]}, {"kind": "tasks", "id": "nothing"}):
        assert faults(ask("POST", **link(POLICY, "RELATES", unknown))) == {"to/id": "names no task that exists"}
        assert faults(ask("POST", **link(unknown, "IMPLEMENTS", CONTROL))) == {"from/id": "names no task that exists"}
        assert of(ask, unknown) == []
    foreign_control = {"kind": "controls", "id": "foreign.A.1"}
    assert "to/id" in faults(ask("POST", **link(POLICY, "IMPLEMENTS", foreign_control)))
    assert faults(ask("POST", **link(TASK, "FOLLOWS", TASK))) == {"to/id": "is what the link leads from"}
    assert "from/kind" in faults(ask("POST", **link({"kind": "events", "id": "x"}, "RELATES", TASK)))
    assert "relation" in faults(ask("POST", **link(POLICY, "lower", CONTROL)))
    assert faults(ask("POST", **link(AUDITOR, "OWNS", TASK)))["from/id"].startswith("names a membership of an auditor")
    assert ask("GET", kind="tasks").status_code == 400
    # Nobody else sees or touches them, and who only reads changes nothing.
    for user, status in (("foreigner", 404), ("viewer", 403), ("auditor", 403)):
        assert ask("POST", user=user, **link(POLICY, "IMPLEMENTS", CONTROL)).status_code == status
        assert ask("DELETE", f"/links/link-1-{ALPHA}/", user=user).status_code == status
    assert ask("GET", f"/links/link-1-{ALPHA}/", user="foreigner", organizationId=BETA).status_code == 404
    assert stored.everything(service.database) == before


def test_links_outlive_archiving(ask: Ask) -> None:
    made = ask("POST", **link(TASK, "IMPLEMENTS", CONTROL)).json()
    assert ask("POST", "/archive/", records=[TASK]).status_code == 200
    assert of(ask, CONTROL) == [made | {"from": made["from"] | {"isLive": False}}]
    assert ask("POST", "/archive/restore/", records=[TASK]).status_code == 200
    assert of(ask, CONTROL) == of(ask, TASK, relation="IMPLEMENTS") == [made]
    # What is archived can be linked, too.
    linked = ask("POST", **link(ARCHIVED_TASK, "FOLLOWS", TASK)).json()
    assert (linked["from"]["isLive"], linked["to"]["isLive"]) == (False, True)


def test_several_at_once(service: Served, ask: Ask) -> None:
    good, bad = link(POLICY, "IMPLEMENTS", CONTROL), link({"kind": "tasks", "id": "nothing"}, "RELATES", LABEL)
    there = link(EDITOR, "OWNS", {"kind": "auditItems", "id": f"auditItems-live-{ALPHA}"})
    before = stored.everything(service.database)
    # The fault is where its sender put it, although the ends are stored the other way round.
    refused = ask("POST", "/links/many/", links=[good, bad, there])
    assert faults(refused) == {"links/1/from/id": "names no task that exists"}
    assert stored.everything(service.database) == before
    each = ask("POST", "/links/many/", links=[good, bad, there, good], mode="each").json()
    assert (each["done"], each["refused"]) == (3, 1)
    assert [one["created"] for one in each["links"]] == [True, False, False, False]
    assert each["links"][0]["link"] == each["links"][3]["link"]  # the same again makes no other one
    assert each["links"][1]["refusal"]["detail"] == "from/id names no task that exists"
    assert each["links"][2]["link"]["id"] == f"link-1-{ALPHA}"

    tasks = [{"id": f"many-{number}", "organizationId": ALPHA, "title": "One"} for number in range(MAX_AT_ONCE)]
    service.load({"tasks": tasks})
    most = [link({"kind": "tasks", "id": one["id"]}, "IMPLEMENTS", CONTROL) for one in tasks]
    made = ask("POST", "/links/many/", links=most).json()
    assert (made["done"], {one["created"] for one in made["links"]}) == (MAX_AT_ONCE, {True})
    assert [one["link"]["from"]["id"] for one in made["links"]] == [one["id"] for one in tasks]
    page = ask("GET", **CONTROL, limit=100)
    assert page.json()["total"] == MAX_AT_ONCE + 1
    seen = [one["id"] for one in page.json()["items"]]
    while "next" in page.links:
        page = service.client.get(page.links["next"]["url"], headers=page.request.headers)
        seen += [one["id"] for one in page.json()["items"]]
    assert len(seen) == len(set(seen)) == MAX_AT_ONCE + 1
    assert ask("POST", "/links/many/", links=[*most, good]).status_code == 400


def test_of_two_equal_links_at_once_there_is_one(ask: Ask) -> None:
    def make(_number: int) -> Response:
        return ask("POST", **link(POLICY, "IMPLEMENTS", CONTROL))

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(make, range(4)))
    assert sorted(one.status_code for one in answers) == [200, 200, 200, 201]
    assert len({one.json()["id"] for one in answers}) == 1
    assert len(of(ask, POLICY)) == 1


def test_a_key_and_a_dry_run(service: Served, ask: Ask) -> None:
    body = {"organizationId": ALPHA, **link(POLICY, "IMPLEMENTS", CONTROL)}
    headers = service.bearer("editor")
    previewed = service.client.post("/links/", params={"dryRun": "true"}, json=body, headers=headers).json()
    assert (previewed["status"], previewed["changes"][0]["kind"]) == (201, "links")
    assert of(ask, POLICY) == []
    keyed = headers | {"Idempotency-Key": "one"}
    first, second = (service.client.post("/links/", json=body, headers=keyed) for _ in range(2))
    assert (first.status_code, first.content) == (second.status_code, second.content)
    known = service.client.post("/links/", params={"dryRun": "true"}, json=body, headers=headers).json()
    assert (known["status"], known["changes"]) == (200, [])


def test_a_bundle_has_them_and_what_was_removed(service: Served, ask: Ask, empty_url: str) -> None:
    ask("POST", **link({"kind": "labels", "id": LABEL["id"]}, "RELATES", {"kind": "controls", "id": "star.A.1"}))
    removed = ask("POST", **link(POLICY, "IMPLEMENTS", CONTROL)).json()["id"]
    ask("DELETE", f"/links/{removed}/")
    text = _dump(service.database)
    rows = {row["id"]: row for row in json.loads(text)["links"]}
    assert len(rows) == 6
    assert rows[removed]["removedAt"] is not None
    with closing(open_url(empty_url)) as other:
        stored.load(other, {name: found for name, found in json.loads(text).items() if name != "history"})
        assert json.loads(_dump(other))["links"] == json.loads(text)["links"]


def _dump(database: Any) -> str:
    file = io.StringIO()
    database.read_now(lambda transaction: dump(transaction, ALPHA, file))
    return file.getvalue()


@pytest.mark.parametrize(
    ("row", "name", "reason"),
    [
        ({"toId": "nothing"}, "toId", "names no task that exists"),
        ({"toId": f"tasks-live-{BETA}"}, "toId", "names a task of another organization"),
        ({"toKind": "events"}, "toKind", "must be one of"),
        ({"toKind": "labels", "toId": LABEL["id"]}, "toId", "is what the link leads from"),
    ],
)
def test_a_load_checks_both_ends(service: Served, row: dict[str, str], name: str, reason: str) -> None:
    link_row = {
        "id": "loaded",
        "organizationId": ALPHA,
        "fromKind": "labels",
        "fromId": LABEL["id"],
        "toKind": "tasks",
        "toId": TASK["id"],
    }
    with pytest.raises(Exception, match="1 fault found") as refused:
        service.load({"links": [link_row | row]})
    [fault] = refused.value.faults  # type: ignore[attr-defined] # a FaultyInput
    assert fault.place == f"/links/0/{name}"
    assert fault.reason.startswith(reason)
    service.load({"tasks": [{"id": "new", "organizationId": ALPHA, "title": "New"}], "links": [link_row]})
    with pytest.raises(Exception, match="1 fault found"):  # the same live link under another id
        service.load({"links": [link_row | {"id": "other"}]})
    service.load({"links": [link_row | {"id": "other", "removedAt": ARCHIVED}]})


def test_who_is_erased_stays_as_an_end_without_a_name(service: Served, ask: Ask) -> None:
    made = ask("POST", **link(EDITOR, "OWNS", TASK, note=f"Asked by {USERS['editor']}")).json()
    assert (made["from"]["label"], made["from"]["isLive"]) == ("Editor", True)
    signer, files = Signer(Settings().event_key_file), contents()
    change(service.database, lambda unit: erase(unit, ErasureRequest("user-editor"), signer, files))
    [erased] = [one for one in of(ask, TASK) if one["id"] == made["id"]]
    assert (erased["from"]["label"], erased["from"]["isLive"]) == ("Erased person", False)
    assert USERS["editor"] not in erased["note"]
    # Who is out owns nothing new.
    refused = ask("POST", user="owner", **link(EDITOR, "OWNS", LABEL))
    assert faults(refused) == {"from/id": "names a membership that was removed"}

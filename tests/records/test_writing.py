"""Making and changing records: the same for every kind."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pydantic.alias_generators import to_camel

from normata.core.schema.wire import columns
from normata.records.base import Restorable
from normata.records.writing import set_by_steps
from tests import mostly_sqlite, stored
from tests.cells import all_cells
from tests.databases import on_both, on_both_shared
from tests.records.living import change, everything, foreign_references, make, read, written
from tests.records.shapes import CONTENT, KINDS, SHAPES, WITH_SLUG
from tests.served import Served, refused
from tests.world import ALPHA, BETA, record_id

database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url

every_kind = pytest.mark.parametrize("kind", KINDS)
POLICY = next(kind for kind in Restorable.kinds if kind.path == "policies")
TASK = next(kind for kind in Restorable.kinds if kind.path == "tasks")


def names(problem: dict[str, Any]) -> list[str]:
    """What a problem names, in order of the names."""
    assert all(fault["in"] == "body" for fault in problem["errors"])
    return sorted(fault["name"] for fault in problem["errors"])


# --- Making


@on_both
def test_the_longest_titles_fit_an_index_and_are_found(service: Served) -> None:
    """A character of theirs may be many in the key for sorting, and four bytes each."""
    headers = service.bearer("editor")
    for title in ("\U0001f980" * 500, "\ufdfa" * 500, "7 " * 249 + "7", "\U00010400\ufdfa" * 250):
        made = make(service, TASK, headers, title=title)
        assert made.status_code == 201, made.text
        assert made.json()["id"] in service.listing("/tasks/").ids(sortColumn="title", search=title[-50:])


@every_kind
@on_both_shared
def test_all_comes_back_as_it_went_in(kind: type[Restorable], shared: Served) -> None:
    """In the answer, from its address, and to the last digit."""
    headers = shared.bearer("admin")
    said = everything(kind, "all-of-it")
    response = make(shared, kind, headers, **said)
    assert response.status_code == 201, response.text
    made = response.json()
    assert {name: made[name] for name in said} == said
    assert all(type(made[name]) is type(said[name]) for name in said)
    assert made.keys() == SHAPES[kind.path].fields.keys()
    assert (made["organizationId"], made["archivedAt"]) == (ALPHA, None)
    assert made.get("updatedAt", made["createdAt"]) == made["createdAt"]
    assert response.headers["location"] == f"/{kind.path}/{made['id']}/"
    again = read(shared, kind, made["id"], headers | {"Accept-Encoding": "identity"})
    assert again.content == response.content
    assert again.headers["etag"] == response.headers["etag"]
    events = stored.events(shared.database, entity_id=made["id"])
    assert [(event["action"], event["entity_type"], event["user_id"]) for event in events] == [
        ("create", kind.__name__, "user-admin")
    ]


@every_kind
def test_the_least_gets_the_defaults_of_a_load(kind: type[Restorable], shared: Served) -> None:
    title, headers = kind.title_column(), shared.bearer("editor")
    shared.load({kind.path: [{"id": f"{kind.path}-loaded", "organizationId": ALPHA, title: "The least 1"}]})
    loaded = read(shared, kind, f"{kind.path}-loaded", headers).json()
    made = make(shared, kind, headers, organizationId="alpha", **{title: "The least 2"}).json()
    assert made.pop("slug", None) == ("the-least-2" if loaded.pop("slug", None) else None)
    for record in (made, loaded):
        for name in ("id", title, "createdAt", "updatedAt"):
            record.pop(name, None)
    for number in {"shortId", "order"} & made.keys():
        assert made.pop(number) == loaded.pop(number) + 1
    assert made == loaded


@pytest.mark.parametrize("kind", WITH_SLUG)
@on_both_shared
def test_slugs(kind: type[Restorable], shared: Served) -> None:
    """Left out it is made, and free; a taken one is refused by the name of its holder."""
    title, headers = kind.title_column(), shared.bearer("editor")
    first, second = (make(shared, kind, headers, **{title: "Same title"}).json() for _ in range(2))
    assert (first["slug"], second["slug"]) == ("same-title", "same-title-2")
    problem = refused(make(shared, kind, headers, **{title: "Other", "slug": "same-title"}), 409, "slug_taken")
    assert problem["conflictingId"] == first["id"]
    problem = refused(change(shared, kind, second["id"], headers, slug="same-title"), 409, "slug_taken")
    assert problem["conflictingId"] == first["id"]
    # With another fault it is one of them.
    problem = refused(make(shared, kind, headers, **{title: " ", "slug": "same-title"}), 400, "validation")
    assert names(problem) == sorted(["slug", title])
    assert change(shared, kind, second["id"], headers, slug="another").json()["slug"] == "another"
    assert change(shared, kind, first["id"], headers, slug="same-title-2").status_code == 200
    # That of an archived one is free to take.
    archived = read(shared, kind, record_id(kind, "archived"), headers).json()
    assert change(shared, kind, first["id"], headers, slug=archived["slug"]).json()["slug"] == archived["slug"]


# --- What is refused


@every_kind
def test_every_fault_of_a_body_is_named_at_once(kind: type[Restorable], shared: Served) -> None:
    """What is unknown, what the service says itself, and what is of the wrong sort."""
    of_steps = {to_camel(name) for name in set_by_steps(kind)}  # which may be sent back
    ours = SHAPES[kind.path].fields.keys() - written(kind) - of_steps - {"organizationId"}
    wrong = {"colour": "red"} | dict.fromkeys(ours, "2026-01-01T00:00:00.000Z") | {kind.title_column(): 7}
    headers = shared.bearer("editor")
    before = stored.everything(shared.database)
    assert names(refused(make(shared, kind, headers, **wrong), 400, "validation")) == sorted(wrong)
    wrong |= {"organizationId": ALPHA}
    assert names(refused(change(shared, kind, record_id(kind, "live"), headers, **wrong), 400, "validation")) == sorted(
        wrong
    )
    assert stored.everything(shared.database) == before


@every_kind
@on_both_shared
def test_a_reference_of_another_organization_is_one_to_nothing(kind: type[Restorable], shared: Served) -> None:
    headers, title = shared.bearer("editor"), kind.title_column()
    foreign = foreign_references(kind)
    absent = dict.fromkeys(foreign, "nothing")
    before = stored.everything(shared.database)
    told = []
    for references in (foreign, absent):
        for answer in (
            make(shared, kind, headers, **{title: "x"}, **references),
            change(shared, kind, record_id(kind, "live"), headers, **references),
        ):
            if foreign:
                problem = refused(answer, 400, "validation")
                assert names(problem) == sorted(foreign)
                told.append(problem["errors"])
                assert BETA not in answer.text
                before_ = stored.everything(shared.database)
                assert before_ == before
    assert all(one == told[0] for one in told)


@every_kind
def test_null_where_nothing_may_be_null(kind: type[Restorable], shared: Served) -> None:
    headers, row_id = shared.bearer("editor"), record_id(kind, "live")
    fixed = {to_camel(one.name) for one in columns(kind) if not one.nullable} & written(kind)
    problem = refused(change(shared, kind, row_id, headers, **dict.fromkeys(fixed)), 400, "validation")
    assert names(problem) == sorted(fixed)
    assert names(refused(make(shared, kind, headers, **dict.fromkeys(fixed)), 400, "validation")) == sorted(fixed)


@every_kind
@pytest.mark.parametrize("blank", ["", "  ", "\u3000\t"])
def test_a_title_can_be_seen(kind: type[Restorable], blank: str, shared: Served) -> None:
    title, headers = kind.title_column(), shared.bearer("editor")
    assert names(refused(make(shared, kind, headers, **{title: blank}), 400, "validation")) == [title]
    live = record_id(kind, "live")
    assert names(refused(change(shared, kind, live, headers, **{title: blank}), 400, "validation")) == [title]


@every_kind
def test_who_may_not(kind: type[Restorable], shared: Served) -> None:
    """And nothing is changed then."""
    title, live = kind.title_column(), record_id(kind, "live")
    other = next(one for one in Restorable.kinds if one is not kind)
    cases = {
        "archived": (record_id(kind, "archived"), "owner", 409, "archived"),
        "unknown": ("nothing", "owner", 404, "not_found"),
        "of another kind": (record_id(other, "live"), "owner", 404, "not_found"),
        "foreign": (record_id(kind, "live", BETA), "owner", 404, "not_found"),
        "to a foreigner": (live, "foreigner", 404, "not_found"),
        "too small a role": (live, "viewer", 403, "forbidden"),
    }
    makers = {"viewer": (403, "forbidden"), "foreigner": (404, "not_found"), "nobody": (404, "not_found")}
    headers = {user: shared.bearer(user) for user in ("owner", "viewer", "foreigner", "nobody")}
    before = stored.everything(shared.database)
    with all_cells() as at:
        for name, (row_id, user, status, code) in cases.items():
            with at(name):
                refused(change(shared, kind, row_id, headers[user], **{title: "x"}), status, code)
        for user, (status, code) in makers.items():
            with at(f"made by {user}"):
                refused(make(shared, kind, headers[user], **{title: "x"}), status, code)
    refused(make(shared, kind, {}, **{title: "x"}), 401, "unauthenticated")
    refused(change(shared, kind, live, {}, **{title: "x"}), 401, "unauthenticated")
    refused(make(shared, kind, headers["owner"], organizationId="nothing", **{title: "x"}), 404, "not_found")
    assert stored.everything(shared.database) == before


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_documents_have_numbers_that_json_can_say(number: str, shared: Served) -> None:
    content = f'{{"organizationId": "{ALPHA}", "title": "x", "content": {{"a": [{number}]}}}}'.encode()
    headers = shared.bearer("editor") | {"Content-Type": "application/json"}
    response = shared.client.post("/policies/", content=content, headers=headers)
    assert names(refused(response, 400, "validation"))[0].startswith("content")


# --- Changing


@every_kind
@on_both_shared
def test_all_that_may_be_written_can_be_changed_and_cleared(kind: type[Restorable], shared: Served) -> None:
    title, headers = kind.title_column(), shared.bearer("admin")
    made = make(shared, kind, headers, **{title: "To be changed"}).json()
    said = everything(kind, f"changed-{kind.path}")
    answer = change(shared, kind, made["id"], headers, **said)
    assert answer.status_code == 200, answer.text
    now = answer.json()
    stamped = {"updatedAt": now["updatedAt"]} if "updatedAt" in now else {}
    assert now == made | said | stamped
    assert now.get("updatedAt", now["createdAt"]) >= made["createdAt"]
    assert read(shared, kind, made["id"], headers).json() == now

    clearable = {to_camel(one.name) for one in columns(kind) if one.nullable} & written(kind)
    cleared = change(shared, kind, made["id"], headers, **dict.fromkeys(clearable)).json()
    of_steps = {to_camel(name) for name in set_by_steps(kind) if kind.sql().c[name].nullable}
    assert {name for name in cleared if cleared[name] is None} == clearable | of_steps | {"archivedAt"}
    assert {name: cleared[name] for name in said.keys() - clearable} == {
        name: said[name] for name in said.keys() - clearable
    }
    actions = [event["action"] for event in stored.events(shared.database, entity_id=made["id"])]
    assert actions == (["create", "update", "update"] if clearable else ["create", "update"])


@every_kind
def test_one_field_alone(kind: type[Restorable], shared: Served) -> None:
    """All others stay, long texts and documents among them; and the search finds it anew."""
    headers, title = shared.bearer("admin"), kind.title_column()
    made = make(shared, kind, headers, **everything(kind, f"one-field-{kind.path}")).json()
    now = change(shared, kind, made["id"], headers, **{title: "Renamed ÉTÉ"}).json()
    stamped = {"updatedAt": now["updatedAt"]} if "updatedAt" in now else {}
    assert now == made | {title: "Renamed ÉTÉ"} | stamped
    assert shared.listing(f"/{kind.path}/").ids(search="renamed été") == [made["id"]]


@every_kind
def test_what_changes_nothing_leaves_no_trace(kind: type[Restorable], shared: Served) -> None:
    headers, row_id = shared.bearer("editor"), record_id(kind, "live")
    record = read(shared, kind, row_id, headers).json()
    before = stored.everything(shared.database)
    for body in ({}, {name: record[name] for name in written(kind)}):
        answer = change(shared, kind, row_id, headers, **body)
        assert (answer.status_code, answer.json()) == (200, record)
    assert stored.everything(shared.database) == before


@every_kind
def test_if_match(kind: type[Restorable], shared: Served) -> None:
    headers, title = shared.bearer("editor"), kind.title_column()
    made = make(shared, kind, headers, **{title: "Matched"})
    row_id, tag = made.json()["id"], made.headers["etag"]
    first = change(shared, kind, row_id, headers | {"If-Match": tag}, **{title: "Once"})
    assert first.status_code == 200
    before = stored.everything(shared.database)
    refused(change(shared, kind, row_id, headers | {"If-Match": tag}, **{title: "Twice"}), 412, "precondition_failed")
    assert stored.everything(shared.database) == before
    packed = read(shared, kind, row_id, headers | {"Accept-Encoding": "zstd"}).headers["etag"]
    for good in (first.headers["etag"], packed, f'"other", {packed}', "*"):
        assert change(shared, kind, row_id, headers | {"If-Match": good}, **{title: "Once"}).status_code == 200
    assert stored.everything(shared.database) == before


@pytest.mark.parametrize("media_type", ["application/merge-patch+json", "application/json; charset=utf-8"])
def test_media_types_of_a_patch(media_type: str, shared: Served) -> None:
    headers = shared.bearer("editor") | {"Content-Type": media_type}
    path = f"/{TASK.path}/{record_id(TASK, 'live')}/"
    assert shared.client.patch(path, content=b'{"priority": "LOW"}', headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("stored_", "patch", "merged"),
    [
        (CONTENT, {"a": {"": None, "c": 1.5}}, {**CONTENT, "a": {"ü": CONTENT["a"]["ü"], "b": {}, "c": 1.5}}),
        ({"a": "b"}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ([1, 2], {"a": 1, "b": None}, {"a": 1}),
        ({"a": 1}, [1, None], [1, None]),
        ({"a": 1}, "text", "text"),
        ({"a": 1}, None, None),
        (None, {"a": {"b": None}}, {"a": {}}),
    ],
)
@on_both_shared
def test_documents_are_merged(stored_: Any, patch: Any, merged: Any, shared: Served) -> None:
    """Member by member, as RFC 7396 has it."""
    headers = shared.bearer("editor")
    row_id = make(shared, POLICY, headers, title="Document", content=stored_).json()["id"]
    answer = change(shared, POLICY, row_id, headers, content=patch)
    assert answer.json()["content"] == merged
    assert read(shared, POLICY, row_id, headers).json()["content"] == merged


def test_a_document_grows_by_merging_up_to_a_limit(service: Served) -> None:
    headers = service.bearer("editor")
    row_id = make(service, POLICY, headers, title="Document", content={}).json()["id"]
    for name in "abcd":
        assert change(service, POLICY, row_id, headers, content={name: "x" * 1_000_000}).status_code == 200
    answer = change(service, POLICY, row_id, headers, content={"e": "x" * 1_000_000})
    assert names(refused(answer, 400, "validation")) == ["content"]
    assert change(service, POLICY, row_id, headers, content={"a": None, "e": "x" * 1_000_000}).status_code == 200


@every_kind
@on_both_shared
def test_two_changes_of_different_fields_at_once_both_hold(kind: type[Restorable], shared: Served) -> None:
    headers = shared.bearer("admin")
    said = everything(kind, f"at-once-{kind.path}")
    row_id = make(shared, kind, headers, **{kind.title_column(): "At once"}).json()["id"]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda one: change(shared, kind, row_id, headers, **dict([one])), said.items()))
    assert {answer.status_code for answer in answers} == {200}
    record = read(shared, kind, row_id, headers).json()
    assert {name: record[name] for name in said} == said


@on_both
def test_many_made_at_once_have_numbers_and_slugs_of_their_own(service: Served) -> None:
    headers = service.bearer("editor")
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: make(service, TASK, headers, title="Same").json(), range(16)))
    for name in ("shortId", "order", "slug", "id"):
        assert len({record[name] for record in made}) == 16

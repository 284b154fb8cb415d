"""Whoever is erased is nowhere any more, in no table, event or dump; and all else is as it was."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from normata.bundle.dumping import dump
from normata.bundle.instance import dump_everything, load_everything
from normata.cli.check import faults
from normata.core.changes.unit_of_work import Change
from normata.core.db.database import Database
from normata.core.db.transaction import Transaction
from normata.erasure.columns import called
from normata.erasure.erasing import Erased, erase
from normata.erasure.person import ErasureRequest, LastOwner, NoSuchPerson, find_person
from normata.erasure.survey import survey
from normata.events.checking import event_faults
from normata.events.erasures import signed_counts
from normata.events.exporting import export
from normata.events.keys import Signer, read_note
from normata.events.model import OPERATORS, AuditEvent
from normata.events.sealing import last_checkpoint, seal_all_now
from normata.events.verifying import verify
from normata.frameworks.model import ControlCoverage, EffectiveCoverage
from normata.identity.model import Membership, User
from normata.operations import SECURITY
from normata.records.kinds import Asset, Audit, Policy, Task
from normata.settings import Settings
from tests import stored, world
from tests.databases import change, on_both, tamper
from tests.erasure.people import ADDRESS, ANN, MEMBER, NAME, bearer, named, traces
from tests.files.rows import contents
from tests.served import Served
from tests.world import ALPHA, BETA, record_id


def signer() -> Signer:
    """The key that the commands have, too."""
    return Signer(Settings().event_key_file)


def erased(service: Served, who: str = ADDRESS, **erasure_request: Any) -> Erased:
    """Erase somebody as the command does."""
    seal_all_now(service.database)
    request = ErasureRequest(who, **erasure_request)
    done = change(service.database, lambda unit: erase(unit, request, signer(), contents()))
    seal_all_now(service.database)
    return done


def dumped(database: Database, organization_id: str | None = None) -> str:
    """The bundle of an organization, or everything, as text."""
    file = io.StringIO()

    def work(transaction: Transaction) -> None:
        if organization_id is None:
            dump_everything(transaction, file)
        else:
            dump(transaction, organization_id, file)

    database.read_now(work)
    return file.getvalue()


def exported(database: Database, owner: str) -> list[str]:
    """A log, as `normata events export` writes it."""
    return database.read_now(lambda transaction: list(export(transaction, owner)))


def everything_wrong(database: Database) -> list[str]:
    """What `normata check` finds, but for the coverage of a world in which texts were changed past all rules."""
    return database.read_now(lambda transaction: list(faults(database, transaction, SECURITY, signer())))


# --- Everywhere


@on_both
def test_nothing_names_them_any_more(everywhere: Served) -> None:
    before = named(everywhere.database)
    assert len(before) > 100
    done = erased(everywhere)
    assert named(everywhere.database) == []
    assert traces(dumped(everywhere.database)) == traces(dumped(everywhere.database, ALPHA)) == []
    assert everything_wrong(everywhere.database) == []
    assert done.events > 0
    assert done.found.ids == []
    user = stored.row(everywhere.database, User, ANN)
    assert (user["name"], user["email"], user["email_folded"]) == ("Erased person", None, None)
    assert user["removed_at"] is not None


@on_both
def test_what_is_told_is_what_was_done(everywhere: Served) -> None:
    """A survey finds each row; of what is their own the rows are gone."""

    def look(transaction: Transaction) -> Any:
        return survey(transaction, find_person(transaction, ErasureRequest(ANN)), contents())

    found = everywhere.database.read_now(look)
    assert everywhere.database.read_now(look) == found, "it changes nothing"
    done = erased(everywhere, ANN)
    deleted = [place for place in found.places if place.table.transient]
    assert sum(done.deleted.values()) == len(found.own) + len(deleted)
    assert {called(place.table) for place in found.own} <= done.deleted.keys()
    of_events = [place for place in found.places if place.table is AuditEvent]
    assert done.events == len(of_events)
    memberships_and_user = 3
    assert sum(done.changed.values()) == len(found.places) - len(deleted) - len(of_events) + memberships_and_user


def test_again_is_harmless(everywhere: Served) -> None:
    erased(everywhere)
    once = stored.everything(everywhere.database), stored.rows(everywhere.database, AuditEvent)
    for who in (ADDRESS, ANN):
        again = erased(everywhere, who)
        assert (dict(again.deleted), dict(again.changed), again.events) == ({}, {}, 0)
        assert (stored.everything(everywhere.database), stored.rows(everywhere.database, AuditEvent)) == once


def test_what_names_nobody_stays(service: Served) -> None:
    """Byte by byte; and so does what follows from what was stated."""
    before = stored.everything(service.database)
    coverage = before[str(EffectiveCoverage.__tablename__)]
    erased(service)
    after = stored.everything(service.database)
    assert after[str(EffectiveCoverage.__tablename__)] == coverage
    for table in ("control", "framework", "control_coverage", "vendor", "organization", "label", "event_leaf"):
        assert after.get(table) == before.get(table), table
    tasks = {task["title"]: task for task in after["task"]}
    [plain] = [task for task in before["task"] if task["title"] == "Plain"]
    assert tasks["Plain"] == plain
    assert plain["assignee_member_id"] == MEMBER, "the membership stays, as records name it"


# --- Records


def test_texts_slugs_and_what_is_derived_from_them(service: Served) -> None:
    [before] = stored.rows(service.database, Task, title=f"Laptop of {NAME}")
    assert before["slug"] == "laptop-of-ann-smith"
    service.load({"tasks": [{"id": "other", "organizationId": ALPHA, "title": "Laptop of erased"}]})
    erased(service)
    after = stored.row(service.database, Task, before["id"])
    assert after["title"] == "Laptop of [erased]"
    assert after["slug"] == "laptop-of-erased-2"
    assert after["description"] == "Ask [erased] <[erased]>."
    assert after["instructions"] == "Nothing about her."
    assert after["updated_at"] > before["updated_at"]
    assert (after["created_at"], after["assignee_member_id"]) == (before["created_at"], before["assignee_member_id"])
    policy = stored.row(service.database, Policy, record_id(Policy, "live"))
    assert policy["content"] == {"authors": [{"name": "[erased]", "mail": "[erased]"}]}
    assert (policy["title"], policy["last_approved_by"]) == ("Policy for [erased]", "[erased]")
    found = service.listing("/tasks/", "viewer").page(search="erased")
    assert {item["id"] for item in found["items"]} == {before["id"], "other"}
    assert service.listing("/tasks/", "viewer").page(search="ann")["total"] == 0


def test_entity_tags_and_kept_pages_change(service: Served) -> None:
    service.load({"controlCoverages": [{"id": "say-sun.A.2", "coverageGap": f"{NAME} knows", "organizationId": ALPHA}]})
    viewer = service.bearer("viewer")

    def get(path: str, tag: str = "") -> Any:
        headers = viewer | ({"If-None-Match": tag} if tag else {})
        return service.client.get(path, params={"organizationId": ALPHA}, headers=headers)

    tags: dict[str, str] = {}
    for path in (f"/policies/{record_id(Policy, 'live')}/", "/controls/"):
        before = get(path)
        tags[path] = before.headers["etag"]
        assert (get(path, tags[path]).status_code, bool(traces(before.text))) == (304, True)
    erased(service)
    for path, tag in tags.items():
        after = get(path, tag)
        assert (after.status_code, traces(after.text)) == (200, [])
        assert after.headers["etag"] != tag
    assert stored.row(service.database, ControlCoverage, "say-sun.A.2")["coverage_gap"] == "[erased] knows"


# --- The person


def test_they_are_out_at_once(service: Served) -> None:
    ann = bearer(service)
    where = {"organizationId": ALPHA}
    assert service.client.get("/tasks/", params=where, headers=ann).status_code == 200
    erased(service)
    assert service.client.get("/tasks/", params=where, headers=ann).status_code == 401
    members = stored.rows(service.database, Membership, user_id=ANN)
    assert [member["id"] for member in members] == [MEMBER, "member-ann-beta"]
    assert all(member["removed_at"] for member in members)


def test_the_last_owner_is_not_erased(service: Served) -> None:
    before = stored.everything(service.database)
    with pytest.raises(LastOwner, match=f"last owner of the organization {ALPHA};"):
        erased(service, world.USERS["owner"])
    assert stored.everything(service.database) == before
    service.load({"memberships": [{"id": MEMBER, "role": "owner"}]})
    erased(service, world.USERS["owner"])
    with pytest.raises(LastOwner):
        erased(service)


def test_who_owns_but_was_removed_does_not_count(service: Served) -> None:
    service.load({"memberships": [{"id": MEMBER, "role": "owner", "removedAt": world.EARLIER}]})
    with pytest.raises(LastOwner):
        erased(service, world.USERS["owner"])
    assert erased(service).changed["users"] == 2  # and the service account that others have named after her


def test_only_people_are_erased(service: Served) -> None:
    service.load({"users": [{"id": "robot", "name": "Robot", "organizationId": ALPHA}]})
    with pytest.raises(NoSuchPerson, match="service account"):
        erased(service, "robot")
    with pytest.raises(NoSuchPerson, match="no user with the id nobody-at-all"):
        erased(service, "nobody-at-all")


@pytest.mark.parametrize(
    ("who", "also"), [("@", ()), ("a b@c.example", ()), (ADDRESS, ("@x",)), (ADDRESS, ("x",)), (ADDRESS, (" ",))]
)
def test_what_would_be_found_everywhere_is_refused(service: Served, who: str, also: tuple[str, ...]) -> None:
    before = stored.everything(service.database)
    with pytest.raises(NoSuchPerson):
        erased(service, who, also=also)
    assert stored.everything(service.database) == before


def test_an_address_that_no_user_has_is_erased_all_the_same(service: Served) -> None:
    """Somebody was invited, and never came."""
    service.load({"vendors": [{"id": "v", "organizationId": ALPHA, "name": "V", "contactEmail": "Zoe@v.example"}]})
    done = erased(service, "zoe@V.example")
    assert done.person.user_id is None
    assert (dict(done.changed), dict(done.deleted), done.events) == ({"vendors": 1}, {}, 1)
    [location] = stored.rows(service.database, AuditEvent, action="erase", organization_id=ALPHA)
    assert location["entity_id"] is None
    assert everything_wrong(service.database) == []


# --- Names


def test_a_name_of_one_word_stays_in_texts_unless_asked_for(service: Served) -> None:
    texts = {"name": "Ann", "notes": "Ann, that is, annual", "auditor": "ann"}
    service.load(
        {
            "users": [{"id": ANN, "name": "Ann"}],
            "audits": [{"id": "audit", "organizationId": ALPHA, **texts}],
        }
    )
    done = erased(service)
    row = stored.rows(service.database, Audit, id="audit")[0]
    assert (row["name"], row["notes"], row["auditor"]) == ("Ann", "Ann, that is, annual", "[erased]")
    assert done.found.ambiguous >= 2
    erased(service, ANN, also=("Ann",))
    row = stored.rows(service.database, Audit, id="audit")[0]
    assert (row["name"], row["notes"]) == ("[erased]", "[erased], that is, annual")


def test_what_they_were_called_before(service: Served) -> None:
    """The archive has the name of that time."""
    service.load({"users": [{"id": ANN, "name": "Ann Jones"}]})
    assert named(service.database)
    erased(service)
    assert named(service.database) == []


def test_namesakes_keep_their_own_name(service: Served) -> None:
    """But texts cannot tell the two apart."""
    service.load({"users": [{"id": "twin", "email": "twin@alpha.example", "name": NAME}]})
    service.load({"memberships": [{"id": "m-twin", "organizationId": ALPHA, "userId": "twin", "role": "editor"}]})
    done = erased(service, keep_name=True)
    assert done.person.namesakes == 1
    assert stored.row(service.database, User, "twin")["name"] == NAME
    [task] = stored.rows(service.database, Task, title=f"Laptop of {NAME}")
    assert task["description"] == f"Ask {NAME.upper()} <[erased]>."
    erased(service, "twin@alpha.example")
    assert named(service.database) == []


def test_an_id_that_names_them_is_told(service: Served) -> None:
    service.load({"labels": [{"id": f"of {ADDRESS}", "organizationId": ALPHA, "name": "L"}]})
    [place] = erased(service).found.ids
    assert place.location == ("labels", f"of {ADDRESS}", "id")
    service.load({"users": [{"id": "zoe@x.example", "email": "zoe@x.example", "name": "Zoe"}]})
    [place] = erased(service, "zoe@x.example").found.ids
    assert place.location == ("users", "zoe@x.example", "id")


# --- Events


@on_both
def test_events_lose_what_names_them_and_keep_who_did_what(service: Served) -> None:
    before = {row["id"]: row for row in stored.rows(service.database, AuditEvent)}
    done = erased(service)
    after = {row["id"]: row for row in stored.rows(service.database, AuditEvent)}
    changed = [event_id for event_id in before if after[event_id] != before[event_id]]
    assert len(changed) == done.events > 0
    assert all(traces(before[event_id]["body"]) for event_id in changed)
    assert all(after[event_id] == before[event_id] | {"body": ""} for event_id in changed)
    location = [row for row in after.values() if row["action"] == "erase"]
    assert {row["organization_id"] for row in location} == {None, ALPHA, BETA}
    assert {row["entity_id"] for row in location} == {ANN}
    of_alpha = json.loads(next(row["body"] for row in location if row["organization_id"] == ALPHA))
    assert set(of_alpha["counts"]["erasedEvents"]) == {
        event_id for event_id in changed if after[event_id]["organization_id"] == ALPHA
    }
    assert not traces(of_alpha)
    shown = service.client.get(
        f"/assets/{record_id(Asset, 'live')}/events/",
        params={"organizationId": ALPHA},
        headers=service.bearer("viewer"),
    ).json()["items"]
    assert [(item["action"], item["userId"], item["reason"]) for item in shown if item["userId"] == ANN] == [
        ("restore", ANN, None),
        ("archive", ANN, None),
    ]


def test_logs_are_proven_all_the_same(service: Served) -> None:
    """With a checkpoint that was kept before, and with one from after."""
    database = service.database
    seal_all_now(database)

    def note(owner: str) -> Any:
        return read_note(signer().note(database.read_now(lambda transaction: last_checkpoint(transaction, owner))))

    kept = {owner: note(owner) for owner in (ALPHA, BETA, OPERATORS)}
    done = erased(service)
    seen = 0
    for owner, before in kept.items():
        lines = exported(database, owner)
        assert not traces(lines)
        before_erased: list[str] = []
        for one in (before, note(owner)):
            outcome = verify(lines, one, [signer().verifier(owner)])
            assert (outcome.faults, outcome.lost) == ([], [])
            before_erased = before_erased or outcome.erased_later
            assert not (outcome.erased and outcome.erased_later)
        assert outcome.erased_later == []
        assert set(before_erased) <= set(outcome.erased)
        seen += len(outcome.erased)
    assert seen == done.events
    assert database.read_now(lambda transaction: list(event_faults(transaction, signer()))) == []
    # Content that is gone without a word is still found.
    [victim] = stored.rows(database, AuditEvent, action="erase", organization_id=BETA)
    tamper(database, f"UPDATE audit_event SET body = '' WHERE id = '{victim['id']}'")
    [fault] = database.read_now(lambda transaction: list(event_faults(transaction, signer())))
    assert victim["id"] in fault
    assert "no event records" in fault


@pytest.mark.parametrize("is_signed", [True, False])
def test_of_an_erasure_that_is_erased_itself_what_was_signed_still_counts(service: Served, is_signed: bool) -> None:
    """Whoever erases the event that names what was erased names all of it anew."""
    database = service.database
    change(database, lambda unit: unit.publish(Change("touch", Task, ALPHA, "touched", {"id": "touched"})))
    [event] = stored.rows(database, AuditEvent, entity_id="touched")
    counts = signed_counts(signer(), ALPHA, [event["id"]])
    if not is_signed:
        del counts["signature"]
    change(database, lambda unit: unit.publish(Change("erase", Task, ALPHA, counts=counts, reason=f"{NAME} wanted it")))
    seal_all_now(database)
    tamper(database, f"UPDATE audit_event SET body = '' WHERE id = '{event['id']}'")
    erased(service)
    assert not traces(exported(database, ALPHA))
    told = database.read_now(lambda transaction: list(event_faults(transaction, signer())))
    assert [event["id"] in fault for fault in told] == ([] if is_signed else [True])


@pytest.mark.long
@on_both
def test_a_dump_of_everything_loads_again(service: Served, empty: Database, tmp_path: Path) -> None:
    """With the events that have lost their content, and those that tell so."""
    erased(service)
    path = tmp_path / "all.json"
    path.write_text(dumped(service.database), encoding="utf-8")
    empty.write_now(lambda transaction: load_everything(transaction, path))
    assert named(empty) == []
    assert everything_wrong(empty) == []

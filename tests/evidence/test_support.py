"""The evidence of a control: until when it is valid, and what becomes of the assessment when the last piece ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from normata.core.changes import job_runner
from normata.core.db.database import Database
from normata.core.db.types import now
from normata.events.model import AuditEvent
from normata.evidence.following import is_followed
from normata.frameworks.evidence_model import ControlEvidence
from normata.links.model import Link
from normata.records.assurance import Evidence
from tests import mostly_sqlite, stored
from tests.client import TestClient
from tests.coverage.assessing import Json, Stating, assert_consistent, done
from tests.coverage.test_lapses import assessment, choose, confirm, coverage, events, run, stale_controls
from tests.databases import on_both, tamper
from tests.world import ALPHA

database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url

CONTROL, OTHER = "sun.A.2", "sun.A.5"
LATER, PAST = "2031-01-01", "2026-02-01"
ENDED = "EVIDENCE_ENDED"
Bearer = Callable[..., dict[str, str]]


@pytest.fixture(scope="module", autouse=True)
def idle_service() -> Iterator[None]:
    """The service that the tests share a database with does no jobs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(job_runner, "_PAUSE", 3_600)
        yield


class Evidences(Stating):
    """The evidence of the organization alpha, and its coverage, in the hands of its admin."""

    def made(self, path: str, body: Json) -> str:
        """The id of what a request makes; of a link also one that there is."""
        response = self._send("POST", path, body)
        assert response.is_success, response.text
        return str(response.json()["id"])

    def add(self, valid_until: str | None = LATER) -> str:
        """A new piece of evidence."""
        return self.made("/evidence/", {"name": "Report", "type": "NOTE", "validUntil": valid_until})

    def link(self, piece: str, control: str = CONTROL) -> str:
        ends = {"from": {"kind": "evidence", "id": piece}, "to": {"kind": "controls", "id": control}}
        return self.made("/links/", {"relation": "SUPPORTS", **ends})

    def supported(self, valid_until: str | None = LATER, control: str = CONTROL) -> tuple[str, str]:
        """The ids of a new piece of evidence, and of its link to a control."""
        piece = self.add(valid_until)
        return piece, self.link(piece, control)

    def set(self, piece: str, **values: Any) -> None:
        done(self.client.patch(f"/evidence/{piece}/", json=values, headers=self.headers))

    def archive(self, piece: str) -> None:
        done(self.client.post(f"/evidence/{piece}/archive/", headers=self.headers))

    def restore(self, piece: str) -> None:
        done(self.client.post(f"/evidence/{piece}/restore/", headers=self.headers))

    def unlink(self, link: str) -> None:
        done(self.client.delete(f"/links/{link}/", headers=self.headers))

    def many(self, path: str, *pieces: str) -> None:
        done(self._send("POST", path, {"records": [{"kind": "evidence", "id": one} for one in pieces]}))


@pytest.fixture
def alpha(client: TestClient, bearer: Bearer) -> Evidences:
    """The evidence and coverage of alpha; its control is assessed."""
    found = Evidences(client, bearer("admin", scope="admin"))
    done(found.put(CONTROL, coverageStatus="FULL"))
    return found


def evidence(database: Database, control: str = CONTROL) -> tuple[int, str | None]:
    """What is stored of a control's evidence: how many pieces, and when the last one ends."""
    (row,) = stored.rows(database, ControlEvidence, control_id=control)
    return row["pieces"], row["ends_at"]


def end_by(alpha: Evidences, database: Database, how: str, piece: str, link: str) -> None:
    """End what a piece says of the control, in one of the ways."""
    match how:
        case "expire":
            alpha.set(piece, validUntil=now())
        case "archive":
            alpha.archive(piece)
        case "archive many":
            alpha.many("/archive/", piece)
        case "unlink":
            alpha.unlink(link)
        case "load":
            stored.load(database, {"evidence": [{"id": piece, "archivedAt": now()}]})
        case "load the link":
            stored.load(database, {"links": [{"id": link, "removedAt": now()}]})


WAYS = ("expire", "archive", "archive many", "unlink", "load", "load the link")


@on_both
@pytest.mark.parametrize("how", WAYS)
def test_an_assessment_is_stale_once_its_last_evidence_ends(alpha: Evidences, database: Database, how: str) -> None:
    first, second = alpha.supported(None), alpha.supported()
    assert evidence(database) == (2, None)
    assert (coverage(alpha)["stale"], stale_controls(alpha)) == ([], [])
    end_by(alpha, database, how, *first)
    assert evidence(database)[1] == "2031-01-02T00:00:00.000Z", "a plain date passes when its day ends"
    assert stale_controls(alpha) == []
    end_by(alpha, database, how, *second)
    _, ends_at = evidence(database)
    stale = [{"reason": ENDED, "since": ends_at}]
    assert coverage(alpha)["stale"] == stale
    assert done(alpha.explanation(CONTROL))["assessment"]["stale"] == stale
    assert stale_controls(alpha) == [CONTROL]
    assert done(alpha._send("GET", "/frameworks/fw-sun/coverage/"))["counts"]["stale"] == 1
    statement = done(alpha._send("GET", "/frameworks/fw-sun/statement-of-applicability/"))
    entries = [*statement["controls"], *statement["mandatory"]["requirements"]]
    assert {one["id"]: one["stale"] for one in entries if one["stale"]} == {CONTROL: stale}
    assert coverage(alpha)["coverageStatus"] == "FULL", "it is only shown"


@on_both
@pytest.mark.parametrize("how", ["expire", "archive", "archive many", "unlink"])
def test_a_dry_run_says_what_becomes_stale(alpha: Evidences, how: str) -> None:
    (first, first_link), (second, second_link) = alpha.supported(None), alpha.supported()
    done(alpha.put(OTHER, coverageStatus="FULL"))
    gone, _ = alpha.supported(control=OTHER)
    alpha.archive(gone)  # it is stale already

    def said(piece: str, link: str) -> list[str]:
        many = {"organizationId": ALPHA, "records": [{"kind": "evidence", "id": piece}]}
        method, path, body = {
            "expire": ("PATCH", f"/evidence/{piece}/", {"validUntil": PAST}),
            "archive": ("POST", f"/evidence/{piece}/archive/", None),
            "archive many": ("POST", "/archive/", many),
            "unlink": ("DELETE", f"/links/{link}/", None),
        }[how]
        answer = done(alpha.client.request(method, path, json=body, params={"dryRun": "true"}, headers=alpha.headers))
        return [one["controlId"] for one in answer["stale"]["controls"]]

    assert said(first, first_link) == []
    alpha.archive(first)
    assert said(second, second_link) == [CONTROL]
    assert stale_controls(alpha) == [OTHER]


@on_both
@pytest.mark.parametrize("how", ["confirm", "assess", "evidence", "restore", "extend", "note"])
def test_what_ends_it(alpha: Evidences, how: str) -> None:
    piece, _ = alpha.supported()
    alpha.archive(piece)
    assert stale_controls(alpha) == [CONTROL]
    match how:
        case "confirm":
            done(confirm(alpha))
        case "assess":
            done(alpha.patch({"controlId": CONTROL, "coverageStatus": "PARTIAL"}))
        case "evidence":
            alpha.supported()
        case "restore":
            alpha.many("/archive/restore/", piece)
        case "extend":
            alpha.restore(piece)
            alpha.set(piece, validUntil=now())
            assert stale_controls(alpha) == [CONTROL]
            alpha.set(piece, validUntil=LATER)
        case "note":
            done(alpha.patch({"controlId": CONTROL, "note": "N", "ownerId": "member-viewer"}))
    assert stale_controls(alpha) == ([CONTROL] if how == "note" else [])


def test_only_what_was_assessed_is_stale(alpha: Evidences) -> None:
    done(alpha.patch({"controlId": OTHER, "ownerId": "member-viewer"}))
    piece, _ = alpha.supported(control=OTHER)
    alpha.archive(piece)
    assert stale_controls(alpha) == []
    done(alpha.patch({"controlId": OTHER, "isApplicable": False, "justification": "None."}))
    assert stale_controls(alpha) == [], "it was decided since"


@on_both
@pytest.mark.parametrize("how", WAYS)
def test_where_the_organization_wants_it_the_assessment_lapses(
    alpha: Evidences, database: Database, database_url: str, how: str
) -> None:
    choose(alpha, "LAPSE")
    tamper(database, "DELETE FROM job")
    piece, link = alpha.supported()
    run(database_url, now())
    end_by(alpha, database, how, piece, link)
    _, ends_at = evidence(database)
    run(database_url, now())
    shown = coverage(alpha)
    assert (shown["coverageStatus"], shown["lapsedStatus"], shown["lapsedAt"]) == (None, "FULL", ends_at)
    assert shown["stale"] == [{"reason": ENDED, "since": ends_at}]
    (event,) = (row for row in stored.rows(database, AuditEvent) if row["action"] == "lapse")
    assert f'"lapsedAt":"{ends_at}"' in event["body"]
    alpha.supported()
    run(database_url, now())
    assert coverage(alpha)["stale"] == shown["stale"], "valid evidence alone does not confirm it"
    assert_consistent(database)
    done(confirm(alpha))
    run(database_url, now())
    assert (coverage(alpha)["coverageStatus"], coverage(alpha)["stale"]) == ("FULL", [])
    assert events(database, "lapse") == ["lapse"]
    assert_consistent(database)


@on_both
def test_what_was_due_first_made_it_lapse_and_flagging_again_ends_that(
    alpha: Evidences, database: Database, database_url: str
) -> None:
    piece, _ = alpha.supported()
    alpha.archive(piece)
    _, ends_at = evidence(database)
    overdue = {"reason": "REVIEW_OVERDUE", "since": "2026-01-02T00:00:00.000Z"}
    stored.load(
        database,
        {
            "controlCoverages": [
                {"id": assessment(database)["id"], "assessedAt": "2026-01-01", "reviewBy": "2026-01-01"}
            ]
        },
    )
    stale = [overdue, {"reason": ENDED, "since": ends_at}]
    assert coverage(alpha)["stale"] == stale
    for _ in range(2):
        choose(alpha, "LAPSE")
        run(database_url, now())
        assert (coverage(alpha)["lapsedAt"], coverage(alpha)["stale"]) == (overdue["since"], stale)
        choose(alpha, "FLAG")
        run(database_url, now())
        assert (coverage(alpha)["lapsedAt"], coverage(alpha)["stale"]) == (None, stale)
    choose(alpha, "LAPSE")
    run(database_url, now())
    done(alpha.patch({"controlId": CONTROL, "reviewBy": LATER}))
    assert coverage(alpha)["stale"] == stale, "why it has lapsed stays"


@on_both
def test_a_check_finds_what_does_not_follow(alpha: Evidences, database: Database) -> None:
    alpha.supported()
    assert database.read_now(lambda transaction: is_followed(transaction, ALPHA))
    tamper(database, "UPDATE control_evidence SET pieces = 2")
    assert not database.read_now(lambda transaction: is_followed(transaction, ALPHA))


# --- Whatever happens

Step = tuple[str, int]
_STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["add", "link", "unlink", "archive", "restore", "expire", "extend", "forever", "confirm", "assess", "load"]
        ),
        st.integers(0, 2),
    ),
    min_size=4,
    max_size=14,
)


def definition(database: Database, assessed_at: str, moment: str) -> list[Json]:
    """Why the assessment is stale, by the words of the definition, from nothing but links and evidence."""
    pieces = {row["id"]: row for row in stored.rows(database, Evidence)}
    ends: list[str] = []
    for link in stored.rows(database, Link, to_id=CONTROL, relation="SUPPORTS"):
        piece = pieces[link["from_id"]]
        until = piece["valid_until"]
        if until is not None and until.endswith("T00:00:00.000Z"):
            until = {"2031-01-01": "2031-01-02", "2026-02-01": "2026-02-02"}[until[:10]] + until[10:]
        first = min(one or "9999" for one in (until, piece["archived_at"], link["removed_at"]))
        ends.append(max(link["created_at"], first))
    if not ends or max(ends) > moment or assessed_at >= max(ends):
        return []
    return [{"reason": ENDED, "since": max(ends)}]


@on_both
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=_STEPS)
def test_whatever_happens_it_is_as_the_definition_has_it_and_stays_so_in_the_past(
    alpha: Evidences, database: Database, steps: Sequence[Step]
) -> None:
    pieces: list[str] = []
    links: list[str] = []
    read: dict[str, Any] = {}

    def one(of: list[str], number: int) -> str | None:
        return of[number % len(of)] if of else None

    for link in stored.rows(database, Link, to_id=CONTROL, removed_at=None):
        alpha.unlink(link["id"])  # of the sequence before
    for does, number in steps:
        piece, link_id = one(pieces, number), one(links, number)
        if does == "add":
            pieces.append(alpha.add((None, LATER, PAST)[number]))
        elif does == "confirm":
            done(confirm(alpha))
        elif does == "assess":
            done(alpha.patch({"controlId": CONTROL, "coverageStatus": ("FULL", "PARTIAL", "NONE")[number]}))
        elif does == "unlink" and link_id is not None:
            alpha.unlink(link_id)
            links.remove(link_id)
        elif piece is not None:
            archived = stored.row(database, Evidence, piece)["archived_at"] is not None
            if does == "link":
                links = sorted({*links, alpha.link(piece)})
            elif does == "load":
                until = (None, LATER, PAST)[number]
                stored.load(database, {"evidence": [{"id": piece, "archivedAt": None, "validUntil": until}]})
            elif does == "archive" and not archived:
                alpha.archive(piece)
            elif does == "restore" and archived:
                alpha.restore(piece)
            elif does in ("expire", "extend", "forever") and not archived:
                alpha.set(piece, validUntil={"expire": now(), "extend": LATER, "forever": None}[does])
        shown = coverage(alpha)
        moment = now()
        assert shown["stale"] == definition(database, shown["assessedAt"], moment)
        assert stale_controls(alpha) == ([CONTROL] if shown["stale"] else [])
        read[moment] = shown
        while now() == moment:
            pass
    assert database.read_now(lambda transaction: is_followed(transaction, ALPHA))
    for moment, shown in read.items():
        assert done(alpha._send("GET", f"/controls/{CONTROL}/", query={"asOf": moment}))["coverage"] == shown

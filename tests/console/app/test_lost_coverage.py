"""What becomes of coverage that nobody of the organization has changed, and what each person sees of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from normata.core.changes.unit_of_work import Actor, UnitOfWork
from normata.coverage.lapses import LAPSES, lapse
from normata.frameworks.model import ControlCoverage
from normata.wiring import changes_of
from tests import stored
from tests.catalogs.test_centralized_imports import LIBRARY, PIERS, Operator
from tests.catalogs.test_retirement import SOURCE, TARGET, mapping
from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA, Parsed
from tests.console.browser import text_of
from tests.coverage.assessing import Stating, done
from tests.databases import on_both
from tests.world import ALPHA as ALPHA_ID

WITHDRAWN = "Controls that lost coverage: 1 A change by Operator reduced the coverage of these controls: 1 Piers."
REWORDED = (
    "Controls whose wording has changed since they were assessed: 1 An import by Operator changed the wording of these"
    " controls: 1.1 A. Compare the texts, and confirm or change each assessment."
)
LAPSED = (
    "Controls that lost coverage: 2 Assessments lapsed, because their review was missed or their evidence ended. That"
    " reduced the coverage of these controls: 1.1 A, 1.2 B."
)
LAPSED_OWN = LAPSED.replace(": 2 ", ": 1 ").replace(", 1.2 B", "")


def inboxes(people: People) -> dict[str, str]:
    """What the inboxes of all members say."""
    return {user: text_of(people[user].get(f"{ALPHA}inbox/")) for user in ("owner", "admin", "editor", "viewer")}


def who_reads(people: People, sentence: str) -> set[str]:
    """The members in whose inboxes a sentence is, once."""
    said = inboxes(people)
    assert all(words.count(sentence) <= 1 for words in said.values())
    return {user for user, words in said.items() if sentence in words}


def rules(**changed: str) -> dict[str, Any]:
    """The rules of the docks, of which two are for controls; with other texts where they are ``changed``."""
    framework = LIBRARY["objects"]["framework"]
    first, rule = framework["requirement_nodes"]
    nodes = [first, rule, rule | {"urn": "urn:docks:1.2", "ref_id": "1.2", "name": "B"}]
    nodes = [node | {"description": changed.get(node["name"], "Berths are locked.")} for node in nodes]
    return _library(framework | {"requirement_nodes": nodes}, version=1 + len(changed))


def _library(framework: Mapping[str, Any], version: int) -> dict[str, Any]:
    return {**LIBRARY, "version": version, "objects": {"framework": framework}}


@on_both
def test_a_mapping_withdraws_a_pair_a_text_changes_and_a_review_is_missed(people: People) -> None:
    """The viewer is responsible for one assessment; the editor for none."""
    service = people.instance
    operator = Operator(service.client, service.bearer("operator", scope="admin"))
    alpha = Stating(service.client, service.bearer("admin"))
    for document in (rules(), PIERS, mapping((SOURCE, TARGET), version=1)):
        done(operator.send(document))
    for framework in ("urn:docks", "urn:piers"):
        assert alpha.adopt(framework).is_success
    done(alpha.put(SOURCE, coverageStatus="FULL", ownerId="member-viewer", reviewBy="2100-01-01"))
    done(alpha.put("urn:docks:1.2", coverageStatus="PARTIAL"))
    source, target = (f"{ALPHA}controls/{quote(control, safe='')}/" for control in (SOURCE, TARGET))
    docks, piers = (f"{ALPHA}frameworks/{framework}/" for framework in ("urn:docks", "urn:piers"))
    viewer = people["viewer"]
    assert "Covered by mapping" in text_of(viewer.get(target))
    assert "1 Piers" in text_of(viewer.get(source)), "what depends on it"
    assert "100 % ready" in text_of(viewer.get(piers))
    assert "There are no gaps" in text_of(viewer.get(f"{piers}plan/"))

    # The mapping no longer has the pair, but one that hands nothing on.
    done(operator.send(mapping(("urn:docks:1.2", TARGET), version=2, relationship="intersect")))
    assert who_reads(people, WITHDRAWN) == {"owner", "admin"}
    assert target in Parsed(people["owner"].get(f"{ALPHA}inbox/")).links
    said = text_of(viewer.get(target))
    assert ("Result: none" in said, "Covered by mapping" in said) == (True, False)
    assert "1 Piers" not in text_of(viewer.get(source))
    assert "0 % ready" in text_of(viewer.get(piers))

    # The wording of a control changes.
    done(operator.send(rules(A="Berths are locked at night.")))
    assert who_reads(people, REWORDED) == {"owner", "admin", "viewer"}
    said = text_of(viewer.get(source))
    assert "An import changed the wording of the control on" in said
    assert "Result: full" in said, "it is only marked"
    assert "1 stale" in text_of(viewer.get(docks))
    done(alpha._send("POST", f"/controls/{SOURCE}/coverage/confirm/", {}))
    assert "stale" not in text_of(viewer.get(docks))

    # The reviews are missed: until the organization has them lapse, that is only shown.
    overdue = {"assessedAt": "2026-01-01", "reviewBy": "2026-06-15"}
    ids = [row["id"] for row in stored.rows(service.database, ControlCoverage) if "docks" in row["control_id"]]
    service.load({"controlCoverages": [{"id": one} | overdue for one in ids]})
    said = text_of(viewer.get(source))
    assert ("Its review has been due since 16 Jun 2026" in said, "has lapsed" in said) == (True, False)
    assert "2 stale" in text_of(viewer.get(docks))
    service.load({"organizations": [{"id": ALPHA_ID, "staleAssessments": "LAPSE"}]})

    def let_lapse(unit: UnitOfWork) -> int:
        return lapse(unit, ALPHA_ID, unit.moment)

    assert changes_of(service.database).make_now(let_lapse, actor=Actor(command=LAPSES.name)) == len(ids)
    assert who_reads(people, LAPSED) == {"owner", "admin"}
    assert who_reads(people, LAPSED_OWN) == {"viewer"}
    said = text_of(viewer.get(source))
    assert "The assessment has lapsed: its status, full, has not counted since 16 Jun 2026" in said
    assert "Result: none" in said
    assert "0 % ready" in text_of(viewer.get(docks))
    assert not [user for user, words in inboxes(people).items() if user == "editor" and "docks" in words]

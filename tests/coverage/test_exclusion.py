"""What an excluded group takes with it, and which mandatory requirements below it stay in, over HTTP."""

from __future__ import annotations

from normata.core.db.database import Database
from tests import mostly_sqlite
from tests.coverage.assessing import Json, Stating, done
from tests.databases import on_both
from tests.world import ALPHA, load

database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url

OUT: Json = {"isApplicable": False, "justification": "No premises."}
MANDATORY = [f"sun.A.{number}" for number in range(2, 13, 2)]  # the world makes every second control mandatory
NONE: Json = {"count": 0, "items": []}


def retained(answer: Json) -> tuple[int, list[str]]:
    """How many requirements stay in, and the ids of those that are named."""
    return answer["mandatoryRetained"]["count"], [one["id"] for one in answer["mandatoryRetained"]["items"]]


def planned(alpha: Stating, method: str, path: str, body: Json) -> Json:
    """What a change would answer."""
    answer = alpha.client.request(
        method, path, params={"dryRun": "true"}, json={"organizationId": ALPHA} | body, headers=alpha.headers
    )
    found: Json = done(answer)["answer"]
    return found


# --- What stays in


@on_both
def test_whoever_excludes_a_category_reads_what_stays_in(alpha: Stating) -> None:
    """Before it is done, when it is done, and when it is done to many."""
    many: Json = {"assessments": [{"controlId": "sun.A", **OUT}, {"controlId": "own.A.3", **OUT}]}
    for answer in (
        planned(alpha, "PUT", "/controls/sun.A/coverage/", OUT),
        planned(alpha, "PATCH", "/controls/coverage/", many),
        done(alpha.put("sun.A", **OUT)),
        done(alpha.patch(*many["assessments"])),
    ):
        assert retained(answer) == (6, MANDATORY)
    assert answer["mandatoryRetained"]["items"][0] == {"id": "sun.A.2", "identifier": "A.2", "name": "sun control 2"}
    listed = alpha.covered(frameworks="fw-sun", isApplicable="true", type="CONTROL")
    assert [item["id"] for item in listed] == MANDATORY, "what it says is what applies"


def test_nothing_stays_in_where_nothing_is_excluded(alpha: Stating) -> None:
    for said in ({"coverageStatus": "FULL"}, {"isApplicable": True}):
        assert done(alpha.put("sun.A", **said))["mandatoryRetained"] == NONE
    done(alpha.put("sun.A.3", **OUT))
    assert done(alpha.patch({"controlId": "sun.A.3", "note": "None."}))["mandatoryRetained"] == NONE


def test_an_excluded_requirement_takes_nothing_with_it(alpha: Stating, database: Database) -> None:
    """Its enhancements ask for something of their own; those of a decomposed control are all of it."""
    below = {"id": "sun.A.2", "parentId": "sun.A.3", "isMandatory": True}
    load(database, {"controls": [below]})
    assert done(alpha.put("sun.A.3", **OUT))["mandatoryRetained"] == NONE
    load(database, {"controls": [{"id": "sun.A.3", "isDecomposed": True}]})
    assert retained(done(alpha.put("sun.A.3", **OUT))) == (1, ["sun.A.2"])


def test_what_was_excluded_itself_before_it_became_mandatory_does_not_stay_in(
    alpha: Stating, database: Database
) -> None:
    done(alpha.put("sun.A.5", **OUT))
    load(database, {"controls": [{"id": "sun.A.5", "isMandatory": True}]})
    assert retained(done(alpha.put("sun.A", **OUT))) == (6, MANDATORY)


def test_what_is_below_two_excluded_categories_is_counted_once(alpha: Stating, database: Database) -> None:
    load(
        database,
        {
            "controls": [
                {"id": "sun.B", "frameworkId": "fw-sun", "parentId": "sun.A", "identifier": "B", "name": "B"}
                | {"type": "CATEGORY"},
                {"id": "sun.A.2", "parentId": "sun.B"},
            ]
        },
    )
    answer = done(alpha.patch({"controlId": "sun.A", **OUT}, {"controlId": "sun.B", **OUT}))
    assert retained(answer) == (6, MANDATORY)


def test_undoing_an_inclusion_says_what_stays_in(alpha: Stating) -> None:
    done(alpha.put("sun.A", **OUT))
    change = done(alpha.patch({"controlId": "sun.A", "isApplicable": None}))["changeId"]
    answer = alpha.client.post(
        "/controls/coverage/undo/", json={"organizationId": ALPHA, "changeId": change}, headers=alpha.headers
    )
    assert retained(done(answer)) == (6, MANDATORY)


def test_of_many_the_first_are_named_and_all_are_counted(alpha: Stating, database: Database) -> None:
    group = {"id": "sun.Z", "frameworkId": "fw-sun", "identifier": "Z", "name": "Z", "type": "CATEGORY"}
    many = [
        {"id": f"sun.Z.{number:03}", "frameworkId": "fw-sun", "parentId": "sun.Z", "identifier": f"Z.{number:03}"}
        | {"name": "Z", "isMandatory": True}
        for number in range(503)
    ]
    load(database, {"controls": [group, *many]})
    count, named = retained(done(alpha.put("sun.Z", **OUT)))
    assert (count, len(named), named[-1]) == (503, 500, "sun.Z.499")

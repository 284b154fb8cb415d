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


# --- What it takes with it


GROUP: Json = {
    "id": "sun.A",
    "identifier": "A",
    "name": "sun category",
    "justification": "No premises.",
    "reasons": ["CONTRACTUAL"],
}


def excluding(alpha: Stating, control: str) -> list[Json | None]:
    """The group that excludes a control: of the control alone, in the list, and in its explanation."""
    framework = f"fw-{control.partition('.')[0]}"
    [listed] = [item for item in alpha.covered(frameworks=framework) if item["id"] == control]
    answers = (done(alpha.control(control)), listed, done(alpha.explanation(control)))
    return [answer["excludedBy"] for answer in answers]


@on_both
def test_a_control_names_the_group_that_takes_it_with_it(alpha: Stating) -> None:
    done(alpha.put("sun.A", **OUT, reasons=["CONTRACTUAL"]))
    done(alpha.put("sun.A.3", coverageStatus="FULL", note="An assessment that decides nothing of this."))
    assert excluding(alpha, "sun.A.1") == excluding(alpha, "sun.A.3") == [GROUP] * 3
    for inside in ("sun.A", "sun.A.2", "own.A.1"):  # decided by itself, mandatory, elsewhere
        assert excluding(alpha, inside) == [None] * 3
    report = done(
        alpha.client.get(
            "/frameworks/fw-sun/statement-of-applicability/", params={"organizationId": ALPHA}, headers=alpha.headers
        )
    )
    assert report["mandatory"]["requirements"]
    for entry in (*report["controls"], *report["mandatory"]["requirements"]):
        shown = (entry["excludedBy"] or {}).get("id"), entry["justification"], entry["reasons"]
        assert shown == ((None, None, []) if entry["isMandatory"] else ("sun.A", "No premises.", ["CONTRACTUAL"]))
    done(alpha.delete("sun.A"))
    assert excluding(alpha, "sun.A.1") == [None] * 3


def test_what_decides_is_nearest(alpha: Stating, database: Database) -> None:
    """What was taken in again is not excluded with what is above it; what was excluded itself is not, either."""
    inner = {"id": "sun.B", "frameworkId": "fw-sun", "parentId": "sun.A", "identifier": "B", "name": "Inner"}
    moved = [{"id": f"sun.A.{number}", "parentId": "sun.B"} for number in (1, 3, 5)]
    load(database, {"controls": [inner | {"type": "CATEGORY"}, *moved]})
    done(alpha.patch({"controlId": "sun.A", **OUT}, {"controlId": "sun.A.5", **OUT}))
    assert [(found or {}).get("id") for found in excluding(alpha, "sun.A.1")] == ["sun.A"] * 3
    assert excluding(alpha, "sun.A.5") == [None] * 3
    done(alpha.put("sun.B", isApplicable=False, justification="Nobody works there."))
    assert [(found or {}).get("justification") for found in excluding(alpha, "sun.A.1")] == ["Nobody works there."] * 3
    done(alpha.put("sun.B", isApplicable=True))
    assert excluding(alpha, "sun.A.1") == [None] * 3
    done(alpha.patch({"controlId": "sun.B", "isApplicable": None}, {"controlId": "sun.A.1", "isApplicable": True}))
    assert excluding(alpha, "sun.A.1") == [None] * 3

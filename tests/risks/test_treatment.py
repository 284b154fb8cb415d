"""What treats a risk, and the warning where something is claimed that rests on a gap."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from normata.records.assurance import Risk
from tests.coverage.assessing import Stating, done
from tests.records.living import change
from tests.risks.rating import add, link, moment, read
from tests.served import Served, refused
from tests.world import ALPHA

REDUCED = {"inherent": (4, 4), "residual": (2, 4), "treatmentStrategy": "MITIGATE"}
IN_PLACE, PARTIAL, NONE, UNADOPTED = "sun.A.1", "sun.A.2", "sun.A.4", "star.A.1"
_EARLIER = "2026-01-02T03:04:05.678Z"


def _treatment(service: Served, risk_id: str, **query: str) -> dict[str, Any]:
    return read(service, f"/risks/{risk_id}/treatment/", **query)


def _says(service: Served, risk_id: str, **query: str) -> tuple[bool, list[str]]:
    found = _treatment(service, risk_id, **query)
    return found["restsOnGap"], found["gaps"]


def _stating(service: Served, user: str = "editor") -> Stating:
    return Stating(service.client, service.bearer(user))


def _overdue(service: Served, control_id: str, **values: Any) -> None:
    """Load an assessment whose review was due in June."""
    row = {"id": f"say-{control_id}", "organizationId": ALPHA, "controlId": control_id, "coverageStatus": "FULL"}
    service.load({"controlCoverages": [row | {"assessedAt": "2026-01-01", "reviewBy": "2026-06-01"} | values]})


def test_it_says_how_far_the_controls_are_covered(service: Served) -> None:
    risk = add(service, target=(1, 1), **REDUCED)
    links = {control: link(service, control, risk) for control in (IN_PLACE, UNADOPTED, PARTIAL)}
    found = _treatment(service, risk)
    assert found["levels"] == {"inherent": "CRITICAL", "residual": "MEDIUM", "target": "LOW"}
    assert (found["claims"], found["restsOnGap"]) == (["RESIDUAL_BELOW_INHERENT"], True)
    assert found["gaps"] == ["NOT_ADOPTED", "PARTIAL"]
    shown = {one["id"]: (one["linkId"], one["effectiveCoverageStatus"], one["gaps"]) for one in found["controls"]}
    assert shown == {
        PARTIAL: (links[PARTIAL], "PARTIAL", ["PARTIAL"]),
        UNADOPTED: (links[UNADOPTED], None, ["NOT_ADOPTED"]),
        IN_PLACE: (links[IN_PLACE], "FULL", []),
    }
    assert [one["id"] for one in found["controls"]][-1] == IN_PLACE
    partial = next(one for one in found["controls"] if one["id"] == PARTIAL)
    assert (partial["identifier"], partial["frameworkId"], partial["framework"]) == ("A.2", "fw-sun", "Sun Standard")


def test_each_gap_has_its_reason(service: Served) -> None:
    risk = add(service, **REDUCED)
    assert _says(service, risk) == (True, ["NO_CONTROL"])
    link(service, IN_PLACE, risk)
    assert _says(service, risk) == (False, [])
    editor, admin = _stating(service), _stating(service, "admin")
    _overdue(service, IN_PLACE)
    assert _says(service, risk) == (True, ["STALE"])
    _overdue(service, IN_PLACE, coverageStatus=None, lapsedStatus="FULL", lapsedAt="2026-06-01")
    assert "LAPSED" in _says(service, risk)[1]
    done(editor.patch({"controlId": IN_PLACE, "reviewBy": None, "isApplicable": False, "justification": "No site."}))
    assert _says(service, risk) == (True, ["NOT_APPLICABLE"])
    done(editor.patch({"controlId": IN_PLACE, "isApplicable": None, "coverageStatus": "NONE"}))
    assert _says(service, risk) == (True, ["NONE"])
    done(admin.leave("fw-sun"))
    assert _says(service, risk) == (True, ["NOT_ADOPTED"])


@pytest.mark.parametrize(
    ("values", "claims"),
    [
        ({"inherent": (3, 3), "residual": (3, 3)}, []),
        ({"inherent": (3, 3), "residual": (4, 2)}, ["RESIDUAL_BELOW_INHERENT"]),
        ({"inherent": (None, 3), "residual": (1, 2)}, ["RESIDUAL_BELOW_INHERENT"]),
        ({"inherent": (3, None), "residual": (3, 1)}, []),
        ({"inherent": (3, 3), "residual": (None, None), "target": (1, 1)}, []),
        ({"inherent": (3, 3), "residual": (3, 3), "target": (3, 3)}, []),
        ({"residual": (2, 2), "target": (2, 3)}, ["TARGET_REACHED"]),
        ({"residual": (2, 3), "target": (2, 2)}, []),
        ({"residual": (2, None), "target": (2, 2)}, []),
        ({"inherent": (3, 3), "residual": (1, 1), "status": "CLOSED"}, []),
    ],
)
def test_what_is_claimed(values: dict[str, Any], claims: list[str], service: Served) -> None:
    risk = add(service, **values)
    link(service, PARTIAL, risk)
    found = _treatment(service, risk)
    assert (found["claims"], found["restsOnGap"]) == (claims, bool(claims))


def test_an_archived_risk_claims_nothing(service: Served) -> None:
    risk = add(service, **REDUCED)
    service.client.post(f"/risks/{risk}/archive/", headers=service.bearer("editor"))
    assert _treatment(service, risk)["claims"] == []
    assert read(service, "/risk-register/", id=risk)["items"] == []


def test_it_is_known_of_a_day(service: Served) -> None:
    risk = add(service, **REDUCED)
    bare = moment()
    made = link(service, IN_PLACE, risk)
    linked = moment()
    done(_stating(service).patch({"controlId": IN_PLACE, "coverageStatus": "PARTIAL"}))
    lowered = moment()
    assert service.client.delete(f"/links/{made}/", headers=service.bearer("editor")).status_code == 200
    unlinked = moment()
    change(service, Risk, risk, service.bearer("editor"), residualProbability=4)
    said = {bare: (True, ["NO_CONTROL"]), linked: (False, []), lowered: (True, ["PARTIAL"])}
    for at, expected in (said | {unlinked: (True, ["NO_CONTROL"])}).items():
        assert _says(service, risk, asOf=at) == expected
        [listed] = read(service, "/risk-register/", id=risk, asOf=at)["items"]
        assert (listed["restsOnGap"], listed["gaps"]) == expected
        of_gaps = read(service, "/risk-register/", id=risk, asOf=at, restsOnGap="true")["items"]
        assert [one["id"] for one in of_gaps] == ([risk] if expected[0] else [])
    assert _says(service, risk) == (False, ["NO_CONTROL"])


def test_the_register_filters_by_the_rule_that_it_shows(service: Served) -> None:
    """The condition in SQL and the rule in Python are the same, for every kind of rating, control and strategy."""
    _overdue(service, "sun.A.3")
    pairs: tuple[tuple[int | None, int | None], ...] = ((None, None), (3, None), (3, 3), (2, 4))
    controls = ((), (IN_PLACE,), (PARTIAL,), (NONE, IN_PLACE), (UNADOPTED,), ("sun.A.3",), ("gone",))
    risks, links = [], []
    cases = product(pairs, pairs, pairs[1:3], controls, ("MITIGATE", "ACCEPT"), ("OPEN", "CLOSED"))
    for number, (inherent, residual, target, treated_by, strategy, status) in enumerate(cases):
        risk = {"id": f"r{number}", "organizationId": ALPHA, "shortId": 1000 + number, "slug": f"r{number}"}
        risk |= {"name": "Risk", "treatmentStrategy": strategy, "status": status, "createdAt": _EARLIER}
        for of, pair in (("inherent", inherent), ("residual", residual), ("target", target)):
            risk |= {f"{of}Probability": pair[0], f"{of}Impact": pair[1]}
        risks.append(risk)
        for control in treated_by:
            ends = {"fromKind": "controls", "fromId": control, "toKind": "risks", "toId": risk["id"]}
            about = {"id": f"{risk['id']}-{control}", "organizationId": ALPHA, "relation": "TREATS", **ends}
            if control != "gone":
                links.append(about | {"createdAt": _EARLIER})
    service.load({"risks": risks, "links": links})

    def listed(**query: str) -> dict[str, bool]:
        found: dict[str, bool] = {}
        for page in range(1, 100):
            answer = read(service, "/risk-register/", page=page, **query)
            found |= {one["id"]: one["restsOnGap"] for one in answer["items"]}
            if page * 100 >= answer["total"]:
                assert len(found) == answer["total"]
                return found
        raise AssertionError("the list does not end")

    every = listed()
    assert {True, False} == set(every.values())
    assert listed(restsOnGap="true") == {risk: True for risk, is_so in every.items() if is_so}
    assert listed(restsOnGap="false") == {risk: False for risk, is_so in every.items() if not is_so}
    assert not any(risk["id"] in every for risk in risks if risk["status"] == "CLOSED")


def test_the_register_has_the_highest_first_and_its_filters(service: Served) -> None:
    service.sql("UPDATE risk SET status = 'CLOSED'")
    one, two, three = (add(service, residual=pair) for pair in ((2, 3), (5, 5), (3, 3)))
    unrated = add(service, inherent=(5, 5))

    def ids(**query: Any) -> list[str]:
        return [found["id"] for found in read(service, "/risk-register/", **query)["items"]]

    assert ids() == [two, three, one, unrated]
    assert ids(of="inherent")[0] == unrated
    assert ids(level=["CRITICAL", "LOW"]) == [two]
    assert ids(level="MEDIUM") == [three, one]
    assert ids(level="HIGH") == []
    assert ids(probability="2", impact="3") == [one]
    assert ids(id=[one, two, "unknown"]) == [two, one]
    for wrong in ({"level": "SEVERE"}, {"probability": "6"}, {"of": "now"}, {"restsOnGap": "perhaps"}):
        query = {"organizationId": ALPHA} | wrong
        answer = service.client.get("/risk-register/", params=query, headers=service.bearer("viewer"))
        refused(answer, 400, "validation")

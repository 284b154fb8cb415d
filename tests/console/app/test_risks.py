"""The page of the risk matrix, and the button with which an owner accepts a risk."""

from __future__ import annotations

from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA, Parsed, send
from tests.console.browser import is_refused, text_of
from tests.world import ALPHA as ALPHA_ID

RISK = f"risks-namesake-{ALPHA_ID}"  # an owner's, rated 2 and 3
PAGE = f"{ALPHA}records/risks/{RISK}/"
MATRIX = f"{ALPHA}risk-matrix/"


def test_the_matrix_counts_before_after_and_as_planned(readers: People) -> None:
    viewer = readers["viewer"]
    after = viewer.get(MATRIX)
    assert "Probability 2, Impact 3: 1" in after.text
    assert "Medium 1" in text_of(after)
    assert "Not rated 1" in text_of(after)
    for of in ("inherent", "target"):
        assert "Probability 2, Impact 3: 1" not in viewer.get(f"{MATRIX}?of={of}").text
    assert viewer.get(f"{MATRIX}?of=nonsense").text.count("<svg") == after.text.count("<svg")
    assert MATRIX in viewer.get(f"{ALPHA}records/risks/").text


def test_its_owner_alone_accepts_a_risk_on_its_page(people: People) -> None:
    assert "Accept the residual risk" not in people["admin"].get(PAGE).text
    form = next(form for form in Parsed(people["owner"].get(PAGE)).forms if form.action.endswith("/accept/"))
    assert is_refused(send(people["admin"], form))
    made = send(people["owner"], form)
    assert (made.status_code, made.headers["location"]) == (303, f"{PAGE}?done=risk_accepted")
    accepted = people["owner"].get(made.headers["location"])
    assert "You have accepted the residual risk." in text_of(accepted)
    assert "/accept/" not in accepted.text
    changed = people["editor"].post(
        f"{PAGE}edit/",
        name="Flood",
        status="OPEN",
        treatmentStrategy="ACCEPT",
        ownerId="member-owner",
        residualProbability="2",
        residualImpact="5",
    )
    assert changed.status_code == 303
    assert "Accept the residual risk" in people["owner"].get(PAGE).text

"""The page of the risk matrix, and the button with which an owner accepts a risk."""

from __future__ import annotations

from typing import Any

from normata.core.db.types import now
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


def test_it_warns_of_claims_that_rest_on_a_gap(readers: People) -> None:
    viewer = readers["viewer"]
    page = text_of(viewer.get(PAGE))
    assert "Rests on a gap" in page
    assert "is said to be lower than before treatment. But not all of its treatment is in place: no control" in page
    records = f"{ALPHA}records/risks/"
    assert "Gap" in text_of(viewer.get(records))
    assert "Rests on a gap" in text_of(viewer.get(f"{records}?open={RISK}"))
    matrix = viewer.get(MATRIX)
    assert "Rests on a gap 1" in text_of(matrix)
    assert RISK in viewer.get(f"{MATRIX}?restsOnGap=true").text
    assert "No open risk is like that." in text_of(viewer.get(f"{MATRIX}?probability=5&impact=5"))
    before = text_of(viewer.get(f"{MATRIX}?of=inherent"))
    assert "1 risk is above your appetite." in before


def test_another_day_says_that_the_risks_are_of_then(readers: People) -> None:
    page = readers["viewer"].get(f"{MATRIX}?asOf={now()}")
    assert "You see the risks as they were" in text_of(page)
    assert "coverage as it was" not in text_of(page)


def test_its_page_shows_the_ratings_that_it_had(people: People) -> None:
    editor = people["editor"]
    assert "Ratings over time" not in editor.get(PAGE).text
    values: Any = {"status": "OPEN", "treatmentStrategy": "MITIGATE", "ownerId": "member-owner"}
    values |= {"residualProbability": "1", "residualImpact": "3", "inherentProbability": "4", "inherentImpact": "4"}
    assert editor.post(f"{PAGE}edit/", name="Flood", **values).status_code == 303
    page = text_of(editor.get(PAGE))
    assert "Ratings over time" in page
    assert page.index("3, low") < page.index("3, medium")


def test_a_review_is_done_on_its_page(people: People) -> None:
    editor = people["editor"]
    review = f"risk-reviews-live-{ALPHA_ID}"
    page = f"{ALPHA}risk-reviews/{review}/"
    assert page in editor.get(f"{ALPHA}records/risk-reviews/{review}/").text
    assert "Finish the review" not in text_of(people["viewer"].get(page))
    assert is_refused(people["viewer"].post(page, risk=RISK, outcome="CONFIRMED"))
    opened = Parsed(editor.get(f"{page}?open={RISK}"))
    form = next(form for form in opened.forms if "note" in dict(form.fields))
    assert send(editor, form, note="As before.", outcome="CONFIRMED").status_code == 303
    shown = text_of(editor.get(page))
    assert "Confirmed" in shown
    assert "As before." in shown
    refused = editor.post(page, risk="unknown", outcome="CONFIRMED")
    assert refused.status_code == 400
    assert editor.post(page, step="finish").headers["location"].endswith("?done=risk_review_finished")
    finished = text_of(editor.get(page))
    assert "Not reviewed" in finished
    assert "Finish the review" not in finished


def test_the_levels_are_set_in_the_settings(people: People) -> None:
    admin, page = people["admin"], f"{ALPHA}settings/risk-levels/"
    assert people["editor"].get(page).status_code == 403
    levels: Any = {f"level-{impact}-{one}": "LOW" for impact in range(1, 6) for one in range(1, 6)}
    preview = admin.post(page, step="preview", **levels)
    assert "Preview, not saved" in text_of(preview)
    assert "As it is" in text_of(admin.get(page))
    assert admin.post(page, step="save", **levels | {"level-1-1": "CRITICAL"}).status_code == 303
    assert "Back to the usual levels" in text_of(admin.get(page))
    assert admin.post(page, step="save", **levels | {"level-1-1": "SEVERE"}).status_code == 400
    assert admin.post(page, step="usual").status_code == 303
    assert "Back to the usual levels" not in text_of(admin.get(page))

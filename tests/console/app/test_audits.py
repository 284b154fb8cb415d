"""The page of the checklist of an audit: planned, checked row by row, with a finding of a row."""

from __future__ import annotations

import re

from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA, Parsed, send
from tests.console.browser import is_refused, text_of
from tests.world import ALPHA as ALPHA_ID

AUDIT = f"audits-namesake-{ALPHA_ID}"
PAGE = f"{ALPHA}audits/{AUDIT}/"


def test_an_audit_is_planned_and_checked_on_its_page(people: People) -> None:
    """Without script: the scope in a sheet, a result in one click, a note and a finding where the row is open."""
    editor = people["editor"]
    assert PAGE in editor.get(f"{ALPHA}records/audits/{AUDIT}/").text
    assert "Bring into scope" not in text_of(people["viewer"].get(PAGE))
    assert is_refused(people["auditor"].post(PAGE, step="make"))
    assert editor.post(PAGE, step="scope", framework="unknown").status_code == 400
    made = editor.post(PAGE, step="scope", framework="fw-sun")
    assert made.headers["location"].endswith("?done=checklist_made")
    page = Parsed(editor.get(PAGE))
    first = next(form for form in page.forms if "row" in dict(form.fields))
    assert send(editor, first, status="CONFORMING").status_code == 303
    shown = editor.get(PAGE)
    assert "1 of " in text_of(shown)
    row = dict(first.fields)["row"]
    opened = Parsed(editor.get(f"{PAGE}?open={row}"))
    of_note, of_finding = (
        next(form for form in opened.forms if name in dict(form.fields)) for name in ("note", "findings")
    )
    assert send(editor, of_note, step="note", note="Five doors tried.").status_code == 303
    found = send(editor, of_finding, step="find", name="Doors stay open", owner="member-viewer")
    assert found.headers["location"].endswith("done=row_found")
    for words in ("Five doors tried.", "Doors stay open", "Editor"):
        assert words in text_of(people["auditor"].get(PAGE))
    assert "Doors stay open" not in text_of(editor.get(f"{PAGE}?status=NOT_CHECKED"))
    report = people["auditor"].get(f"{PAGE}report/file/?format=xlsx")
    assert report.status_code == 200
    assert "attachment" in report.headers["content-disposition"]


def test_chosen_rows_get_one_result_and_the_picture_follows(people: People) -> None:
    editor = people["editor"]
    assert editor.post(PAGE, step="scope", framework="fw-sun").status_code == 303
    boxes = re.findall(r'name="selected" value="([^"]+)"', editor.get(PAGE).text)
    assert len(boxes) >= 3
    form = {"status": "NONCONFORMING", "selected": boxes[:2]}
    sent = editor.client.post(PAGE, data=form, headers={"Sec-Fetch-Site": "same-origin"})
    assert sent.headers["location"].endswith("done=rows_checked")
    shown = text_of(editor.get(PAGE))
    assert "2 Nonconforming" in shown
    assert f"2 of {len(boxes)} rows checked" in shown
    assert editor.post(PAGE, status="CONFORMING").status_code == 400
    assert "selected" not in people["viewer"].get(PAGE).text
    assert "New audit" in text_of(editor.get(f"{ALPHA}audits/"))
    assert "2 of " in text_of(people["viewer"].get(f"{ALPHA}audits/"))
    assert f"audits/{AUDIT}/" not in people["viewer"].get(f"{ALPHA}audits/?state=ENDED").text

"""An entitlement review is done on its page: rows from a table, a decision for each, and finishing it."""

from __future__ import annotations

from httpx2 import Response

from normata.entitlements.model import EntitlementReviewItem
from normata.records.kinds import Task
from tests import stored
from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA
from tests.console.browser import Browser, is_refused, text_of

REVIEW = "entitlement-reviews-live-org-alpha"
PAGE = f"{ALPHA}entitlement-reviews/{REVIEW}/"
TABLE = "person,system,entitlement\nAna,Wiki,Admin\nBen,Wiki,User\n<b>Cleo</b>,Mail,User\n"


def _upload(browser: Browser, table: str | None, **fields: str) -> Response:
    name, content = ("", b"") if table is None else ("rights.csv", table.encode())
    files = {"file": (name, content, "application/octet-stream")}
    headers = {"Sec-Fetch-Site": "same-origin"}
    return browser.client.post(f"{PAGE}upload/", data=fields, files=files, headers=headers)


def _hidden(page: Response, name: str) -> str:
    return page.text.partition(f'name="{name}" value="')[2].partition('"')[0]


def test_from_a_table_to_the_tasks(people: People) -> None:
    editor = people["editor"]
    assert PAGE in editor.get(f"{ALPHA}records/entitlement-reviews/{REVIEW}/").text
    assert editor.post(PAGE, step="remove", selected="item-org-alpha").status_code == 303
    assert "Nothing to review yet" in text_of(editor.get(PAGE))
    form = f"{ALPHA}records/entitlement-reviews/{REVIEW}/edit/"
    assert 'name="finishedAt"' in editor.get(form).text
    preview = _upload(editor, TABLE, step="preview")
    assert "3 entitlements will be added." in text_of(preview)
    assert "<b>Cleo</b>" not in preview.text
    # The page of the preview carries the table.
    kept = {name: _hidden(preview, name) for name in ("previewed", "carried", "carried_name")}
    added = _upload(editor, None, step="import", **kept)
    assert added.headers["location"] == f"{PAGE}?done=entitlements_added"
    assert 'name="finishedAt"' not in editor.get(form).text  # the step sets it
    rows = stored.rows(people.instance.database, EntitlementReviewItem, entitlement_review_id=REVIEW)
    ana, ben, cleo = sorted(rows, key=lambda row: row["created_at"] + row["id"])
    assert editor.post(f"{PAGE}?near=r0", KEEP=ana["id"], return_to=PAGE).headers["location"] == f"{PAGE}#r0"
    assert "1 of 3 entitlements decided" in editor.get(PAGE).text
    assert "finished once every entitlement" in text_of(editor.get(PAGE))
    assert "What it becomes" in text_of(editor.get(f"{PAGE}?open={ben['id']}"))
    assert editor.post(PAGE, CHANGE=ben["id"], change="").status_code == 400
    assert editor.post(PAGE, CHANGE=ben["id"], change="Reader").status_code == 303
    assert editor.post(PAGE, step="REMOVE", selected=cleo["id"]).status_code == 303
    assert "2 tasks are made" in text_of(editor.get(PAGE))
    assert editor.post(PAGE, step="finish").headers["location"].endswith("?done=entitlement_review_finished")
    page = text_of(editor.get(PAGE))
    assert "Reader" in page
    assert "Finish the review" not in page
    tasks = stored.rows(people.instance.database, Task, entitlement_review_id=REVIEW)
    assert {"Change User in Wiki of Ben", "Remove User in Mail from <b>Cleo</b>"} <= {one["title"] for one in tasks}
    assert editor.post(PAGE, step="finish").status_code == 409


def test_what_is_wrong_in_a_table_is_said_by_row(people: People) -> None:
    editor = people["editor"]
    refused = _upload(editor, "person,system,entitlement\n,Wiki,Admin\nBen,,User\n", step="preview")
    assert refused.status_code == 400
    assert "2 cells are wrong" in text_of(refused)
    assert "Row 2, person: is required" in text_of(refused)
    assert "Row 3, system: is required" in text_of(refused)
    assert _upload(editor, None, step="preview").status_code == 400


def test_who_only_reads_has_no_buttons(readers: People) -> None:
    viewer = readers["viewer"]
    page = text_of(viewer.get(f"{PAGE}?decision=CHANGE"))
    assert "Maintainer" in page
    assert "Upload a table" not in page
    assert is_refused(viewer.post(PAGE, KEEP="item-org-alpha"))
    assert "No entitlement is like that." in text_of(viewer.get(f"{PAGE}?decision=KEEP"))


def test_an_entitlement_is_added_by_hand(people: People) -> None:
    editor = people["editor"]
    twice = [editor.post(PAGE, step="add", person="Eve", system="Mail", entitlement="User") for _ in range(2)]
    assert [one.status_code for one in twice] == [303, 400]
    assert "Eve" in twice[1].text

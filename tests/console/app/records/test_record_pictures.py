"""The pictures of records: the times of an incident, and the risk of a vendor."""

from __future__ import annotations

from typing import Any

import pytest

from normata.records.kinds import Incident, Vendor
from tests.console.app.conftest import People
from tests.console.app.records.recording import made, page_of
from tests.console.browser import text_of

_BREACH = {
    "occurredAt": "2026-10-13T09:05:00Z",
    "detectedAt": "2026-10-14T07:20:00Z",
    "notificationDeadline": "2026-10-17T07:20:00Z",
}


def test_an_incident_has_its_times_and_its_timeline(shared: People) -> None:
    incident = made(shared, Incident, **_BREACH, authorityNotifiedAt="2026-10-15T13:30:00Z")
    page = shared["viewer"].get(page_of(Incident, incident))
    assert "Undetected 22 hours 15 minutes" in page.text
    lines = text_of(page).partition("What happened next?")[2]
    assert lines.index("The authority was notified") < lines.index("It was detected") < lines.index("It occurred")
    assert "The authority was notified 1 day 17 hours before the deadline." in text_of(page)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"authorityNotifiedAt": "2026-10-17T09:20:00Z"}, "The authority was notified 2 hours after the deadline."),
        ({"notificationDeadline": "2126-10-17T07:20:00Z"}, "Time left to notify the authority: "),
        ({"notificationDeadline": "2020-10-17T07:20:00Z"}, "The deadline to notify the authority passed"),
    ],
)
def test_how_much_time_there_is_for_the_authority(values: dict[str, str], sentence: str, shared: People) -> None:
    incident = made(shared, Incident, **{**_BREACH, **values})
    assert sentence in text_of(shared["viewer"].get(page_of(Incident, incident)))


def test_what_is_too_little_for_a_picture_has_none(shared: People) -> None:
    for kind, values in ((Incident, {"detectedAt": "2026-10-14T07:20:00Z"}), (Vendor, {"inherentImpact": 3})):
        assert 'id="picture"' not in shared["viewer"].get(page_of(kind, made(shared, kind, **values))).text


def test_a_vendor_has_its_risk_before_and_after_treatment(shared: People) -> None:
    values = {"inherentProbability": 3, "inherentImpact": 5, "residualProbability": 2, "residualImpact": 3.5}
    page = shared["viewer"].get(page_of(Vendor, made(shared, Vendor, **values)))
    assert "Probability 3, Impact 5: Before" in page.text
    assert "Probability 2, Impact 4: After" in page.text
    assert "Before 3 5 15 After 2 3.5 7" in text_of(page)
    same = {"inherentProbability": 2, "inherentImpact": 2, "residualProbability": 2, "residualImpact": 2}
    page = shared["viewer"].get(page_of(Vendor, made(shared, Vendor, **same)))
    assert "Probability 2, Impact 2: Both" in page.text


def test_what_was_loaded_out_of_its_scale_is_in_the_table_alone(shared: People) -> None:
    row = {"id": "v-9", "organizationId": "org-alpha", "name": "Loaded", "inherentImpact": 9, "inherentProbability": 2}
    shared.instance.load({"vendors": [{**row, "residualImpact": 2, "residualProbability": 1}]})
    page = shared["viewer"].get(page_of(Vendor, "v-9"))
    assert "Before 2 9 18 After 1 2 2" in text_of(page)
    assert ": Before" not in page.text.partition("<desc>")[0] + page.text.partition("</desc>")[2]


def test_an_incident_says_what_is_missing_to_close_it(shared: People) -> None:
    incident = made(shared, Incident, **_BREACH, rootCause="Two customers with similar names.")
    page = text_of(shared["viewer"].get(page_of(Incident, incident)))
    assert "Root cause written , done" in page
    assert "Authority notified Root cause" in page.replace("✓ ", "")
    assert "Authority notified , done" not in page
    closed = made(shared, Incident, status="CLOSED")
    assert "To close it" not in text_of(shared["viewer"].get(page_of(Incident, closed)))


def test_an_incident_goes_on_with_one_main_button(shared: People) -> None:
    editor = shared["editor"]
    incident = made(shared, Incident, **_BREACH, isPersonalDataBreach=True)
    page, act = page_of(Incident, incident), page_of(Incident, incident).replace("records/", "") + "steps/"
    assert "Mark as contained" in text_of(editor.get(page))
    assert editor.post(act, step="contain").status_code == 303
    assert "Record the notification" in text_of(editor.get(page))
    wrong = editor.post(act, step="notify", authorityNotifiedAt="yesterday", zone="UTC")
    assert wrong.status_code == 400
    at: Any = {"authorityNotifiedAt": "2026-10-15T15:30", "notificationNotes": "By the form.", "zone": "Europe/Berlin"}
    assert editor.post(act, step="notify", **at).status_code == 303
    notified = text_of(editor.get(page))
    assert "The root cause is missing" in notified
    assert "15 Oct 2026, 13:30" in notified
    assert editor.post(act, step="resolve", resolvedAt="2026-10-16T10:00", rootCause="", zone="UTC").status_code == 303
    assert "Still missing: the root cause." in text_of(editor.get(page))
    assert editor.post(act, step="close", closedAt="2026-10-17T10:00", lessonsLearned="Ask.").status_code == 303
    closed = editor.get(page)
    assert "Close…" not in text_of(closed)
    assert "wrote down the lessons learned" in text_of(closed)
    assert shared["viewer"].post(act, step="close").status_code == 403
    assert editor.post(act, step="open").status_code == 400

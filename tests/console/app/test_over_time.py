"""Coverage over time in the console: of a framework, of all of them, and what differs between two days."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from normata.console.filters import day_text
from normata.core.db.types import format_timestamp
from tests import world
from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA, Parsed
from tests.console.app.test_cost import asked_by
from tests.console.browser import text_of
from tests.databases import on_both


def ago(days: int) -> str:
    """A moment some days ago."""
    return format_timestamp(datetime.now(UTC) - timedelta(days=days))


def begin(people: People, since: int, **adopted: int) -> None:
    """Let the past have begun some days ago, and each framework have been adopted some days ago."""
    sql = [f"UPDATE history_start SET since = '{ago(since)}'"]
    for framework, days in adopted.items():
        at, of_it = ago(days), f"framework_id = 'fw-{framework}'"
        controls = f"control_id IN (SELECT id FROM control WHERE {of_it})"
        sql.append(f"UPDATE framework_adoption_history SET valid_from = '{at}', adopted_at = '{at}' WHERE {of_it}")
        sql.append(f"UPDATE effective_coverage_history SET valid_from = '{at}' WHERE {controls}")
    people.instance.sql(*sql)


def test_a_past_that_has_begun_today_has_no_picture(people: People) -> None:
    browser = people["viewer"]
    assert f"{ALPHA}frameworks/fw-sun/over-time/" in Parsed(browser.get(f"{ALPHA}frameworks/fw-sun/")).links
    page = browser.get(f"{ALPHA}frameworks/fw-sun/over-time/")
    assert "The past is known since today." in text_of(page)
    assert "<polygon" not in page.text
    for address in (ALPHA, f"{ALPHA}frameworks/fw-sun/"):
        found = browser.get(address)
        assert "known since today" in text_of(found)
        assert "Readiness over time" not in text_of(found)
        assert "<polygon" not in found.text
        assert "<polyline" not in found.text
    assert browser.get(f"{ALPHA}frameworks/fw-star/over-time/").status_code == 404
    assert "No control has another status." in text_of(browser.get(f"{ALPHA}coverage/changes/"))
    refused = browser.get(f"{ALPHA}coverage/changes/?from=2020-01-01")
    assert refused.status_code == 400
    assert "since when the past is known" in text_of(refused)


@on_both
def test_what_happened_stands_beside_coverage(people: People) -> None:
    """Adopted, audited, assessed, left: in words, over the picture and in its table, for those who may read it."""
    viewer, owner = people["viewer"], people["owner"]
    known = day_text(ago(500))
    begin(people, 500, sun=90, moon=7)
    people.instance.sql("UPDATE audit SET started = NULL")  # of those that there are
    client, headers = people.instance.client, people.instance.bearer("owner")
    alpha = {"organizationId": world.ALPHA}

    def audit(name: str, days: int, framework: str | None) -> str:
        body = alpha | {"name": name, "slug": name.lower(), "started": ago(days), "frameworkId": framework}
        return str(client.post("/audits/", json=body, headers=headers).json()["id"])

    audits = [audit("Sunny", 50, "fw-sun"), audit("Whole", 20, None), audit("Moony", 3, "fw-moon")]
    full = {"controlId": "sun.A.2", "coverageStatus": "FULL", "coverageGap": None}
    assert client.patch("/controls/coverage/", json=alpha | {"assessments": [full]}, headers=headers).is_success

    overview = text_of(viewer.get(ALPHA))
    assert re.search(r"\+\d+ points in 30 days", overview)
    assert "adopted 7 days ago" in overview
    parsed = Parsed(viewer.get(ALPHA))
    assert f"{ALPHA}frameworks/fw-sun/over-time/" in parsed.links
    assert "Readiness over time" in overview

    page = viewer.get(f"{ALPHA}frameworks/fw-sun/")
    assert "In 30 days: +1 full, \N{MINUS SIGN}1 partial." in text_of(page)
    whole = viewer.get(f"{ALPHA}frameworks/fw-sun/over-time/?step=day")
    for found in (page, whole):
        assert found.text.count("<polygon") == 3
        assert re.findall(r"<title>(\w): [^<]*, (\w+)</title>", found.text) == [
            ("A", "Adopted"),
            ("B", "Sunny"),
            ("C", "Whole"),
        ]
        links = Parsed(found).links
        # In the picture, its legend and its table.
        assert [links.count(f"{ALPHA}records/audits/{one}/") for one in audits] == [3, 3, 0]
        assert not any("/events/?kind" in link for link in links)  # which a viewer may not read
        (desc,) = re.findall(r"<desc>(.*?)</desc>", found.text)
        assert "Adopted" in desc
        assert "Sunny" in desc
    assert (
        sum("/events/?kind=frameworkAdoptions" in one for one in Parsed(owner.get(f"{ALPHA}frameworks/fw-sun/")).links)
        == 3
    )
    assert f"{ALPHA}frameworks/fw-sun/over-time/?step=day&span=all" in Parsed(whole).links
    everything = viewer.get(f"{ALPHA}frameworks/fw-sun/over-time/?step=month&span=all")
    assert f"The past is known since {known}" in text_of(everything)
    assert f">{known}</text>" in everything.text  # where the picture begins
    row = re.search(r"<tr>(?:(?!</tr>).)*>Sunny<(?:(?!</tr>).)*</tr>", whole.text, re.DOTALL)
    assert row is not None
    assert "What happened" in whole.text

    assert client.delete("/frameworks/fw-sun/adoption/", params=alpha, headers=headers).is_success
    left = viewer.get(f"{ALPHA}frameworks/fw-sun/over-time/?step=day")
    assert f"Left on {datetime.now(UTC).day} " in text_of(left)
    assert left.text.count("<polygon") == 3
    assert viewer.get(f"{ALPHA}frameworks/fw-sun/").status_code == 404
    assert f"{ALPHA}frameworks/fw-sun/over-time/" not in Parsed(viewer.get(ALPHA)).links


def test_an_overview_asks_once_for_all_frameworks(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    """The beginning of the past, the adoptions and the counts: three statements, however many frameworks there are."""
    statements = [str(one) for one in asked_by("", people, monkeypatch).statements]
    assert sum("_history" in one or "history_start" in one for one in statements) == 3

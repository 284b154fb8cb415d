"""Pages of coverage as of a day of the past: they show what held then, and nothing in them can be changed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit
from zoneinfo import ZoneInfo

import pytest
from httpx2 import Response

from normata.console.app.past import has_past, past_of
from normata.console.app.routes import PAGES
from normata.console.filters import READER, Reader
from normata.core.db.types import format_timestamp
from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA, FRAME, Parsed, address_of, is_file, path_of
from tests.console.browser import text_of
from tests.databases import on_both, tamper
from tests.world import ALPHA as ALPHA_ID

OF_COVERAGE = tuple(page.path for page in PAGES if page.get is not None and has_past(page.path.split("/")[:-1]))
HISTORIES = ("control_coverage", "effective_coverage", "framework_adoption")
_COVERAGE = re.compile(
    ALPHA
    + r"(controls/([^/]+/)?|crosswalk/|risk-matrix/"
    + r"|frameworks/([^/]+/((gaps|oscal|statement-of-applicability)/(file/)?)?)?)"
)


def ago(days: int) -> datetime:
    return datetime.now(UTC) - timedelta(days=days)


def begin_long_ago(people: People) -> None:
    """Have what holds now have held for a month."""
    begin = format_timestamp(ago(30))
    tamper(
        people.instance.database,
        f"UPDATE history_start SET since = '{begin}'",
        *(f"UPDATE {name}_history SET valid_from = '{begin}'" for name in HISTORIES),
        "DELETE FROM framework_history",  # that they had no controls then
    )


def pages() -> Iterator[str]:
    """An address of each page, of lists with all that they can show."""
    for page in OF_COVERAGE:
        yield address_of(page) if is_file(page) else path_of(page) + "?columns=coverageGap&group=framework"


def told(page: Response) -> str:
    """What a page says of coverage: its main part, without the whole history and what only today has."""
    if not page.headers["content-type"].startswith("text/html"):
        return page.text
    main = page.text.partition("<main")[2].partition("</main>")[0]
    main = main.partition('id="comments"')[0].partition('id="history"')[0]
    return " ".join(re.findall(r">(Full|Partial|None|Excluded|\d+(?: %)?)<", main))


@on_both
def test_what_was_covered_on_a_day_is_on_all_pages(people: People) -> None:
    service, owner = people.instance, people["owner"]
    day = ago(2).date().isoformat()
    begin_long_ago(people)
    viewer = people["viewer"]
    before = {address: told(viewer.get(address)) for address in pages()}
    body = {
        "assessments": [{"controlId": one, "coverageStatus": "NONE"} for one in ("sun.A.2", "moon.A.1", "moon.A.5")]
    }
    admin, of_alpha = service.bearer("admin"), {"organizationId": ALPHA_ID}
    assert service.client.patch("/controls/coverage/", json=of_alpha | body, headers=admin).is_success
    assert service.client.put("/frameworks/fw-star/adoption/", params=of_alpha, headers=admin).is_success
    now = {address: told(viewer.get(address)) for address in pages()}
    # They count no coverage; without a model, the last one is the catalog.
    same = {*map(path_of, ("frameworks/", "crosswalk/", "risk-matrix/", "frameworks/{id}/oscal/file/"))}
    assert {address.partition("?")[0] for address in before if before[address] == now[address]} == same

    # What was left since, and is not published any more, is there as of then.
    assert service.client.delete("/frameworks/fw-sun/adoption/", params=of_alpha, headers=admin).is_success
    tamper(service.database, "UPDATE framework SET is_active = false WHERE id = 'fw-sun'")
    for path in ("frameworks/fw-sun/", "frameworks/fw-sun/gaps/", "controls/sun.A.2/"):
        assert owner.get(f"{ALPHA}{path}").status_code == 404
        assert owner.get(f"{ALPHA}{path}?asOf={day}").status_code == 200

    for address, then in before.items():
        page = owner.get(f"{address}&asOf={day}")
        assert page.status_code == 200, address
        assert told(page) == then or address.startswith(tuple(same)), address
        if not page.headers["content-type"].startswith("text/html"):
            continue
        parsed, (band,) = Parsed(page), re.findall(r'<div class="band".*?</div>', page.text, re.DOTALL)
        assert re.search("as (it was|they were) at the end of", band)
        assert {form.action for form in parsed.forms if form.method == "post"} == FRAME
        assert "selected" not in {value for _, name, value in parsed.attributes if name == "name"}
        leading = [urlsplit(link) for link in parsed.links if _COVERAGE.fullmatch(urlsplit(link).path)]
        assert len(leading) > 5
        (today,) = [link for link in leading if "asOf" not in parse_qs(link.query)]
        assert f'href="{today.path}?{today.query.replace("&", "&amp;")}"' in band
        others = [form for form in parsed.forms if form.method == "get"]
        assert others
        assert all("asOf" in form.fields for form in others)
        assert [link for link in parsed.links if "asOf=" in link and not _COVERAGE.fullmatch(urlsplit(link).path)] == []
    # A framework of which nobody knew then.
    listed = Parsed(owner.get(f"{ALPHA}frameworks/?asOf={day}")).links
    assert not [link for link in listed if "fw-star" in link]
    assert "It was not there then" in text_of(owner.get(f"{ALPHA}frameworks/fw-star/?asOf={day}"))
    assert owner.get(f"{ALPHA}frameworks/fw-star/?asOf={day}").status_code == 404
    assert owner.get(f"{ALPHA}frameworks/fw-star/").status_code == 200


def test_the_ways_in_and_what_has_no_past(people: People) -> None:
    service, owner = people.instance, people["owner"]
    begin_long_ago(people)
    body = {"organizationId": ALPHA_ID, "assessments": [{"controlId": "moon.A.5", "coverageStatus": "PARTIAL"}]}
    assert service.client.patch("/controls/coverage/", json=body, headers=service.bearer("admin")).is_success
    for page in OF_COVERAGE:
        if not is_file(page):
            assert [form for form in Parsed(owner.get(path_of(page))).forms if list(form.fields)[:1] == ["asOf"]], page
    for path in ("frameworks/fw-moon/over-time/", "coverage/changes/", "controls/moon.A.5/"):
        ways = [link for link in Parsed(owner.get(f"{ALPHA}{path}")).links if "asOf=" in link]
        assert ways, path
        for way in ways:
            assert "You see coverage as it was" in text_of(owner.get(way)), way
    today, tomorrow = ago(0).date().isoformat(), ago(-1).date().isoformat()
    for path, sent in (("controls/", today), ("controls/", ""), ("records/tasks/", "2026-03-01"), ("", "2026-03-01")):
        answer = owner.get(f"{ALPHA}{path}?search=x&asOf={sent}")
        assert (answer.status_code, answer.headers["location"]) == (303, f"{ALPHA}{path}?search=x")
    assert owner.post(f"{ALPHA}controls/moon.A.1/coverage/?asOf=2026-03-01", coverageStatus="FULL").status_code == 400
    for sent, words in (
        ("2020-03-01", "is known since"),
        (tomorrow, "cannot be known"),
        ("2026-02-30", "asOf names a day"),
        ("9999-12-31", "asOf"),
    ):
        refused = owner.get(f"{ALPHA}frameworks/fw-moon/gaps/?asOf={sent}")
        assert (refused.status_code, words in text_of(refused)) == (400, True), sent
    first = next(link for link in Parsed(owner.get(f"{ALPHA}controls/?asOf=2020-03-01")).links if "asOf=" in link)
    assert owner.get(first).status_code == 200


@pytest.mark.parametrize(
    ("zone", "end"),
    [
        ("Pacific/Auckland", "2026-03-01T10:59:59.999Z"),
        ("America/New_York", "2026-03-02T04:59:59.999Z"),
        ("UTC", "2026-03-01T23:59:59.999Z"),
    ],
)
def test_a_day_ends_where_the_reader_is(zone: str, end: str) -> None:
    token = READER.set(Reader(ZoneInfo(zone)))
    try:
        past = past_of("2026-03-01", ALPHA_ID)
        exact = past_of("2026-03-01T12:00:00+01:00", ALPHA_ID)
    finally:
        READER.reset(token)
    assert past is not None
    assert (past.moment, past.is_day) == (end, True)
    assert exact is not None
    assert (exact.moment, exact.is_day) == ("2026-03-01T11:00:00.000Z", False)

"""Pages of a list beyond those that have numbers."""

from __future__ import annotations

import re

import pytest

from normata.core.schema import paging
from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA
from tests.core.http.crowd import crowd


def test_the_pager_goes_on_by_cursors(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forwards through the whole list; back to pages with numbers, or to the first one."""
    people.instance.load({"labels": crowd(40)["labels"]})
    whole = people["editor"].get(f"{ALPHA}records/labels/?limit=100").text
    monkeypatch.setattr(paging, "MOST_COUNTED", 10)
    address, seen, back = f"{ALPHA}records/labels/?limit=5", [], []
    while address:
        text = people["editor"].get(address).text
        pager = text[text.index('class="pager"') :]
        seen += re.findall(r'records/labels/([^/"?]+)/"', text[: text.index('class="pager"')])
        links = dict(re.findall(r'href="([^"]+)"[^>]*>([^<]+)<', pager.split("</nav>")[0]))
        links = {words.strip(): href.replace("&amp;", "&") for href, words in links.items()}
        back.append(links.get("Previous") or links.get("Go to the first page"))
        address = links.get("Next", "")
    shown = re.findall(r'records/labels/([^/"?]+)/"', whole)
    assert list(dict.fromkeys(seen)) == list(dict.fromkeys(shown))
    assert [re.sub(".*limit=5", "", one or "") for one in back[:5]] == ["", "&page=1", "&page=2", "", ""]

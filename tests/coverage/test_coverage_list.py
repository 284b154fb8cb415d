"""The list of coverage by what is said of controls: each way to find a page finds the same one."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from normata.frameworks import coverage_filter as early_places
from tests.coverage.assessing import Stating, done
from tests.world import ALPHA

_VALUES: dict[str, tuple[tuple[str, ...], ...]] = {
    "coverageStatus": ((), ("NONE",), ("PARTIAL",), ("FULL",), ("NONE", "FULL")),
    "effectiveCoverageStatus": ((), ("NONE",), ("PARTIAL", "FULL")),
    "isIndirectlyCovered": ((), ("true",), ("false",)),
    "isApplicable": ((), ("true",), ("false",)),
    "hasGap": ((), ("true",), ("false",)),
    "isAssessed": ((), ("true",), ("false",)),
    "ownerId": ((), ("member-editor",), ("member-editor", "member-admin", "member-foreigner")),
}


@pytest.mark.long
@pytest.mark.parametrize(("database_url", "several"), [("sqlite", 3), ("postgresql", 2)], indirect=["database_url"])
@pytest.mark.parametrize(
    ("few", "farthest"), [(1_000, 1_000), (0, 1_000), (0, 0)], ids=["by ids", "from the beginning", "among all"]
)
def test_filters_leave_what_meets_them(
    few: int, farthest: int, several: int, alpha: Stating, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So many at once. The statements are the same on both databases; PostgreSQL is asked by each and by pairs."""
    _state(alpha)
    monkeypatch.setattr(early_places, "_FEW", few)
    monkeypatch.setattr(early_places, "_FARTHEST", farthest)
    everything = _page(alpha, {})["items"]
    assert len(everything) > 20
    for values in product(*_VALUES.values()):
        wanted = {name: chosen for name, chosen in zip(_VALUES, values, strict=True) if chosen}
        if len(wanted) > several:
            continue
        meant = [one["id"] for one in everything if _meets(one, wanted)]
        page = _page(alpha, wanted)
        assert ([one["id"] for one in page["items"]], page["total"]) == (meant, len(meant)), wanted


def test_pages_of_a_filter_follow_each_other(alpha: Stating, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some are found from the beginning, others among all."""
    monkeypatch.setattr(early_places, "_FEW", 0)
    monkeypatch.setattr(early_places, "_FARTHEST", 10)
    _state(alpha)
    wanted: dict[str, Any] = {"hasGap": "false"}
    whole = [one["id"] for one in _page(alpha, wanted)["items"]]
    pages = [_page(alpha, wanted | {"limit": 5, "page": number}) for number in range(1, len(whole) // 5 + 3)]
    assert [one["id"] for page in pages for one in page["items"]] == whole
    assert {page["total"] for page in pages} == {len(whole)}
    backwards = _page(alpha, wanted | {"sortDirection": "desc"})
    assert [one["id"] for one in backwards["items"]] == whole[::-1]


def test_controls_are_found_by_identifier_and_slug(alpha: Stating) -> None:
    """On both databases; exactly, and together with other filters."""
    everything = _page(alpha, {})["items"]
    for name in ("identifier", "slug"):
        values = sorted({one[name] for one in everything})
        for chosen in (values[:1], values[1:3], [values[0], "nothing"], ["nothing"]):
            page = _page(alpha, {name: chosen})
            meant = [one["id"] for one in everything if one[name] in chosen]
            assert ([one["id"] for one in page["items"]], page["total"]) == (meant, len(meant))
        assert _page(alpha, {name: values[0].swapcase()})["items"] == []
    one = everything[0]
    both = {"identifier": one["identifier"], "frameworks": one["frameworkId"]}
    assert [found["id"] for found in _page(alpha, both)["items"]] == [
        item["id"]
        for item in everything
        if item["identifier"] == one["identifier"] and item["frameworkId"] == one["frameworkId"]
    ]


def _state(alpha: Stating) -> None:
    """Say something of everything that there is to say, also of a framework that is left afterwards."""
    coverage_filter: dict[str, dict[str, Any]] = {
        "moon.A.1": {"coverageStatus": "PARTIAL", "coverageGap": "Half of it", "ownerId": "member-editor"},
        "moon.A.2": {"coverageStatus": "FULL", "coverageGap": ""},
        "sun.A.1": {"coverageStatus": "FULL"},
        "sun.A.3": {"isApplicable": False, "justification": "We have none"},
        "own.A.1": {"coverageStatus": "NONE", "coverageGap": "All of it", "ownerId": "member-admin"},
    }
    for control, said in coverage_filter.items():
        assert alpha.put(control, **said).status_code == 200
    assert alpha.adopt("fw-star").status_code == 200
    assert alpha.put("star.A.1", coverageStatus="FULL", coverageGap="Left").status_code == 200
    assert alpha.leave("fw-star").status_code == 200


def _page(alpha: Stating, query: dict[str, Any]) -> dict[str, Any]:
    answer = alpha.client.get("/coverage/", params={"organizationId": ALPHA, **query}, headers=alpha.headers)
    page: dict[str, Any] = done(answer)
    return page


def _meets(one: dict[str, Any], wanted: dict[str, tuple[str, ...]]) -> bool:
    said = one["coverage"]
    values = {
        "coverageStatus": said["coverageStatus"],
        "effectiveCoverageStatus": one["effectiveCoverageStatus"],
        "isIndirectlyCovered": str(one["isIndirectlyCovered"]).lower(),
        "isApplicable": str(said["isApplicable"] is not False).lower(),
        "hasGap": str(bool(said["coverageGap"])).lower(),
        "isAssessed": str(said["coverageStatus"] is not None).lower(),
        "ownerId": said["ownerId"],
    }
    return all(values[name] in chosen for name, chosen in wanted.items())

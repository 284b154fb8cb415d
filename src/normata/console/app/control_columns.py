"""The columns of the list of controls, and the groups that it can be divided into, each with its count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from normata.console.app.api_calls import ApiQuery, Query
from normata.console.app.organization_request import OrganizationRequest
from normata.console.texts import text

_SMALLEST_PAGE = "5"
_SORTABLE = frozenset({"effectiveCoverageStatus", "coverageStatus", "framework", "type"})
# Each column with what it is called and its class; those that are there before anybody has chosen come first.
_COLUMNS: Mapping[str, tuple[str, str]] = {
    "effectiveCoverageStatus": ("field.effective", "nb"),
    "coverageStatus": ("field.coverageStatus", "less"),
    "coverageGap": ("field.coverageGap", "less missing"),
    "ownerId": ("field.ownerId", "less nb roomy"),
    "framework": ("field.framework", "less nb"),
    "reviewBy": ("field.reviewBy", "less nb"),
    "type": ("field.type", "less nb"),
}
_USUAL = 5
_GROUPS: Mapping[str, str] = {
    "effectiveCoverageStatus": "field.effective",
    "coverageStatus": "field.coverageStatus",
    "framework": "field.framework",
}


class ControlColumn(NamedTuple):
    """A column: its key in the address, what it is called, its class, and whether the list can be sorted by it."""

    key: str
    label: str
    place: str
    is_sortable: bool


def columns_of(chosen: Sequence[str], *, is_of_one: bool) -> list[ControlColumn]:
    """The columns besides the name: those chosen, or the usual ones. Of one framework its name is not among these."""
    usual = [key for key in list(_COLUMNS)[:_USUAL] if key != "framework" or not is_of_one]
    keys = [key for key in _COLUMNS if key in chosen] or usual
    return [ControlColumn(key, text(_COLUMNS[key][0]), _COLUMNS[key][1], key in _SORTABLE) for key in keys]


def all_columns() -> list[tuple[str, str]]:
    """The columns that one can choose from, with what they are called."""
    return [(key, text(words)) for key, (words, _) in _COLUMNS.items()]


def group_of(wanted: str | None) -> str:
    """What the list is grouped by; empty for nothing."""
    return wanted if wanted is not None and wanted in _GROUPS else ""


def groupings() -> list[tuple[str, str]]:
    """What the list can be grouped by, with what it is called; nothing first."""
    return [("", text("list.no_group")), *((key, text(words)) for key, words in _GROUPS.items())]


def group_value(group: str, control: Mapping[str, Any]) -> str:
    """The group that a control is in: a status, which is empty where nothing is assessed, or a framework."""
    if group == "framework":
        return str(control["framework"]["identifier"])
    return str((control["coverage"] if group == "coverageStatus" else control)[group] or "")


async def group_counts(
    page_request: OrganizationRequest, group: str, listed: Query, controls: Sequence[Mapping[str, Any]]
) -> Mapping[str, int]:
    """How many there are in each group that the page shows, also on its other pages."""
    values = list(dict.fromkeys(group_value(group, one) for one in controls)) if group else []
    if not values:
        return {}
    query = {name: value for name, value in listed.items() if name not in ("page", "cursor", "limit")}
    narrowed: dict[str, Query] = {}
    for value in values:
        condition: Query = {"frameworks" if group == "framework" else group: value}
        narrowed[value] = condition if value else {"isAssessed": "false"}
    answers = await page_request.ask(
        *(ApiQuery("listCoverage", {**query, **one, "limit": _SMALLEST_PAGE}) for one in narrowed.values())
    )
    return {value: answer["total"] for value, answer in zip(narrowed, answers, strict=True)}

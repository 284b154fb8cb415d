"""The panel beside a list of records: the open record, with a form for the fields that change most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from normata.console.app.links import Links, links_of, links_query
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.records.approval import hidden_fields
from normata.console.app.records.forms import Entry, Started, entry_of, started_with
from normata.console.app.records.kinds import Kind
from normata.console.app.records.layout import by_sort, first_of, is_seldom
from normata.console.app.records.linked_owners import Ownership, ownership_of
from normata.console.app.records.references import Choice, choices_of
from normata.console.app.records.risk_details import RiskDetails, risk_details
from normata.console.filters import zone_name
from normata.console.markdown import markdown
from normata.console.states import meaning
from normata.records.fields import Field, fields_of

_LONGEST = 5_000  # characters of a text; its own page shows a longer one
_OMITTED = frozenset({"id", "organizationId", "archivedAt", "createdAt", "updatedAt", "shortId"})


class Panel(NamedTuple):
    """The open record, its neighbours in the list, and what the panel shows of it.

    ``quick`` are the fields that can be changed here; ``started`` is what their form begins with.
    """

    record: Mapping[str, Any]
    number: int
    before: str
    after: str
    marks: Sequence[Field]
    facts: Sequence[Field]
    written: Markup | None
    quick: Sequence[Entry]
    choices: Mapping[str, Choice]
    started: Started
    links: Links
    ownership: Ownership | None
    risk: RiskDetails | None


async def panel_of(
    page_request: OrganizationRequest, kind: Kind, record: Mapping[str, Any], records: Sequence[Mapping[str, Any]]
) -> Panel:
    """The panel for a record, beside a list with ``records``."""
    ids = [one["id"] for one in records]
    at = ids.index(record["id"]) if record["id"] in ids else -1
    zone = zone_name()
    is_live, hidden = record["archivedAt"] is None, hidden_fields(page_request, kind.path, record)
    quick = [
        entry_of(field, record[field.name], zone)
        for field in by_sort(first_of(kind))
        if (field.target or field.sort in ("token", "moment"))
        and field.name not in hidden
        and page_request.may("editor")
        and is_live
    ]
    changed = {entry.field.name for entry in quick}
    fields = [field for field in fields_of(kind) if record[field.name] not in (None, "")]
    facts = [
        field
        for field in by_sort(fields)
        if not (field.is_title or is_seldom(field) or field.name in changed or field.name in _OMITTED)
        and field.sort not in ("prose", "document", "files")
    ]
    long = next((record[field.name] for field in fields if field.sort in ("prose", "document")), None)
    is_readable = isinstance(long, str) and len(long) <= _LONGEST
    links = await page_request.ask_one(links_query(kind.path, record["id"]))
    return Panel(
        record=record,
        number=at + 1,
        before=ids[at - 1] if at > 0 else "",
        after=ids[at + 1] if at + 1 < len(ids) else "",
        marks=marks_of_state(record, fields),
        facts=facts,
        written=markdown(long) if isinstance(long, str) and is_readable else None,
        quick=quick,
        choices=await choices_of(
            page_request,
            [entry.field for entry in quick if entry.field.target],
            {entry.field.name: entry.shown for entry in quick},
            {},
        ),
        started=started_with(record, quick, zone),
        links=links_of(kind.path, record["id"], links),
        ownership=await ownership_of(page_request, kind, record, links),
        risk=await risk_details(page_request, kind, record["id"]),
    )


def marks_of_state(record: Mapping[str, Any], fields: Sequence[Field]) -> list[Field]:
    """The fields that show the state of a record: tokens with a meaning, and flags that are set."""
    tokens = [field for field in fields if field.sort == "token" and meaning(record[field.name])]
    tokens.sort(key=lambda field: field.name != "status")
    return [*tokens, *(field for field in fields if field.sort == "flag" and record[field.name])]

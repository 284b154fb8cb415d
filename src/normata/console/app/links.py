"""The links of a record, a control or a member: shown on its page and in its panel, made and removed there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from starlette.responses import Response

from normata.console.app.api_calls import ApiQuery, Fields, Refusal
from normata.console.app.notes import unlinked_notice
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.records.references import Called, Named, called, names_of
from normata.console.app.search import ANYTHING, anything
from normata.console.app.view_links import LIST_PLACES
from normata.console.filters import words
from normata.console.texts import has_text, text
from normata.core.http.problems import InvalidRequest
from normata.links.model import RELATES, RELATIONS
from normata.links.relations import TABLES, suggestions

_BACK = ":back"  # of a relation that leads from what is chosen to what the page is about
LINKS = "links"  # the kind of their events


class Item(NamedTuple):
    """A link as one of its ends shows it: its id, the other end with its name, the status of that, and the note."""

    id: str
    kind: str
    end: Called
    status: str | None
    note: str | None

    @property
    def icon(self) -> str:
        """The icon of the kind of the other end."""
        return LIST_PLACES[self.kind].icon if self.kind in LIST_PLACES else "user"


class Group(NamedTuple):
    """The links of one relation and direction, in words that lead from what the page is about."""

    name: str
    items: Sequence[Item]


class Choice(NamedTuple):
    """What can be linked: what was found of it, as for a reference."""

    options: Sequence[Called] = ()
    find: str = ""
    total: int = 0
    kind: str = ANYTHING
    is_part: bool = True


class Links(NamedTuple):
    """The links of one thing, in groups. ``relations`` are those that make sense for its kind, with their words."""

    kind: str
    id: str
    groups: Sequence[Group]
    total: int
    relations: Sequence[tuple[str, str]]
    choice: Choice = Choice()

    @property
    def shown(self) -> int:
        """The number of links in the groups: a page of them."""
        return sum(len(group.items) for group in self.groups)

    def to_kind(self, kind: str, *, but: Sequence[Mapping[str, Any]]) -> list[Item]:
        """The links with records of a kind, without those of ``but``."""
        shown = {one["id"] for one in but}
        found = {item.end.id: item for group in self.groups for item in group.items if item.kind == kind}
        return [item for row_id, item in found.items() if row_id not in shown]


class Happening(NamedTuple):
    """What an event did to a link, as one of its ends shows it."""

    did: str
    relation: str
    kind: str
    end: Called


def links_query(kind: str, row_id: str) -> ApiQuery:
    """The query for the links of something."""
    return ApiQuery("listLinks", {"kind": kind, "id": row_id})


def links_of(kind: str, row_id: str, answer: Mapping[str, Any]) -> Links:
    """The links of something, from the answer to its query."""
    groups: dict[str, list[Item]] = {}
    for link in answer["items"]:
        is_back = (link["from"]["kind"], link["from"]["id"]) != (kind, row_id)
        end = link["from"] if is_back else link["to"]
        item = Item(link["id"], end["kind"], _called(end), end["status"] if end["isLive"] else None, link["note"])
        groups.setdefault(_option(link["relation"], is_back=is_back), []).append(item)
    known = {option: place for place, (option, _) in enumerate(_every_option())}
    ordered = sorted(groups, key=lambda option: known.get(option, len(known)))
    return Links(
        kind,
        row_id,
        [Group(relation_words(option), groups[option]) for option in ordered],
        answer["total"],
        _fitting(kind),
    )


def relation_words(option: str) -> str:
    """A relation in words, as one end shows it: ``IMPLEMENTS`` or, from the other end, ``IMPLEMENTS:back``."""
    relation = option.removesuffix(_BACK)
    if option == relation:
        return text(f"link.{relation}") if has_text(f"link.{relation}") else words(relation)
    key = f"link.back.{relation}"
    return text(key) if has_text(key) else text("link.from_there", relation=words(relation))


def ends_in(events: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str | None]]:
    """The ends of the links that events are about, as pairs of kind and id."""
    for event in events:
        if event["kind"] == LINKS:
            yield from _ends_of(event)


def happenings(kind: str, row_id: str, events: Iterable[Mapping[str, Any]], named: Named) -> Mapping[str, Happening]:
    """What those of the events that are about links did, by the ids of the events."""
    found = {}
    for event in events:
        ends = _ends_of(event) if event["kind"] == LINKS else []
        if len(ends) == 2:  # an erasure, and the change of a note, have none
            is_back = ends[0] != (kind, row_id)
            other = ends[0] if is_back else ends[1]
            end = named.get(other) or Called(other[1], other[1], (), "")
            relation = relation_words(_option(str(_values_of(event).get("relation")), is_back=is_back))
            found[event["id"]] = Happening(event["action"], relation, other[0], end)
    return found


async def happenings_of(
    page_request: OrganizationRequest, kind: str, row_id: str, events: Sequence[Mapping[str, Any]], named: Named
) -> Mapping[str, Happening]:
    """The same; names that are not among ``named`` are read."""
    missing = [end for end in ends_in(events) if end not in named]
    return happenings(kind, row_id, events, {**named, **await names_of(page_request, missing)})


def named_in(answer: Mapping[str, Any]) -> Named:
    """The names of the ends of links, from the answer to their query."""
    ends = (link[side] for link in answer["items"] for side in ("from", "to"))
    return {(end["kind"], end["id"]): _called(end) for end in ends}


async def change(page_request: OrganizationRequest) -> Response:
    """Make or remove a link, or make one again that was just removed; find what to link if ``step`` is ``find``."""
    form = await page_request.fields()
    step = form.get("step")
    if step == "undo" and form.get("unlinked"):
        outcome = await page_request.change("createLink", body=_as_removed(form.get("unlinked")))
        return page_request.back(form, page_request.path(), "" if outcome.refusal else "linked_again")
    if step == "remove":
        link = await page_request.ask_one(ApiQuery("getLink", id=form.get("link")))
        await page_request.change("deleteLink", row_id=link["id"])
        return page_request.back(form, page_request.path(), notice=unlinked_notice(page_request, _written(link)))
    if step == "find" or not form.get("other"):
        return await _form_page(page_request, form)
    outcome = await page_request.change("createLink", body=_wanted(form))
    if outcome.refusal is not None:
        return await _form_page(page_request, form, outcome.refusal)
    return page_request.back(form, page_request.path(), "linked")


async def _form_page(page_request: OrganizationRequest, form: Fields, refusal: Refusal | None = None) -> Response:
    """The form of a link on a page of its own: with what was found to link, or why the link was refused."""
    kind, row_id, find = form.get("kind"), form.get("id"), form.get("find.other").strip()[:200]
    found = await anything(page_request, find) if find else []
    named = await names_of(page_request, [(kind, row_id)] if kind in TABLES else [])
    options = [Called(one.id, f"{one.label} · {one.note}", (), "") for one in found]
    entered = {name: form.get(name) for name in ("other", "relation", "note", "return_to")}
    if options and not entered["other"]:
        entered["other"] = options[0].id
    return page_request.page(
        "app/link.html",
        status=refusal.status if refusal else 200,
        thing=named.get((kind, row_id)),
        links=Links(kind, row_id, (), 0, _fitting(kind), Choice(options, find)),
        entered=entered,
        refusal=refusal,
    )


def _wanted(form: Fields) -> dict[str, Any]:
    """The link that a form makes."""
    other_kind, _, other_id = form.get("other").partition(":")
    link = link_between((form.get("kind"), form.get("id")), (other_kind, other_id), form.get("relation"))
    note = form.get("note").strip()
    return {**link, **({"note": note} if note else {})}


def link_between(here: tuple[str, str], other: tuple[str, str], option: str = "") -> dict[str, Any]:
    """A link of two things, by their kinds and ids. Without an option it is the first that makes sense between them."""
    if not option:
        best = suggestions(here[0], other[0])[0]
        option = _option(best.relation, is_back=best.is_reversed)
    ends = [{"kind": kind, "id": row_id} for kind, row_id in (here, other)]
    start, end = reversed(ends) if option.endswith(_BACK) else ends
    return {"from": start, "to": end, "relation": option.removesuffix(_BACK)}


def _written(link: Mapping[str, Any]) -> str:
    """A link as one value of an address. Only a note may have tabs, and is the last part."""
    ends = (link[side][name] for side in ("from", "to") for name in ("kind", "id"))
    return "\t".join([*ends, link["relation"], link["note"] or ""])


def _as_removed(written: str) -> dict[str, Any]:
    """The link that makes one again, from :func:`_written`. Raises InvalidRequest."""
    parts = written.split("\t", 5)
    if len(parts) == 5:  # the empty note was taken for white space
        parts.append("")
    if len(parts) != 6:
        raise InvalidRequest(text("problem.form"))
    start, end = {"kind": parts[0], "id": parts[1]}, {"kind": parts[2], "id": parts[3]}
    return {"from": start, "to": end, "relation": parts[4], "note": parts[5] or None}


def _option(relation: str, *, is_back: bool) -> str:
    return f"{relation}{_BACK}" if is_back and relation != RELATES else relation


def _every_option() -> list[tuple[str, str]]:
    options = [_option(one, is_back=is_back) for one in RELATIONS for is_back in (False, True)]
    return [(option, relation_words(option)) for option in dict.fromkeys(options)]


def _fitting(kind: str) -> list[tuple[str, str]]:
    """The relations that make sense between something of a kind and anything."""
    sensible = {_option(one.relation, is_back=one.is_reversed) for other in TABLES for one in suggestions(kind, other)}
    return [(option, name) for option, name in _every_option() if option in sensible]


def _called(end: Mapping[str, Any]) -> Called:
    return called(end["kind"], {**end, "controlId": None})


def _values_of(event: Mapping[str, Any]) -> Mapping[str, Any]:
    values: Mapping[str, Any] = event["after"] or event["before"] or {}
    return values


def _ends_of(event: Mapping[str, Any]) -> list[tuple[str, str]]:
    values = _values_of(event)
    ends = [(values.get(f"{side}Kind"), values.get(f"{side}Id")) for side in ("from", "to")]
    return [(str(kind), row_id) for kind, row_id in ends if kind in TABLES and isinstance(row_id, str)]

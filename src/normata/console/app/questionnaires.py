"""The questionnaires for vendors: which there are, what one asks, and writing one as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from starlette.responses import Response

from normata.console.app.api_calls import ApiQuery, Fields, Refusal, tag_of
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.questionnaire_text import LineFault, Parts, Written, is_writable, read, written
from normata.console.app.records.editing import sent_form
from normata.console.app.records.kinds import kind_names
from normata.console.texts import counted, text
from normata.core.http.problems import InvalidRequest
from normata.errors import NotFound
from normata.records.assurance import VendorAssessment
from normata.vendors.questions import EDITION, NAME, questions_of, standard

_STANDARD = "standard"  # what a copy of the questionnaire of the service begins with


async def show_list(page_request: OrganizationRequest) -> Response:
    """The questionnaires of the organization, and the one of the service."""
    found = await page_request.ask_one(ApiQuery("listQuestionnaires", page_request.place))
    is_first = not any(page_request.place.get(name) for name in ("page", "cursor"))
    has_ours = any(one["edition"] == EDITION for one in found["items"])
    return page_request.page(
        "app/questionnaires.html",
        kind=kind_names(VendorAssessment),
        questionnaires=found,
        ours=_ours() if is_first and not has_ours else None,
        extent=_extent,
    )


def _ours() -> Mapping[str, Any]:
    """The questionnaire of the service, which is no row of the organization before its first use."""
    return {"id": None, "name": NAME, "edition": EDITION, "parts": standard(), "assessments": 0, "isFixed": True}


def _extent(parts: Parts) -> str:
    """How much a questionnaire asks, in words."""
    questions = sum(1 for _ in questions_of(parts))
    return f"{counted('questionnaire.questions', questions)}, {counted('questionnaire.parts', len(parts))}"


async def show_one(page_request: OrganizationRequest) -> Response:
    """What a questionnaire asks, and what may be done with it."""
    return await _one_page(page_request)


async def show_standard(page_request: OrganizationRequest) -> Response:
    """The same of the questionnaire of the service, also before its first use."""
    found = await _first(page_request)
    return _shown(page_request, next((one for one in found if one["edition"] == EDITION), _ours()))


async def _first(page_request: OrganizationRequest) -> Sequence[Mapping[str, Any]]:
    """The first hundred questionnaires by name, which is all of them almost everywhere."""
    found = await page_request.ask_one(ApiQuery("listQuestionnaires"))
    items: Sequence[Mapping[str, Any]] = found["items"]
    return items


async def remove(page_request: OrganizationRequest) -> Response:
    """Remove a questionnaire."""
    page_request.require("editor")
    form = await page_request.fields()
    if form.get("step") != "remove":
        raise InvalidRequest(text("problem.form"))
    outcome = await page_request.change("deleteQuestionnaire", row_id=page_request.param("id"))
    if outcome.refusal is not None:
        return await _one_page(page_request, outcome.refusal)
    return page_request.go(page_request.path("questionnaires"), "questionnaire_removed")


async def _one_page(page_request: OrganizationRequest, refusal: Refusal | None = None) -> Response:
    found = await page_request.ask_one(ApiQuery("getQuestionnaire", id=page_request.param("id")))
    return _shown(page_request, found, refusal)


def _shown(
    page_request: OrganizationRequest, questionnaire: Mapping[str, Any], refusal: Refusal | None = None
) -> Response:
    return page_request.page(
        "app/questionnaire.html",
        status=refusal.status if refusal else 200,
        kind=kind_names(VendorAssessment),
        questionnaire=questionnaire,
        copied=questionnaire["id"] or _STANDARD,
        extent=_extent(questionnaire["parts"]),
        refusal=refusal,
    )


class _Entered(NamedTuple):
    """A form: the name, the text, and the parts whose questions keep their ids."""

    name: str
    content: str
    known: Parts

    def read(self) -> Written:
        return read(self.content, self.known)


async def show_new(page_request: OrganizationRequest) -> Response:
    """The form of a new questionnaire; ``copies`` in the address says which one it begins as."""
    copied = page_request.query.get("copies", "")
    known = await _copied(page_request, copied)
    return await _form_page(page_request, _Entered("", written(known), known), [("copies", copied)])


async def create(page_request: OrganizationRequest) -> Response:
    """Create a questionnaire, once, however often the form is sent; or show how it will look."""
    form = await sent_form(page_request)
    copied = form.get("copies")
    entered = _entered(form, await _copied(page_request, copied))
    hidden = [("copies", copied)]
    found = entered.read()
    if _shows(form):
        return await _form_page(page_request, entered, hidden, key=form.get("key"))
    outcome = await page_request.change(
        "createQuestionnaire",
        body={"name": entered.name, "parts": found.parts},
        key=form.get("key") or page_request.new_key(),
        checks_only=bool(found.faults),
    )
    refusal = _refusal(found.faults, outcome.refusal)
    if refusal is not None:
        return await _form_page(page_request, entered, hidden, refusal=refusal)
    return page_request.go(page_request.path("questionnaires", outcome.answer["id"]), "questionnaire_made")


async def show_change(page_request: OrganizationRequest) -> Response:
    """The form of a questionnaire. One that cannot be changed has none: this leads to its page, which says so."""
    questionnaire = await page_request.ask_one(ApiQuery("getQuestionnaire", id=page_request.param("id")))
    if questionnaire["isFixed"]:
        return page_request.go(page_request.path("questionnaires", questionnaire["id"]))
    parts = questionnaire["parts"]
    entered = _Entered(questionnaire["name"], written(parts), parts)
    return await _form_page(page_request, entered, [("tag", tag_of(questionnaire))], questionnaire=questionnaire)


async def change(page_request: OrganizationRequest) -> Response:
    """Change a questionnaire, or show how it will look."""
    form, questionnaire_id = await sent_form(page_request), page_request.param("id")
    questionnaire = await page_request.ask_one(ApiQuery("getQuestionnaire", id=questionnaire_id))
    entered = _entered(form, questionnaire["parts"])
    hidden = [("tag", form.get("tag"))]
    found = entered.read()
    if _shows(form):
        return await _form_page(page_request, entered, hidden, questionnaire=questionnaire)
    outcome = await page_request.change(
        "changeQuestionnaire",
        row_id=questionnaire_id,
        body={"name": entered.name, "parts": found.parts},
        if_match=form.get("tag"),
        checks_only=bool(found.faults),
    )
    refusal = _refusal(found.faults, outcome.refusal)
    if refusal is not None:
        return await _form_page(page_request, entered, hidden, questionnaire=questionnaire, refusal=refusal)
    return page_request.go(page_request.path("questionnaires", questionnaire_id), "questionnaire_changed")


async def _copied(page_request: OrganizationRequest, questionnaire_id: str) -> Parts:
    """The parts of the questionnaire that a new one begins as; none for an empty id. Raises NotFound."""
    if questionnaire_id == _STANDARD:
        return standard()
    if not questionnaire_id:
        return ()
    found = await page_request.ask_if_there(ApiQuery("getQuestionnaire", id=questionnaire_id))
    if found is None:
        raise NotFound
    parts: Parts = found[0]["parts"]
    return parts


def _entered(form: Fields, known: Parts) -> _Entered:
    return _Entered(form.get("name"), form.get("content").replace("\r\n", "\n"), known)


def _shows(form: Fields) -> bool:
    return form.get("step") == "preview" or form.has("again")


def _refusal(faults: object, refusal: Refusal | None) -> Refusal | None:
    """Why a questionnaire is not saved: its text has faults, or what the operation says."""
    if not faults:
        return refusal
    names = {} if refusal is None else {key: value for key, value in refusal.faults.items() if key == "name"}
    return Refusal(400, "validation", text("record.not_valid"), text("questionnaire.see_lines"), names)


async def _form_page(
    page_request: OrganizationRequest,
    entered: _Entered,
    hidden: list[tuple[str, str]],
    *,
    questionnaire: Mapping[str, Any] | None = None,
    refusal: Refusal | None = None,
    key: str = "",
) -> Response:
    found = entered.read()
    copied = [] if questionnaire else [one for one in await _first(page_request) if one["edition"] != EDITION]
    is_empty = not entered.content.strip() and refusal is None
    faults: list[LineFault] = [] if is_empty else list(found.faults)
    return page_request.page(
        "app/questionnaire_form.html",
        status=refusal.status if refusal else 200,
        kind=kind_names(VendorAssessment),
        questionnaire=questionnaire,
        hidden=hidden if questionnaire else [*hidden, ("key", key or page_request.new_key())],
        name=entered.name,
        content=entered.content,
        parts=found.parts,
        faults=faults,
        is_lost=bool(entered.known) and not is_writable(entered.known),
        beginnings=[(_STANDARD, NAME), *((one["id"], one["name"]) for one in copied)],
        refusal=refusal,
    )

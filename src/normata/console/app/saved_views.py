"""Views of lists that people have saved: on the lists themselves, and the pages on which they are looked after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlencode

from starlette.responses import Response

from normata.console.app.api_calls import ApiQuery, Fields, Refusal
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.view_links import LIST_PLACES, PARAMETER, query_of, steps_of
from normata.console.texts import text
from normata.core.http.problems import InvalidRequest

Tab = tuple[str, str, None, bool]


class ListView(NamedTuple):
    """What a list shows of its views: its state as a query, and the view that is open, if there is one.

    ``is_changed`` is true if the state is not that of the open view any more, ``may_save`` if the person may save
    views.
    """

    kind: str
    state: str
    opened: Mapping[str, Any] | None
    is_changed: bool
    may_change: bool
    may_save: bool
    tabs: Sequence[Tab]


def list_view(page_request: OrganizationRequest, kind: str, names: Sequence[str]) -> ListView:
    """The views of a list whose state are these parameters of its address. Called once the page has asked something."""
    sent = page_request.request.query_params
    state = {name: found for name in names if (found := [value for value in sent.getlist(name) if value])}
    views = [view for view in page_request.saved_views if view["kind"] == kind]
    opened = next((view for view in views if view["id"] == sent.get(PARAMETER)), None)
    prefix, steps = page_request.context.prefix, steps_of(kind)
    return ListView(
        kind=kind,
        state=urlencode(state, doseq=True),
        opened=opened,
        is_changed=opened is not None and state != opened["query"],
        may_change=opened is not None and may_change(page_request, opened),
        may_save=_may(page_request, "createSavedView"),
        tabs=[
            (view["name"], prefix + page_request.path(*steps, query=query_of(view)), None, view is opened)
            for view in views
        ],
    )


def may_change(page_request: OrganizationRequest, view: Mapping[str, Any]) -> bool:
    """Whether the person may change a view: their own, unless they are an auditor, and as an editor a shared one."""
    return page_request.may("editor") or (not view["isShared"] and _may(page_request, "changeSavedView"))


def _may(page_request: OrganizationRequest, operation_id: str) -> bool:
    """Whether the person's role allows a change at least of what is their own: an auditor's does not, nor the past."""
    operation = page_request.console.operations[operation_id]
    return page_request.past is None and operation.admits_own(page_request.membership.role)


async def show_list(page_request: OrganizationRequest) -> Response:
    """The person's views, and those that are shared, of all lists."""
    return await _list_page(page_request)


async def _list_page(
    page_request: OrganizationRequest, form: Fields | None = None, refusal: Refusal | None = None
) -> Response:
    views = await page_request.ask_one(ApiQuery("listSavedViews", page_request.place))
    return page_request.page(
        "app/views.html",
        status=refusal.status if refusal else 200,
        views=views,
        shown=[view for view in views["items"] if view["kind"] in LIST_PLACES],
        lists={kind: (place.label, place.icon) for kind, place in LIST_PLACES.items()},
        address_of=lambda view: page_request.path(*steps_of(view["kind"]), query=query_of(view)),
        may_change=lambda view: may_change(page_request, view),
        form=form,
        refusal=refusal,
    )


async def create(page_request: OrganizationRequest) -> Response:
    """Save the state of a list under a name, and lead back to it."""
    form = await page_request.fields()
    kind = form.get("kind")
    if kind not in LIST_PLACES:
        raise InvalidRequest(text("problem.form"))
    body = {"kind": kind, "name": form.get("name"), "query": _state_in(form), "isShared": _is_shared(form)}
    outcome = await page_request.change("createSavedView", body=body)
    if outcome.refusal is not None:
        return await _list_page(page_request, form, outcome.refusal)
    return page_request.go(page_request.path(*steps_of(kind), query=query_of(outcome.answer)), "view_saved")


async def show_one(page_request: OrganizationRequest) -> Response:
    """A view: its name, and for whom it is."""
    return await _view_page(page_request)


async def _view_page(
    page_request: OrganizationRequest, form: Fields | None = None, refusal: Refusal | None = None
) -> Response:
    view = await page_request.ask_one(ApiQuery("getSavedView", id=page_request.param("id")))
    kind = view["kind"]
    return page_request.page(
        "app/view.html",
        status=refusal.status if refusal else 200,
        view=view,
        list_label=LIST_PLACES[kind].label if kind in LIST_PLACES else "",
        address=page_request.path(*steps_of(kind), query=query_of(view)) if kind in LIST_PLACES else "",
        may_change=may_change(page_request, view),
        name=form.get("name") if form else view["name"],
        is_shared=_is_shared(form) if form else view["isShared"],
        refusal=refusal,
    )


async def change(page_request: OrganizationRequest) -> Response:
    """Rename or share a view, give it the state that its list has now, or remove it: ``step`` says which."""
    form, view_id = await page_request.fields(), page_request.param("id")
    if not may_change(page_request, await page_request.ask_one(ApiQuery("getSavedView", id=view_id))):
        page_request.require("editor")
    step = form.get("step")
    if step == "remove":
        outcome = await page_request.change("deleteSavedView", row_id=view_id)
        if outcome.refusal is None:
            return page_request.go(page_request.path("views"), "view_removed")
    elif step == "state":
        outcome = await page_request.change("changeSavedView", row_id=view_id, body={"query": _state_in(form)})
        if outcome.refusal is None:
            return page_request.back(form, page_request.path("views"), "view_saved")
    else:
        body: dict[str, Any] = {"name": form.get("name")}
        if form.has("hasShared"):
            body["isShared"] = _is_shared(form)
        outcome = await page_request.change("changeSavedView", row_id=view_id, body=body)
        if outcome.refusal is None:
            return page_request.go(page_request.path("views"), "view_saved")
    return await _view_page(page_request, form, outcome.refusal)


def _is_shared(form: Fields) -> bool:
    return form.get("isShared") == "true"


def _state_in(form: Fields) -> dict[str, list[str]]:
    """The state of a list that a form has, as the parameters of its address. Raises InvalidRequest."""
    try:
        found = parse_qs(form.get("state"), errors="strict", max_num_fields=200)
    except ValueError:
        raise InvalidRequest(text("problem.form")) from None
    return {name: values for name, values in found.items() if name != PARAMETER}

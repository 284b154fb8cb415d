"""The operations of saved views."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field, create_model

from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.http.change_endpoint import as_null
from normata.core.http.operation import ChangeOperation, ListOperation, Operation, ReadOperation
from normata.core.http.request import Request
from normata.core.schema.fields import VisibleName
from normata.core.schema.paging import OrganizationId, OrganizationQuery, Page, PageQuery
from normata.core.schema.wire import Input, as_wire, wire
from normata.views import views
from normata.views.model import ListQuery, SavedView
from normata.views.views import ListName

_View = wire(SavedView)
_base: Any = Page[_View]  # type: ignore[valid-type] # a model made at run time, from the table
SavedViewPage: type[BaseModel] = create_model("SavedViewPage", __base__=_base, __doc__="A page of saved views.")


_NAME = "What people call the view."
_IS_SHARED = "Whether all members of the organization see it. This takes an editor."
_QUERY = "The parameters of the address of the list's page in the console, each with its values."


class SavedViewCreation(Input):
    """A view to save."""

    organization_id: OrganizationId
    kind: ListName
    name: Annotated[VisibleName, Field(description=_NAME)]
    query: Annotated[ListQuery, Field(default_factory=dict, description=_QUERY)]
    is_shared: Annotated[bool, Field(description=_IS_SHARED)] = False


def _nothing() -> None:
    """The default of a field that is left out; so OpenAPI shows none."""


class SavedViewPatch(Input):
    """The changes of a view. Omitted fields stay as they are."""

    name: Annotated[VisibleName, Field(default_factory=_nothing, description=_NAME)]
    query: Annotated[ListQuery, Field(default_factory=_nothing, description=_QUERY)]
    is_shared: Annotated[bool, Field(default_factory=_nothing, description=_IS_SHARED)]


def _create(unit: UnitOfWork, request: Request) -> Any:
    body = request.body.model_dump(by_alias=True, exclude={"organization_id"})
    return views.create(unit, request.body.organization_id, body)


def _change(unit: UnitOfWork, request: Request) -> Any:
    return views.change(unit, request.id, request.body.model_dump(by_alias=True, exclude_unset=True))


def _present(row: Any) -> dict[str, Any]:
    return as_wire(SavedView, row)


_ID = "The id of a view that you see."
_VIEW: dict[str, Any] = {
    "id": "01a1f87c-691d-7204-a6da-d46c39e191fb",
    "organizationId": "org-harbourlight",
    "userId": "user-ines",
    "isShared": True,
    "kind": "tasks",
    "name": "Urgent, and not done",
    "query": {"status": ["TODO", "IN_PROGRESS"], "priority": ["URGENT"], "sortColumn": ["deadline"]},
    "createdAt": "2026-11-20T09:14:03.120Z",
    "updatedAt": "2026-11-20T09:14:03.120Z",
}
_BODY = {name: _VIEW[name] for name in ("organizationId", "kind", "name", "query", "isShared")}

OPERATIONS: tuple[Operation, ...] = (
    ListOperation(
        path="/views/",
        operation_id="listSavedViews",
        tag="Saved views",
        summary="List saved views",
        description="""\
The views of lists that you have saved, and those that are shared with the organization, by name. Nobody else sees your
own here.""",
        query=PageQuery,
        build=lambda transaction, request: views.list_views(transaction, request.caller.user_id, request.query),
        answer=SavedViewPage,
        answer_description="A page of saved views.",
        example={"items": [_VIEW], "total": 1, "totalIsExact": True, "page": 1, "limit": 100},
    ),
    ReadOperation(
        path="/views/{id}/",
        operation_id="getSavedView",
        tag="Saved views",
        summary="Get a saved view",
        description="""\
One of the views of lists that you have saved, or one that is shared with the organization. Somebody else's own view is
not found.""",
        about=SavedView,
        id_description=_ID,
        query=OrganizationQuery,
        build=lambda transaction, request: views.one_view(
            transaction, request.organization_id, request.caller.user_id, request.id
        ),
        answer=_View,
        answer_description="The view.",
        example=_VIEW,
    ),
    ChangeOperation(
        http_method="POST",
        path="/views/",
        operation_id="createSavedView",
        tag="Saved views",
        summary="Save a view",
        description="""\
Saves the state of a list under a name. Everybody may save views for themselves; to share one with the organization
takes an editor. Which parameters a list has is decided when the view is opened: those that it does not have are
ignored.""",
        own_role="viewer",
        work=_create,
        present=_present,
        writes=views.CREATION_WRITES,
        body=SavedViewCreation,
        body_required=True,
        body_example=_BODY,
        has_rules=True,
        creates=True,
        answer=_View,
        answer_description="The view.",
        example=_VIEW,
    ),
    ChangeOperation(
        http_method="PATCH",
        path="/views/{id}/",
        operation_id="changeSavedView",
        tag="Saved views",
        summary="Change a saved view",
        description="""\
Renames a view, gives it another state, or shares it. A shared one takes an editor; who stops sharing it has it for
themselves.""",
        own_role="viewer",
        about=SavedView,
        id_description=_ID,
        work=_change,
        present=_present,
        writes=views.CHANGE_WRITES,
        body=SavedViewPatch,
        body_required=True,
        body_example={"name": "Urgent this week", "query": {"priority": ["URGENT"]}},
        has_rules=True,
        answer=_View,
        answer_description="The view as it is now.",
        example=_VIEW | {"name": "Urgent this week", "query": {"priority": ["URGENT"]}},
    ),
    ChangeOperation(
        http_method="DELETE",
        path="/views/{id}/",
        operation_id="deleteSavedView",
        tag="Saved views",
        summary="Remove a saved view",
        description="Removes a view. A shared one takes an editor. The records in it stay as they are.",
        own_role="viewer",
        about=SavedView,
        id_description=_ID,
        work=lambda unit, request: views.remove(unit, request.id),
        present=as_null,
        writes=views.REMOVAL_WRITES,
        answer=None,
        answer_description="`null`: the view was removed.",
        example=None,
    ),
)

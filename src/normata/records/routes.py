"""The sixteen addresses that restore, made from the kinds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel
from sqlalchemy import Connection, RowMapping

from normata import errors
from normata.database import Sight
from normata.errors import FieldFault, InvalidRequest, UnsupportedMediaType, describe
from normata.http import JsonResponse, add_operation, write
from normata.identity.access import Caller, CurrentWriter
from normata.records import kinds as _kinds  # noqa: F401 - defining the kinds is what fills Restorable.kinds
from normata.records.base import Restorable
from normata.records.restore import restore
from normata.vocabulary import Identifier
from normata.wire import as_wire, wire

router = APIRouter()

RecordId = Annotated[str, Path(alias="id", description="The id of the archived record.")]

_ERRORS = (
    errors.InvalidRequest,
    errors.Unauthenticated,
    errors.Forbidden,
    errors.NotFound,
    errors.NotAcceptable,
    errors.NotArchived,
    errors.SlugTaken,
    errors.TooLarge,
    errors.UnsupportedMediaType,
    errors.TooManyRequests,
    errors.InternalError,
    errors.ServiceUnavailable,
)


class IntegrationCheckRestore(BaseModel):
    """What may go along with the restore of an integration check."""

    model_config = ConfigDict(alias_generator=to_camel, strict=True)

    organization_id: Identifier | None = Field(
        default=None, description="The organization of the check; where given, it must be the right one."
    )


def _add_restore(kind: type[Restorable]) -> None:
    """Serve the restore of one kind."""
    words = kind.words()
    article = "an" if words[0] in "aeiou" else "a"
    takes_body = kind.answers_null

    async def endpoint(request: Request, caller: CurrentWriter, record_id: RecordId) -> Response:
        organization_id = await _stated_organization(request) if takes_body else None
        if "\0" in record_id:
            raise errors.NotFound  # no id has one, and PostgreSQL would not even hear of it
        row = await _restore(request, kind, record_id, caller, organization_id)
        return JsonResponse(None if kind.answers_null else as_wire(kind, row))

    cases = [
        case
        for case in _ERRORS
        if (takes_body or case not in (errors.InvalidRequest, errors.TooLarge, errors.UnsupportedMediaType))
        and ("slug" in kind.sql().c or case is not errors.SlugTaken)
    ]
    add_operation(
        router,
        "POST",
        f"/{kind.path}/{{id:path}}/restore/",
        endpoint,
        operation_id=f"restore{kind.__name__}",
        summary=f"Restore {article} {words}",
        description=_description(kind, words),
        tags=["Restore"],
        response_model=None if kind.answers_null else wire(kind),
        response_description="`null`: the check is live again." if kind.answers_null else f"The {words}, live again.",
        responses=errors.responses(*cases),
        openapi_extra={"requestBody": _REQUEST_BODY} if takes_body else None,
    )


async def _restore(
    request: Request, kind: type[Restorable], record_id: str, caller: Caller, organization_id: str | None
) -> RowMapping:
    def work(connection: Connection) -> RowMapping:
        return restore(
            connection,
            kind,
            record_id,
            caller,
            request_id=request.state.request_id,
            organization_id=organization_id,
        )

    return await write(request, work, Sight(caller.organizations))


def _description(kind: type[Restorable], words: str) -> str:
    changed = "`archivedAt` becomes null" + (" and `updatedAt` is set" if "updated_at" in kind.sql().c else "")
    told = (
        f" The member who answers for it (`{wire_name(kind.answerable)}`) is notified, unless that is you."
        if kind.answerable
        else ""
    )
    return (
        f"Brings an archived {words} back: {changed}, every other field stays as it was. Of many callers at once"
        f" exactly one succeeds, the others are told that it is not archived. It takes a role of editor or more in the"
        f" record's organization, and a token with the scope `write`.{told}\n\n{kind.__doc__}"
    )


def wire_name(column: str | None) -> str:
    """A column's name on the wire."""
    return to_camel(column or "")


_REQUEST_BODY = {
    "required": False,
    "content": {
        "application/json": {
            "schema": {"$ref": "#/components/schemas/IntegrationCheckRestore"},
            "example": {"organizationId": "org-harbourlight"},
        }
    },
}


async def _stated_organization(request: Request) -> str | None:
    """The organization that the body names; null where there is no body or it names none.

    Read here and not by FastAPI, which would tell anybody without a token what is wrong with a body.
    Raises UnsupportedMediaType and InvalidRequest.
    """
    body = await request.body()
    if not body:
        return None
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise UnsupportedMediaType
    try:
        return IntegrationCheckRestore.model_validate_json(body).organization_id
    except ValidationError as error:
        raise InvalidRequest.of([_body_fault(fault) for fault in error.errors()]) from None


def _body_fault(fault: Mapping[str, Any]) -> FieldFault:
    code, message, allowed = describe(fault)
    name = str(fault["loc"][0]) if fault["loc"] else ""
    return FieldFault(in_="body", name=name, code=code, message=message, allowed=allowed)


for _kind in Restorable.kinds:
    _add_restore(_kind)

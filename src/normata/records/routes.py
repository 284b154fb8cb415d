"""The sixteen addresses that restore, made from the kinds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError
from starlette.datastructures import State
from starlette.types import Receive, Scope, Send

from normata import errors
from normata.database import Database, Script, Sight
from normata.errors import InvalidRequest, UnsupportedMediaType
from normata.http import JsonResponse, Operation, add_operation, documented
from normata.identity.access import Caller, authenticate, require_write
from normata.negotiation import Headers, combined
from normata.records import kinds as _kinds  # noqa: F401 - defining the kinds is what fills Restorable.kinds
from normata.records.base import Restorable
from normata.records.restore import live_namesake, restore
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


class Restoring(Operation):
    """The restore of one kind."""

    methods = ("POST",)

    def __init__(self, kind: type[Restorable]) -> None:
        self.path = f"/{kind.path}/{{id}}/restore/"
        self._kind = kind
        self._address = re.compile(rf"/{kind.path}/(.*)/restore/?")

    def serves(self, path: str) -> bool:
        """See :class:`normata.http.Operation`."""
        return self._address.fullmatch(path) is not None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See :class:`normata.http.Operation`."""
        state: State = scope["app"].state
        headers = combined(scope["headers"])
        caller = await authenticate(state, scope["state"], headers)
        require_write(caller)
        organization_id = (
            await _stated_organization(headers, Request(scope, receive)) if self._kind.answers_null else None
        )
        match = self._address.fullmatch(scope["path"])
        if match is None or "\0" in match[1]:
            raise errors.NotFound  # no id has NUL, and PostgreSQL would not even hear of it
        request_id = scope["state"]["request_id"]
        row = await self._restored(state.database, match[1], caller, request_id, organization_id)
        await JsonResponse(None if self._kind.answers_null else as_wire(self._kind, row))(scope, receive, send)

    async def _restored(
        self, database: Database, record_id: str, caller: Caller, request_id: str, organization_id: str | None
    ) -> Mapping[str, Any]:
        def script() -> Script[Mapping[str, Any]]:
            return restore(self._kind, record_id, caller, request_id=request_id, organization_id=organization_id)

        sight = Sight(caller.organizations)
        try:
            return await database.perform(script, sight)
        except IntegrityError:

            def ask(connection: Connection) -> str | None:
                return live_namesake(connection, self._kind, record_id)

            namesake = await database.read(ask, sight)
            if namesake is None:
                raise  # it was another constraint, so a fault of ours
            raise errors.SlugTaken(conflicting_id=namesake) from None


def _add_restore(kind: type[Restorable]) -> None:
    """Serve the restore of one kind, and document it."""
    operation = Restoring(kind)
    add_operation(router, operation, operation.path.replace("{id}", "{id:path}"))
    words = kind.words()
    article = "an" if words[0] in "aeiou" else "a"
    takes_body = kind.answers_null
    cases = [
        case
        for case in _ERRORS
        if (takes_body or case not in (errors.InvalidRequest, errors.TooLarge, errors.UnsupportedMediaType))
        and ("slug" in kind.sql().c or case is not errors.SlugTaken)
    ]

    async def documented_as(record_id: RecordId) -> None:
        """Tell FastAPI the parameter; it serves no restore itself."""

    documented.add_api_route(
        operation.path.replace("{id}", "{id:path}"),
        documented_as,
        methods=["POST"],
        operation_id=f"restore{kind.__name__}",
        summary=f"Restore {article} {words}",
        description=_description(kind, words),
        tags=["Restore"],
        response_model=None if kind.answers_null else wire(kind),
        response_description="`null`: the check is live again." if kind.answers_null else f"The {words}, live again.",
        responses=errors.responses(*cases),
        openapi_extra={"requestBody": _REQUEST_BODY} if takes_body else None,
    )


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


async def _stated_organization(headers: Headers, request: Request) -> str | None:
    """The organization that the body names; null where there is no body or it names none.

    Read here, once the caller is known, since nobody else is told what is wrong with a body.
    Raises TooLarge, UnsupportedMediaType and InvalidRequest.
    """
    body = await request.body()
    if not body:
        return None
    media_type = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if media_type != b"application/json":
        raise UnsupportedMediaType
    try:
        return IntegrationCheckRestore.model_validate_json(body).organization_id
    except ValidationError as error:
        raise InvalidRequest.of_validation("body", error) from None


for _kind in Restorable.kinds:
    _add_restore(_kind)

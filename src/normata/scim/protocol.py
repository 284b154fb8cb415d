"""The SCIM protocol over a transaction (RFC 7644). Importing this takes half a second, so it waits for a request."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, cast

from scim2_models import (
    ConflictException,
    Error,
    ForbiddenException,
    InvalidFilterException,
    InvalidValueException,
    NotFoundException,
    PatchOp,
    Resource,
    ResourceType,
    ResponseParameters,
    SCIMException,
    SearchRequest,
    TooManyException,
    UniquenessException,
)
from scim2_server.conditions import Conditions
from scim2_server.handler import ScimHandler
from scim2_server.requests import ScimRequest
from scim2_server.responses import ScimResponse
from scim2_server.service import ScimService

from normata import errors
from normata.core.db.transaction import Transaction
from normata.identity.provisioning.groups import NoSuchPerson
from normata.identity.provisioning.people import AccountElsewhere, EndedByPeople, Provider
from normata.scim.filters import LONGEST_FILTER
from normata.scim.resources import PROVIDER, Group, GroupMember
from normata.scim.storage import Storage, member_ids_of

_MOST_OPERATIONS = 1_000  # of one PATCH
_LAST_INDEX = 2**53 - 1  # the largest number that all readers of JSON have
_MOST_UNUSUAL = 20  # operations on members by other paths than those below, which read the whole group
_ONE_MEMBER = re.compile(r'members\[\s*value\s+eq\s+"([^"\\]+)"\s*\]', re.IGNORECASE)

_REFUSALS: Mapping[type[Exception], type[SCIMException]] = {
    errors.NotFound: NotFoundException,
    errors.AlreadyMember: UniquenessException,
    AccountElsewhere: UniquenessException,
    EndedByPeople: ConflictException,
    errors.LastOwner: ConflictException,
    errors.InsufficientRole: ForbiddenException,
    errors.Forbidden: ForbiddenException,
    NoSuchPerson: InvalidValueException,
}


class _Service(ScimService):
    """The protocol without input and output, with a limit for filters."""

    def read_search(self, resource_types: list[ResourceType], payload: Any) -> tuple[SearchRequest[Any], Any]:
        """Read a search. Raises InvalidFilterException before a long filter is parsed, and InvalidValueException."""
        for name, value in payload.items() if isinstance(payload, dict) else ():
            if name.casefold() == "filter" and isinstance(value, str) and len(value) > LONGEST_FILTER:
                raise InvalidFilterException(detail=f"A filter has at most {LONGEST_FILTER} characters")
        search, position = super().read_search(resource_types, payload)
        if (search.start_index or 0) > _LAST_INDEX:
            raise InvalidValueException(detail=f"startIndex is at most {_LAST_INDEX}")
        return search, position


_SERVICE = _Service(PROVIDER)


class _Handler(ScimHandler):
    """The protocol over the storage of one request. Members of groups change without reading the whole group."""

    storage: Storage

    def __init__(self, storage: Storage) -> None:
        super().__init__(_SERVICE, storage)
        self._is_shown = False

    def patch(self, request: ScimRequest) -> ScimResponse:
        """Modify a resource. The answer has a body only if the request names attributes."""
        self._is_shown = bool({"attributes", "excludedAttributes"} & request.query.keys())
        return super().patch(request)

    def patch_resource(
        self, resource_type: ResourceType, resource_id: str, patch_op: PatchOp[Any], conditions: Conditions
    ) -> Resource[Any]:
        """Apply a PATCH. Raises what the storage raises, TooManyException and InvalidValueException."""
        operations = patch_op.operations or []
        if len(operations) > _MOST_OPERATIONS:
            raise TooManyException(detail=f"A PATCH has at most {_MOST_OPERATIONS} operations")
        if resource_type.name == "User":
            return super().patch_resource(resource_type, resource_id, patch_op, conditions)
        members = _Members()
        others = [operation for operation in operations if not members.take(operation)]
        if any("members" in str(operation.path or operation.value).lower() for operation in others):
            if len(operations) > _MOST_UNUSUAL:
                raise TooManyException(detail="Name members by the path members, or by their value")
            return super().patch_resource(resource_type, resource_id, patch_op, conditions)
        group = cast(Group, self.storage.get(resource_type, resource_id, response_parameters=_NO_MEMBERS))
        self.service.check_preconditions(group, "PATCH", conditions)
        if others:
            PatchOp[Group](operations=others).patch(group)
        if members.replaced is not None:
            self.storage.set_members(group, members.replaced)
        else:
            self.storage.change_group(group, added=members.added, removed=members.removed)
        shown = None if self._is_shown else _NO_MEMBERS
        return self.storage.get(resource_type, resource_id, response_parameters=shown)


class _Members:
    """What the operations of a PATCH do to the members of a group, in their order."""

    def __init__(self) -> None:
        self.added: set[str] = set()
        self.removed: set[str] = set()
        self.replaced: set[str] | None = None

    def take(self, operation: Any) -> bool:
        """Take an operation over if it is one on members, in a usual form. Raises InvalidValueException."""
        op, path, value = operation.op.value, str(operation.path or ""), operation.value
        one = _ONE_MEMBER.fullmatch(path)
        if path.lower().removeprefix(_GROUP_PREFIX) != "members" and one is None:
            return False
        if one is not None and op != "remove":
            return False
        ids = {one[1]} if one is not None else set(member_ids_of(_members(value)))
        if op == "add":
            self._add(ids)
        elif op == "replace" or (one is None and value is None):
            self.replaced = ids
        else:
            self._remove(ids)
        return True

    def _add(self, ids: set[str]) -> None:
        if self.replaced is not None:
            self.replaced |= ids
        self.added |= ids
        self.removed -= ids

    def _remove(self, ids: set[str]) -> None:
        if self.replaced is not None:
            self.replaced -= ids
        self.removed |= ids
        self.added -= ids


def _members(value: Any) -> Sequence[GroupMember]:
    """The members in the value of an operation: a list, or a single one. Raises InvalidValueException."""
    if value is None:
        return ()
    found = []
    for one in value if isinstance(value, list) else [value]:
        member_id = one.get("value") if isinstance(one, dict) else getattr(one, "value", one)
        if not isinstance(member_id, str):
            raise InvalidValueException(detail="A member is named by its value, the id of a user")
        found.append(GroupMember(value=member_id))
    return found


_GROUP_PREFIX = f"{Group.__schema__}:".lower()
_NO_MEMBERS = ResponseParameters[Group](excluded_attributes=["members"])


def answer(transaction: Transaction, provider: Provider, moment: str, request: ScimRequest) -> ScimResponse:
    """The answer to a request, in a transaction that is a unit of work if it changes something.

    Raises SCIMException, RelianceUnknown, and the database's errors.
    """
    try:
        return _Handler(Storage(transaction, provider, moment)).handle(request)
    except tuple(_REFUSALS) as error:
        refusal = next(found for kind, found in _REFUSALS.items() if isinstance(error, kind))
        raise refusal(detail=str(error)) from error


def refusal_of(error: SCIMException) -> ScimResponse:
    """The answer that says why a request is refused."""
    return _SERVICE.error_response(error)


def refusal(status: int, detail: str, headers: Mapping[str, str]) -> ScimResponse:
    """An error of this status in the form of SCIM (RFC 7644, section 3.12)."""
    return ScimResponse(HTTPStatus(status), Error(status=status, detail=detail).model_dump(), dict(headers))


def in_use() -> SCIMException:
    """The refusal where two requests want the same at once."""
    return UniquenessException(detail="Somebody else has this user name or address")

"""Problems: the form of every error response (RFC 9457)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from normata import errors
from normata.core.changes.source import FaultyInput
from normata.core.schema.faults import describe

TYPE_BASE = "https://normata.dev/problems/"
_MOST_IN_TEXT = 20  # faults in the text of a problem; its errors have all

Part = Literal["query", "path", "header", "body"]

# The limit that was reached: requests of a token or an address, connections or bad tokens of an address, or long reads
# of an organization or a user.
LimitReason = Literal["token_rate", "address_rate", "address_connections", "bad_tokens", "long_reads"]


class FieldFault(BaseModel):
    """One thing that is wrong with a request."""

    in_: Part = Field(alias="in", description="The part of the request.")
    name: str = Field(
        description="The parameter, header or body field (`assessments/3/coverageGap`); empty for the whole body."
    )
    code: str = Field(description="A stable code for the type of fault, such as `too_large`.")
    message: str = Field(description="What is wrong, for people.")
    allowed: list[str] | None = Field(description="The values that are allowed, where they can be listed.")

    model_config = ConfigDict(validate_by_name=True)


class Problem(BaseModel):
    """The body of every error response: problem details of RFC 9457, with a stable `code`."""

    type: str = Field(description="A URI that identifies the error type.")
    title: str = Field(description="The error type, for people; the same for every occurrence.")
    status: int = Field(description="The status code of the response.")
    code: str = Field(description="The error type, for programs; it never changes.")
    detail: str = Field(description="What happened this time, for people.")
    instance: str = Field(description="The path of the request.")
    request_id: str = Field(description="Identifies this request in the log; the same as the X-Request-Id header.")
    errors: list[FieldFault] = Field(
        description="All faults of the request, if it is not valid or its records are refused; otherwise empty."
    )
    conflicting_id: str | None = Field(
        default=None,
        description="With `slug_taken`: the id of the live record with the slug. With `in_use`: the id of a row that"
        " refers to this one. With `already_member`: the id of the membership.",
    )
    state: str | None = Field(default=None, description="With `wrong_state`: the state that it has.")
    allowed: list[str] | None = Field(
        default=None, description="With `wrong_state`: the states in which the request is possible."
    )
    version: int | None = Field(default=None, description="With `wrong_version`: the number of the version that it is.")

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True)


class HttpError(Exception):
    """The base of the errors of a request as such. ``detail`` must not reveal what the caller may not know."""

    detail: ClassVar[str]

    def __init__(
        self,
        detail: str | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        faults: Sequence[FieldFault] = (),
    ) -> None:
        super().__init__(detail or self.detail)
        self.headers = dict(headers or {})
        self.faults = faults


class InvalidRequest(HttpError):
    """The request is not valid; ``errors`` lists every fault."""

    detail = "The request is not valid."

    @classmethod
    def of(cls, faults: Sequence[FieldFault]) -> InvalidRequest:
        """The error for ``faults``, at least one. The text has the first ones: of a file there may be thousands."""
        first = [f"{fault.name or fault.in_} {fault.message}" for fault in faults[:_MOST_IN_TEXT]]
        more = [f"and {len(faults) - _MOST_IN_TEXT:,} more"] if len(faults) > _MOST_IN_TEXT else []
        return cls("; ".join(first + more), faults=faults)

    @classmethod
    def of_validation(cls, in_: Part, error: ValidationError) -> InvalidRequest:
        """The error for the faults that Pydantic finds in a part of the request."""
        faults = []
        for found in error.errors():
            code, message, allowed = describe(found)
            name = "/".join(map(str, found["loc"] if in_ == "body" else found["loc"][:1]))
            faults.append(FieldFault(in_=in_, name=name, code=code, message=message, allowed=allowed))
        return cls.of(faults)

    @classmethod
    def of_input(cls, error: FaultyInput) -> InvalidRequest:
        """The error for the faults that the rules of features find in a body."""
        return cls.of(
            [
                FieldFault(in_="body", name=fault.place[1:], code=fault.code, message=fault.reason, allowed=None)
                for fault in error.faults
            ]
        )


class Unauthenticated(HttpError):
    """The access token is missing or not valid; the challenge is that of RFC 6750."""

    detail = "Send a valid access token in the Authorization header: Bearer <ACCESS_TOKEN>."


class InsufficientScope(HttpError):
    """The scope of the token does not allow it, whatever the user may do (RFC 6750, section 3.1)."""

    detail = "The scope of the token does not allow this."


class MethodNotAllowed(HttpError):
    """The resource does not support the method; ``Allow`` lists those that it supports."""

    detail = "This resource does not support this method."


class NotAcceptable(HttpError):
    """The client accepts none of the available media types: JSON, and for reports CSV and XLSX."""

    detail = "The Accept header accepts none of the media types of this resource, such as application/json."


class PreconditionFailed(HttpError):
    """The resource has changed since the client read it (RFC 9110, section 13.1.1)."""

    detail = "If-Match does not match the current entity tag of this resource."


class RangeNotSatisfiable(HttpError):
    """The file has none of the requested bytes; ``Content-Range`` has its size (RFC 9110, section 15.5.17)."""

    detail = "The file has none of the requested bytes; Content-Range has its size."

    def __init__(self, size: int = 0) -> None:
        super().__init__(headers={"Content-Range": f"bytes */{size}"})


class RequestTimeout(HttpError):
    """The body did not arrive in time."""

    detail = "The body of the request did not arrive in time."


class TooLarge(HttpError):
    """The body is larger than the limit."""

    detail = "The body of the request is larger than the limit."


class UnsupportedMediaType(HttpError):
    """The Content-Type is not one that the operation accepts: JSON, unless documented otherwise."""

    detail = "The body must be JSON, with the header Content-Type: application/json."


class TooManyRequests(HttpError):
    """A rate limit is exceeded, or too many long reads are in progress; ``Retry-After`` says when to retry."""

    detail = "This token has exceeded its rate limit; retry after the time in Retry-After."

    def __init__(self, detail: str | None = None, *, wait: int = 1, reason: LimitReason = "token_rate") -> None:
        super().__init__(detail, headers={"Retry-After": str(wait)})
        self.reason: LimitReason = reason


class InternalError(HttpError):
    """An internal error. The response has no details; the log has them under the request id."""

    detail = "An internal error occurred. The log has the reason under this request id."


class ServiceUnavailable(HttpError):
    """The database cannot be reached, or not in time; ``Retry-After`` says when to retry."""

    detail = "The database cannot be reached right now, or not in time. Retry soon."

    def __init__(self, detail: str | None = None, *, reason: errors.UnavailableReason = "unreachable") -> None:
        super().__init__(detail, headers={"Retry-After": "1"})
        self.reason: errors.UnavailableReason = reason


class ErrorType(NamedTuple):
    """The properties of every occurrence of an error."""

    status: int
    code: str
    title: str


# All exceptions with a response of their own, from domain and HTTP. All others are internal errors.
ERROR_TYPES: Mapping[type[Exception], ErrorType] = {
    InvalidRequest: ErrorType(400, "validation", "The request is not valid"),
    errors.PageTooDeep: ErrorType(400, "page_too_deep", "The page is too deep"),
    Unauthenticated: ErrorType(401, "unauthenticated", "Authentication required"),
    errors.Forbidden: ErrorType(403, "forbidden", "Not allowed"),
    InsufficientScope: ErrorType(403, "forbidden", "Not allowed"),
    errors.NotFound: ErrorType(404, "not_found", "Not found"),
    MethodNotAllowed: ErrorType(405, "method_not_allowed", "Method not allowed"),
    NotAcceptable: ErrorType(406, "not_acceptable", "Not acceptable"),
    RequestTimeout: ErrorType(408, "request_timeout", "Request timeout"),
    errors.NotArchived: ErrorType(409, "not_archived", "Not archived"),
    errors.Archived: ErrorType(409, "archived", "Archived"),
    errors.NotAssessed: ErrorType(409, "not_assessed", "Not assessed"),
    errors.NotRated: ErrorType(409, "not_rated", "Not rated"),
    errors.SlugTaken: ErrorType(409, "slug_taken", "The slug is taken"),
    errors.ExternalIdTaken: ErrorType(409, "external_id_taken", "The external id is taken"),
    errors.InUse: ErrorType(409, "in_use", "In use"),
    errors.WrongState: ErrorType(409, "wrong_state", "The state does not allow this"),
    errors.WrongVersion: ErrorType(409, "wrong_version", "Another version"),
    errors.NoApprover: ErrorType(409, "no_approver", "There is no approver"),
    errors.NothingToUndo: ErrorType(409, "nothing_to_undo", "Nothing to undo"),
    errors.TokenSpansOrganizations: ErrorType(
        409, "token_spans_organizations", "The token is valid in other organizations"
    ),
    errors.AlreadyMember: ErrorType(409, "already_member", "Already a member"),
    errors.LastOwner: ErrorType(409, "last_owner", "The last owner"),
    errors.MemberRemoved: ErrorType(409, "member_removed", "The member was removed"),
    errors.HasResponsibilities: ErrorType(409, "has_responsibilities", "The member has responsibilities"),
    errors.InvitationClosed: ErrorType(409, "invitation_closed", "The invitation is closed"),
    errors.RecordsRefused: ErrorType(409, "records_refused", "Records are refused"),
    errors.RequestInProgress: ErrorType(409, "request_in_progress", "The request is in progress"),
    errors.ImportInProgress: ErrorType(409, "import_in_progress", "Another import is in progress"),
    errors.AnswerNotStored: ErrorType(409, "answer_not_stored", "The answer was not stored"),
    errors.QuotaExceeded: ErrorType(409, "quota_exceeded", "The quota is exceeded"),
    errors.FilesErased: ErrorType(410, "files_erased", "The files were erased"),
    PreconditionFailed: ErrorType(412, "precondition_failed", "A precondition failed"),
    TooLarge: ErrorType(413, "too_large", "The body is too large"),
    UnsupportedMediaType: ErrorType(415, "unsupported_media_type", "Unsupported media type"),
    RangeNotSatisfiable: ErrorType(416, "range_not_satisfiable", "The range is not satisfiable"),
    errors.MalwareFound: ErrorType(422, "malware_found", "Malware was found"),
    errors.KeyReused: ErrorType(422, "key_reused", "The key was used for another request"),
    TooManyRequests: ErrorType(429, "too_many_requests", "Too many requests"),
    InternalError: ErrorType(500, "internal", "Internal error"),
    ServiceUnavailable: ErrorType(503, "unavailable", "Unavailable"),
}


def error_type_of(error: Exception) -> ErrorType | None:
    """The error type of an exception; None if it is internal."""
    return next((ERROR_TYPES[kind] for kind in type(error).__mro__ if kind in ERROR_TYPES), None)


_TOO_SLOW = "The answer took longer than this service allows. Ask for less, such as a smaller page, or retry later."
# Details of reasons that are none of the database's.
_NOT_THE_DATABASE = {
    "slow": _TOO_SLOW,
    "storage": "The files cannot be stored or read right now. Retry soon.",
    "scanner": "The file cannot be checked for malware right now. Retry soon.",
}


def as_public(error: Exception) -> Exception:
    """The error that a client gets for an exception: itself if it has a type, else one that reveals nothing."""
    if error_type_of(error) is not None:
        return error
    if isinstance(error, errors.Unavailable):
        return ServiceUnavailable(_NOT_THE_DATABASE.get(error.reason), reason=error.reason)
    return InternalError()


def problem(error: Exception, instance: str, request_id: str) -> dict[str, Any]:
    """The response body of one of :data:`ERROR_TYPES`: the members of :class:`Problem`. Else raises KeyError."""
    error_type = error_type_of(error)
    if error_type is None:
        raise KeyError(type(error))
    of_some = {name: getattr(error, name, None) for name in ("conflicting_id", "state", "allowed", "version")}
    body = Problem(
        type=TYPE_BASE + error_type.code.replace("_", "-"),
        title=error_type.title,
        status=error_type.status,
        code=error_type.code,
        detail=str(error),
        instance=instance,
        request_id=request_id,
        errors=list(_faults_of(error)),
        **of_some,
    )
    return body.model_dump(by_alias=True, exclude={name for name, value in of_some.items() if value is None})


def _faults_of(error: Exception) -> Sequence[FieldFault]:
    """The faults of a request, each with its place."""
    if isinstance(error, errors.PageTooDeep):
        return [FieldFault(in_="query", name="page", code="too_deep", message=str(error), allowed=None)]
    if not isinstance(error, errors.RecordsRefused):
        return getattr(error, "faults", ())
    faults = []
    for place, refusal in error.refusals:
        error_type, conflicting_id = ERROR_TYPES[type(refusal)], getattr(refusal, "conflicting_id", None)
        message = f"{refusal} ({conflicting_id})" if conflicting_id else str(refusal)
        faults.append(
            FieldFault(in_="body", name=f"{error.array}/{place}", code=error_type.code, message=message, allowed=None)
        )
    return faults


def responses(*cases: type[Exception]) -> dict[int, dict[str, Any]]:
    """The error responses of an operation for OpenAPI: one a status, described by the docstrings of the cases.

    Two cases with the same status (both conflicts of a restore) share a response.
    """
    documented: dict[int, dict[str, Any]] = {}
    for case in sorted(cases, key=lambda case: ERROR_TYPES[case].status):
        status = ERROR_TYPES[case].status
        response = documented.setdefault(status, {"description": ""})
        response["description"] = (response["description"] + " " + _first_line(case)).strip()
        if headers := _HEADERS.get(case) or _HEADERS.get(status):
            response["headers"] = {
                # Of the conflicts, only one has a Retry-After.
                name: {"description": description, "required": status != 409, "schema": {"type": "string"}}
                for name, description in headers.items()
            }
    return documented


def examples(instance: str, fault: FieldFault, *cases: type[Exception]) -> dict[int, dict[str, Any]]:
    """Examples of the errors of an operation for OpenAPI, by status and code.

    ``instance`` is the path of a request, ``fault`` an example of a fault.
    """
    found: dict[int, dict[str, Any]] = {}
    for case in cases:
        error: Exception
        if case is InvalidRequest:
            error = InvalidRequest.of([fault])
        elif issubclass(case, errors.SlugTaken | errors.ExternalIdTaken | errors.InUse | errors.AlreadyMember):
            error = case("01a1f87c-691d-7204-a6da-d46c39e191fb")
        elif issubclass(case, errors.RecordsRefused):
            error = case([(3, errors.Archived())])
        else:
            error = case()
        value = problem(error, instance, "0193a3e7c1d07c0e8a52b1f4")
        found.setdefault(ERROR_TYPES[case].status, {})[ERROR_TYPES[case].code] = {"value": value}
    return found


def headers_of(error: Exception) -> Mapping[str, str]:
    """The headers that the response to an error has in addition to those of every response."""
    if isinstance(error, errors.RequestInProgress | errors.ImportInProgress):
        return {"Retry-After": "1"}
    return getattr(error, "headers", None) or {}


_IN_PROGRESS = {"Retry-After": "With `request_in_progress` and `import_in_progress`: seconds to wait."}
_HEADERS: Mapping[int | type[Exception], Mapping[str, str]] = {
    errors.RequestInProgress: _IN_PROGRESS,
    errors.ImportInProgress: _IN_PROGRESS,
    401: {"WWW-Authenticate": "The challenge of RFC 6750."},
    416: {"Content-Range": "The size of the file."},
    405: {"Allow": "The methods that the resource supports."},
    429: {"Retry-After": "Seconds to wait."},
    503: {"Retry-After": "Seconds to wait."},
}


def _first_line(case: type[Exception]) -> str:
    return (case.__doc__ or "").partition("\n")[0].replace("``", "`").replace(":class:", "")

"""Problems: how everything that is not a success is told over HTTP, in one shape (RFC 9457)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from normata import errors
from normata.core.changes.source import FaultyInput
from normata.core.schema.faults import describe

TYPE_BASE = "https://normata.dev/problems/"

Part = Literal["query", "path", "header", "body"]

# Which limit was reached: the requests of a token, those of an address, or the bad tokens of an address.
LimitReason = Literal["token_rate", "address_rate", "bad_tokens"]


class FieldFault(BaseModel):
    """One thing that is wrong with a request."""

    in_: Part = Field(alias="in", description="The part of the request.")
    name: str = Field(
        description="The parameter, header or body field (`assessments/3/coverageGap`); empty for the whole body."
    )
    code: str = Field(description="A stable word for the sort of fault, such as `too_large`.")
    message: str = Field(description="What is wrong, for people.")
    allowed: list[str] | None = Field(description="The values that are allowed, where they can be listed.")

    model_config = ConfigDict(validate_by_name=True)


class Problem(BaseModel):
    """What every answer that is not a success looks like: problem details as RFC 9457 has them, and a stable `code`."""

    type: str = Field(description="A URI that names the sort of problem.")
    title: str = Field(description="The sort of problem, for people; the same for every occurrence.")
    status: int = Field(description="The status code of the answer.")
    code: str = Field(description="The sort of problem, for programs; it never changes.")
    detail: str = Field(description="What happened this time, for people.")
    instance: str = Field(description="The path of the request.")
    request_id: str = Field(description="Names this request in the log; the same as the X-Request-Id header.")
    errors: list[FieldFault] = Field(
        description="All faults of the request, where it is not valid or its records are refused; else empty."
    )
    conflicting_id: str | None = Field(
        default=None,
        description="With `slug_taken`: the live record that has the slug. With `in_use`: what refers to it. With"
        " `already_member`: the membership.",
    )

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True)


class HttpError(Exception):
    """The base of what can go wrong with a request as such. ``detail`` must not tell what the caller may not know."""

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
    """The request breaks a rule of the interface; ``errors`` has every one that it breaks."""

    detail = "The request is not valid."

    @classmethod
    def of(cls, faults: Sequence[FieldFault]) -> InvalidRequest:
        """The answer to ``faults``, at least one."""
        return cls("; ".join(f"{fault.name or fault.in_} {fault.message}" for fault in faults), faults=faults)

    @classmethod
    def of_validation(cls, in_: Part, error: ValidationError) -> InvalidRequest:
        """The answer to what Pydantic finds wrong with a part of the request."""
        faults = []
        for found in error.errors():
            code, message, allowed = describe(found)
            name = "/".join(map(str, found["loc"] if in_ == "body" else found["loc"][:1]))
            faults.append(FieldFault(in_=in_, name=name, code=code, message=message, allowed=allowed))
        return cls.of(faults)

    @classmethod
    def of_input(cls, error: FaultyInput) -> InvalidRequest:
        """The answer to what the rules of the domain find wrong with a body."""
        return cls.of(
            [
                FieldFault(in_="body", name=fault.place[1:], code="invalid", message=fault.reason, allowed=None)
                for fault in error.faults
            ]
        )


class Unauthenticated(HttpError):
    """No token, or none that is any good: all alike, with the challenge of RFC 6750."""

    detail = "Send a valid access token in the Authorization header: Bearer <ACCESS_TOKEN>."


class InsufficientScope(HttpError):
    """The token's scope is too small, whatever the user may do (RFC 6750, section 3.1)."""

    detail = "The scope of the token is too small for this."


class MethodNotAllowed(HttpError):
    """The address exists, but not for this method; ``Allow`` names those that it has."""

    detail = "This address does not answer to this method."


class NotAcceptable(HttpError):
    """The client accepts no media type that there is: JSON, and for reports CSV and XLSX."""

    detail = "The Accept header rules out all that this address answers with, such as application/json."


class PreconditionFailed(HttpError):
    """What the client has is not what is there now (RFC 9110, section 13.1.1)."""

    detail = "If-Match names none of the entity tags that this address has now."


class RequestTimeout(HttpError):
    """The body did not arrive in time."""

    detail = "The body of the request did not arrive in time."


class TooLarge(HttpError):
    """The body is larger than the service takes."""

    detail = "The body of the request is larger than this service takes."


class UnsupportedMediaType(HttpError):
    """The body is not declared as a media type that the operation takes: JSON, unless it has others."""

    detail = "The body must be JSON, with the header Content-Type: application/json."


class TooManyRequests(HttpError):
    """The token or the address has used up its requests of a minute; ``Retry-After`` says when to come back."""

    detail = "This token has used up its requests for now; wait as Retry-After says."

    def __init__(self, detail: str | None = None, *, wait: int = 1, reason: LimitReason = "token_rate") -> None:
        super().__init__(detail, headers={"Retry-After": str(wait)})
        self.reason: LimitReason = reason


class InternalError(HttpError):
    """A fault of the service. Nothing of it leaves; the log has it under the request id."""

    detail = "Something went wrong here. The log has the reason under this request id."


class ServiceUnavailable(HttpError):
    """The database cannot be reached, or not in time; ``Retry-After`` says when to try again."""

    detail = "The database cannot be reached right now, or not in time. Try again soon."

    def __init__(self, detail: str | None = None, *, reason: errors.UnavailableReason = "unreachable") -> None:
        super().__init__(detail, headers={"Retry-After": "1"})
        self.reason: errors.UnavailableReason = reason


class ErrorType(NamedTuple):
    """One sort of problem: what is the same for every occurrence."""

    status: int
    code: str
    title: str


# Every exception that is answered as itself, whether the domain raises it or HTTP does. All others are internal.
ERROR_TYPES: Mapping[type[Exception], ErrorType] = {
    InvalidRequest: ErrorType(400, "validation", "The request is not valid"),
    Unauthenticated: ErrorType(401, "unauthenticated", "Authentication is needed"),
    errors.Forbidden: ErrorType(403, "forbidden", "Not allowed"),
    InsufficientScope: ErrorType(403, "forbidden", "Not allowed"),
    errors.NotFound: ErrorType(404, "not_found", "Not found"),
    MethodNotAllowed: ErrorType(405, "method_not_allowed", "Method not allowed"),
    NotAcceptable: ErrorType(406, "not_acceptable", "Not acceptable"),
    RequestTimeout: ErrorType(408, "request_timeout", "The request took too long"),
    errors.NotArchived: ErrorType(409, "not_archived", "Not archived"),
    errors.Archived: ErrorType(409, "archived", "Archived"),
    errors.SlugTaken: ErrorType(409, "slug_taken", "The slug is taken"),
    errors.InUse: ErrorType(409, "in_use", "In use"),
    errors.TokenSpansOrganizations: ErrorType(409, "token_spans_organizations", "The token reaches further"),
    errors.AlreadyMember: ErrorType(409, "already_member", "A member already"),
    errors.LastOwner: ErrorType(409, "last_owner", "The last owner"),
    errors.MemberRemoved: ErrorType(409, "member_removed", "The member was removed"),
    errors.InvitationClosed: ErrorType(409, "invitation_closed", "The invitation is over"),
    errors.RecordsRefused: ErrorType(409, "records_refused", "Records are refused"),
    errors.RequestInProgress: ErrorType(409, "request_in_progress", "The request is in progress"),
    errors.AnswerNotStored: ErrorType(409, "answer_not_stored", "The answer was not stored"),
    PreconditionFailed: ErrorType(412, "precondition_failed", "A precondition failed"),
    TooLarge: ErrorType(413, "too_large", "The body is too large"),
    UnsupportedMediaType: ErrorType(415, "unsupported_media_type", "Unsupported media type"),
    errors.KeyReused: ErrorType(422, "key_reused", "The key was used before"),
    TooManyRequests: ErrorType(429, "too_many_requests", "Too many requests"),
    InternalError: ErrorType(500, "internal", "Internal error"),
    ServiceUnavailable: ErrorType(503, "unavailable", "Unavailable"),
}


def error_type_of(error: Exception) -> ErrorType | None:
    """The sort of problem that an exception is answered with; null where it is internal."""
    return next((ERROR_TYPES[kind] for kind in type(error).__mro__ if kind in ERROR_TYPES), None)


def problem(error: Exception, instance: str, request_id: str) -> dict[str, Any]:
    """The body of the answer to one of :data:`ERROR_TYPES`: the members of :class:`Problem`. Else raises KeyError."""
    error_type = error_type_of(error)
    if error_type is None:
        raise KeyError(type(error))
    conflicting_id = getattr(error, "conflicting_id", None)
    body = Problem(
        type=TYPE_BASE + error_type.code.replace("_", "-"),
        title=error_type.title,
        status=error_type.status,
        code=error_type.code,
        detail=str(error),
        instance=instance,
        request_id=request_id,
        errors=list(_faults_of(error)),
        conflicting_id=conflicting_id,
    )
    return body.model_dump(by_alias=True, exclude={"conflicting_id"} if conflicting_id is None else None)


def _faults_of(error: Exception) -> Sequence[FieldFault]:
    """What is wrong with a request, place by place."""
    if not isinstance(error, errors.RecordsRefused):
        return getattr(error, "faults", ())
    faults = []
    for place, refusal in error.refusals:
        error_type, conflicting_id = ERROR_TYPES[type(refusal)], getattr(refusal, "conflicting_id", None)
        message = f"{refusal} ({conflicting_id})" if conflicting_id else str(refusal)
        faults.append(
            FieldFault(in_="body", name=f"records/{place}", code=error_type.code, message=message, allowed=None)
        )
    return faults


def responses(*cases: type[Exception]) -> dict[int, dict[str, Any]]:
    """What OpenAPI says of the errors of an operation: a response a status, with the case's own words.

    Two cases of one status (both conflicts of a restore) share the response.
    """
    documented: dict[int, dict[str, Any]] = {}
    for case in sorted(cases, key=lambda case: ERROR_TYPES[case].status):
        status = ERROR_TYPES[case].status
        response = documented.setdefault(status, {"description": ""})
        response["description"] = (response["description"] + " " + _first_line(case)).strip()
        if headers := _HEADERS.get(case) or _HEADERS.get(status):
            response["headers"] = {
                # Of several conflicts only one says when to come back.
                name: {"description": description, "required": status != 409, "schema": {"type": "string"}}
                for name, description in headers.items()
            }
    return documented


def examples(instance: str, fault: FieldFault, *cases: type[Exception]) -> dict[int, dict[str, Any]]:
    """What the errors of an operation look like: by status and code, as OpenAPI has examples.

    ``instance`` is the path of a request, ``fault`` what may be wrong with one.
    """
    found: dict[int, dict[str, Any]] = {}
    for case in cases:
        error: Exception
        if case is InvalidRequest:
            error = InvalidRequest.of([fault])
        elif issubclass(case, errors.SlugTaken | errors.InUse | errors.AlreadyMember):
            error = case("01a1f87c-691d-7204-a6da-d46c39e191fb")
        elif issubclass(case, errors.RecordsRefused):
            error = case([(3, errors.Archived())])
        else:
            error = case()
        value = problem(error, instance, "0193a3e7c1d07c0e8a52b1f4")
        found.setdefault(ERROR_TYPES[case].status, {})[ERROR_TYPES[case].code] = {"value": value}
    return found


def headers_of(error: Exception) -> Mapping[str, str]:
    """The headers that the answer to an error has besides those that every answer has."""
    if isinstance(error, errors.RequestInProgress):
        return {"Retry-After": "1"}
    return getattr(error, "headers", None) or {}


_HEADERS: Mapping[int | type[Exception], Mapping[str, str]] = {
    errors.RequestInProgress: {"Retry-After": "With `request_in_progress`: seconds to wait."},
    401: {"WWW-Authenticate": "The challenge of RFC 6750."},
    405: {"Allow": "The methods that the address answers to."},
    429: {"Retry-After": "Seconds to wait."},
    503: {"Retry-After": "Seconds to wait."},
}


def _first_line(case: type[Exception]) -> str:
    return (case.__doc__ or "").partition("\n")[0].replace("``", "`").replace(":class:", "")

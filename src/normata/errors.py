"""What can go wrong, as the client sees it: one exception class per case, one shape for all (RFC 9457)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

TYPE_BASE = "https://normata.dev/problems/"


Part = Literal["query", "path", "header", "body"]


class FieldFault(BaseModel):
    """One thing that is wrong with a request."""

    in_: Part = Field(alias="in", description="The part of the request.")
    name: str = Field(description="The parameter, header or body field; empty for the body as a whole.")
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
    errors: list[FieldFault] = Field(description="All faults of the request, where it is not valid; else empty.")
    conflicting_id: str | None = Field(
        default=None, description="With the code `slug_taken` only: the live record that has the slug."
    )

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True)


class ApiError(Exception):
    """The base of all cases. ``detail`` must not tell what the caller may not know."""

    status: ClassVar[int]
    code: ClassVar[str]
    title: ClassVar[str]
    detail: ClassVar[str]

    def __init__(
        self,
        detail: str | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        errors: Sequence[FieldFault] = (),
        conflicting_id: str | None = None,
    ) -> None:
        self.said = detail or self.detail
        super().__init__(self.said)
        self.headers = dict(headers or {})
        self.errors = errors
        self.conflicting_id = conflicting_id

    def problem(self, instance: str, request_id: str) -> dict[str, Any]:
        """The body of the answer: the members of :class:`Problem`."""
        body = Problem(
            type=TYPE_BASE + self.code.replace("_", "-"),
            title=self.title,
            status=self.status,
            code=self.code,
            detail=self.said,
            instance=instance,
            request_id=request_id,
            errors=list(self.errors),
            conflicting_id=self.conflicting_id,
        )
        return body.model_dump(by_alias=True, exclude={"conflicting_id"} if self.conflicting_id is None else None)


class InvalidRequest(ApiError):
    """The request breaks a rule of the interface; ``errors`` has every one that it breaks."""

    status, code, title = 400, "validation", "The request is not valid"
    detail = "The request is not valid."

    @classmethod
    def of(cls, faults: Sequence[FieldFault]) -> InvalidRequest:
        """The answer to ``faults``, at least one."""
        return cls("; ".join(f"{fault.name or fault.in_} {fault.message}" for fault in faults), errors=faults)

    @classmethod
    def of_validation(cls, in_: Part, error: ValidationError) -> InvalidRequest:
        """The answer to what Pydantic finds wrong with a part of the request."""
        faults = []
        for found in error.errors():
            code, message, allowed = describe(found)
            name = str(found["loc"][0]) if found["loc"] else ""
            faults.append(FieldFault(in_=in_, name=name, code=code, message=message, allowed=allowed))
        return cls.of(faults)


class Unauthenticated(ApiError):
    """No token, or none that is any good: all alike, with the challenge of RFC 6750."""

    status, code, title = 401, "unauthenticated", "Authentication is needed"
    detail = "Send a valid access token in the Authorization header: Bearer <ACCESS_TOKEN>."


class Forbidden(ApiError):
    """The caller may see the thing, but not do this to it."""

    status, code, title = 403, "forbidden", "Not allowed"
    detail = "You are not allowed to do this."


class NotFound(ApiError):
    """There is no such thing, or none that the caller may know of: the two cannot be told apart."""

    status, code, title = 404, "not_found", "Not found"
    detail = "There is nothing here that you can see."


class MethodNotAllowed(ApiError):
    """The address exists, but not for this method; ``Allow`` names those that it has."""

    status, code, title = 405, "method_not_allowed", "Method not allowed"
    detail = "This address does not answer to this method."


class NotAcceptable(ApiError):
    """The client accepts no JSON, and there is nothing else."""

    status, code, title = 406, "not_acceptable", "Not acceptable"
    detail = "Answers are application/json only; the Accept header rules that out."


class NotArchived(ApiError):
    """There is nothing to restore: the record is live (AIP-164 asks for an error here, too)."""

    status, code, title = 409, "not_archived", "Not archived"
    detail = "The record is not archived, so there is nothing to restore."


class SlugTaken(ApiError):
    """A live record of the kind has taken the archived one's slug; ``conflictingId`` names it."""

    status, code, title = 409, "slug_taken", "The slug is taken"
    detail = "A live record has the same slug; give that one another slug or archive it first."


class TooLarge(ApiError):
    """The body is larger than the service takes."""

    status, code, title = 413, "too_large", "The body is too large"
    detail = "The body of the request is larger than this service takes."


class UnsupportedMediaType(ApiError):
    """The body is not declared as JSON."""

    status, code, title = 415, "unsupported_media_type", "Unsupported media type"
    detail = "The body must be JSON, with the header Content-Type: application/json."


class TooManyRequests(ApiError):
    """The token has used up what it may ask for in a minute; ``Retry-After`` says when to come back."""

    status, code, title = 429, "too_many_requests", "Too many requests"
    detail = "This token has used up its requests for now; wait as Retry-After says."


class InternalError(ApiError):
    """A fault of the service. Nothing of it leaves; the log has it under the request id."""

    status, code, title = 500, "internal", "Internal error"
    detail = "Something went wrong here. The log has the reason under this request id."


class ServiceUnavailable(ApiError):
    """The database cannot be reached, or not in time; ``Retry-After`` says when to try again."""

    status, code, title = 503, "unavailable", "Unavailable"
    detail = "The database cannot be reached right now, or not in time. Try again soon."

    def __init__(self, detail: str | None = None) -> None:
        super().__init__(detail, headers={"Retry-After": "1"})


def responses(*cases: type[ApiError]) -> dict[int | str, dict[str, Any]]:
    """What OpenAPI says of the errors of an operation: a response a status, with the case's own words.

    Two cases of one status (both conflicts of a restore) share the response and keep an example each.
    """
    documented: dict[int | str, dict[str, Any]] = {}
    for case in cases:
        response = documented.setdefault(
            case.status, {"model": Problem, "description": "", "content": {"application/json": {"examples": {}}}}
        )
        response["description"] = (response["description"] + " " + _first_line(case)).strip()
        response["content"]["application/json"]["examples"][case.code] = {"value": _example(case)}
        if headers := _HEADERS.get(case.status):
            response["headers"] = {
                name: {"description": description, "required": True, "schema": {"type": "string"}}
                for name, description in headers.items()
            }
    return documented


_HEADERS = {
    401: {"WWW-Authenticate": "The challenge of RFC 6750."},
    405: {"Allow": "The methods that the address answers to."},
    429: {"Retry-After": "Seconds to wait."},
    503: {"Retry-After": "Seconds to wait."},
}


def _first_line(case: type[ApiError]) -> str:
    return (case.__doc__ or "").partition("\n")[0].replace("``", "`").replace(":class:", "")


def _example(case: type[ApiError]) -> dict[str, Any]:
    error = case()
    if case is InvalidRequest:
        error = InvalidRequest.of(
            [FieldFault(in_="query", name="limit", code="too_large", message="must be at most 100", allowed=None)]
        )
    elif case is SlugTaken:
        error = SlugTaken(conflicting_id="label-gdpr")
    return error.problem(
        "/controls/" if case is InvalidRequest else "/labels/label-gdpr-2024/restore/", "0193a3e7c1d07c0e8a52b1f4"
    )


# --- Pydantic's words for faults → ours

_CODES = {
    "missing": "required",
    "string_too_short": "too_short",
    "string_too_long": "too_long",
    "greater_than_equal": "too_small",
    "less_than_equal": "too_large",
    "literal_error": "not_allowed",
    "enum": "not_allowed",
    "string_pattern_mismatch": "malformed",
    "json_invalid": "malformed",
    "extra_forbidden": "unknown",
}


def describe(error: Mapping[str, Any]) -> tuple[str, str, list[str] | None]:
    """One of Pydantic's errors as (code, message, allowed values or null), in words for the sender."""
    kind, context = error["type"], error.get("ctx", {})
    allowed: list[str] | None = None
    match kind:
        case "missing":
            message = "is required"
        case "greater_than_equal":
            message = f"must be at least {context['ge']}"
        case "less_than_equal":
            message = f"must be at most {context['le']}"
        case "string_too_short":
            message = f"must have at least {_characters(context['min_length'])}"
        case "string_too_long":
            message = f"must have at most {_characters(context['max_length'])}"
        case "literal_error":
            allowed = re.findall(r"'([^']*)'", context["expected"])
            message = f"must be one of {', '.join(allowed)}"
        case "string_pattern_mismatch":
            message = f"must match {context['pattern']}"
        case "value_error":
            message = str(context["error"])
        case "extra_forbidden":
            message = "is not a field that is known here"
        case "int_parsing" | "int_type" | "int_from_float" | "int_parsing_size":
            message = "must be an integer"
        case "bool_parsing" | "bool_type":
            message, allowed = "must be true or false", ["true", "false"]
        case "float_type" | "finite_number":
            message = "must be a number"
        case "string_type":
            message = "must be a string"
        case "json_invalid":
            message = "is not valid JSON"
        case "model_type" | "model_attributes_type" | "dict_type":
            message = "must be a JSON object"
        case _:
            message = str(error["msg"])[:1].lower() + str(error["msg"])[1:]
    return _CODES.get(kind, "invalid"), message, allowed


def _characters(count: int) -> str:
    return "1 character" if count == 1 else f"{count} characters"

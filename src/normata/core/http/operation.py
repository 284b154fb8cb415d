"""Operations and their declarations, from which route, OpenAPI, permissions and generated tests follow."""

from __future__ import annotations

from abc import ABC
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, NamedTuple

from pydantic import BaseModel

from normata import errors
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.security import Write
from normata.core.db.transaction import Transaction
from normata.core.http import problems
from normata.core.http.body_stream import BodyStream
from normata.core.http.formats import Formats, ListFormats
from normata.core.http.request import Request
from normata.core.http.roles import AUDITOR, Role, TokenScope, role_suffices
from normata.core.schema.paging import OwnPageQuery, PageQuery, Query
from normata.core.schema.table import Table

_FAR = 1_000  # skipped rows; the database has to count them

# Who may call the operation, besides the token's scope: members of the organization with at least the role of the
# operation, all users for what is their own, or operators of the instance.
Authority = Literal["organization", "self", "operator"]

Lines = Callable[[Transaction, Request, Any], tuple[bytes, Any]]

# The errors that all operations can answer.
_COMMON_ERRORS: tuple[type[Exception], ...] = (
    problems.Unauthenticated,
    errors.NotFound,
    problems.NotAcceptable,
    problems.TooManyRequests,
    problems.InternalError,
    problems.ServiceUnavailable,
)


@dataclass(frozen=True, kw_only=True)
class Operation(ABC):
    """One method of one path.

    ``path`` ends with a slash; ``{id}`` in it is one segment, percent-encoded, and names a row of ``about``.
    ``authority`` says who may call it. ``role`` is the smallest role in the organization, if the authority is an
    organization's, ``own_role`` the smallest for the caller's own data, null if there is no difference, and ``scope``
    the smallest scope of the token. ``answer`` is the model of a success; null if it is JSON's null. ``errors`` has its
    errors besides those of every operation. An operation that ``is_long`` may compute for more than some milliseconds.
    One that ``ignores_unknown`` parameters refuses them only if the client prefers that, because the first clients may
    send some; all others always do.
    """

    method: ClassVar[str]

    path: str
    operation_id: str
    tag: str
    summary: str
    description: str
    role: Role
    scope: TokenScope
    answer: type[BaseModel] | None
    answer_description: str
    example: Any
    errors: tuple[type[Exception], ...] = ()
    about: type[Table] | None = None
    id_description: str = ""
    is_long: bool = False
    ignores_unknown: bool = False
    authority: Authority = "organization"
    own_role: Role | None = None

    def admits(self, role: str) -> bool:
        """Whether a member with this role may call it, if the authority is an organization's."""
        return role_suffices(role, self.role)

    def admits_own(self, role: str) -> bool:
        """Whether a member with this role may call it at least for their own data."""
        return self.admits(role) or (self.own_role is not None and role_suffices(role, self.own_role))

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that it answers: GET includes HEAD (RFC 9110, section 9.1)."""
        return ("GET", "HEAD") if self.method == "GET" else (self.method,)

    @property
    def every_error(self) -> tuple[type[Exception], ...]:
        """All its errors."""
        return (*_COMMON_ERRORS, *self.errors)


@dataclass(frozen=True, kw_only=True)
class ReadOperation(Operation):
    """An operation that reads data of an organization or a user.

    ``build`` makes the answer, in wire form, to a request with a query of the model ``query``. An organization's query
    is an :class:`OrganizationQuery`, and its organization one that the caller may read, named by its id. With
    ``formats`` it only reads the data of the answer, and the query is a :class:`FormatQuery`. ``cached`` names a list
    whose pages are cached: they must show only rows of tables whose ``shown_in`` has this name, and rows that follow
    from these in the same transaction, independent of the caller and the prefix.
    With ``sends_file``, ``build`` makes a FileAnswer, which is sent as it is.
    ``lines`` makes the lines of an answer in the format `ndjson`, part by part: those after a place, and the next
    place, which is null at the end, as the first one is. Each part is a transaction of its own, so that no answer is
    too large.
    ``role_for`` returns the smallest role for a query, if some need a smaller one than ``role``; null if none does.
    """

    method: ClassVar[str] = "GET"

    query: type[Query]
    build: Callable[[Transaction, Request], Any]
    cached: str | None = None
    sends_file: bool = False
    formats: Formats | None = None
    lines: Lines | None = None
    role: Role = "viewer"
    role_for: Callable[[Any], Role] | None = None
    scope: TokenScope = "read"

    def admits_query(self, role: str, query: Query) -> bool:
        """Whether a member with this role may send a query."""
        return self.admits(role) or (self.role_for is not None and role_suffices(role, self.role_for(query)))

    @property
    def vary(self) -> bytes:
        """The request headers that decide on its answer in JSON (RFC 9110, section 12.5.5)."""
        return b"accept-encoding, authorization, prefer" if self.ignores_unknown else b"accept-encoding, authorization"

    def answer_to(self, transaction: Transaction, request: Request) -> Any:
        """The answer to a request, in wire form, or its data if there are formats. Raises what it declares."""
        return self.build(transaction, request)

    def is_dear(self, query: Query) -> bool:
        """Whether a request is a long read: a report, a search, or a page far down a list.

        The first page of a cached list is not, even with a search.
        """
        if self.is_long:
            return True
        far = isinstance(query, OwnPageQuery) and (query.page - 1) * query.limit >= _FAR
        is_first = isinstance(query, OwnPageQuery) and query.is_first and self.cached is not None
        return far or bool(getattr(query, "search", None) and not is_first)

    @property
    def every_error(self) -> tuple[type[Exception], ...]:
        """All its errors."""
        refused = () if self.role == "viewer" and self.authority != "operator" else (errors.Forbidden,)
        of_file = (problems.RangeNotSatisfiable,) if self.sends_file else ()
        return (problems.InvalidRequest, *super().every_error, *refused, problems.PreconditionFailed, *of_file)


@dataclass(frozen=True, kw_only=True)
class ListOperation(ReadOperation):
    """A paged list of an organization or a user. With ``files``, all its rows are also answered as one file.

    Then its query is a :class:`FormatQuery` as well.
    """

    query: type[PageQuery] | type[OwnPageQuery]
    files: ListFormats | None = None

    @property
    def vary(self) -> bytes:
        return super().vary if self.files is None else b"accept, " + super().vary

    def answer_to(self, transaction: Transaction, request: Request) -> Any:
        try:
            query = request.query.of_list(f"{self.path} {request.id}")
            return super().answer_to(transaction, replace(request, query=query))
        except errors.UnfitCursor as error:
            fault = problems.FieldFault(in_="query", name="cursor", code=error.code, message=str(error), allowed=None)
            raise problems.InvalidRequest.of([fault]) from error

    @property
    def every_error(self) -> tuple[type[Exception], ...]:
        return super().every_error if self.query.counts_all else (*super().every_error, errors.PageTooDeep)


class BodyFormat(NamedTuple):
    """A body other than JSON of a model.

    ``read`` turns its bytes, and the query, into the body for ``work``; it runs on a thread of its own, because it may
    take long. ``schema`` and ``example`` are for OpenAPI; only text has an example. ``endings`` are those of file
    names, for a file in a form.
    """

    read: Callable[[bytes, Any], Any]
    schema: Mapping[str, Any]
    example: Any = None
    endings: tuple[str, ...] = ()


_JSON_ALONE: Mapping[str, BodyFormat] = {}


@dataclass(frozen=True, kw_only=True)
class ChangeOperation(Operation):
    """A change. ``work`` makes it, in a unit of work, and ``present`` turns its result into the answer.

    ``writes`` declares all writes of ``work``. ``query`` is the model of the query, ``body`` that of the request's
    body, null if it has none, or if ``body_formats`` has its formats by media type, the first of them like
    ``body_example``; such a body may also be a file in a form. ``body_stream`` reads a body of any media type while it
    arrives, null for other bodies. ``body_types`` are the media types of ``body``. A body
    that is not ``body_required`` may be absent, and one may have ``body_limit`` bytes, null for the setting's.
    ``has_rules`` is true if a body can break rules that its schema does not have. ``creates`` is true if the answer is
    a new row: then it is 201, with its address. ``found`` returns whether the row of a result was there already: then
    it is 200; null if it never is. ``is_conditional`` is true if it supports ``If-Match`` (RFC 9110,
    section 13.1.1): ``work`` calls :meth:`Request.require_current`. The answers of both, unless null, have an entity
    tag. ``secret_fields`` are the members of the answer that are shown once: it is not stored for a key, and has no
    entity tag, and a dry run has null in their place. ``changes_catalogs`` is true if it changes centralized catalogs,
    and with them the coverage of organizations that have adopted them. ``made_at`` is the parent path of the row that
    it ``creates``, empty for its own path. ``prepare`` reads and computes what ``work`` needs if that takes seconds, in
    a unit of work that writes nothing, and for which nobody waits; its result is :attr:`Request.plan` in ``work``,
    which must not use a plan that is out of date. Null if there is nothing to prepare. ``exclusive`` returns the name
    of exclusive work, dry runs included; null if it is not exclusive. ``afterwards`` runs outside of the database, once
    the change is durable, but not in a dry run. It gets the request, the result of ``work`` and the answer in wire
    form, and returns the answer to send. ``for_auditors`` is true if auditors, who change nothing else, may call it,
    because it is about what is their own.
    """

    http_method: str
    work: Callable[[UnitOfWork, Request], Any]
    present: Callable[[Any], Any]
    writes: tuple[Write, ...]
    body: type[BaseModel] | None = None
    body_required: bool = False
    body_limit: int | None = None
    body_types: tuple[str, ...] = ("application/json",)
    body_formats: Mapping[str, BodyFormat] = field(default_factory=lambda: _JSON_ALONE)
    body_stream: BodyStream | None = None
    has_rules: bool = False
    body_example: Any = None
    query: type[Query] | None = None
    creates: bool = False
    found: Callable[[Any], bool] | None = None
    is_conditional: bool = False
    secret_fields: tuple[str, ...] = ()
    changes_catalogs: bool = False
    prepare: Callable[[UnitOfWork, Request], Any] | None = None
    exclusive: Callable[[Transaction, Request], str] | None = None
    made_at: str = ""
    afterwards: Callable[[Request, Any, Any], Awaitable[Any]] | None = None
    for_auditors: bool = False
    role: Role = "editor"
    scope: TokenScope = "write"

    def admits(self, role: str) -> bool:
        return super().admits(role) and not self._refuses_as_auditor(role)

    def admits_own(self, role: str) -> bool:
        return super().admits_own(role) and not self._refuses_as_auditor(role)

    def _refuses_as_auditor(self, role: str) -> bool:
        return role == AUDITOR and self.authority == "organization" and not self.for_auditors

    @property
    def success(self) -> int:
        """The status of a success, except for a dry run."""
        return 201 if self.creates else 200

    @property
    def takes_key(self) -> bool:
        """Whether it supports ``Idempotency-Key``. The other methods can be repeated without one."""
        return self.http_method == "POST"

    @property
    def takes_body(self) -> bool:
        """Whether its requests may have a body."""
        return self.body is not None or bool(self.body_formats) or self.body_stream is not None

    @property
    def answers_secret(self) -> bool:
        """Whether the answer has a secret that is shown once."""
        return bool(self.secret_fields)

    @property
    def is_tagged(self) -> bool:
        """Whether its answer has an entity tag, which is that of the same row when it is read."""
        return (self.creates or self.is_conditional) and self.answer is not None and not self.answers_secret

    @property
    def method(self) -> str:  # type: ignore[override] # reads always have GET
        """The method of the request."""
        return self.http_method

    @property
    def every_error(self) -> tuple[type[Exception], ...]:
        """All its errors."""
        of_body = (problems.RequestTimeout, problems.TooLarge)
        of_type = () if self.body_stream is not None else (problems.UnsupportedMediaType,)
        return (
            *super().every_error,
            errors.Forbidden,
            problems.InvalidRequest,
            *((errors.RequestInProgress, errors.AnswerNotStored, errors.KeyReused) if self.takes_key else ()),
            *((errors.ImportInProgress,) if self.exclusive is not None else ()),
            *((*of_body, *of_type) if self.takes_body else ()),
            *((problems.PreconditionFailed,) if self.is_conditional else ()),
        )

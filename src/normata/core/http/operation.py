"""Operations: what each declares, once. Route, OpenAPI, permissions and generated tests follow from it."""

from __future__ import annotations

from abc import ABC
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple

from pydantic import BaseModel

from normata import errors
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.security import Write
from normata.core.db.transaction import Transaction
from normata.core.http import problems
from normata.core.http.formats import Formats
from normata.core.http.request import Request
from normata.core.http.roles import Role, TokenScope
from normata.core.schema.paging import OwnPageQuery, PageQuery, Query
from normata.core.schema.table import Table

_FAR = 1_000  # rows before a page, which a database counts past

# Who may ask, over and above the token's scope: a member of the organization that it is about, with the operation's
# role; anybody, about what is their own; or an operator of the instance.
Authority = Literal["organization", "self", "operator"]

# What every operation can answer besides a success.
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
    ``authority`` says who may ask. ``role`` is the least role in the organization, which counts where the authority is
    an organization's, ``own_role`` the least for what is the caller's own, null if that makes no difference, and
    ``scope`` the least scope of the token. ``answer`` is the model of a success;
    null if it is JSON's null. ``errors`` has what it can answer besides what every operation can. An operation that
    ``is_long`` may compute for more than some milliseconds.
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
    authority: Authority = "organization"
    own_role: Role | None = None

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that it answers: GET brings HEAD along (RFC 9110, section 9.1)."""
        return ("GET", "HEAD") if self.method == "GET" else (self.method,)

    @property
    def every_error(self) -> tuple[type[Exception], ...]:
        """All that it can answer besides a success."""
        return (*_COMMON_ERRORS, *self.errors)


@dataclass(frozen=True, kw_only=True)
class ReadOperation(Operation):
    """Something that an organization has, or a user.

    ``build`` makes the answer, in wire form, to a request with a query of the model ``query``. An organization's query
    is an :class:`OrganizationQuery`, and its organization one that the caller may read, named by its id. With
    ``formats`` it only reads what the answer is to be made of, and the query is a :class:`FormatQuery`. ``cached``
    names a list whose pages are cached: they must show nothing but rows of tables whose ``shown_in`` has this name, and
    rows that follow from such in the same transaction, whoever asks and under whatever prefix.
    """

    method: ClassVar[str] = "GET"

    query: type[Query]
    build: Callable[[Transaction, Request], Any]
    cached: str | None = None
    formats: Formats | None = None
    role: Role = "viewer"
    scope: TokenScope = "read"

    def is_dear(self, query: Query) -> bool:
        """Whether a request takes long enough to be limited: a report, a search, or a page far down a list.

        The first page of a list that is cached is cheap, whatever is searched for.
        """
        if self.is_long:
            return True
        far = isinstance(query, OwnPageQuery) and (query.page - 1) * query.limit >= _FAR
        is_first = isinstance(query, OwnPageQuery) and query.page == 1 and self.cached is not None
        return far or bool(getattr(query, "search", None) and not is_first)

    @property
    def every_error(self) -> tuple[type[Exception], ...]:
        """All that it can answer besides a success."""
        refused = () if self.role == "viewer" and self.authority != "operator" else (errors.Forbidden,)
        return (problems.InvalidRequest, *super().every_error, *refused, problems.PreconditionFailed)


@dataclass(frozen=True, kw_only=True)
class ListOperation(ReadOperation):
    """A list of an organization, or of a user, in pages."""

    query: type[PageQuery] | type[OwnPageQuery]


class BodyFormat(NamedTuple):
    """A body that is no JSON of a model.

    ``read`` makes of its bytes, and of the query, what ``work`` is given; it runs on a thread of its own, since it may
    take long. ``schema`` and ``example`` are OpenAPI's; there is no example of what is not text. ``endings`` are those
    of the names of such files, for a file in a form.
    """

    read: Callable[[bytes, Any], Any]
    schema: Mapping[str, Any]
    example: Any = None
    endings: tuple[str, ...] = ()


_JSON_ALONE: Mapping[str, BodyFormat] = {}


@dataclass(frozen=True, kw_only=True)
class ChangeOperation(Operation):
    """A change. ``work`` makes it, in a unit of work, and ``present`` turns what it returns into the answer.

    ``writes`` has all that ``work`` writes. ``query`` is the model of the query, ``body`` that of the request's body,
    null if it has none, or where ``body_formats`` has what there is to read by media type, the first of them like
    ``body_example``; such a body may also be a file in a form. ``body_types`` are the media types of ``body``. A body
    that is not ``body_required`` may be absent, and one may have ``body_limit`` bytes, null for the setting's.
    ``has_rules`` is true if a body can break rules that its schema does not have. ``creates`` is true if the
    answer is a new row: then it is 201, with its address. ``is_conditional`` is true if it heeds ``If-Match`` (RFC
    9110, section 13.1.1): ``work`` calls :meth:`Request.require_current`. The answer to either, where it is not null,
    has the entity tag of what it shows.
    ``secret_fields`` are the members of the answer that are shown once: it is not stored for a key, and has no entity
    tag, and a dry run has null in their place.
    ``changes_catalogs`` is true if it changes centralized catalogs, and with them the coverage of whoever has adopted
    them. ``made_at`` is the path that what it ``creates`` is below, empty for its own.
    ``prepare`` reads and computes what ``work`` needs, where that takes seconds, in a unit of work that writes nothing,
    and for which nobody waits; ``work`` finds what it returns in :attr:`Request.plan`, and must not use a plan that is
    out of date. Null where nothing is to be prepared.
    ``exclusive`` is the name of what one request at a time may do, dry runs included; null if any may do it.
    ``afterwards`` does what follows outside of the database, once the change is durable; not in a dry run. It is given
    the request, what ``work`` has returned and the answer in wire form, and returns the answer that is sent.
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
    has_rules: bool = False
    body_example: Any = None
    query: type[Query] | None = None
    creates: bool = False
    is_conditional: bool = False
    secret_fields: tuple[str, ...] = ()
    changes_catalogs: bool = False
    prepare: Callable[[UnitOfWork, Request], Any] | None = None
    exclusive: Callable[[Transaction, Request], str] | None = None
    made_at: str = ""
    afterwards: Callable[[Request, Any, Any], Awaitable[Any]] | None = None
    role: Role = "editor"
    scope: TokenScope = "write"

    @property
    def success(self) -> int:
        """The status of a success that is no dry run."""
        return 201 if self.creates else 200

    @property
    def takes_key(self) -> bool:
        """Whether it heeds ``Idempotency-Key``. The other methods can be repeated without one."""
        return self.http_method == "POST"

    @property
    def takes_body(self) -> bool:
        """Whether its requests may have a body."""
        return self.body is not None or bool(self.body_formats)

    @property
    def answers_secret(self) -> bool:
        """Whether the answer has what is shown once."""
        return bool(self.secret_fields)

    @property
    def is_tagged(self) -> bool:
        """Whether its answer has an entity tag: that of what would be read now."""
        return (self.creates or self.is_conditional) and self.answer is not None and not self.answers_secret

    @property
    def method(self) -> str:  # type: ignore[override] # that of what is read is always GET
        """The method of the request."""
        return self.http_method

    @property
    def every_error(self) -> tuple[type[Exception], ...]:
        """All that it can answer besides a success."""
        of_body = (problems.RequestTimeout, problems.TooLarge, problems.UnsupportedMediaType)
        return (
            *super().every_error,
            errors.Forbidden,
            problems.InvalidRequest,
            *((errors.RequestInProgress, errors.AnswerNotStored, errors.KeyReused) if self.takes_key else ()),
            *((errors.ImportInProgress,) if self.exclusive is not None else ()),
            *(of_body if self.takes_body else ()),
            *((problems.PreconditionFailed,) if self.is_conditional else ()),
        )

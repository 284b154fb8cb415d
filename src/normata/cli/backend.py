"""What commands work with: the operations of HTTP, of a server or on the database.

A command is written once, on :class:`Backend`, and prints from the answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, Protocol

from normata.errors import DomainError

if TYPE_CHECKING:
    from normata.core.changes.source import Fault
    from normata.core.http.roles import Role
    from normata.coverage.assessments import AssessmentInput

Values = Mapping[str, Any]
Write = Callable[[Iterable[str]], None]  # prints lines


class Call(NamedTuple):
    """An operation of HTTP, and the module that declares it."""

    method: str
    path: str
    module: str


class RefusedField(NamedTuple):
    """One thing that is wrong with a request: the part of it, the name of the field, and why."""

    part: str
    name: str
    message: str

    def __str__(self) -> str:
        return f"{self.name or self.part}: {self.message}"


class Refused(DomainError):
    """The service has refused a request, with this status; ``faults`` has what is wrong with its fields, if that is."""

    def __init__(self, message: str, status: int, faults: Sequence[RefusedField] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.faults = faults

    def fault(self, *names: str) -> str | None:
        """What is wrong with the first of these fields that is refused; null if none is."""
        return next((one.message for one in self.faults if one.name in names), None)


class EndlessList(DomainError):
    """A page of a list names itself as the next one."""

    message = "the server sends a list that does not end"


class ListPage(NamedTuple):
    """A page of a list, and the cursor of the next one, null at the end."""

    items: Sequence[Any]
    next: str | None


class Invitation(NamedTuple):
    """A new invitation: its link, and in words whom to give it to, or that it was mailed."""

    link: str
    delivery: str


class Backend(Protocol):
    """The operations, and what names mean. Every method raises Refused, and CommandError with a sentence."""

    def organization(self, name: str | None) -> str:
        """The id of the organization with this id or slug; of the only one where ``name`` is null."""

    def adopted(self, organization: str, name: str, as_of: str | None = None) -> str:
        """The id of the framework with this id, slug or identifier that the organization has, or had, adopted."""

    def control(self, organization: str, name: str, framework: str | None = None, as_of: str | None = None) -> str:
        """The id of the control with this id or identifier; ``framework`` says of which framework."""

    def member(self, organization: str, name: str) -> str:
        """The id of the membership of a user, by the user's address or id or by its own id."""

    def invite(self, organization: str, email: str, role: Role, expires_at: str | None) -> Invitation:
        """Invite somebody to an organization."""

    def user_names(self, organization: str, users: Iterable[str]) -> Mapping[str, str]:
        """The names of users, by their ids, as far as they are known."""

    def read(self, call: Call, row: str = "", /, **query: Any) -> Any:
        """The answer of a read, in wire form. ``row`` is the id in the path."""

    def page(self, call: Call, row: str = "", /, **query: Any) -> ListPage:
        """A page of a list."""

    def content(self, call: Call, row: str, name: str, /, **query: Any) -> bytes:
        """The answer of a read in the format ``name``."""

    def download(self, call: Call, name: str, file: BinaryIO, /, **query: Any) -> None:
        """Write all rows of a list into a file, in the format ``name``."""

    def upload(self, call: Call, content: bytes, media_type: str, /, *, dry_run: bool, **query: Any) -> Any:
        """The answer of a change with a body of a media type, in wire form; of a dry run, what it would be."""

    def change(self, call: Call, row: str = "", /, *, body: Values | None = None, **query: Any) -> Any:
        """The answer of a change, in wire form."""

    def assess(
        self, organization: str, assessments: Sequence[AssessmentInput], found: Sequence[Fault]
    ) -> Sequence[Values]:
        """Assess controls, all or none, unless faults were ``found`` before: the controls with their assessments.

        Raises FaultyInput, with the places of the input.
        """

    def adopt(self, organization: str, names: Sequence[str], baseline: str | None) -> Mapping[str, bool]:
        """Adopt the frameworks with these names: by id, whether the adoption is new.

        ``baseline`` is empty for the whole framework, and null for what it is.
        """

    def leave(self, organization: str, names: Sequence[str]) -> Mapping[str, bool]:
        """Leave the frameworks with these names: by id, whether it was adopted."""

    def events(self, organization: str | None, write: Write, *, follow: bool) -> None:
        """Write the events of an organization, or all, oldest first; with ``follow`` also new ones, for ever."""

    def log(self, organization: str | None, write: Write, *, operators: bool) -> None:
        """Write the lines of a log, with what was sealed."""

    def checkpoint(self, organization: str | None, *, operators: bool) -> str:
        """The signed checkpoint of a log."""


def every_item(backend: Backend, call: Call, row: str = "", /, **query: Any) -> Iterator[Any]:
    """The items of a list, page by page.

    Each page begins after the last item of the one before, so that what others add or remove meanwhile moves no item
    across pages. Raises EndlessList if a page is its own next one.
    """
    cursor: str | None = None
    while True:
        page = backend.page(call, row, **query, limit=100, cursor=cursor)
        yield from page.items
        if page.next is None:
            return
        if page.next == cursor:
            raise EndlessList
        cursor = page.next


def pairs(query: Values) -> list[tuple[str, str]]:
    """The parameters of a query string; a list is repeated, and null left out."""
    return [
        (name, str(one).lower() if isinstance(one, bool) else str(one))
        for name, value in query.items()
        for one in (value if isinstance(value, (list, tuple)) else [value])
        if one is not None
    ]


def as_json(value: Any) -> str:
    """A value as JSON in one line, with the bytes that HTTP answers."""
    import orjson

    try:
        return orjson.dumps(value).decode()
    except TypeError:  # an integer of more than 64 bits
        import json

        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

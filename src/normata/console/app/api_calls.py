"""The operations that pages and forms call, and their outcomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from normata.console.filters import words
from normata.console.texts import text
from normata.core.changes.idempotency import Answer
from normata.core.http.negotiation import entity_tag
from normata.core.http.operation import ChangeOperation
from normata.core.http.problems import error_type_of, problem
from normata.core.http.request import Request
from normata.core.schema.wire import encode
from normata.errors import SlugTaken, WrongState

Query = Mapping[str, str | Sequence[str]]

_NOTHING: Query = {}
# With these statuses the form is shown again. Every other error has a page of its own.
_SHOWN_IN_FORMS = frozenset({400, 403, 409, 412, 422})


class ApiQuery(NamedTuple):
    """A read that a page makes: the id of the operation, its query, and the id in its path.

    The organization need not be named: it is that of the page.
    """

    operation: str
    query: Query = _NOTHING
    id: str = ""


class Following(NamedTuple):
    """A change that follows another one in the same transaction: both are made, or neither.

    ``body`` makes its body from the answers of those before it, and ``row_id`` the id of what it is about, if any.
    """

    operation: str
    body: Callable[[Sequence[Any]], Mapping[str, Any]]
    row_id: Callable[[Sequence[Any]], str] = lambda _: ""


class Upload(NamedTuple):
    """A body that is not JSON of a model: its media type, which the operation must accept, and its bytes."""

    media_type: str
    content: bytes


class UndoNote(NamedTuple):
    """A note that reports a change: its words, and the page and the field of the form that undoes the change."""

    words: str
    steps: tuple[str, ...]
    field: tuple[str, str]


class ApiCall(NamedTuple):
    """A read as a request to the API: its method and its full URL."""

    method: str
    address: str


def pairs_of(query: Query) -> list[tuple[str, str]]:
    """The names and values of a query, without empty values."""
    pairs = []
    for name, value in query.items():
        values = [value] if isinstance(value, str) else value
        pairs += [(name, one) for one in values if one]
    return pairs


def address_of(base: str, path: str, row_id: str, pairs: Sequence[tuple[str, str]]) -> str:
    """The URL of an operation, with an id in its path, and a query."""
    query = f"?{urlencode(pairs)}" if pairs else ""
    return f"{base}{path.replace('{id}', quote(row_id, safe=''))}{query}"


@dataclass(frozen=True)
class Refusal:
    """Why a change was refused. ``faults`` maps fields, by their names on the wire, to messages."""

    status: int
    code: str
    title: str
    detail: str
    faults: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, error: Exception, whole: str = "") -> Refusal | None:
        """The refusal for an error; null if correcting the form would not help.

        ``whole`` names the form field that becomes the whole body of the request, if there is one.
        """
        error_type = error_type_of(error)
        if error_type is None or error_type.status not in _SHOWN_IN_FORMS:
            return None
        faults: dict[str, str] = {"slug": str(error)} if isinstance(error, SlugTaken) else {}
        for fault in problem(error, "", "")["errors"]:
            if name := fault["name"] or whole:
                faults.setdefault(name, fault["message"])
        detail = _state_in_words(error) if isinstance(error, WrongState) else str(error)
        return cls(error_type.status, error_type.code, error_type.title, detail, faults)

    def below(self, place: str) -> Refusal:
        """The same with names relative to ``place``: ``assessments/0/justification`` becomes ``justification``."""
        shortened = {name.removeprefix(f"{place}/"): message for name, message in self.faults.items()}
        return Refusal(self.status, self.code, self.title, self.detail, shortened)


def _state_in_words(error: WrongState) -> str:
    """What the error says, with the states as pages call them."""
    allowed = text("refusal.or").join(map(words, error.allowed))
    return f"{text('refusal.wrong_state', state=words(error.state), allowed=allowed)} {error.more}".rstrip()


class Outcome(NamedTuple):
    """The outcome of a change: the answer of the operation, or why it was refused."""

    answer: Any
    refusal: Refusal | None = None


class FilledFrom(NamedTuple):
    """What a form was filled from: a ``part`` of an answer, with the entity tag that it had then.

    A change is refused if the part has another tag now. It is for operations that do not support ``If-Match``.
    """

    api_query: ApiQuery
    part: Callable[[Any], Any]
    tag: str


class Fields(NamedTuple):
    """The fields of a form in their order, with all values of a repeated one."""

    pairs: Sequence[tuple[str, str]]

    def get(self, name: str, default: str = "") -> str:
        """The last value of a field, without surrounding whitespace; ``default`` if the field is missing."""
        return next((value.strip() for key, value in reversed(self.pairs) if key == name), default)

    def all(self, name: str) -> list[str]:
        """All values of a field."""
        return [value for key, value in self.pairs if key == name]

    def has(self, name: str) -> bool:
        """Whether the form contains a field."""
        return any(key == name for key, _ in self.pairs)


def tag_of(answer: Any) -> str:
    """The entity tag of an operation's answer, which a form sends back as ``If-Match``."""
    return entity_tag(encode(answer), "identity").decode()


def plain_answer(operation: ChangeOperation, _request: Request, content: Any) -> Answer:
    """The answer of a change as pages use it: its content, without headers."""
    return Answer(operation.success, {}, content)

"""The parameters that an operation declares, and the faults of those in a query that it does not have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from normata.core.http.context import RequestContext
from normata.core.http.dry_run import ChangeQuery
from normata.core.http.negotiation import prefers_strict
from normata.core.http.operation import ChangeOperation, Operation, ReadOperation
from normata.core.http.problems import FieldFault
from normata.core.schema.paging import Query

_APPLIED = (b"preference-applied", b"handling=strict")

_ARRAY = re.compile(r"([^\[\]]+)\[[0-9]*\]")
_MOST_REPORTED = 20  # unknown names: a request may have ten thousand
_LONGEST_COMPARED = 100  # characters of a name, since comparing takes quadratic time
_MOST_NEAR = 3


class Undeclared(NamedTuple):
    """The names in a query that the operation does not declare: those that it refuses, and those that it ignores."""

    refused: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


_NOTHING = Undeclared()


class QueryNames:
    """The names of the parameters of an operation. It is made once, because most requests need a look at it."""

    def __init__(self, operation: Operation) -> None:
        self._names = (*_declared(operation),)
        self._known = frozenset(self._names)
        self._arrays = frozenset(name for query in _models(operation) for name in getattr(query, "bracketed", ()))
        self._by_spelling = {_spelling(name): name for name in self._names}
        self._ignores = operation.ignores_unknown

    def undeclared(self, pairs: Iterable[tuple[str, str]]) -> Undeclared:
        """What is undeclared in the names and values of a query."""
        unknown = {name: None for name, _ in pairs if name not in self._known and not self._is_array(name)}
        if not unknown:
            return _NOTHING
        if not self._ignores:
            return Undeclared(refused=(*unknown,))
        slips = {name: None for name in unknown if self._is_slip(name)}
        return Undeclared((*slips,), tuple(name for name in unknown if name not in slips))

    def refused(self, undeclared: Undeclared, context: RequestContext) -> tuple[str, ...]:
        """The names that a request is refused for.

        If the operation ignores unknown parameters, `Prefer` decides, and the answer says that it did.
        """
        prefer = context.headers.get(b"prefer") if self._ignores else None
        if prefer is None or not prefers_strict(prefer):
            return undeclared.refused
        context.response_headers.append(_APPLIED)
        return undeclared.refused + undeclared.ignored

    def faults(self, names: Sequence[str]) -> Iterator[FieldFault]:
        """The faults of undeclared names, the first twenty of them, each with the nearest declared names."""
        for name in names[:_MOST_REPORTED]:
            near = self._nearest(name)
            message = "is not a known parameter" + (f"; did you mean {' or '.join(near)}?" if near else "")
            allowed = near or [*self._names]
            yield FieldFault(in_="query", name=name, code="unknown", message=message, allowed=allowed)

    def _is_array(self, name: str) -> bool:
        match = _ARRAY.fullmatch(name)
        return match is not None and match[1] in self._arrays

    def _is_slip(self, name: str) -> bool:
        """Whether only the case, hyphens or underscores of a name are wrong."""
        match = _ARRAY.fullmatch(name)
        declared = self._by_spelling.get(_spelling(match[1] if match else name))
        return declared is not None and (match is None or declared in self._arrays)

    def _nearest(self, name: str) -> list[str]:
        """The declared names that are like it, the nearest first; none if no name is near."""
        if len(name) > _LONGEST_COMPARED:
            return []
        spelling = _spelling(name.partition("[")[0])
        same = self._by_spelling.get(spelling)
        near = get_close_matches(spelling, self._by_spelling, _MOST_NEAR) if same is None else []
        return [same] if same is not None else [self._by_spelling[one] for one in near]


def _declared(operation: Operation) -> Iterator[str]:
    for query in _models(operation):
        for name, one in query.model_fields.items():
            yield one.alias or name


def _models(operation: Operation) -> Iterator[type[Query] | type[ChangeQuery]]:
    """The models of the query of an operation: its own, and that of all changes."""
    if isinstance(operation, ReadOperation | ChangeOperation) and operation.query is not None:
        yield operation.query
    if isinstance(operation, ChangeOperation):
        yield ChangeQuery


def _spelling(name: str) -> str:
    """A name without what is easily mistaken: case, hyphens and underscores."""
    return name.lower().replace("-", "").replace("_", "")

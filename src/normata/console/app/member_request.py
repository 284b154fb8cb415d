"""Who makes a request to a page of an organization, what they may do there, and the addresses of its pages."""

from __future__ import annotations

from functools import lru_cache, partial
from urllib.parse import parse_qsl, quote, unquote, urlencode

from starlette.requests import Request

from normata.console.app.api_calls import Query, pairs_of
from normata.console.app.past import PARAMETER, Past, has_past
from normata.console.page_request import Console, PageRequest
from normata.core.http.roles import AUDITOR, Role, role_suffices
from normata.errors import InsufficientRole, NotFound
from normata.identity.sessions.sessions import SignedInMembership, Visitor

NOTES = frozenset(
    {"done", "undo", "restored", "assessed", "changed", "following", "unlinked", "added", "many", "proof"}
)  # of what was just done
_segment = lru_cache(maxsize=2_048)(partial(quote, safe=""))  # a page has hundreds, mostly of the same few
_OF_ONE_DAY = frozenset({PARAMETER, "page", "cursor", "open", "selected"})  # what an address has of one day alone


class MemberRequest(PageRequest):
    """A member's request to a page of an organization.

    ``past`` is the moment that the page shows, null for now; ``has_past`` if it could show another one.
    """

    def __init__(self, console: Console, request: Request, visitor: Visitor, membership: SignedInMembership) -> None:
        super().__init__(console, request)
        self.person = visitor
        self.membership = membership
        self.past: Past | None = None
        self.has_past = False
        self._shown_path = ""
        self.context.organization_id = membership.organization_id

    def may(self, least: Role) -> bool:
        """Whether the person's role is ``least`` or higher. In the past nobody may do more than an auditor: read."""
        is_offered = self.past is None or role_suffices(AUDITOR, least)
        return is_offered and role_suffices(self.membership.role, least)

    def require(self, least: Role) -> None:
        """Raise InsufficientRole unless the person's role is ``least`` or higher."""
        if not self.may(least):
            raise InsufficientRole(f"This takes the role {least} or a larger one in the organization.")

    def param(self, name: str) -> str:
        """A parameter of the path, decoded. Raises NotFound if it is empty or contains a null character."""
        value = unquote(self.request.path_params[name])
        if not value or "\0" in value:
            raise NotFound
        return value

    def path(self, *steps: str, query: Query | None = None) -> str:
        """A path of the organization's pages, without the application's prefix: ``path("controls", control_id)``.

        From a page of the past it leads to the same moment, if that page has a past, and ``query`` names no other one.
        """
        path = "/".join(["/app", *map(_segment, (self.membership.organization_slug, *steps)), ""])
        if self.past is not None and has_past(steps):
            query = {**self.of_then, **(query or {})}
        pairs = urlencode(pairs_of(query)) if query else ""
        return f"{path}?{pairs}" if pairs else path

    @property
    def of_then(self) -> dict[str, str]:
        """The parameter that keeps a form or link at the moment that the page shows; none if that is now."""
        return {} if self.past is None else {PARAMETER: self.past.sent}

    def remaining_on_other_days(self) -> list[tuple[str, str]]:
        """The names and values of the query that hold on every day, such as filters."""
        return [(name, value) for name, value in self._query_pairs() if name not in NOTES | _OF_ONE_DAY]

    def _query_pairs(self) -> list[tuple[str, str]]:
        return parse_qsl(self.request.scope["query_string"].decode("latin-1"))

    @property
    def place(self) -> dict[str, str]:
        """The parameters of the query that say which page of a list is shown."""
        return {name: self.query.get(name, "") for name in ("page", "cursor")}

    @property
    def shown_path(self) -> str:
        """The path of the page: of this request, or the one that a refused step shows: links lead back there."""
        return self._shown_path or self.context.raw_path

    def shows(self, path: str) -> None:
        """Say that this request, to another path, shows the page at ``path``."""
        self._shown_path = path

    @property
    def here(self) -> str:
        """The path and query of the page, without the prefix."""
        query = self.request.scope["query_string"].decode("latin-1")
        return f"{self.shown_path}?{query}" if query else self.shown_path

    def link(self, **changed: object) -> str:
        """The path of this page with some parameters of the query replaced; null removes one.

        A cursor goes with the number of the page, because it belongs to the other parameters.
        """
        return self.context.prefix + self.here_with(**changed)

    def here_with(self, **changed: object) -> str:
        """The same without the prefix, as forms send it to come back."""
        dropped = {*changed, *NOTES, *(("cursor",) if "page" in changed else ())}
        pairs = [(name, value) for name, value in self._query_pairs() if name not in dropped]
        remaining = [*pairs, *((name, value) for name, value in changed.items() if value is not None)]
        return self.shown_path + (f"?{urlencode(remaining)}" if remaining else "")

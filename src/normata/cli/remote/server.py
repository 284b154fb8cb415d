"""The operations of a server over HTTP, for commands."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple
from urllib.parse import quote

from normata.cli import calls
from normata.cli.backend import Call, Invitation, ListPage, Refused, Values, Write, every_item, pairs
from normata.cli.invitations import delivery_words
from normata.cli.remote import address
from normata.cli.remote.log import write_events, write_log
from normata.cli.remote.transport import ServerFailed, Transport, object_in
from normata.core.log import visible
from normata.errors import CommandError
from normata.frameworks.choice import NamedControl, choose_adopted, choose_control, choose_visible
from normata.identity.choice import NoSuchOrganization

if TYPE_CHECKING:
    from normata.core.changes.source import Fault
    from normata.core.http.roles import Role
    from normata.coverage.assessments import AssessmentInput

_MEDIA_TYPES = {
    "json": "application/json",
    "csv": "text/csv",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "pdf": "application/pdf",
}
_FIRST = 10  # organizations that a sentence names
_LONGEST_SEARCH = 200  # characters


class _Framework(NamedTuple):
    id: str
    slug: str
    identifier: str


@contextmanager
def reached(url: str, *, is_option: bool) -> Iterator[Server]:
    """The operations of the server at an address. Raises BadSetting."""
    transport = Transport(address.base_of(url, is_option=is_option), address.token())
    try:
        yield Server(transport)
    except (KeyError, TypeError, AttributeError, IndexError) as error:  # it is another version, or no Normata
        raise ServerFailed(f"{transport.base} answers with other fields than this version knows") from error
    finally:
        transport.close()


class Server:
    """A :class:`normata.cli.backend.Backend` of a server."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    def organization(self, name: str | None) -> str:
        """See the base; there are only those of the token's user."""
        known = list(every_item(self, calls.ORGANIZATIONS))
        if name is None and len(known) == 1:
            return str(known[0]["id"])
        # An id takes precedence over a slug with the same spelling.
        for field in ("id", "slug"):
            for one in known:
                if name is not None and one[field] == name:
                    return str(one["id"])
        raise NoSuchOrganization.of(name, sorted(str(one["slug"]) for one in known)[:_FIRST])

    def adopted(self, organization: str, name: str, as_of: str | None = None) -> str:
        """See the base."""
        return choose_adopted(name, self._adopted(organization, as_of))

    def control(self, organization: str, name: str, framework: str | None = None, as_of: str | None = None) -> str:
        """See the base."""
        query = {"organizationId": organization, "asOf": as_of}
        adopted = {one.id: one for one in self._adopted(organization, as_of)}
        found: dict[str, NamedControl] = {}
        for one in self._called(name, query):
            of = adopted.get(one["frameworkId"])
            if of is not None:
                found[one["id"]] = NamedControl(one["id"], of.id, of.slug, of.identifier)
        return choose_control(name, framework, list(found.values()))

    def _called(self, name: str, query: Values) -> Iterator[Any]:
        """The controls that have a name as their id, or as their identifier."""
        one = self.control_by_id(name, query)
        if one is not None:
            yield one
        if name.strip():
            listed = every_item(self, calls.CONTROLS, **query, search=name.strip()[:_LONGEST_SEARCH])
            yield from (one for one in listed if one["identifier"] == name)

    def control_by_id(self, name: str, query: Values) -> Any:
        """The control with an id; null if there is none."""
        if not name.strip("."):
            return None
        try:
            return self.read(calls.CONTROL, name, **query)
        except Refused as error:
            if error.status != 404:
                raise
            return None

    def _adopted(self, organization: str, as_of: str | None) -> list[_Framework]:
        query = {"organizationId": organization, "asOf": as_of, "adoptedOnly": True, "sortColumn": "identifier"}
        listed = every_item(self, calls.FRAMEWORKS, **query)
        return [_Framework(one["id"], one["slug"], one["identifier"]) for one in listed]

    def member(self, organization: str, name: str) -> str:
        """See the base; only members of the organization are known."""
        found = list(every_item(self, calls.MEMBERS, organizationId=organization, removed="include"))
        for is_named in (
            lambda one: one["id"] == name,
            lambda one: one["userId"] == name,
            lambda one: str(one["email"]).casefold() == name.casefold(),
        ):
            for one in found:
                if is_named(one):
                    return str(one["id"])
        raise CommandError(f"{name} is not a member of {organization}")

    def invite(self, organization: str, email: str, role: Role, expires_at: str | None) -> Invitation:
        """See the base."""
        body = {"organizationId": organization, "email": email, "role": role}
        made = self.change(calls.INVITING, body=body | ({"expiresAt": expires_at} if expires_at else {}))
        return Invitation(str(made["link"]), delivery_words(str(made["mail"]), email))

    def user_names(self, organization: str, users: Iterable[str]) -> Mapping[str, str]:
        """See the base."""
        ids = sorted(set(users))
        found: dict[str, str] = {}
        for start in range(0, len(ids), 100):
            query = {"organizationId": organization, "kind": "users", "id": ids[start : start + 100]}
            found |= {one["id"]: one["label"] for one in every_item(self, calls.NAMES, **query)}
        return found

    def read(self, call: Call, row: str = "", /, **query: Any) -> Any:
        """See the base."""
        return self._json(self.transport.send("GET", _path(call, row), pairs(query)).body)

    def page(self, call: Call, row: str = "", /, **query: Any) -> ListPage:
        """See the base."""
        answer = self.transport.send("GET", _path(call, row), pairs(query))
        found = self._json(answer.body)
        if not isinstance(found.get("items"), list):
            raise ServerFailed(f"{self.transport.base} answers without items: is it Normata's address?")
        return ListPage(found["items"], answer.next)

    def content(self, call: Call, row: str, name: str, /, **query: Any) -> bytes:
        """See the base."""
        sent = pairs({**query, "format": name})
        return self.transport.send("GET", _path(call, row), sent, media_type=_MEDIA_TYPES[name]).body

    def download(self, call: Call, name: str, file: BinaryIO, /, **query: Any) -> None:
        """See the base."""
        self.transport.download(_path(call, ""), pairs({**query, "format": name}), _MEDIA_TYPES[name], file)

    def upload(self, call: Call, content: bytes, media_type: str, /, *, dry_run: bool, **query: Any) -> Any:
        """See the base."""
        sent = pairs({**query, "dryRun": dry_run or None})
        headers = {"Content-Type": media_type}
        found = self._json(self.transport.send(call.method, _path(call, ""), sent, body=content, headers=headers).body)
        return found["answer"] if dry_run else found

    def change(self, call: Call, row: str = "", /, *, body: Values | None = None, **query: Any) -> Any:
        """See the base."""
        sent = None if body is None else json.dumps(body).encode()
        headers = {} if sent is None else {"Content-Type": "application/json"}
        answer = self.transport.send(call.method, _path(call, row), pairs(query), body=sent, headers=headers)
        return self._json(answer.body)

    def assess(
        self, organization: str, assessments: Sequence[AssessmentInput], found: Sequence[Fault]
    ) -> Sequence[Values]:
        """See the base."""
        from normata.cli.remote.assessing import assess

        query = {"organizationId": organization}

        def send(body: dict[str, Any], is_dry_run: bool) -> Any:
            return self.change(calls.ASSESSMENTS, body=body | query, dryRun=True if is_dry_run else None)

        return assess(send, lambda name: self.control_by_id(name, query) is not None, assessments, found)

    def adopt(self, organization: str, names: Sequence[str], baseline: str | None) -> Mapping[str, bool]:
        """See the base. Each framework is adopted by itself, once all of them can be."""
        known, chosen = self._visible(organization, names)
        body = None if baseline is None else {"baseline": baseline or None}
        try:
            for is_dry_run in (True, None) if len(chosen) > 1 else (None,):
                for one in chosen:
                    self.change(calls.ADOPTION, one, body=body, organizationId=organization, dryRun=is_dry_run)
        except Refused as error:
            reason = error.fault("baseline")
            if reason is None:
                raise
            raise CommandError(reason) from None
        return {one: not known[one]["isAdopted"] for one in chosen}

    def leave(self, organization: str, names: Sequence[str]) -> Mapping[str, bool]:
        """See the base."""
        known, chosen = self._visible(organization, names)
        for one in chosen:
            self.change(calls.LEAVING, one, organizationId=organization)
        return {one: bool(known[one]["isAdopted"]) for one in chosen}

    def _visible(self, organization: str, names: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
        """The frameworks that the organization can see, by id, and the ids of those with these names."""
        listed = every_item(self, calls.FRAMEWORKS, organizationId=organization)
        known = {str(one["id"]): one for one in listed}
        called = [
            [id_ for id_, one in known.items() if name in (id_, one["slug"], one["identifier"])] for name in names
        ]
        return known, list(dict.fromkeys(map(choose_visible, names, called)))

    def events(self, organization: str | None, write: Write, *, follow: bool) -> None:
        """See the base; of one organization, and those that are sealed, which an event is within a second."""
        write_events(self.transport, self.organization(organization), write, follow=follow)

    def log(self, organization: str | None, write: Write, *, operators: bool) -> None:
        """See the base; as `GET /events/log/` answers it."""
        write_log(self.transport, self._owner(organization, operators=operators), write)

    def checkpoint(self, organization: str | None, *, operators: bool) -> str:
        """See the base."""
        owner = self._owner(organization, operators=operators)
        note = str(self.read(calls.CHECKPOINT, organizationId=owner)["note"])
        return "\n".join(map(visible, note.split("\n")))  # a real one has nothing that would change

    def _owner(self, organization: str | None, *, operators: bool) -> str:
        if operators:
            raise CommandError("a server shows the operator's log to nobody; --operator needs the database")
        return self.organization(organization)

    def _json(self, body: bytes) -> Any:
        return object_in(body, self.transport.base)


def _path(call: Call, row: str) -> str:
    return call.path.replace("{id}", quote(row, safe=""))

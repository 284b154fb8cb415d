"""The operations on the database, for commands: in this process, as the operator of the machine, who may do all."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from normata.cli.backend import Call, Invitation, ListPage, Refused, RefusedField, Values, Write, pairs
from normata.cli.shared import change, fail, opened, settings_with
from normata.core.http.caller import Caller

if TYPE_CHECKING:
    from normata.core.changes.source import Fault
    from normata.core.changes.unit_of_work import UnitOfWork
    from normata.core.db.database import Database
    from normata.core.db.transaction import Transaction
    from normata.core.http.operation import ChangeOperation, Operation, ReadOperation
    from normata.core.http.request import Request
    from normata.core.http.roles import Role
    from normata.coverage.assessments import AssessmentInput

_PAUSE = 0.5  # seconds between two queries for new events

# Events name the command and not a user, so operations that are about their caller are none for commands.
_NOBODY = Caller("", "", "", "admin", None, {}, {})


@contextmanager
def on_database(url: str | None) -> Iterator[OnDatabase]:
    """The operations on a database, which must exist."""
    with opened(url, create=False) as database:
        yield OnDatabase(database, url)


class _NotStored(Exception):
    """Ends the transaction of a dry run, with what the change would answer."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer


class OnDatabase:
    """A :class:`normata.cli.backend.Backend` on a database."""

    def __init__(self, database: Database, url: str | None) -> None:
        self.database = database
        self._url = url

    def organization(self, name: str | None) -> str:
        """See the base."""
        from normata.identity.organization_lookup import find

        return self.database.read_now(lambda transaction: find(transaction, name))

    def adopted(self, organization: str, name: str, as_of: str | None = None) -> str:
        """See the base."""
        from normata.reports.report_header import find_adopted

        return self._read_then(organization, as_of, lambda then: find_adopted(then, organization, name))

    def control(self, organization: str, name: str, framework: str | None = None, as_of: str | None = None) -> str:
        """See the base."""
        from normata.frameworks.control_names import find_control

        return self._read_then(organization, as_of, lambda then: find_control(then, organization, name, framework))

    def _read_then(self, organization: str, as_of: str | None, look: Any) -> str:
        from normata.errors import PastUnknown
        from normata.history.reading import at

        try:
            return str(self.database.read_now(lambda transaction: look(at(transaction, organization, as_of))))
        except PastUnknown as error:
            raise Refused(str(error), 400, [RefusedField("query", "asOf", str(error))]) from None

    def member(self, organization: str, name: str) -> str:
        """See the base."""
        from normata.identity.members.members import member_named, member_of
        from normata.identity.users import named

        def work(transaction: Transaction) -> str:
            direct = member_named(transaction, name)
            if direct is not None and direct.organization_id == organization:
                return str(direct.id)
            user = named(transaction, name)
            if user is None:
                fail(f"there is no user {name}; `normata user list` lists all")
            found = member_of(transaction, organization, user.id)
            if found is None:
                fail(f"{name} is not a member of {organization}")
            return str(found.id)

        return self.database.read_now(work)

    def invite(self, organization: str, email: str, role: Role, expires_at: str | None) -> Invitation:
        """See the base."""
        from normata.cli.invitations import InvitedByMail, mail
        from normata.identity.invitations import invitations
        from normata.identity.organization_lookup import name_of

        def work(unit: UnitOfWork) -> InvitedByMail:
            made = invitations.invite(unit, organization, email, role, expires_at)
            return InvitedByMail(made, name_of(unit, organization))

        return mail(change(self.database, work))

    def user_names(self, organization: str, users: Iterable[str]) -> Mapping[str, str]:
        """See the base; it knows every user, also those who are no members of the organization any more."""
        from sqlalchemy import select

        from normata.identity.model import User

        del organization
        statement = select(User.id, User.name).where(User.id.in_(set(users)))
        return {str(row.id): str(row.name) for row in self.database.read_now(lambda one: one.rows(statement))}

    def read(self, call: Call, row: str = "", /, **query: Any) -> Any:
        """See the base."""
        operation = _declared(call)
        found = self._answered(operation, row, query)
        return found if operation.formats is None else operation.formats.present(found)

    def page(self, call: Call, row: str = "", /, **query: Any) -> ListPage:
        """See the base."""
        found = self._answered(_declared(call), row, query)
        return ListPage(found["items"], found.next)

    def content(self, call: Call, row: str, name: str, /, **query: Any) -> bytes:
        """See the base."""
        operation = _declared(call)
        formats = operation.formats
        assert formats is not None  # noqa: S101 - the command names a report
        chosen = formats.by_name[name]
        if not chosen.is_there():
            fail(f"{name} needs normata[{chosen.extra}]; install it, or choose another format", code=2)
        report = formats.present(self._answered(operation, row, query))
        reason = chosen.objection(report)
        if reason is not None:
            raise Refused(f"the report {reason}", 400, [RefusedField("query", "format", reason)])
        content: bytes = chosen.render(report)
        return content

    def download(self, call: Call, name: str, file: BinaryIO, /, **query: Any) -> None:
        """See the base."""
        import_module("normata.tables")  # a column may refer to rows of any table
        operation = _declared(call)
        with _refusals("query"):
            request = self._reading(operation, "", query)
            self.database.read_now(lambda transaction: operation.files.write(transaction, request, name, file))

    def upload(self, call: Call, content: bytes, media_type: str, /, *, dry_run: bool, **query: Any) -> Any:
        """See the base."""
        import_module("normata.tables")  # a column may refer to rows of any table
        operation: ChangeOperation = _declared(call)
        with _refusals("query"):
            read = operation.query.read(_known(operation, pairs(query))) if operation.query is not None else None
        with _refusals("body"):
            request = replace(
                self._request(""), query=read, body=operation.body_formats[media_type].read(content, read)
            )
            return self._made(operation, request, dry_run=dry_run)

    def change(self, call: Call, row: str = "", /, *, body: Values | None = None, **query: Any) -> Any:
        """See the base."""
        from normata.core.schema.wire import encode

        operation: ChangeOperation = _declared(call)
        with _refusals("query"):
            read = operation.query.read(_known(operation, pairs(query))) if operation.query is not None else None
        with _refusals("body"):
            sent = None if body is None or operation.body is None else operation.body.model_validate_json(encode(body))
            return self._made(operation, replace(self._request(row), query=read, body=sent))

    def _made(self, operation: ChangeOperation, request: Request, *, dry_run: bool = False) -> Any:
        """What a change answers, once it is made, or would answer."""
        from normata.core.changes.source import FaultyInput
        from normata.core.http.problems import InvalidRequest

        def work(unit: UnitOfWork) -> Any:
            plan = None if operation.prepare is None else operation.prepare(unit, request)
            answer = operation.present(operation.work(unit, replace(request, plan=plan)))
            if dry_run:
                raise _NotStored(answer)
            return answer

        try:
            return change(self.database, work)
        except _NotStored as tried:
            return tried.answer
        except FaultyInput as error:
            raise InvalidRequest.of_input(error) from None

    def assess(
        self, organization: str, assessments: Sequence[AssessmentInput], found: Sequence[Fault]
    ) -> Sequence[Values]:
        """See the base."""
        from normata.coverage.assessment_operations import assessed_controls
        from normata.coverage.assessments import assess

        rows = change(self.database, lambda unit: assess(unit, organization, assessments, found))
        items: Sequence[Values] = assessed_controls(rows, {})["items"]
        return items

    def adopt(self, organization: str, names: Sequence[str], baseline: str | None) -> Mapping[str, bool]:
        """See the base."""
        from normata.adoption.adoption import UNCHANGED, adopt

        named = UNCHANGED if baseline is None else baseline or None
        return change(self.database, lambda unit: adopt(unit, organization, names, named))

    def leave(self, organization: str, names: Sequence[str]) -> Mapping[str, bool]:
        """See the base."""
        from normata.adoption.adoption import find_framework, leave

        def work(unit: UnitOfWork) -> dict[str, bool]:
            chosen = dict.fromkeys(find_framework(unit, organization, name) for name in names)
            return {framework_id: leave(unit, organization, framework_id) for framework_id in chosen}

        return change(self.database, work)

    def events(self, organization: str | None, write: Write, *, follow: bool) -> None:
        """See the base."""
        from normata.events import stream

        def begin(transaction: Transaction) -> stream.Place:
            owner = None if organization is None else self._owner(transaction, organization)
            place = stream.beginning(transaction, owner)
            write(stream.all_events(transaction, owner))
            return place

        def go_on(transaction: Transaction, place: stream.Place) -> stream.Place:
            found, after = stream.new_events(transaction, place)
            write(found)
            return after

        place = self.database.read_now(begin)
        while follow:
            time.sleep(_PAUSE)
            place = self.database.read_now(partial(go_on, place=place))

    def log(self, organization: str | None, write: Write, *, operators: bool) -> None:
        """See the base."""
        from normata.events.exporting import export

        def work(transaction: Transaction) -> None:
            write(export(transaction, self._owner(transaction, organization, operators=operators)))

        self.database.read_now(work)

    def checkpoint(self, organization: str | None, *, operators: bool) -> str:
        """See the base."""
        from normata.events.keys import Signer
        from normata.events.marks import Marks, sign
        from normata.events.sealing import last_checkpoint

        signer = Signer(settings_with(database_url=self._url).event_key_file)
        owner = self.database.read_now(lambda one: self._owner(one, organization, operators=operators))
        mark = Marks(signer).of(owner)
        return self.database.read_now(lambda one: sign(one, signer, last_checkpoint(one, owner), mark))

    @staticmethod
    def _owner(transaction: Transaction, organization: str | None, *, operators: bool = False) -> str:
        """The owner of a log."""
        from normata.events.model import OPERATORS
        from normata.identity.organization_lookup import find

        return OPERATORS if operators else find(transaction, organization)

    def _answered(self, operation: ReadOperation, row: str, query: Values) -> Any:
        with _refusals("query"):
            request = self._reading(operation, row, query)
            return self.database.read_now(lambda transaction: operation.answer_to(transaction, request))

    def _reading(self, operation: ReadOperation, row: str, query: Values) -> Request:
        """The request of a read. Raises ValidationError and InvalidRequest."""
        read = operation.query.read(_known(operation, pairs(query)))
        organization = getattr(read, "organization_id", "")
        return replace(self._request(row), query=read, organization_id=organization)

    def _request(self, row: str) -> Request:
        from normata.core.db.types import now
        from normata.core.http.request import Means, Request
        from normata.events.keys import Signer

        settings = settings_with(database_url=self._url)
        means = Means(settings, Signer(settings.event_key_file))
        return Request(caller=_NOBODY, means=means, time=now(), id=row)


@contextmanager
def _refusals(part: Literal["query", "body"]) -> Iterator[None]:
    """Raise what is wrong with a part of a request as a server would say it."""
    from pydantic import ValidationError

    from normata.core.http.problems import InvalidRequest, error_type_of
    from normata.errors import DomainError

    try:
        yield
    except DomainError as error:
        kind = error_type_of(error)
        if kind is None:
            raise
        raise Refused(str(error), kind.status) from None
    except ValidationError as error:
        raise _refused(InvalidRequest.of_validation(part, error)) from None
    except InvalidRequest as error:
        raise _refused(error) from None


def _refused(error: Any) -> Refused:
    return Refused(str(error), 400, [RefusedField(one.in_, one.name, one.message) for one in error.faults])


@cache
def _declared(call: Call) -> Any:
    """The declaration of an operation, of its own module: to import all of them would take seconds."""
    from normata.core.schema.paging import PastQuery

    found: Operation = next(
        one for one in import_module(call.module).OPERATIONS if (one.method, one.path) == (call.method, call.path)
    )
    if not issubclass(getattr(found, "query", None) or object, PastQuery):
        return found
    from normata.history.reading import of_then

    return of_then(found)


def _known(operation: Operation, sent: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The parameters, which the operation must have. Raises InvalidRequest."""
    from normata.core.http.problems import InvalidRequest
    from normata.core.http.query_names import QueryNames

    names = QueryNames(operation)
    if unknown := names.undeclared(sent).refused:
        raise InvalidRequest.of([*names.faults(unknown)])
    return sent

"""A request to a page of an organization: it calls operations as the person who is signed in.

A page has no access to the database of its own. It shows answers of operations and makes changes with operations, with
the same checks as over HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from pydantic import ValidationError
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.types import Receive

from normata.console.app.api_calls import (
    ApiCall,
    ApiQuery,
    Fields,
    FilledFrom,
    Following,
    Outcome,
    Query,
    Refusal,
    UndoNote,
    Upload,
    address_of,
    pairs_of,
    plain_answer,
    tag_of,
)
from normata.console.app.member_request import NOTES, MemberRequest
from normata.console.app.past import PARAMETER as AS_OF
from normata.console.app.sections import ALWAYS, groups_for
from normata.console.app.view_links import PARAMETER, sidebar_links
from normata.console.filters import as_local
from normata.console.page_request import Console
from normata.console.return_path import safe_path
from normata.console.texts import text
from normata.core.changes.idempotency import KeyedRequest
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.security import together
from normata.core.db.transaction import TenantScope
from normata.core.db.types import now
from normata.core.http.body_stream import Arriving
from normata.core.http.caller import Caller
from normata.core.http.change_endpoint import change, preview, received
from normata.core.http.long_dry_runs import UnreadBody
from normata.core.http.operation import ChangeOperation, ReadOperation
from normata.core.http.problems import FieldFault, InvalidRequest, PreconditionFailed
from normata.core.http.reads import Reading, Reads
from normata.core.http.request import Request
from normata.core.schema.paging import OrganizationQuery, PastQuery
from normata.core.schema.wire import encode
from normata.errors import InsufficientRole, NotFound
from normata.identity.secrets import new_secret
from normata.identity.sessions.sessions import SignedInMembership, Visitor

# What every page shows in its frame: it is asked along with what the page asks first, and is no request of it.
_FRAME = (ApiQuery("countUnreadNotifications"), ApiQuery("listSavedViews"))
_MAX_FIELDS = 600  # of one form: as many controls as one change takes, and what is said of them


class OrganizationRequest(MemberRequest):
    """A member's request to a page of an organization, which asks and changes by operations."""

    def __init__(
        self, console: Console, request: HttpRequest, visitor: Visitor, membership: SignedInMembership
    ) -> None:
        super().__init__(console, request, visitor, membership)
        self.api_calls: list[ApiCall] = []
        self.unread: int | None = None  # notifications of the person; not known before something was asked
        self.note: UndoNote | None = None  # what was just done, as far as it can be undone
        self.saved_views: Sequence[Mapping[str, Any]] = ()  # those that they see, as far as one page of them goes

    def _request(self, *, row_id: str = "", query: Any = None, body: Any = None, **more: Any) -> Request:
        """The request to an operation, from this person in this organization."""
        roles = {self.membership.organization_id: self.membership.role}
        return Request(
            caller=Caller(self.person.user_id, self.person.user_name, "", "admin", None, roles, {}),
            means=self.console.services.means,
            time=now(),
            request_id=self.context.request_id,
            address=self.address,
            prefix=self.context.prefix,
            id=row_id,
            query=query,
            body=body,
            **more,
        )

    # --- Reads

    async def ask(self, *api_queries: ApiQuery) -> list[Any]:
        """The answers of operations, all from one snapshot. Raises the errors of the operations."""
        requests = self.requests_of(api_queries)
        is_first = self.unread is None
        if is_first:
            requests += self.requests_of(_FRAME, is_noted=False)

        operations = [operation for operation, _ in requests]
        is_own = any(operation.authority == "self" for operation in operations)
        scope = TenantScope(readable=(self.membership.organization_id,), users=(self.person.user_id,) if is_own else ())
        answers: list[Any] = await self.read(Reading("answers", requests, scope))
        if is_first:
            self.saved_views = answers.pop()["items"]
            self.unread = answers.pop()["unread"]
        return answers

    def requests_of(
        self, api_queries: Sequence[ApiQuery], *, is_noted: bool = True
    ) -> list[tuple[ReadOperation, Request]]:
        """The operations of questions, each with its request. Raises InvalidRequest and InsufficientRole."""
        requests = []
        for api_query in api_queries:
            operation = self.console.operations[api_query.operation]
            assert isinstance(operation, ReadOperation)  # noqa: S101 - narrows the type
            query, pairs = self._query_of(operation, api_query.query)
            if operation.authority == "organization" and not operation.admits_query(self.membership.role, query):
                raise InsufficientRole
            api_call = ApiCall("GET", address_of(self.console.site.public_url, operation.path, api_query.id, pairs))
            if is_noted and api_call not in self.api_calls:
                self.api_calls.append(api_call)
            requests.append((operation, self._read_request(query, api_query.id)))
        return requests

    def _read_request(self, query: Any, row_id: str = "") -> Request:
        return self._request(row_id=row_id, query=query, organization_id=self.membership.organization_id)

    @property
    def reads(self) -> Reads:
        """What runs the reads of operations."""
        return self.console.services.reads

    async def read(self, reading: Reading) -> Any:
        """What a reading answers. Raises the errors of its operations."""
        return await self.reads.run(reading, self._receive())

    def _receive(self) -> Receive | None:
        """What says that the person has gone; null if it may still bring a form, which is read later."""
        return self.request.receive if self.request.method == "GET" else None

    async def ask_one(self, api_query: ApiQuery) -> Any:
        """The answer of one operation. Raises its errors."""
        return (await self.ask(api_query))[0]

    def _query_of(self, operation: ReadOperation, query: Query) -> tuple[Any, list[tuple[str, str]]]:
        pairs = pairs_of(query)
        if issubclass(operation.query, OrganizationQuery):
            pairs.insert(0, ("organizationId", self.membership.organization_id))
        if issubclass(operation.query, PastQuery) and self.past is not None:
            pairs.append((AS_OF, self.past.moment))
        try:
            return operation.query.read(pairs), pairs
        except ValidationError as error:
            raise InvalidRequest.of_validation("query", error) from None

    async def ask_if_there(self, *api_queries: ApiQuery) -> list[Any] | None:
        """The answers of operations; null if one of them is about what the organization cannot see."""
        try:
            return await self.ask(*api_queries)
        except NotFound:
            return None

    # --- Changes

    async def change(
        self,
        operation_id: str,
        *,
        row_id: str = "",
        body: Mapping[str, Any] | None = None,
        query: Query | None = None,
        if_match: str = "",
        key: str = "",
        filled_from: FilledFrom | None = None,
        upload: Upload | None = None,
        dry_run: bool = False,
        checks_only: bool = False,
        then: Sequence[Following] = (),
    ) -> Outcome:
        """Make a change with an operation. Raises the errors that correcting the form would not help against.

        ``if_match`` is the entity tag that the form was filled with; ``filled_from`` is the same for an operation that
        does not support it. With a ``key`` the change is made once, however often the form is sent. ``upload`` is the
        body of an operation that takes other bodies than JSON. With ``dry_run`` the change is rolled back; with
        ``checks_only`` only the input is checked. What comes ``then`` is made in the same transaction, and the answer
        is a list of them all.
        """
        operation = self._operation(operation_id)
        try:
            if filled_from is not None:
                operation = self._unless_changed(operation, filled_from)
            if then:
                operation = self._followed(operation, then)
            request, sent = self._change_request(operation, row_id, body, query or {})
            if checks_only:  # the form has faults already, so no transaction has to look for more
                return Outcome(None)
            if upload is not None:
                request = replace(request, body=UnreadBody(upload.media_type, upload.content))
            if operation.is_conditional and if_match:
                request = replace(request, if_match=if_match.encode())
            keyed = self._keyed(operation, row_id, sent, key) if key and operation.takes_key and not dry_run else None
            request = replace(request, dry_run=dry_run)
            answer = await change(operation, self.console.services, request, plain_answer, key=keyed)
        except Exception as error:
            refusal = Refusal.of(error, whole="" if upload is None else "file")
            if refusal is None:
                raise
            self.context.problem = refusal.code
            return Outcome(None, refusal)
        return Outcome(answer.content)

    async def upload(self, operation_id: str, query: Query, body: Arriving) -> Outcome:
        """Make a change with a body that arrives. Raises what :meth:`change` raises."""
        operation = self._operation(operation_id)
        try:
            request, _ = self._change_request(operation, "", None, query)
            async with received(operation, self.console.services, request, body) as whole:
                answer = await change(operation, self.console.services, whole, plain_answer)
        except Exception as error:
            refusal = Refusal.of(error, whole="file")
            if refusal is None:
                raise
            self.context.problem = refusal.code
            return Outcome(None, refusal)
        return Outcome(answer.content)

    def _operation(self, operation_id: str) -> ChangeOperation:
        operation = self.console.operations[operation_id]
        assert isinstance(operation, ChangeOperation)  # noqa: S101 - narrows the type
        return operation

    def _unless_changed(self, operation: ChangeOperation, filled_from: FilledFrom) -> ChangeOperation:
        """The operation with a check that the form is up to date. It runs in the transaction of the change."""
        ((reading, api_query),) = self.requests_of([filled_from.api_query])

        def work(unit: UnitOfWork, request: Request) -> Any:
            if tag_of(filled_from.part(reading.answer_to(unit, api_query))) != filled_from.tag:
                raise PreconditionFailed(text("app.changed_meanwhile"))
            return operation.work(unit, request)

        return replace(operation, work=work)

    def _followed(self, operation: ChangeOperation, then: Sequence[Following]) -> ChangeOperation:
        """The operation with what follows it. Its answer is a list of the answers."""
        changes = [self._operation(one.operation) for one in then]

        def work(unit: UnitOfWork, request: Request) -> list[Any]:
            answers = [operation.present(operation.work(unit, request))]
            for one, step in zip(then, changes, strict=True):
                following, _ = self._change_request(step, one.row_id(answers), one.body(answers), {})
                answers.append(step.present(step.work(unit, following)))
            return answers

        writes = together(operation.writes, *(step.writes for step in changes))
        secrets = tuple({name for one in (operation, *changes) for name in one.secret_fields})
        return replace(
            operation, work=work, present=lambda answers: answers, writes=writes, found=None, secret_fields=secrets
        )

    async def preview(self, operation_id: str, api_queries: Sequence[ApiQuery], *, body: Mapping[str, Any]) -> Outcome:
        """What a change would answer, what ``api_queries`` would answer after it, and its effects; from a dry run.

        Raises what :meth:`change` raises.
        """
        operation = self._operation(operation_id)
        requests = self.requests_of(api_queries)

        def look(unit: UnitOfWork, answer: Any) -> tuple[Any, list[Any]]:
            return answer, [one.answer_to(unit, request) for one, request in requests]

        try:
            request, _ = self._change_request(operation, "", body, {})
            (answer, answers), effects = await preview(operation, self.console.services, request, look)
            return Outcome((answer, answers, effects))
        except Exception as error:
            refusal = Refusal.of(error)
            if refusal is None:
                raise
            return Outcome(None, refusal)

    def _change_request(
        self, operation: ChangeOperation, row_id: str, body: Mapping[str, Any] | None, query: Query
    ) -> tuple[Request, Mapping[str, Any]]:
        """The request, and its body as a client would send it. Raises InvalidRequest with all faults."""
        faults: list[FieldFault] = []
        of_organization = {"organizationId": self.membership.organization_id}
        read_query = read_body = None
        if operation.query is not None:
            try:
                read_query = operation.query.read([*of_organization.items(), *pairs_of(query)])
            except ValidationError as error:
                faults += InvalidRequest.of_validation("query", error).faults
        sent: Mapping[str, Any] = {}
        if operation.body is not None and body is not None:
            is_of_one = "organization_id" in operation.body.model_fields
            sent = {**(of_organization if is_of_one else {}), **body}
            try:
                read_body = operation.body.model_validate(sent)
            except ValidationError as error:
                faults += InvalidRequest.of_validation("body", error).faults
        if faults:
            raise InvalidRequest.of(faults)
        return self._request(row_id=row_id, query=read_query, body=read_body), sent

    def _keyed(self, operation: ChangeOperation, row_id: str, sent: Mapping[str, Any], key: str) -> KeyedRequest:
        path = operation.path.replace("{id}", row_id)
        fingerprint = sha256(encode(sent)).hexdigest()
        return KeyedRequest(self.person.user_id, f"form {key}"[:255], operation.method, path, fingerprint)

    @staticmethod
    def new_key() -> str:
        """A new key for a form, so that its change is made once, however often it is sent."""
        return new_secret()

    async def fields(self) -> Fields:
        """The fields of the form. Raises what :meth:`form` raises."""
        return Fields(await self.form_pairs(_MAX_FIELDS))

    # --- Answers

    def page(
        self, template: str, *, status: int = 200, headers: Mapping[str, str] | None = None, **values: Any
    ) -> Response:
        """Render a page of the organization."""
        return super().page(
            template,
            status=status,
            headers=headers,
            visitor=self.person,
            membership=self.membership,
            may=self.may,
            places=groups_for(self.may),
            view_links=sidebar_links(self.saved_views, self.path, self.context.raw_path, self.query.get(PARAMETER)),
            **ALWAYS,
            to=lambda *steps, **query: self.context.prefix + self.path(*steps, query=query),
            link=self.link,
            here=self.here,
            past=self.past,
            of_then=self.of_then.items(),
            as_of=self._as_of(),
            query=self.query,
            api_calls=self.api_calls,
            unread=self.unread,
            done=self.query.get("done", ""),
            note=self.note,
            **values,
        )

    def _as_of(self) -> Mapping[str, Any] | None:
        """What asks for another day on a page that can show one: the day, and what of the address stays."""
        day = as_local(now()).date().isoformat() if self.past is None else self.past.day
        return {"day": day, "keeps": self.remaining_on_other_days()} if self.has_past else None

    def go(self, path: str, done: str = "", notice: Query | None = None) -> Response:
        """Redirect to one of our paths, whose page then shows the text ``app.done.<done>``.

        ``notice`` has the further parameters that the note needs.
        """
        pairs = pairs_of({"done": done, **(notice or {})})
        if pairs:
            bare, _, fragment = path.partition("#")
            path = f"{bare}{'&' if '?' in bare else '?'}{urlencode(pairs)}" + (f"#{fragment}" if fragment else "")
        return self.redirect(path)

    def back(self, form: Fields, otherwise: str, done: str = "", notice: Query | None = None) -> Response:
        """Redirect to the page that the form came from; to ``otherwise`` if it does not say, or is not one of ours."""
        wanted, _, fragment = form.get("return_to").partition("#")
        fragment = self.query.get("near", fragment)  # the row that a button stood beside
        bare, _, query = wanted.partition("?")
        path = safe_path(bare)
        if not path.startswith("/app/"):
            return self.go(otherwise, done, notice)
        # Parse and encode the query again, so that nothing but a query can come from the form.
        pairs = [(name, value) for name, value in parse_qsl(query) if name not in NOTES]
        path += f"?{urlencode(pairs)}" if pairs else ""
        return self.go(f"{path}#{quote(fragment)}" if fragment else path, done, notice)

"""What is read in another process is what this one would have read, and no read lasts for ever."""

from __future__ import annotations

import asyncio
import pickle
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.types import Message

from normata import errors
from normata.core.db.transaction import TenantScope
from normata.core.http.caller import Caller
from normata.core.http.failure import Failure
from normata.core.http.operation import Operation, ReadOperation
from normata.core.http.problems import ERROR_TYPES, FieldFault, InvalidRequest, error_type_of, problem
from normata.core.http.read_processes import NoProcess
from normata.core.http.reads import Answered, ClientGone, PackedReading, Reading
from normata.core.http.request import Request
from normata.operations import OPERATIONS
from tests.core.http.samples import all_operations, most, sample
from tests.core.http.test_long_reads import REPORT, slow_reports
from tests.databases import on_both
from tests.served import Served, refused, served
from tests.world import ALPHA

FAULT = FieldFault(in_="query", name="limit", code="too_large", message="is too large", allowed=None)
AFTERWARDS = "2100-01-01T00:00:00.000Z"  # than all that the world has
OPERATIONS_BY_ID = {one.operation_id: one for one in OPERATIONS if isinstance(one, ReadOperation)}


class Elsewhere:
    """In place of processes: all that comes and goes is pickled, as it would be on its way to one and back."""

    may_read = True

    def __init__(self, service: Served) -> None:
        self._services = service.app.services
        self.questions = 0

    async def read(self, organization_id: str, question: PackedReading) -> Any:
        """Read here."""
        self.questions += 1
        assert organization_id
        arrived: PackedReading = pickle.loads(pickle.dumps(question))  # noqa: S301 - our own
        reading = arrived.unpacked(OPERATIONS_BY_ID, self._services.means)
        answered = await Answered.by(reading, self._services.database)
        return pickle.loads(pickle.dumps(answered))  # noqa: S301 - our own


def in_processes(service: Served, processes: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """All long reads run in ``processes``, also those that are known to be short."""
    monkeypatch.setattr(service.app.services.reads, "_processes", processes)
    monkeypatch.setattr(service.app.services.reads._short, "_most", 0)


@all_operations(lambda operation: isinstance(operation, ReadOperation) and operation.authority == "organization")
def test_every_read_is_the_same_elsewhere(
    operation: Operation, shared: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted, headers, elsewhere = sample(operation), shared.bearer(most(operation)), Elsewhere(shared)
    shared.wait_for_seals()  # a report says how many events are sealed
    with monkeypatch.context() as patched:
        patched.setattr("normata.core.db.transaction.now", lambda: AFTERWARDS)
        here = wanted.send(shared.client, headers)
        patched.setattr(ReadOperation, "is_dear", lambda *_: True)
        in_processes(shared, elsewhere, patched)
        patched.setattr(shared.app.services.pages, "find", lambda *_: None)
        answer = wanted.send(shared.client, headers)
    assert elsewhere.questions == (
        0 if getattr(operation, "sends_file", False) else 1
    )  # the bytes of a file are not read there
    assert (answer.status_code, answer.json()) == (here.status_code, here.json())


def error_of(kind: type[Exception]) -> Exception:
    """One of this type, made as where it is raised."""
    if kind is InvalidRequest:
        return InvalidRequest.of([FAULT])
    if issubclass(kind, errors.SlugTaken | errors.ExternalIdTaken | errors.InUse | errors.AlreadyMember):
        return kind("01a1f87c-691d-7204-a6da-d46c39e191fb")
    return kind()


@pytest.mark.parametrize("kind", [*ERROR_TYPES, errors.Unavailable], ids=lambda kind: kind.__name__)
def test_errors_are_the_same_on_their_way_back(kind: type[Exception]) -> None:
    error = errors.Unavailable("too slow", "slow") if kind is errors.Unavailable else error_of(kind)
    arrived = pickle.loads(pickle.dumps(Failure.of(error))).error()  # noqa: S301 - our own
    assert (type(arrived), str(arrived), vars(arrived)) == (type(error), str(error), vars(error))
    if error_type_of(error) is not None:
        assert problem(arrived, "/", "id") == problem(error, "/", "id")


@pytest.mark.parametrize("held", [1, lambda: None], ids=["can be sent", "cannot be sent"])
def test_a_fault_of_the_program_comes_back_with_its_traceback(held: object) -> None:
    with pytest.raises(KeyError) as raised:
        {}[held]  # type: ignore[index]
    arrived = pickle.loads(pickle.dumps(Failure.of(raised.value))).error()  # noqa: S301 - our own
    assert error_type_of(arrived) is None
    assert "KeyError" in repr(arrived)
    assert any("{}[held]" in note for note in arrived.__notes__)


@on_both
def test_a_read_that_takes_too_long_is_refused(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(database_url, read_timeout=0.2) as instance, slow_reports(instance, monkeypatch):
        headers = instance.bearer("viewer")
        answer = instance.client.get(REPORT, params={"organizationId": ALPHA}, headers=headers)
        refused(answer, 503, "unavailable")
        assert answer.headers["retry-after"] == "1"
        assert 'normata_problems_total{code="unavailable",reason="slow"} 1.0' in instance.client.get("/metrics").text
        answer = instance.client.get("/controls/", params={"organizationId": ALPHA}, headers=headers)
        assert answer.status_code == 200


def report_of_alpha(service: Served) -> Reading:
    """A long read."""
    operation = OPERATIONS_BY_ID["getFrameworkGaps"]
    caller = Caller("user", "User", "", "read", None, {ALPHA: "viewer"}, {})
    request = Request(
        caller=caller,
        means=service.app.services.means,
        time=AFTERWARDS,
        id="fw-sun",
        organization_id=ALPHA,
        query=operation.query.read([("organizationId", ALPHA)]),
    )
    return Reading("answers", [(operation, request)], TenantScope(readable=(ALPHA,)))


def test_without_a_process_a_worker_reads_itself(shared: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    class Nowhere(Elsewhere):
        async def read(self, organization_id: str, question: PackedReading) -> Any:
            await super().read(organization_id, question)
            raise NoProcess("no memory")

    nowhere = Nowhere(shared)
    in_processes(shared, nowhere, monkeypatch)
    for _ in range(2):
        answer = shared.client.get(REPORT, params={"organizationId": ALPHA}, headers=shared.bearer("viewer"))
        assert answer.status_code == 200
    assert nowhere.questions == 2, "the next one may find a process"


@on_both
def test_a_long_read_runs_in_a_process_unless_it_is_known_to_be_short(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was long counts as long for ten minutes."""
    moment, taking, run = 0.0, 0.0, Reading.run

    async def run_for_a_while(reading: Reading, database: Any) -> Any:
        nonlocal moment
        moment += taking
        return await run(reading, database)

    def is_elsewhere(seconds: float, report: str = "gaps") -> bool:
        """Whether a report that takes some seconds goes to a process."""
        nonlocal taking
        before, taking, headers = elsewhere.questions, seconds, instance.bearer("viewer")
        answer = instance.client.get(f"/frameworks/fw-sun/{report}/", params={"organizationId": ALPHA}, headers=headers)
        assert answer.status_code == 200
        return elsewhere.questions > before

    with served(database_url) as instance:
        elsewhere = Elsewhere(instance)
        reads = instance.app.services.reads
        monkeypatch.setattr(reads, "_processes", elsewhere)
        monkeypatch.setattr("normata.core.http.reads.time", SimpleNamespace(monotonic=lambda: moment))
        monkeypatch.setattr(reads._short, "_clock", lambda: moment)
        monkeypatch.setattr(Reading, "run", run_for_a_while)
        assert [is_elsewhere(seconds) for seconds in (0.04, 0.04, 0.06, 0.04, 0.04)] == [True, False, False, True, True]
        assert [is_elsewhere(0.06, "gaps/plan") for _ in range(2)] == [True, True]
        moment += 600
        assert [is_elsewhere(0.04), is_elsewhere(0.04)] == [True, False]
        assert [is_elsewhere(0.06, "gaps/plan"), is_elsewhere(0.04, "gaps/plan")] == [True, True]
        search = {"organizationId": ALPHA, "search": "nowhere", "page": "2"}
        for seconds, questions in ((0.06, 0), (0.04, 1)):
            taking, before = seconds, elsewhere.questions
            assert instance.client.get("/tasks/", params=search, headers=instance.bearer("viewer")).status_code == 200
            assert elsewhere.questions == before + questions, "a page is small"


def test_a_long_read_ends_when_its_client_has_gone(shared: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Short ones do not listen for that: it would take as long as they do."""
    reads, ends = shared.app.services.reads, list[str]()

    class Lasting:
        may_read = True

        async def read(self, *_: object) -> Any:
            try:
                await asyncio.sleep(3_600)
            except asyncio.CancelledError:
                ends.append("ended")
                raise

    async def receive() -> Message:
        return messages.pop(0)

    messages: list[Message] = [{"type": "http.request", "body": b""}, {"type": "http.disconnect"}]
    in_processes(shared, Lasting(), monkeypatch)
    portal = shared.client.portal
    assert portal is not None
    with pytest.raises(ClientGone):
        portal.call(reads.run, report_of_alpha(shared), receive)
    assert ends == ["ended"]

"""The operations of recurrences: reading that of a task or a review, and saying how often a review recurs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field

from normata import errors
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.http.operation import ChangeOperation, Operation, ReadOperation
from normata.core.http.request import Request
from normata.core.schema.paging import OrganizationQuery
from normata.core.schema.wire import Input
from normata.records.base import Restorable
from normata.recurrences.commands import RECURRENCE_WRITES, set_frequency
from normata.recurrences.kinds import RECURRING, REVIEWS
from normata.recurrences.queries import RecurrenceAnswer, read_recurrence


class RecurrenceInput(Input):
    """How often a review recurs."""

    frequency: Annotated[
        Literal["DAILY", "WEEKLY", "MONTHLY", "QUARTERLY", "HALF_YEARLY", "YEARLY"],
        Field(description="How long after its deadline the next review is due."),
    ]


_EXAMPLE = {"frequency": "QUARTERLY", "nextDeadline": "2027-03-31T00:00:00.000Z", "nextId": None}


def _set(unit: UnitOfWork, request: Request, *, kind: type[Restorable]) -> Any:
    return set_frequency(unit, kind, request.id, request.body.frequency)


def _end(unit: UnitOfWork, request: Request, *, kind: type[Restorable]) -> Any:
    return set_frequency(unit, kind, request.id, None)


def _of_kind(kind: type[Restorable]) -> Iterator[Operation]:
    path, words = f"/{kind.path}/{{id}}/recurrence/", kind.words()
    yield ReadOperation(
        path=path,
        operation_id=f"get{kind.__name__}Recurrence",
        tag="Records",
        summary=f"Get the recurrence of {kind.with_article()}",
        description=f"""\
How often the {words} recurs, when the next one would be due if this one were done now, and which one was made. It is
made in the transaction in which this one is done, once, with a link `FOLLOWS` to this one. Its deadline is the first of
the dates that comes after the one before and after today, on the day of the month of the first deadline: after 31
January comes 28 February, and then 31 March.""",
        about=kind,
        id_description=f"The id of the {words}, live or archived.",
        query=OrganizationQuery,
        build=lambda transaction, request: read_recurrence(transaction, kind, request.organization_id, request.id),
        answer=RecurrenceAnswer,
        answer_description="The recurrence; its fields are null if there is none.",
        example=_EXAMPLE,
    )
    if kind not in REVIEWS:
        return
    shared: dict[str, Any] = {
        "path": path,
        "tag": "Records",
        "about": kind,
        "id_description": f"The id of the live {words}.",
        "present": lambda answer: answer,
        "writes": RECURRENCE_WRITES,
        "errors": (errors.Archived, errors.WrongState),
        "answer": RecurrenceAnswer,
        "answer_description": "The recurrence as it is now.",
    }
    yield ChangeOperation(
        http_method="PUT",
        operation_id=f"put{kind.__name__}Recurrence",
        summary=f"Say how often {kind.with_article()} recurs",
        description=f"""\
Lets the {words} recur: once it is finished, the next one is made, which begins empty and recurs as often. It takes a
`deadline`. A finished one is 409 `wrong_state`.""",
        work=partial(_set, kind=kind),
        body=RecurrenceInput,
        body_required=True,
        body_example={"frequency": "QUARTERLY"},
        example=_EXAMPLE,
        **shared,
    )
    yield ChangeOperation(
        http_method="DELETE",
        operation_id=f"delete{kind.__name__}Recurrence",
        summary=f"End the recurrence of {kind.with_article()}",
        description=f"Lets the {words} be the last one: finishing it makes none. A finished one is 409 `wrong_state`.",
        work=partial(_end, kind=kind),
        example={"frequency": None, "nextDeadline": None, "nextId": None},
        **shared,
    )


OPERATIONS: tuple[Operation, ...] = tuple(operation for kind in RECURRING for operation in _of_kind(kind))

"""The note after archiving or restoring, with the button that undoes it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

from normata.console.app.api_calls import ApiQuery, Fields, Query
from normata.console.app.notes import is_proved, proof_of
from normata.console.app.organization_request import OrganizationRequest
from normata.records.archive.queries import KINDS

_MOST = 100  # records that an address names
_LONGEST = 6_000  # characters; some proxies refuse longer addresses

RecordName = tuple[str, str]  # kind and id


class Undo(NamedTuple):
    """What was done to how many records, and the form fields of the button that undoes it.

    ``labels`` are the names of some of them.
    """

    what: str
    total: int
    labels: Sequence[str]
    step: str
    fields: Sequence[tuple[str, str]]


def archived_notice(page_request: OrganizationRequest, archive_id: str) -> Query:
    """The parameters of the note after records were archived."""
    return {"undo": archive_id, "proof": proof_of(page_request, "undo", [archive_id])}


def restored_notice(page_request: OrganizationRequest, records: Sequence[RecordName]) -> Query:
    """The parameters of the note after records were restored; for too many, the note has no Undo."""
    names = [joined(*record) for record in records]
    if len(names) > _MOST or sum(map(len, names)) > _LONGEST:
        return {"done": "restored_many"}
    return {"restored": names, "proof": proof_of(page_request, "restored", names)}


def joined(kind: str, record_id: str) -> str:
    """A record as one value of a form."""
    return f"{kind}:{record_id}"


def split(value: str) -> RecordName:
    """The kind and id of a record from :func:`joined`. Any other value gives a pair that names no record."""
    kind, _, record_id = value.partition(":")
    return kind, record_id


def without_selection(form: Fields) -> Fields:
    """The form, to lead back to a page on which nothing is selected any more: script keeps that in its address."""
    address, mark, fragment = form.get("return_to").partition("#")
    path, _, query = address.partition("?")
    remaining = urlencode([pair for pair in parse_qsl(query) if pair[0] != "selected"])
    return Fields([("return_to", (f"{path}?{remaining}" if remaining else path) + mark + fragment)])


class UndoQueries:
    """The queries that the note needs: none if the address has no note, or no valid signature."""

    def __init__(self, page_request: OrganizationRequest) -> None:
        query = page_request.request.query_params
        self._archive_id = query.get("undo", "")
        self._restored = query.getlist("restored")
        what, values = ("undo", [self._archive_id]) if self._archive_id else ("restored", self._restored)
        self.api_queries = self._questions() if any(values) and is_proved(page_request, what, values) else []

    def _questions(self) -> list[ApiQuery]:
        if self._archive_id:
            return [ApiQuery("listArchive", {"archiveId": self._archive_id, "limit": "5"})]
        ids: defaultdict[str, list[str]] = defaultdict(list)
        for kind, record_id in map(split, self._restored):
            if kind in KINDS:
                ids[kind].append(record_id)
        return [ApiQuery("listNames", {"kind": kind, "id": found}) for kind, found in ids.items()]

    def note(self, answers: Sequence[Mapping[str, Any]]) -> Undo | None:
        """The note from the answers to the queries; null if there is nothing left to undo."""
        total = sum(answer["total"] for answer in answers)
        if not total:
            return None
        items = [
            (str(api_query.query.get("kind", "")), item)
            for api_query, answer in zip(self.api_queries, answers, strict=True)
            for item in answer["items"]
        ]
        labels = [item["label"] for _, item in items]
        if self._archive_id:
            return Undo("archived", total, labels, "restore", [("archiveId", self._archive_id)])
        fields = [("selected", joined(kind, item["id"])) for kind, item in items]
        return Undo("restored", total, labels, "archive", fields)

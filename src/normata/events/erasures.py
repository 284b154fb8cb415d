"""Erased events: those that an event of the same log names, signed with the key.

A person who can write to the database can empty an event, and add one that records an erasure, but cannot sign it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, select

from normata.core.changes.difference import canonical
from normata.core.changes.unit_of_work import Change, UnitOfWork
from normata.core.db.transaction import Transaction, batches
from normata.core.schema.table import sql_table
from normata.events.content import ERASE, ERASED_EVENTS, SIGNATURE, values_of
from normata.events.keys import Signer, has_signed, origin_of
from normata.events.model import OPERATORS, AuditEvent


@dataclass(frozen=True, slots=True)
class Erasure:
    """The events that an erasure names, all of the same log, and whether the key has signed it.

    ``is_signed`` is null without keys. ``leaf`` is null if the event is not sealed yet.
    """

    event_id: str
    leaf: int | None
    erased: frozenset[str]
    is_signed: bool | None


Erasures = Mapping[str, Erasure]  # by the id of the erased event


def signed_counts(signer: Signer, owner: str, event_ids: Iterable[str]) -> dict[str, Any]:
    """The counts of an erasure of these events of its log, signed. Raises KeyUnusable."""
    erased = sorted(event_ids)
    if not erased:
        return {ERASED_EVENTS: erased}
    return {ERASED_EVENTS: erased, SIGNATURE: signer.signature(owner, _text(origin_of(owner), erased))}


def erasure_of(body: Mapping[str, Any], leaf: int | None, origin: str, verifiers: Iterable[str]) -> Erasure | None:
    """The erasure in the log ``origin`` by the event with this body; null if it is not an erasure.

    One of the keys ``verifiers`` must have signed it. Raises BadNote if one of them is not a key.
    """
    counts = body.get("counts")
    if body.get("action") != ERASE or not isinstance(counts, dict):
        return None
    erased = counts.get(ERASED_EVENTS)
    if not isinstance(erased, list) or not all(isinstance(one, str) for one in erased):
        return None
    keys, signature = list(verifiers), counts.get(SIGNATURE)
    text = _text(origin, erased)
    is_signed = isinstance(signature, str) and any(has_signed(key, text, signature) for key in keys)
    return Erasure(str(body.get("id")), leaf, frozenset(erased), is_signed if keys else None)


def stored_erasures(transaction: Transaction, signer: Signer | None) -> dict[str, Erasures]:
    """The erasures in events, by log; of several of one event, a signed one.

    These events themselves are not checked. Raises KeyUnusable.
    """
    found: defaultdict[str, dict[str, Erasure]] = defaultdict(dict)
    for row in transaction.stream(_ERASURES):
        owner = row.organization_id or OPERATORS
        erasure = signed_by(signer, owner, row.body)
        if erasure is None:
            continue
        for event_id in erasure.erased:
            if erasure.is_signed or event_id not in found[owner]:
                found[owner][event_id] = erasure
    return dict(found)


def signed_by(signer: Signer | None, owner: str, body: str | None) -> Erasure | None:
    """The erasure by the event with a body, and whether the key has signed it. Raises KeyUnusable.

    Null if it is not an erasure. Without a key, nothing is signed.
    """
    if not body or ERASED_EVENTS not in body:
        return None
    verifier = None if signer is None else signer.existing_verifier(owner)
    return erasure_of(values_of(body), None, origin_of(owner), () if verifier is None else (verifier,))


def sign_erasures(unit: UnitOfWork, signer: Signer, reason: str) -> Counter[str]:
    """Sign unsigned erasures, and return the number of erased events by log. Raises KeyUnusable.

    This is for erasures of a version that did not sign them, and for those signed with a former key.
    """
    signed: Counter[str] = Counter()
    for owner, erasures in sorted(stored_erasures(unit, signer).items()):
        unsigned = [event_id for event_id, erasure in erasures.items() if not erasure.is_signed]
        empty = [found for batch in batches(unsigned) for found in unit.scalars(_EMPTY, {"ids": batch})]
        if empty:
            counts = signed_counts(signer, owner, empty)
            unit.publish(Change(ERASE, AuditEvent, owner or None, counts=counts, reason=reason))
            signed[owner] = len(empty)
    return signed


_EVENT = sql_table(AuditEvent)
_ERASURES = select(_EVENT.c.organization_id, _EVENT.c.body).where(_EVENT.c.action == ERASE)
_EMPTY = select(_EVENT.c.id).where(_EVENT.c.id.in_(bindparam("ids", expanding=True)), _EVENT.c.body == "")


def _text(origin: str, event_ids: Sequence[str]) -> str:
    """The signed text. The second line of a checkpoint is a number, so the two cannot be confused."""
    return f"{origin}\nerasure\n{canonical(event_ids)}\n"

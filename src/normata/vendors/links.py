"""Links by which vendors answer without an account: one assessment each, with a secret of which the hash is stored.

Whoever has the secret reads the questions and answers of that assessment by lookups, which find nothing else, and
without any organization in scope.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import bindparam, insert, select, update

from normata.core.changes.unit_of_work import Actor, Change, UnitOfWork, insert_of, update_of
from normata.core.db.lookup import Lookup
from normata.core.db.transaction import TenantScope, Transaction
from normata.core.db.types import UtcTimestamp, format_timestamp, text
from normata.core.schema.table import new_id, sql_table
from normata.errors import Archived, NotFound, WrongState
from normata.identity.authority import own_membership
from normata.identity.secrets import digest_of, new_secret
from normata.records.assurance import VendorAssessment
from normata.records.kinds import Vendor
from normata.records.lookup import find, found_for_change
from normata.vendors.answers import ANSWER_WRITES, Answer, require_open, store
from normata.vendors.link_model import VendorLink
from normata.vendors.rules import DRAFT, SENT
from normata.vendors.steps import SEND_WRITES, SUBMIT_WRITES, send_draft, submit_sent

PATH = "/vendor/"  # of all pages for vendors
OPENING = f"{PATH}open/"
DAYS, MOST_DAYS = 30, 90

LINK_WRITES = (insert_of(VendorLink), update_of(VendorLink, "revoked_at"), *SEND_WRITES)
REVOCATION_WRITES = (update_of(VendorLink, "revoked_at"),)
PAGE_WRITES = (*ANSWER_WRITES, *SUBMIT_WRITES)

_NAME = "The vendor, by a link"


class Made(NamedTuple):
    """A new link with its secret, and the vendor's address; null if there is none."""

    row: Any
    secret: str
    title: str
    email: str | None


class LinkClosed(Exception):
    """The link was revoked or has expired, or its assessment takes no answers any more."""


def address(public_url: str, secret: str) -> str:
    """The URL that the vendor opens. ``public_url`` is the setting, and never comes from a request."""
    return f"{public_url.rstrip('/')}{OPENING}?secret={secret}"


def make(unit: UnitOfWork, assessment_id: str, days: int) -> Made:
    """Make a link to an assessment, in place of an earlier one. A draft is sent by that.

    Raises NotFound, InsufficientRole, Archived and WrongState.
    """
    assessment = found_for_change(unit, VendorAssessment, assessment_id)
    if assessment.archived_at is not None:
        raise Archived
    vendor = _live_vendor(unit, assessment)
    if assessment.status not in (DRAFT, SENT):
        raise WrongState(assessment.status, (DRAFT, SENT))
    if assessment.status == DRAFT:
        assessment = send_draft(unit, assessment)
    _revoke(unit, assessment)
    secret = new_secret()
    row: dict[str, Any] = {
        "id": new_id(),
        "organization_id": assessment.organization_id,
        "assessment_id": assessment.id,
        "created_at": unit.moment,
        "created_by_id": own_membership(unit, assessment.organization_id),
        "expires_at": format_timestamp(datetime.fromisoformat(unit.moment) + timedelta(days=days)),
        "revoked_at": None,
    }
    stored = unit.row(_CREATE, row | {"digest": digest_of(secret)})
    unit.publish(Change("create", VendorLink, assessment.organization_id, row["id"], row))
    return Made(stored, secret, assessment.title, getattr(vendor, "contact_email", None))


def revoke(unit: UnitOfWork, assessment_id: str) -> None:
    """End the link to an assessment. Repeating it is harmless. Raises NotFound and InsufficientRole."""
    _revoke(unit, found_for_change(unit, VendorAssessment, assessment_id))


def current(transaction: Transaction, organization_id: str, assessment_id: str) -> Any:
    """The row of the last link to an assessment; null if there was none. Raises NotFound."""
    assessment = transaction.row(find(VendorAssessment), {"record": assessment_id})
    if assessment is None or assessment.organization_id != organization_id:
        raise NotFound
    return transaction.row(_LAST, {"organization": organization_id, "assessment": assessment_id})


def _live_vendor(unit: UnitOfWork, assessment: Any) -> Any:
    """The row of the vendor of an assessment; null if it has none. Raises Archived."""
    vendor = None if assessment.vendor_id is None else unit.row(find(Vendor), {"record": assessment.vendor_id})
    if vendor is not None and vendor.archived_at is not None:
        raise Archived("The vendor is archived.")
    return vendor


def _revoke(unit: UnitOfWork, assessment: Any) -> None:
    key = {"organization": assessment.organization_id, "assessment": assessment.id}
    for row in unit.rows(_REVOKE, key | {"moment": unit.moment}):
        after = row._asdict()
        unit.publish(Change("revoke", VendorLink, row.organization_id, row.id, after, after | {"revoked_at": None}))


# --- By the vendor


def reach_of(found: Any) -> TenantScope:
    """The tenant scope for what the vendor does: the organization of a found link, without any user."""
    organization_id = str(found.organization_id)
    return TenantScope(readable=(organization_id,), writable=(organization_id,))


def actor_of(request_id: str, network_address: str) -> Actor:
    """The vendor as the author of a change: nobody who has an account."""
    return Actor(None, _NAME, None, request_id, network_address)


def answer(unit: UnitOfWork, found: Any, answers: Sequence[Answer]) -> None:
    """Store answers of the vendor. Raises LinkClosed and FaultyInput."""
    store(unit, _open(unit, found), answers, member_id=None, is_by_link=True)


def submit(unit: UnitOfWork, found: Any) -> None:
    """Submit the answers for the vendor. Raises LinkClosed."""
    submit_sent(unit, _open(unit, found), None)


def _open(unit: UnitOfWork, found: Any) -> Any:
    """The assessment of a found link, locked, if that is still open."""
    if unit.row(_IS_OPEN, {"link": found.link_id, "moment": unit.moment}) is None:
        raise LinkClosed
    assessment = found_for_change(unit, VendorAssessment, found.assessment_id)
    try:
        require_open(assessment)
        _live_vendor(unit, assessment)
    except (Archived, WrongState):
        raise LinkClosed from None
    return assessment


# --- Statements

_TABLE = sql_table(VendorLink)
_SHOWN = [column for column in _TABLE.c if column.name != "digest"]
_TIME = _TABLE.c.expires_at.type
_CREATE = (
    insert(_TABLE)
    .values({column.name: bindparam(column.name, type_=column.type) for column in _TABLE.c})
    .returning(*_SHOWN)
)
_OF_ASSESSMENT = (
    _TABLE.c.organization_id == bindparam("organization"),
    _TABLE.c.assessment_id == bindparam("assessment"),
)
_LAST = select(*_SHOWN).where(*_OF_ASSESSMENT).order_by(_TABLE.c.created_at.desc(), _TABLE.c.id.desc()).limit(1)
_REVOKE = (
    update(_TABLE)
    .where(*_OF_ASSESSMENT, _TABLE.c.revoked_at.is_(None))
    .values(revoked_at=bindparam("moment", type_=_TIME))
    .returning(*_SHOWN)
)
_IS_OPEN = select(_TABLE.c.id).where(
    _TABLE.c.id == bindparam("link"),
    _TABLE.c.revoked_at.is_(None),
    _TABLE.c.expires_at > bindparam("moment", type_=_TIME),
)


def _find_link(digest: str, *, source: str, number: str) -> str:
    first = number and f"{number},"
    return (
        f"SELECT {first} link.id AS link_id, link.organization_id, link.assessment_id, link.expires_at,"  # noqa: S608 - built from constants
        " link.revoked_at, organization.name AS organization_name, assessment.title, assessment.status,"
        " assessment.deadline, COALESCE(assessment.archived_at, vendor.archived_at) AS archived_at,"
        " CAST(questionnaire.parts AS VARCHAR) AS parts"
        f" FROM {source and source + ' JOIN'} vendor_link AS link {source and f'ON link.digest = {digest}'}"
        " JOIN organization ON organization.id = link.organization_id"
        " JOIN vendor_assessment AS assessment ON assessment.id = link.assessment_id"
        " JOIN questionnaire ON questionnaire.id = assessment.questionnaire_id"
        " LEFT JOIN vendor ON vendor.id = assessment.vendor_id"
        f" WHERE link.digest = {digest} AND organization.removed_at IS NULL"
        f" ORDER BY {first} link.id"
    )


def _find_answers(digest: str, *, source: str, number: str) -> str:
    first = number and f"{number},"
    return (
        f"SELECT {first} answer.question, answer.value, answer.remark"  # noqa: S608 - built from constants
        f" FROM {source and source + ' JOIN'} vendor_link AS link {source and f'ON link.digest = {digest}'}"
        " JOIN vendor_answer AS answer ON answer.organization_id = link.organization_id"
        " AND answer.assessment_id = link.assessment_id"
        f" WHERE link.digest = {digest}"
        f" ORDER BY {first} answer.id"
    )


# By the digest of the secret: the link with its assessment and questions, and the answers of that assessment.
VENDOR_LINK_LOOKUP = Lookup(
    name="normata_vendor_link",
    arguments=("digest",),
    columns={
        **dict.fromkeys(("link_id", "organization_id", "assessment_id"), text()),
        **dict.fromkeys(("expires_at", "revoked_at"), UtcTimestamp()),
        **dict.fromkeys(("organization_name", "title", "status"), text()),
        **dict.fromkeys(("deadline", "archived_at"), UtcTimestamp()),
        "parts": text(),
    },
    select=_find_link,
)
VENDOR_ANSWERS_LOOKUP = Lookup(
    name="normata_vendor_answers",
    arguments=("digest",),
    columns=dict.fromkeys(("question", "value", "remark"), text()),
    select=_find_answers,
)

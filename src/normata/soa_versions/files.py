"""The files of a version: the statement of applicability in every format that the installation can make."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from sqlalchemy import bindparam, select

from normata.core.changes.source import Fault, FaultyInput
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.changes.writing import BODY
from normata.core.db.transaction import Transaction
from normata.core.schema.table import sql_table
from normata.errors import NotFound
from normata.identity.model import Membership, User
from normata.reports import statement
from normata.reports.applicability import OtherNotAdopted, read_applicability
from normata.soa_versions.model import FILE_FORMATS, file_column, hash_column


@dataclass(frozen=True)
class Draft:
    """What a version is to be made of. ``scope`` is null for the organization's own."""

    organization_id: str
    framework_id: str
    others: Sequence[str]
    number: int
    title: str
    scope: str | None
    approver_id: str | None


def columns_of(unit: UnitOfWork, draft: Draft) -> dict[str, Any]:
    """The columns of a version that its statement gives: the scope, the further frameworks, the files and their hashes.

    Raises FaultyInput if the organization has not adopted the frameworks.
    """
    try:
        read = read_applicability(unit, draft.organization_id, draft.framework_id, draft.others)
    except NotFound:
        reason = "is not the id of a framework that the organization has adopted"
        raise FaultyInput([Fault(BODY, "/frameworkId", reason)]) from None
    except OtherNotAdopted as error:
        raise FaultyInput([Fault(BODY, "/otherFrameworkIds", str(error))]) from None
    scope = read.header.scope if draft.scope is None else draft.scope
    report = statement.FORMATS.present(
        replace(
            read,
            header=read.header._replace(scope=scope),
            moment=unit.moment,
            title=draft.title,
            version=draft.number,
            approver=_approver(unit, draft.approver_id),
        )
    )
    return {"scope": scope, "other_framework_ids": list(read.others), **_files(report)}


def _approver(transaction: Transaction, member_id: str | None) -> Mapping[str, Any] | None:
    """The approver as the statement names them; null if there is no such member, which is a fault elsewhere."""
    name = None if member_id is None else transaction.scalar(_NAME, {"member": member_id})
    return None if name is None else {"memberId": member_id, "name": name}


def _files(report: Mapping[str, Any]) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for name in FILE_FORMATS:
        one = statement.FORMATS.by_name[name]
        content = one.render(report) if one.is_there() and one.objection(report) is None else None
        found[hash_column(name)] = None if content is None else sha256(content).hexdigest()
        found[file_column(name)] = None if content is None else b64encode(content).decode()
    return found


def file_faults(version: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    """What is wrong with the files of a version, each with its column: one that is missing, or not as its hash says."""
    found = []
    for name in FILE_FORMATS:
        column, content, digest = file_column(name), version[file_column(name)], version[hash_column(name)]
        if version["erased_at"] is not None:
            if content is not None:
                found.append((column, "must be null, since the files of the version were erased"))
        elif (content is None) != (digest is None):
            found.append((column, f"must be there if {name}Sha256 is, and only then"))
        elif content is not None and _hash(content) != digest:
            found.append((column, f"is not the file of which {name}Sha256 is the hash"))
    return found


def _hash(content: str) -> str | None:
    try:
        return sha256(b64decode(content, validate=True)).hexdigest()
    except ValueError:
        return None


_MEMBER, _USER = sql_table(Membership), sql_table(User)
_NAME = select(_USER.c.name).join(_MEMBER, _MEMBER.c.user_id == _USER.c.id).where(_MEMBER.c.id == bindparam("member"))

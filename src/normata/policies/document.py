"""A version of a policy as a document: what stands on paper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field
from sqlalchemy import bindparam, select

from normata.core.db.transaction import Transaction
from normata.core.http.formats import FormatQuery
from normata.core.schema.fields import MAX_NUMBER, Timestamp
from normata.core.schema.table import sql_table
from normata.core.schema.wire import Wire
from normata.errors import NotFound
from normata.identity.model import Membership, Organization, User
from normata.policies.versions import Versions, text_of
from normata.records.kinds import Policy
from normata.records.lookup import find

DocumentFormat = Literal["pdf", "json"]


class DocumentQuery(FormatQuery):
    """Which version of a policy is printed, and in which format."""

    format: DocumentFormat | None = Field(
        default=None,
        description="The format of the answer. It wins over `Accept`, so that a link can name it. `pdf` needs the extra"
        " `pdf` of the installation.",
    )  # type: ignore[assignment] # it has other formats
    version: int | None = Field(
        default=None, ge=1, le=MAX_NUMBER, description="The number of the version; left out, the one in force."
    )


class PolicyDocument(Wire):
    """A version of a policy as a document."""

    policy_id: str = Field(description="The id of the policy.")
    organization: str = Field(description="The name of the organization.")
    title: str = Field(description="The title of the version.")
    version: int = Field(description="The number of the version.")
    state: str = Field(description="The state of the version.")
    is_imported: bool = Field(description="Whether it came from elsewhere: it was not approved here.")
    approved_by: str | None = Field(description="The name of who has approved it.")
    submitted_at: Timestamp | None = Field(description="When it was submitted.")
    approved_at: Timestamp | None = Field(description="When it was approved.")
    published_at: Timestamp | None = Field(description="When it was published.")
    content_sha256: str = Field(description="The SHA-256 of the text.")
    content: Any = Field(description="The text; null if it was erased.")


def read_document(transaction: Transaction, policy_id: str, query: DocumentQuery) -> Mapping[str, Any]:
    """A version of a policy in wire form: the one that the query names, else the one in force. Raises NotFound."""
    policy: Any = transaction.row(find(Policy), {"record": policy_id})
    if policy is None or policy.organization_id != query.organization_id:
        raise NotFound
    versions = Versions(transaction, policy)
    if query.version is None:
        version = versions.last("PUBLISHED") or versions.last("APPROVED") or versions.last("RETIRED")
    else:
        states = ("IN_REVIEW", "APPROVED", "PUBLISHED", "SUPERSEDED", "RETIRED")
        version = next((one for one in versions.all(*states) if one.number == query.version), None)
    if version is None:
        raise NotFound
    approver = version.approved_by_id
    return {
        "policyId": policy.id,
        "organization": transaction.scalar(_ORGANIZATION, {"organization": policy.organization_id}),
        "title": version.title,
        "version": version.number,
        "state": version.state,
        "isImported": version.is_imported,
        "approvedBy": None if approver is None else transaction.scalar(_NAME, {"member": approver}),
        "submittedAt": version.submitted_at,
        "approvedAt": version.approved_at,
        "publishedAt": version.published_at,
        "contentSha256": version.content_sha256,
        "content": text_of(transaction, version),
    }


_MEMBER, _USER, _ORGANIZATIONS = (sql_table(one) for one in (Membership, User, Organization))
_NAME = select(_USER.c.name).join(_MEMBER, _MEMBER.c.user_id == _USER.c.id).where(_MEMBER.c.id == bindparam("member"))
_ORGANIZATION = select(_ORGANIZATIONS.c.name).where(_ORGANIZATIONS.c.id == bindparam("organization"))

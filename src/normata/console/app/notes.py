"""Notes that report a change just made, and offer to undo it.

A note's content is in the address, so that it works without a script. It is signed with the secret of the session, so
that nobody else can make a link that claims a change.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence

from normata.console.app.api_calls import Query
from normata.console.app.organization_request import OrganizationRequest
from normata.console.page_request import SESSION_COOKIE


def proof_of(page_request: OrganizationRequest, what: str, values: Sequence[str]) -> str:
    """The signature that proves that a page of this session put these values into an address."""
    signed = "\0".join([page_request.membership.organization_id, what, *values])
    return hmac.digest(page_request.cookie(SESSION_COOKIE).encode(), signed.encode(), "sha256").hex()[:32]


def is_proved(page_request: OrganizationRequest, what: str, values: Sequence[str]) -> bool:
    """Whether the signature in the address is valid for these values."""
    proof = page_request.query.get("proof", "")
    return hmac.compare_digest(proof.encode(), proof_of(page_request, what, values).encode())


def assessed_notice(page_request: OrganizationRequest, change_id: str) -> Query:
    """The parameters of the note after many controls were assessed."""
    return {"assessed": change_id, "proof": proof_of(page_request, "assessed", [change_id])}


def changed_notice(page_request: OrganizationRequest, change_id: str, count: int) -> Query:
    """What the address has after so many records were changed at once."""
    values = [change_id, str(count)]
    return {"changed": change_id, "many": str(count), "proof": proof_of(page_request, "changed", values)}


def changed_note(page_request: OrganizationRequest) -> tuple[str, int] | None:
    """The change of records that the page offers to undo, and of how many; null for none."""
    change_id, count = page_request.query.get("changed", ""), page_request.query.get("many", "")
    is_ours = bool(change_id) and is_proved(page_request, "changed", [change_id, count])
    return (change_id, int(count)) if is_ours else None


def assessed_note(page_request: OrganizationRequest) -> str:
    """The id of the change that the page offers to undo; empty for none."""
    change_id = page_request.query.get("assessed", "")
    return change_id if change_id and is_proved(page_request, "assessed", [change_id]) else ""

"""Notes of what was just done that offer to undo it.

What a note is about is in the address, so that it works without script. It is signed with the secret of the session:
nobody else can make a link that claims something was done here.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence

from normata.console.app.api_calls import Query
from normata.console.app.organization_request import OrganizationRequest
from normata.console.page_request import SESSION_COOKIE


def proof_of(page_request: OrganizationRequest, what: str, values: Sequence[str]) -> str:
    """What proves that a page of this session wrote these values into an address."""
    signed = "\0".join([page_request.membership.organization_id, what, *values])
    return hmac.digest(page_request.cookie(SESSION_COOKIE).encode(), signed.encode(), "sha256").hex()[:32]


def is_proved(page_request: OrganizationRequest, what: str, values: Sequence[str]) -> bool:
    """Whether the address has the proof of these values."""
    proof = page_request.query.get("proof", "")
    return hmac.compare_digest(proof.encode(), proof_of(page_request, what, values).encode())


def assessed_notice(page_request: OrganizationRequest, change_id: str) -> Query:
    """What the address has after many controls were assessed."""
    return {"assessed": change_id, "proof": proof_of(page_request, "assessed", [change_id])}


def assessed_note(page_request: OrganizationRequest) -> str:
    """The change of assessments that the page offers to undo; empty for none."""
    change_id = page_request.query.get("assessed", "")
    return change_id if change_id and is_proved(page_request, "assessed", [change_id]) else ""

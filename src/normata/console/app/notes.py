"""Notes that report a change just made, and offer to undo it.

A note's content is in the address, so that it works without a script. It is signed with the secret of the session, so
that nobody else can make a link that claims a change.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence

from normata.console.app.api_calls import Query, UndoNote
from normata.console.app.organization_request import OrganizationRequest
from normata.console.page_request import SESSION_COOKIE
from normata.console.texts import counted, text

FINISHED = "record_finished"  # what a note says of a change that had one purpose; its text is `app.done.<this>`


def proof_of(page_request: OrganizationRequest, what: str, values: Sequence[str]) -> str:
    """The signature that proves that a page of this session put these values into an address."""
    signed = "\0".join([page_request.membership.organization_id, what, *values])
    return hmac.digest(page_request.cookie(SESSION_COOKIE).encode(), signed.encode(), "sha256").hex()[:32]


def is_proved(page_request: OrganizationRequest, what: str, values: Sequence[str]) -> bool:
    """Whether the signature in the address is valid for these values."""
    proof = page_request.query.get("proof", "")
    return hmac.compare_digest(proof.encode(), proof_of(page_request, what, values).encode())


def assessed_notice(page_request: OrganizationRequest, change_id: str, count: int) -> Query:
    """The parameters of the note after so many controls were assessed."""
    values = [change_id, str(count)]
    return {"assessed": change_id, "many": str(count), "proof": proof_of(page_request, "assessed", values)}


def changed_notice(
    page_request: OrganizationRequest, kind: str, change_id: str, count: int, *, done: str = "", following: str = ""
) -> Query:
    """The parameters of the note after so many records of a kind were changed at once; ``done`` is what it then says.

    Without that it says how many there were. ``following`` is what it says of the record that follows.
    """
    values = [f"{kind}:{change_id}", str(count), done, following]
    proof = {"proof": proof_of(page_request, "changed", values)}
    return {"changed": values[0], "many": values[1], "done": done, "following": following} | proof


def unlinked_notice(page_request: OrganizationRequest, link: str) -> Query:
    """The parameters of the note after a link was removed; ``link`` is what makes it again."""
    return {"unlinked": link, "proof": proof_of(page_request, "unlinked", [link])}


def added_notice(
    page_request: OrganizationRequest, control_id: str, kind: str, link_id: str, record_id: str = ""
) -> Query:
    """The parameters of the note after something of a kind was linked to a control; ``record_id`` if it is new."""
    added = "\t".join([control_id, kind, link_id, record_id])
    return {"added": added, "proof": proof_of(page_request, "added", [added])}


def note_of(page_request: OrganizationRequest) -> UndoNote | None:
    """The note that the address has, if a page of this session put it there; null for none."""
    count, done = page_request.query.get("many", ""), page_request.query.get("done", "")
    assessed, changed = page_request.query.get("assessed", ""), page_request.query.get("changed", "")
    if assessed and is_proved(page_request, "assessed", [assessed, count]):
        words = text("app.done.assessed" if count == "1" else "app.done.assessed_many")
        return UndoNote(words, ("coverage",), ("assessed", assessed))
    following = page_request.query.get("following", "")
    if changed and is_proved(page_request, "changed", [changed, count, done, following]):
        kind, _, change_id = changed.partition(":")
        words = text(f"app.done.{done}") if done else counted("record.note.changed", int(count))
        return UndoNote(f"{words} {following}".strip(), ("change", kind), ("changed", change_id))
    unlinked = page_request.query.get("unlinked", "")
    if unlinked and is_proved(page_request, "unlinked", [unlinked]):
        return UndoNote(text("app.done.unlinked"), ("links",), ("unlinked", unlinked))
    added = page_request.query.get("added", "")
    if added and is_proved(page_request, "added", [added]):
        control_id, kind, link_id, record_id = added.split("\t")
        words = text(f"control.{'added' if record_id else 'attached'}.{kind}")
        return UndoNote(words, ("controls", control_id, "add", kind), ("added", f"{link_id}\t{record_id}"))
    return None

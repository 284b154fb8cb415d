"""What can go wrong in the domain, whoever asked: a request, a command, a form. Nothing here knows HTTP.

``core/http/problems.py`` says how each is answered over HTTP; the command line prints the message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal


class DomainError(Exception):
    """What was asked cannot be done. The message is one sentence, fit for whoever asked."""

    message: ClassVar[str] = "This cannot be done."

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.message)


class NotFound(DomainError):
    """There is no such thing, or none that the caller may know of: the two cannot be told apart."""

    message = "There is nothing here that you can see."


class Forbidden(DomainError):
    """The caller may see the thing, but not do this to it."""

    message = "You are not allowed to do this."


class InsufficientRole(Forbidden):
    """The caller's role in the organization does not allow it."""

    message = "Your role in the organization is too small for this."


class NotOperator(Forbidden):
    """The caller does not run the instance."""

    message = "This takes an operator of the instance."


class NotArchived(DomainError):
    """There is nothing to restore: the record is live (AIP-164 asks for an error here, too)."""

    message = "The record is not archived, so there is nothing to restore."


class Archived(DomainError):
    """The record is archived, and so read-only: it must be restored before it can be changed."""

    message = "The record is archived, and so read-only; restore it before you change it."


class SlugTaken(DomainError):
    """A live record of the kind has taken the archived one's slug; ``conflictingId`` names it."""

    message = "A live record has the same slug; give that one another slug or archive it first."

    def __init__(self, conflicting_id: str) -> None:
        super().__init__()
        self.conflicting_id = conflicting_id


class InUse(DomainError):
    """Something else refers to it; ``conflictingId`` names what does."""

    message = "Something else refers to this; have it refer to something else first."

    def __init__(self, conflicting_id: str) -> None:
        super().__init__()
        self.conflicting_id = conflicting_id


class TokenSpansOrganizations(DomainError):
    """The token reaches other organizations as well, so this one cannot revoke it."""

    message = (
        "The token reaches other organizations as well, so it is not this one's to revoke: its user can revoke it, or"
        " you can remove the user from the organization."
    )


class AlreadyMember(DomainError):
    """Whoever has this address is a member already; ``conflictingId`` names the membership."""

    message = "Whoever has this address is a member of the organization already."

    def __init__(self, conflicting_id: str) -> None:
        super().__init__()
        self.conflicting_id = conflicting_id


class LastOwner(DomainError):
    """An organization needs an owner; make somebody else one first."""

    message = "This is the last owner of the organization; make somebody else an owner first."


class MemberRemoved(DomainError):
    """The member was removed from the organization; invite them again first."""

    message = "The member was removed from the organization; invite them again first."


class InvitationClosed(DomainError):
    """The invitation has been accepted or revoked, or has expired."""

    message = "The invitation has been accepted or revoked, or has expired."


class RecordsRefused(DomainError):
    """Some of the records are refused, so that nothing was done to any of them; `errors` has each with its place."""

    message = "Some of the records are refused, so nothing was done to any of them."

    def __init__(self, refusals: Sequence[tuple[int, DomainError]] = ()) -> None:
        super().__init__()
        self.refusals = tuple(refusals)


class RequestInProgress(DomainError):
    """A request with the same `Idempotency-Key` is being carried out."""

    message = "A request with the same Idempotency-Key is being carried out; wait as Retry-After says."


class KeyReused(DomainError):
    """The `Idempotency-Key` came with another request before; a key is for one request and its repetitions."""

    message = "This Idempotency-Key came with another request before; make a new key for each request."


class AnswerNotStored(DomainError):
    """The request with this `Idempotency-Key` was carried out, but its answer was too large, or too secret, to keep."""

    message = "The request with this Idempotency-Key was carried out; its answer was too large, or too secret, to keep."


class CommandError(DomainError):
    """A command cannot do what it was told to; the message says why."""


class BadSetting(CommandError):
    """A setting is wrong, or contradicts another one; the message names it and says how."""


# Why the database is not available: nothing answers, no server is known to be the primary, too many others wait,
# another transaction has the lock, a statement takes too long, the disk is full, the service is ending, or the schema
# is another version's.
UnavailableReason = Literal["unreachable", "unconfirmed", "crowded", "locked", "slow", "full", "ending", "schema"]


class Unavailable(Exception):
    """The database cannot be reached, or not in time. What was asked has not been done; asking again may work.

    The message is for people. ``reason`` is one of few words, fit to count by.
    """

    def __init__(self, message: str, reason: UnavailableReason = "unreachable") -> None:
        super().__init__(message)
        self.reason: UnavailableReason = reason

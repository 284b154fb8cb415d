"""The errors of the domain, for requests, commands and forms alike. Nothing here depends on HTTP.

``core/http/problems.py`` maps each to a response; the command line prints the message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal


class DomainError(Exception):
    """The operation cannot be carried out. The message is one sentence for the caller."""

    message: ClassVar[str] = "This cannot be done."

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.message)


class NotFound(DomainError):
    """It does not exist, or the caller may not see it: the answer is the same for both."""

    message = "Not found."


class Forbidden(DomainError):
    """The caller may see it, but not do this to it."""

    message = "You are not allowed to do this."


class InsufficientRole(Forbidden):
    """The caller's role in the organization does not allow it."""

    message = "Your role in the organization does not allow this."


class NotOperator(Forbidden):
    """The caller is not an operator of the instance."""

    message = "Only an operator of the instance can do this."


class NotArchived(DomainError):
    """The record is live, so it cannot be restored (AIP-164 requires an error here, too)."""

    message = "The record is not archived, so it cannot be restored."


class Archived(DomainError):
    """The record is archived and therefore read-only: restore it before changing it."""

    message = "The record is archived and therefore read-only; restore it before changing it."


class PageTooDeep(DomainError):
    """The page is beyond the first 10,000 rows, where this list has no page numbers: follow `cursor`."""

    message = (
        "Pages beyond the first 10,000 rows have no number. To go further, send as cursor what the header Link of the"
        " page before has in its link next, or narrow the list by filters."
    )


class UnfitCursor(DomainError):
    """The cursor is not one of this list, its filters and its order. The message and ``code`` say why."""

    message = "is not a cursor of this list"

    def __init__(self, message: str | None = None, code: str = "malformed") -> None:
        super().__init__(message)
        self.code = code


class PastUnknown(DomainError):
    """What held at a moment is not known: it is before the history begins, or to come.

    The message says so of a moment that its reader names. ``since`` is when the history begins, if it is before that.
    """

    message = "is not known"

    def __init__(self, message: str | None = None, since: str | None = None) -> None:
        super().__init__(message)
        self.since = since


class TooManyPoints(DomainError):
    """A series would have too many points."""

    message = "There would be too many points."


class NotAssessed(DomainError):
    """The organization records nothing of the control, so there is nothing to confirm."""

    message = "The control is not assessed, so there is nothing to confirm."


class NotRated(DomainError):
    """The risk has no residual probability or impact, so there is nothing to accept."""

    message = "The risk has no residual probability and impact yet, so there is nothing to accept."


class SlugTaken(DomainError):
    """A live record of the same kind has the slug; ``conflictingId`` is its id."""

    message = "A live record has the same slug; change its slug or archive it first."

    def __init__(self, conflicting_id: str) -> None:
        super().__init__()
        self.conflicting_id = conflicting_id


class ExternalIdTaken(DomainError):
    """Another record of the same kind has the external id; ``conflictingId`` is its id."""

    message = "Another record of this kind has the external id."

    def __init__(self, conflicting_id: str) -> None:
        super().__init__()
        self.conflicting_id = conflicting_id


class InUse(DomainError):
    """Another row refers to it; ``conflictingId`` is the id of that row."""

    message = "Another row refers to this; change that reference first."

    def __init__(self, conflicting_id: str) -> None:
        super().__init__()
        self.conflicting_id = conflicting_id


class WrongState(DomainError):
    """Its state does not allow this; ``state`` is the state, ``allowed`` has those that would."""

    message = "Its state does not allow this."

    def __init__(self, state: str = "APPROVED", allowed: Sequence[str] = ("DRAFT",), more: str = "") -> None:
        super().__init__(f"It is {state}, and this takes the state {' or '.join(allowed)}.{more and f' {more}'}")
        self.state = state
        self.allowed = tuple(allowed)
        self.more = more


class WrongVersion(DomainError):
    """The version in the request is not the one that this is about; ``version`` is its number, so read it again."""

    message = "This is about another version than the one in the request; read it again."

    def __init__(self, version: int | None = 4) -> None:
        super().__init__(f"This is about version {version}, not the one in the request; read it again.")
        self.version = version


class NoApprover(DomainError):
    """The policy has no approver who can approve it, so it cannot be submitted."""

    message = "An admin must first name an approver: a member who is no auditor."


class QuotaExceeded(DomainError):
    """The organization has no room for the file: its files would be larger together than the service allows."""

    message = "The organization has no room for the file: its files would be larger together than the service allows."


class MalwareFound(DomainError):
    """The malware scanner found something in the file. Nothing was stored."""

    def __init__(self, signature: str = "Eicar-Test-Signature") -> None:
        super().__init__(f"The malware scanner found {signature} in the file. Nothing was stored.")


class FilesErased(DomainError):
    """Its files were erased, such as with a person whom they named; their hashes and events remain."""

    message = "Its files were erased with a person whom they named; their hashes and events remain."


class NothingToUndo(DomainError):
    """All that the change did was changed again since."""

    message = "All that this change did was changed again since, so there is nothing to undo."


class TokenSpansOrganizations(DomainError):
    """The token is also valid in other organizations, so this one cannot revoke it."""

    message = (
        "The token is also valid in other organizations, so this one cannot revoke it: its user can revoke it, or"
        " you can remove the user from the organization."
    )


class AlreadyMember(DomainError):
    """The user with this address is already a member; ``conflictingId`` is the id of the membership."""

    message = "The user with this address is already a member of the organization."

    def __init__(self, conflicting_id: str) -> None:
        super().__init__()
        self.conflicting_id = conflicting_id


class LastOwner(DomainError):
    """An organization needs an owner; make somebody else an owner first."""

    message = "This is the last owner of the organization; make somebody else an owner first."


class MemberRemoved(DomainError):
    """The member was removed from the organization; invite them again first."""

    message = "The member was removed from the organization; invite them again first."


class HasResponsibilities(DomainError):
    """The member is responsible for records, so they cannot become an auditor; hand these over first."""

    message = "The member is responsible for records, and an auditor is for none; hand these over first."


class InvitationClosed(DomainError):
    """The invitation has been accepted or revoked, or has expired."""

    message = "The invitation has been accepted or revoked, or has expired."


class RecordsRefused(DomainError):
    """Some records were refused, so none was changed; `errors` lists each of them with its place."""

    message = "Some of the records were refused, so none of them was changed."

    def __init__(self, refusals: Sequence[tuple[int, Exception]] = (), array: str = "records") -> None:
        super().__init__()
        self.refusals = tuple(refusals)
        self.array = array  # that the places are in


class RequestInProgress(DomainError):
    """A request with the same `Idempotency-Key` is in progress."""

    message = "A request with the same Idempotency-Key is in progress; retry after the time in Retry-After."


class ImportInProgress(DomainError):
    """Another import of the organization is in progress, or its dry run; there is one at a time."""

    message = "Another import of this organization is in progress; retry after the time in Retry-After."


class KeyReused(DomainError):
    """The `Idempotency-Key` was used for a different request; a key is for one request and its retries."""

    message = "This Idempotency-Key was used for a different request; generate a new key for each request."


class AnswerNotStored(DomainError):
    """The request with this `Idempotency-Key` succeeded, but its answer was too large or too secret to store."""

    message = "The request with this Idempotency-Key succeeded, but its answer was too large or too secret to store."


class CommandError(DomainError):
    """A command failed; the message is the reason."""


class BadSetting(CommandError):
    """A setting is invalid or contradicts another one; the message names it and the reason."""


# Why the database is not available: no server answers, no server is confirmed as the primary, too many requests wait,
# another transaction holds the lock, a statement or a read takes too long, the process that read has died, the disk is
# full, the service is stopping, the schema has another version, files cannot be stored or read, or the scanner of files
# does not answer.
UnavailableReason = Literal[
    "unreachable",
    "unconfirmed",
    "crowded",
    "locked",
    "slow",
    "lost",
    "full",
    "ending",
    "schema",
    "storage",
    "scanner",
]


class Unavailable(Exception):
    """The database cannot be reached, or not in time. Nothing was done; a retry may succeed.

    The message is for people. ``reason`` is one of a few values, as a label for a metric.
    """

    def __init__(self, message: str, reason: UnavailableReason = "unreachable") -> None:
        super().__init__(message)
        self.reason: UnavailableReason = reason

"""The refusal of a sign-in."""

from __future__ import annotations

from normata.errors import DomainError


class SignInRefused(DomainError):
    """A sign-in is refused.

    ``cause`` is a code for the log, such as ``link_used``. It never has a name, an address or a secret. The pages have
    a sentence for each cause, which must not reveal more than the person may know. ``wait`` is the number of seconds
    until the next attempt, after too many.
    """

    message = "This sign-in is refused."

    def __init__(self, cause: str, *, wait: int = 0) -> None:
        super().__init__()
        self.cause = cause
        self.wait = wait

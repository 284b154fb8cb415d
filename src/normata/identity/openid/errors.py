"""How a sign-in by a provider can fail."""

from __future__ import annotations

from normata.errors import DomainError


class Refused(DomainError):
    """The answer that a browser brings back is not one that signs anybody in.

    ``cause`` is one of few words, for the log; the message is for the person. Neither has a name, an address or a
    secret in it.
    """

    message = "This sign-in cannot be accepted."

    def __init__(self, cause: str, message: str | None = None) -> None:
        super().__init__(message)
        self.cause = cause


class PersonRefused(Refused):
    """The provider has told who the person is, and this person may not sign in."""

    message = "You may not sign in here."


class ProviderFailed(DomainError):
    """The provider has answered what cannot be used; ``cause`` says what, for the log."""

    message = "The sign-in service has given an answer that cannot be used."

    def __init__(self, cause: str, message: str | None = None) -> None:
        super().__init__(message)
        self.cause = cause


class ProviderUnreachable(ProviderFailed):
    """The provider cannot be reached, or not in time, or says itself that it cannot answer."""

    message = "The sign-in service cannot be reached now."

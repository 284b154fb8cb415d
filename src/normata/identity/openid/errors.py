"""The failures of a provider. Insufficient claims about a person raise SignInRefused instead."""

from __future__ import annotations

from normata.errors import DomainError


class ProviderFailed(DomainError):
    """The provider's answer cannot be used. ``cause`` is a code for the log."""

    message = "The sign-in service has given an answer that cannot be used."

    def __init__(self, cause: str, message: str | None = None) -> None:
        super().__init__(message)
        self.cause = cause


class ProviderUnreachable(ProviderFailed):
    """The provider cannot be reached, or not in time, or answers 5xx."""

    message = "The sign-in service cannot be reached now."

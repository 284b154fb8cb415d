"""Why a sign-in is refused."""

from __future__ import annotations

from normata.errors import DomainError


class SignInRefused(DomainError):
    """A sign-in is refused.

    ``cause`` is a word for the log, such as ``link_used``. It never has a name, an address or a secret. The pages have
    a sentence for each cause, which must not tell more than the person may know.
    """

    message = "This sign-in is refused."

    def __init__(self, cause: str) -> None:
        super().__init__()
        self.cause = cause

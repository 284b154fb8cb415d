"""How often passwords may be guessed, and attempts begun."""

from __future__ import annotations

from normata.core.http.counters import Counters
from normata.core.http.rate_limit import Limit, network_of
from normata.core.schema.text import fold
from normata.identity.errors import SignInRefused

_ADDRESSES = 20  # times as many as an account: behind one address may be an office, or a proxy


class Throttles:
    """Counts attempts by account and by address; those to accounts that do not exist like the others.

    It counts before anything is compared, so that attempts that are made at once are all counted. Whoever knows an
    address of e-mail can use its attempts up; links and passkeys go on, since these cannot be guessed.
    """

    def __init__(self, counters: Counters, per_minute: int) -> None:
        self._by_account = Limit(counters, "sign-in-by-account", per_minute)
        self._by_address = Limit(counters, "sign-in-by-address", per_minute * _ADDRESSES)

    def count_account(self, email: str) -> None:
        """Count an attempt to guess the password of an account. Raises SignInRefused."""
        wait = self._by_account.seconds_to_wait(fold(email))
        if wait:
            raise SignInRefused("too_many_for_account", wait=wait)

    def count_address(self, address: str) -> None:
        """Count an attempt that comes from an address. Raises SignInRefused."""
        wait = self._by_address.seconds_to_wait(network_of(address))
        if wait:
            raise SignInRefused("too_many_from_address", wait=wait)

"""Limits of password guesses and sign-in attempts."""

from __future__ import annotations

from math import ceil
from time import monotonic

from normata.core.changes.unit_of_work import Actor, Changes
from normata.core.db.transaction import NO_TENANT
from normata.core.http.rate_limit import network_of
from normata.core.schema.addresses import email_key
from normata.identity.errors import SignInRefused
from normata.identity.sign_in.attempt_counts import COUNT_WRITES, Quota, count_attempt

_ADDRESSES = 20  # times the limit of an account, since an office or a proxy may be behind one address
_REQUESTS = 3  # times the limit of an account: of a link, by which people save one part after the other
_MAX_REFUSED = 10_000  # keys that are refused without a query


class Throttles:
    """Counts sign-in attempts by account and by address, also for accounts that do not exist.

    Attempts are counted before anything is compared, so that simultaneous ones all count. Whoever knows an email
    address can use up its attempts. Links and passkeys still work then, because they cannot be guessed.
    """

    def __init__(self, changes: Changes, per_minute: int) -> None:
        self._changes = changes
        self._per_minute = per_minute
        # When a refused key may try again. A flood of further attempts writes nothing to the database.
        self._refused: dict[str, float] = {}

    async def count(self, address: str, email: str | None = None, *, link: str | None = None) -> None:
        """Count an attempt from an address, and with ``email`` an attempt to guess the password of that account.

        ``link`` is the digest of the secret with which a vendor comes: a request of it is an attempt, too.

        Raises SignInRefused. An attempt that is refused for its address does not count for the account.
        """
        if not self._per_minute:
            return
        quotas = [Quota("too_many_from_address", f"address {network_of(address)}", self._per_minute * _ADDRESSES)]
        if email is not None:
            quotas.append(Quota("too_many_for_account", f"account {email_key(email)}", self._per_minute))
        if link is not None:
            quotas.append(Quota("too_many_for_link", f"link {link}", self._per_minute * _REQUESTS))
        for quota in quotas:
            self._require(quota, self._refused.get(quota.digest, 0.0) - monotonic())
        exceeded, wait = await self._changes.make(
            lambda unit: count_attempt(unit, quotas), actor=Actor(), scope=NO_TENANT, writes=COUNT_WRITES
        )
        if exceeded is not None:
            if len(self._refused) >= _MAX_REFUSED:
                self._refused.clear()
            self._refused[exceeded.digest] = monotonic() + wait
            self._require(exceeded, wait)

    def _require(self, quota: Quota, wait: float) -> None:
        """Raise SignInRefused if the next attempt has to wait."""
        if wait > 0:
            raise SignInRefused(quota.cause, wait=ceil(wait))

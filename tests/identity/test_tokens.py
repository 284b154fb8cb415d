"""Access tokens: their form, what is kept of them, and their life from creation to revocation."""

from __future__ import annotations

import hashlib
import re
import string
import zlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from normata.core.changes.unit_of_work import Change, UnitOfWork
from normata.core.db.database import Database
from normata.core.db.types import format_timestamp
from normata.identity.choice import NoSuchOrganization
from normata.identity.model import AccessToken
from normata.identity.tokens import tokens
from tests import stored
from tests.client import TestClient
from tests.conftest import MakeToken
from tests.databases import change, on_both, tamper
from tests.world import ALPHA, BETA, TOKENS, USERS

Bearer = Callable[..., dict[str, str]]

DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase


def status(client: TestClient, token: str) -> int:
    """The status of a list that is asked for with this token."""
    response = client.get(f"/notifications/?organizationId={ALPHA}", headers={"Authorization": f"Bearer {token}"})
    return response.status_code


def checksum(body: str) -> str:
    """The CRC-32 of ``body`` in six digits of base62, worked out anew."""
    rest, digits = zlib.crc32(body.encode()), ""
    while len(digits) < 6:
        rest, digit = rest // 62, rest % 62
        digits = DIGITS[digit] + digits
    return digits


def listing(database: Database, **of: str) -> list[Any]:
    """A listing, but for the tokens of the world."""
    rows = database.read_now(lambda transaction: tokens.listing(transaction, **of))
    return [row for row in rows if row.id not in TOKENS]


# --- Form


def test_a_token_is_a_prefix_43_digits_and_a_checksum() -> None:
    for _ in range(200):
        token = tokens.generate()
        match = re.fullmatch(r"(nrm_[0-9A-Za-z]{43})([0-9A-Za-z]{6})", token)
        assert match is not None
        assert match[2] == checksum(match[1])
        number = 0
        for digit in match[1][4:]:
            number = number * 62 + DIGITS.index(digit)
        assert number < 2**256
        assert tokens.is_well_formed(token)


def test_no_two_tokens_are_the_same() -> None:
    """They differ all over: every digit that carries randomness takes many values."""
    made = [tokens.generate() for _ in range(500)]
    assert len(set(made)) == 500
    for place in range(5, 47):
        assert len({token[place] for token in made}) > 40


@given(st.text())
def test_noise_is_not_well_formed(text: str) -> None:
    assert not tokens.is_well_formed(text)


@given(st.text(alphabet=DIGITS, min_size=43, max_size=43))
def test_whatever_has_form_and_checksum_is_well_formed(digits: str) -> None:
    body = f"nrm_{digits}"
    assert tokens.is_well_formed(body + checksum(body))


@given(st.integers(0, 52), st.characters())
def test_one_wrong_character_is_noticed(place: int, character: str) -> None:
    """A CRC-32 finds every change of one character, and the prefix is compared."""
    body = "nrm_" + "Ab3" * 14 + "x"
    token = body + checksum(body)
    changed = token[:place] + character + token[place + 1 :]
    assert tokens.is_well_formed(changed) == (changed == token)


@given(st.sampled_from(["\n", " ", "\x00", "0", "é", "\u0661"]), st.booleans())
def test_nothing_may_come_before_or_after(extra: str, before: bool) -> None:
    token = tokens.generate()
    assert not tokens.is_well_formed(extra + token if before else token + extra)


# --- Keeping


def test_only_the_digest_is_stored(
    client: TestClient, make_token: MakeToken, database: Database, tmp_path: Path
) -> None:
    """After use, no file of the database has the token in it; the one row of it has its SHA-256."""
    token = make_token("editor")
    assert status(client, token) == 200
    (row,) = stored.tokens(database)
    assert row["digest"] == hashlib.sha256(token.encode()).hexdigest()
    files = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    found = {path.name: path.read_bytes() for path in files}
    assert any(row["digest"].encode() in content for content in found.values()), "the files are those of the database"
    assert any(name.endswith("-wal") for name in found)
    for name, content in found.items():
        assert token.encode() not in content, name
        assert token[4:47].encode() not in content, name


def test_a_listing_has_neither_tokens_nor_digests(database: Database, make_token: MakeToken) -> None:
    made = [make_token("editor"), make_token("viewer", scope="read", lifetime=None)]
    rows = listing(database)
    columns = {"id", "email", "scope", "created_at", "expires_at", "last_used_at", "revoked_at"}
    columns |= {"user_id", "organization", "name"}
    assert [row.email for row in rows] == [USERS["editor"], USERS["viewer"]]
    assert [row.scope for row in rows] == ["write", "read"]
    for row in rows:
        assert set(row._fields) == columns
    told = str(rows)
    for token in made:
        assert token not in told
        assert tokens.digest(token) not in told
    assert rows[0].expires_at is not None
    assert rows[1].expires_at is None


def test_a_listing_can_be_of_one_user(database: Database, make_token: MakeToken) -> None:
    make_token("editor")
    make_token("viewer")
    email = USERS["viewer"].upper()
    rows = listing(database, email=email)
    assert [row.email for row in rows] == [USERS["viewer"]]
    rows = listing(database, email="user-editor")
    assert [row.email for row in rows] == [USERS["editor"]]
    with pytest.raises(tokens.NoSuchUser):
        listing(database, email="x@y.z")


@on_both
def test_a_listing_can_be_of_what_reaches_an_organization(database: Database, make_token: MakeToken) -> None:
    """By its id or slug: what is narrowed to it, and what its members have that is narrowed to none."""
    for user in ("viewer", "foreigner", "nobody"):
        make_token(user)
    narrowed = partial(tokens.create, email=USERS["editor"], scope="read", lifetime=None, organization="alpha")
    change(database, lambda unit: narrowed(unit, name="Export"))
    rows = listing(database, organization="alpha")
    assert [(row.email, row.organization, row.name) for row in rows] == [
        (USERS["viewer"], None, None),
        (USERS["editor"], "alpha", "Export"),
    ]
    tamper(
        database, "UPDATE membership SET removed_at = '2026-01-01T00:00:00.000Z' WHERE organization_id = 'org-alpha'"
    )
    rows = listing(database, organization=ALPHA)
    assert [row.name for row in rows] == ["Export"]


# --- Making


def test_creation_and_revocation_are_published_without_the_digest(database: Database) -> None:
    def work(unit: UnitOfWork) -> list[Change]:
        tokens.create(unit, email=USERS["editor"], scope="read", lifetime=None)
        tokens.revoke(unit, str(unit.published[0].row_id))
        return unit.published

    created, revoked = change(database, work)
    assert (created.action, revoked.action) == ("create", "revoke")
    [row] = stored.tokens(database)
    assert {created.table, revoked.table} == {AccessToken}
    assert created.row_id == revoked.row_id == row.pop("id")
    assert row.pop("digest")
    assert created.organization_id is revoked.organization_id is None
    assert revoked.row is not None
    assert revoked.row.items() >= row.items()
    assert created.row == {**revoked.row, "revoked_at": None}


def test_the_events_of_a_narrowed_token_are_its_organizations(database: Database) -> None:
    def work(unit: UnitOfWork) -> list[Change]:
        tokens.create(unit, email=USERS["editor"], scope="read", lifetime=None, organization=ALPHA)
        tokens.revoke(unit, str(unit.published[0].row_id))
        return unit.published

    assert {one.organization_id for one in change(database, work)} == {ALPHA}


def test_a_token_is_narrowed_only_to_an_organization_of_its_user(database: Database) -> None:
    """And nobody who was removed gets one, nor a removed member."""

    def create(email: str, organization: str | None) -> None:
        change(
            database,
            lambda unit: tokens.create(unit, email=email, scope="read", lifetime=None, organization=organization),
        )

    for email, organization in ((USERS["foreigner"], ALPHA), (USERS["nobody"], ALPHA), (USERS["editor"], "beta")):
        with pytest.raises(tokens.NoMember):
            create(email, organization)
    with pytest.raises(NoSuchOrganization):
        create(USERS["editor"], "gamma")
    tamper(database, "UPDATE membership SET removed_at = '2026-01-01T00:00:00.000Z' WHERE user_id = 'user-editor'")
    with pytest.raises(tokens.NoMember):
        create(USERS["editor"], ALPHA)
    tamper(database, "UPDATE user_account SET removed_at = '2026-01-01T00:00:00.000Z' WHERE id = 'user-editor'")
    for name in (USERS["editor"], "user-editor"):
        with pytest.raises(tokens.NoSuchUser):
            create(name, None)
    assert stored.tokens(database) == []


@on_both
def test_a_narrowed_token_sees_nothing_of_other_organizations(
    database: Database, client: TestClient, bearer: Bearer
) -> None:
    """Its user's own ones included."""
    guest = {"id": "guest", "organizationId": BETA, "userId": "user-editor", "role": "viewer"}
    stored.load(database, {"memberships": [guest]})
    narrowed = change(
        database,
        lambda unit: tokens.create(unit, email="user-editor", scope="write", lifetime=None, organization="alpha"),
    )
    for token, expected in ((narrowed, (200, 200, 404, 404)), (bearer("editor")["Authorization"][7:], (200,) * 4)):
        headers = {"Authorization": f"Bearer {token}"}
        names = (ALPHA, "alpha", BETA, "beta")
        found = [client.get(f"/frameworks/?organizationId={name}", headers=headers).status_code for name in names]
        assert tuple(found) == expected


@pytest.mark.parametrize(
    "email",
    ["stranger@alpha.example", "", "editor", "%@alpha.example", "editor@alpha.example ", "\uff45ditor@alpha.example"],
)
def test_nobody_unknown_gets_a_token(database: Database, email: str) -> None:
    with pytest.raises(tokens.NoSuchUser):
        change(database, lambda unit: tokens.create(unit, email=email, scope="write", lifetime=timedelta(1)))
    assert stored.tokens(database) == []


@pytest.mark.parametrize("email", ["EDITOR@ALPHA.EXAMPLE", "Editor@Alpha.Example"])
@on_both
def test_an_email_address_is_found_however_it_is_written(database: Database, client: TestClient, email: str) -> None:
    """In any case, as people type it."""
    token = change(database, lambda unit: tokens.create(unit, email=email, scope="read", lifetime=timedelta(hours=1)))
    assert status(client, token) == 200
    (row,) = stored.tokens(database)
    assert (row["user_id"], row["scope"]) == ("user-editor", "read")


@on_both
def test_a_token_acts_as_its_user_only(client: TestClient, make_token: MakeToken) -> None:
    """A user without memberships has no organization; a foreign owner has another one."""
    assert status(client, make_token("viewer")) == 200
    assert status(client, make_token("nobody")) == 404
    assert status(client, make_token("foreigner")) == 404


# --- Expiry


def test_a_token_without_a_lifetime_never_expires(
    client: TestClient, database: Database, make_token: MakeToken
) -> None:
    token = make_token("editor", lifetime=None)
    assert stored.tokens(database)[0]["expires_at"] is None
    assert status(client, token) == 200


@on_both
def test_a_token_expires_when_its_lifetime_is_over(database: Database, make_token: MakeToken) -> None:
    before = datetime.now(UTC)
    make_token("editor", lifetime=timedelta(days=90))
    after = datetime.now(UTC)
    expires = stored.tokens(database)[0]["expires_at"]
    assert format_timestamp(before + timedelta(days=90)) <= expires <= format_timestamp(after + timedelta(days=90))


@pytest.mark.parametrize(
    ("lifetime", "expected"),
    [
        (timedelta(0), 401),  # the moment of expiry itself is too late
        (timedelta(milliseconds=-1), 401),
        (timedelta(days=-36_500), 401),
        (timedelta(hours=1), 200),
        (timedelta(days=36_500), 200),
    ],
    ids=str,
)
def test_an_expired_token_is_refused(
    client: TestClient, make_token: MakeToken, lifetime: timedelta, expected: int
) -> None:
    assert status(client, make_token("editor", lifetime=lifetime)) == expected


def test_expiry_is_looked_at_on_every_request(client: TestClient, database: Database, make_token: MakeToken) -> None:
    token = make_token("editor")
    assert status(client, token) == 200
    moment = format_timestamp(datetime.now(UTC))
    tamper(database, f"UPDATE access_token SET expires_at = '{moment}'")
    assert status(client, token) == 401


# --- Revocation


@on_both
def test_revocation_works_at_once_and_twice_is_harmless(
    client: TestClient, database: Database, make_token: MakeToken
) -> None:
    """The next request is refused; other tokens of the same user live on; the first moment of revocation stays."""
    token, other = make_token("editor"), make_token("editor")
    token_id = stored.tokens(database)[0]["id"]
    assert (status(client, token), status(client, other)) == (200, 200)
    assert change(database, lambda unit: tokens.revoke(unit, token_id)) is True
    assert (status(client, token), status(client, other)) == (401, 200)
    revoked = stored.row(database, AccessToken, token_id)["revoked_at"]
    assert revoked is not None
    assert change(database, lambda unit: tokens.revoke(unit, token_id)) is True
    assert stored.row(database, AccessToken, token_id)["revoked_at"] == revoked
    assert (status(client, token), status(client, other)) == (401, 200)


def test_to_revoke_an_unknown_token_does_nothing(database: Database, make_token: MakeToken) -> None:
    """Neither does the token itself serve as its id."""
    token = make_token("editor")
    before = stored.tokens(database)
    for token_id in ("unknown", "", "%", token, tokens.digest(token)):
        assert not change(database, partial(tokens.revoke, token_id=token_id))
    assert stored.tokens(database) == before

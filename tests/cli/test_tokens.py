"""Tokens: created, listed, revoked."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import pytest

from tests import mostly_sqlite
from tests.cli.commands import Done, Run, failed
from tests.client import TestClient
from tests.databases import on_both
from tests.world import TOKENS

database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url


def tokens(normata: Run, url: str, *options: str) -> list[dict[str, str]]:
    """What is listed, but for the tokens of the world."""
    done = normata("token", "list", *options, "--database", url)
    assert (done.code, done.err) == (0, "")
    head, *rows = (line.split("\t") for line in done.out.splitlines())
    return [dict(zip(head, row, strict=True)) for row in rows if row[0] not in TOKENS]


@on_both
def test_a_token_is_printed_alone_and_works_until_it_is_revoked(
    normata: Run, database_url: str, client: TestClient
) -> None:
    done = normata("token", "create", "--user", "EDITOR@alpha.example", "--scope", "write", "--database", database_url)
    assert (done.code, done.err) == (0, "")
    assert re.fullmatch(r"nrm_[0-9A-Za-z]{49}\n", done.out)
    token = done.out.strip()
    [row] = tokens(normata, database_url)
    assert (row["email"], row["scope"], row["revoked_at"]) == ("editor@alpha.example", "write", "-")
    assert token not in str(row)

    def status() -> int:
        path = "/labels/labels-archived-org-alpha/restore/"
        return client.post(path, headers={"Authorization": f"Bearer {token}"}).status_code

    assert status() == 200
    done = normata("token", "revoke", row["id"], "--database", database_url)
    assert done == Done(0, f"{row['id']}: revoked\n", "")
    assert status() == 401
    revoked_at = tokens(normata, database_url)[0]["revoked_at"]
    assert normata("token", "revoke", row["id"], "--database", database_url).code == 0
    assert tokens(normata, database_url)[0]["revoked_at"] == revoked_at != "-"


def test_a_token_can_be_narrowed_and_named(normata: Run, database_url: str, client: TestClient) -> None:
    made = ("token", "create", "--user", "editor@alpha.example", "--scope", "admin", "--database", database_url)
    done = normata(*made, "--organization", "alpha", "--name", " Export\x1b[2J ")
    assert (done.code, done.err) == (0, "")
    headers = {"Authorization": f"Bearer {done.out.strip()}"}
    for organization, expected in (("org-alpha", 200), ("org-beta", 404)):
        path = f"/frameworks/?organizationId={organization}"
        assert client.get(path, headers=headers).status_code == expected
    [row] = tokens(normata, database_url)
    assert (row["scope"], row["organization"], row["name"]) == ("admin", "alpha", "Export\\u001b[2J")
    assert row["user_id"] == "user-editor"
    assert failed(normata(*made, "--organization", "gamma")).startswith("no organization 'gamma'; there is")
    told = failed(normata(*made, "--organization", "org-beta"))
    assert told == "editor@alpha.example is no member of org-beta"


@on_both
def test_tokens_are_listed_by_organization(normata: Run, database_url: str) -> None:
    for user in ("viewer@alpha.example", "user-foreigner"):
        assert normata("token", "create", "--user", user, "--database", database_url).code == 0
    for organization, email in (("alpha", "viewer@alpha.example"), ("org-beta", "owner@beta.example")):
        shown = tokens(normata, database_url, "--organization", organization)
        assert [row["email"] for row in shown] == [email]


def test_a_token_reads_for_ninety_days_unless_told_otherwise(normata: Run, database_url: str) -> None:
    def lifetime(row: dict[str, str]) -> timedelta:
        created, expires = (datetime.fromisoformat(row[name]) for name in ("created_at", "expires_at"))
        return expires - created

    for arguments in ((), ("--expires-in", "12h"), ("--expires-in", "2w"), ("--expires-in", "never")):
        assert (
            normata("token", "create", "--user", "viewer@alpha.example", *arguments, "--database", database_url).code
            == 0
        )
    rows = tokens(normata, database_url)
    assert {row["scope"] for row in rows} == {"read"}
    [forever] = [row for row in rows if row["expires_at"] == "-"]
    rows.remove(forever)
    found = sorted(lifetime(row) for row in rows)
    wanted = [timedelta(hours=12), timedelta(weeks=2), timedelta(days=90)]
    assert all(abs(have - want) < timedelta(seconds=5) for have, want in zip(found, wanted, strict=True))


def test_tokens_are_listed_by_user(normata: Run, database_url: str) -> None:
    for user in ("viewer", "editor"):
        normata("token", "create", "--user", f"{user}@alpha.example", "--database", database_url)
    shown = tokens(normata, database_url, "--user", "VIEWER@alpha.example")
    assert [row["email"] for row in shown] == ["viewer@alpha.example"]


def test_a_user_without_tokens_has_an_empty_list(normata: Run, database_url: str) -> None:
    done = normata("token", "list", "--user", "nobody@nowhere.example", "--database", database_url)
    assert (done.code, len(done.out.splitlines()), done.err) == (0, 1, "")


@pytest.mark.parametrize("command", ["create", "list"])
def test_a_user_that_does_not_exist_is_an_error(normata: Run, database_url: str, command: str) -> None:
    told = failed(normata("token", command, "--user", "who@x.example", "--database", database_url))
    assert told == "there is no user with the email address who@x.example"


def test_a_token_that_does_not_exist_cannot_be_revoked(normata: Run, database_url: str) -> None:
    told = failed(normata("token", "revoke", "x", "--database", database_url))
    assert told == "there is no token with the id x"

"""The settings of single sign-on: what they may say, and what is wrong with them in one sentence."""

from __future__ import annotations

import pytest

from normata.errors import BadSetting
from normata.identity.openid.configuration import Grant, read_configuration
from tests.identity.openid.conftest import configured

NOTHING = {"issuer": "", "client_id": "", "client_secret": "", "name": "", "groups_claim": "groups", "roles": ""}
PUBLIC = "https://normata.example"


def test_without_an_issuer_there_is_no_provider() -> None:
    assert read_configuration(**NOTHING, public_url=PUBLIC) is None


@pytest.mark.parametrize("setting", ["client_id", "client_secret", "roles"])
def test_other_settings_without_an_issuer_are_told(setting: str) -> None:
    with pytest.raises(BadSetting, match=f"^NORMATA_OIDC_{setting.upper()} is set, but NORMATA_OIDC_ISSUER is not$"):
        read_configuration(**NOTHING | {setting: "x"}, public_url=PUBLIC)


@pytest.mark.parametrize("issuer", ["", "https://id.example"])
def test_joining_by_groups_needs_a_provider_and_groups(issuer: str) -> None:
    settings = NOTHING | {"issuer": issuer, "client_id": "normata" if issuer else ""}
    with pytest.raises(BadSetting, match=r"^NORMATA_OIDC_JOIN is groups, but NORMATA_OIDC_"):
        read_configuration(**settings, public_url=PUBLIC, join="groups")
    assert configured("https://id.example", "staff=alpha:viewer", join="groups").joins_by_groups
    assert not configured("https://id.example", "staff=alpha:viewer").joins_by_groups


def test_a_provider_needs_a_client() -> None:
    with pytest.raises(BadSetting, match=r"CLIENT_ID is not$"):
        read_configuration(**NOTHING | {"issuer": "https://id.example"}, public_url=PUBLIC)


@pytest.mark.parametrize(
    "issuer",
    [
        "https://id.example",
        "https://id.example/realms/a%20b/",
        "https://id.example:8443",
        "http://localhost:9400",
        "http://127.0.0.1:9400",
        "http://[::1]:9400",
    ],
)
def test_issuers(issuer: str) -> None:
    found = configured(issuer)
    assert found.issuer == issuer
    assert found.redirect_uri == "http://localhost:8000/sign-in/oidc/callback/"
    assert "a secret" not in repr(found)


@pytest.mark.parametrize(
    "issuer",
    [
        "id.example",
        "http://id.example",
        "http://localhost.example",
        "http://10.0.0.1",
        "https://",
        "https://id.example?x=1",
        "https://id.example?",
        "https://id.example#x",
        "https://user@id.example",
        "https://id.example\\@evil.example",
        "https://id.example/ x",
        "https://id.example\n",
        "https://id.example:port",
        "https://[id.example",
        "ftp://id.example",
    ],
)
def test_what_is_no_issuer(issuer: str) -> None:
    with pytest.raises(BadSetting, match="NORMATA_OIDC_ISSUER is an https:// address"):
        configured(issuer)


def test_the_name_is_the_host_where_there_is_none() -> None:
    assert configured("https://id.example/x").name == "id.example"
    assert configured("https://id.example/x", name="Example").name == "Example"


@pytest.mark.parametrize(
    ("roles", "grants"),
    [
        ("", []),
        (" ", []),
        ("staff=alpha:viewer", [Grant("staff", "alpha", "viewer")]),
        (
            " staff=alpha:viewer , admins=alpha:admin,\nstaff=beta:editor,",
            [Grant("staff", "alpha", "viewer"), Grant("admins", "alpha", "admin"), Grant("staff", "beta", "editor")],
        ),
        ("CN=Admins,OU=Groups,DC=example=alpha:owner", [Grant("CN=Admins,OU=Groups,DC=example", "alpha", "owner")]),
        ("/a/b: c=alpha:owner", [Grant("/a/b: c", "alpha", "owner")]),
        ("Größe=0192-ab:admin", [Grant("Größe", "0192-ab", "admin")]),
    ],
)
def test_groups_and_roles(roles: str, grants: list[Grant]) -> None:
    assert list(configured("https://id.example", roles).grants) == grants


@pytest.mark.parametrize(
    "roles", ["staff", "staff=alpha", "=alpha:viewer", "staff=alpha:chief", "staff=:viewer", "staff=a b:viewer", ","]
)
def test_what_names_no_role_is_told(roles: str) -> None:
    with pytest.raises(BadSetting, match="viewer, auditor, editor, admin, owner; this is none: "):
        configured("https://id.example", f"good=alpha:viewer,{roles}")

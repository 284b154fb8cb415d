"""What the command line tells of the settings of single sign-on."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cli.commands import Run, complaints, failed


@pytest.mark.parametrize("command", ["serve", "demo", "check"])
def test_a_setting_that_is_wrong_is_told_at_the_start(
    normata: Run, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("NORMATA_OIDC_ISSUER", "http://id.example")
    assert failed(normata(command), code=2) == (
        "NORMATA_OIDC_ISSUER is an https:// address without a query (http:// on a loopback address)"
    )
    monkeypatch.setenv("NORMATA_OIDC_ISSUER", "https://id.example")
    assert failed(normata(command), code=2) == "NORMATA_OIDC_ISSUER is set, but NORMATA_OIDC_CLIENT_ID is not"


def test_check_warns_of_organizations_that_there_are_not(
    normata: Run, monkeypatch: pytest.MonkeyPatch, database_url: str
) -> None:
    monkeypatch.setenv("NORMATA_OIDC_ISSUER", "https://id.example")
    monkeypatch.setenv("NORMATA_OIDC_CLIENT_ID", "normata")
    monkeypatch.setenv("NORMATA_OIDC_ROLES", "a=alpha:viewer,b=org-beta:viewer,c=gamma:viewer,d=gamma:editor")
    done = normata("check", "--database", database_url)
    assert done.code == 0
    assert complaints(done) == ["warning: NORMATA_OIDC_ROLES names the organization gamma, which does not exist"]


@pytest.mark.long
def test_the_client_is_imported_where_there_is_a_provider_alone(normata: Run) -> None:
    assert normata("migrate").code == 0
    program = (
        "import sys; from normata.app import create_app; from normata.settings import Settings;"
        " create_app(Settings(oidc_issuer=sys.argv[1], oidc_client_id=sys.argv[2]));"
        " print(*sorted({'joserfc', 'normata.identity.openid.client'} & sys.modules.keys()))"
    )
    for given, imported in (
        (("", ""), ""),
        (("https://id.example", "normata"), "joserfc normata.identity.openid.client"),
    ):
        done = subprocess.run([sys.executable, "-c", program, *given], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == imported

"""Settings: each has a default, an environment variable and limits."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from normata.environment import SECRETS
from normata.errors import BadSetting
from normata.settings import Settings

OTHER = {
    "database_url": "sqlite:////srv/normata.db",
    "database_timeout": "1.5",
    "database_pool_size": "9",
    "database_role": "other_service",
    "database_statement_cache": "0",
    "event_key": "/etc/normata/event-key",
    "host": "192.0.2.1",
    "port": "9000",
    "workers": "3",
    "public_url": "https://normata.example.org/compliance",
    "allowed_hosts": "normata.example.org,10.0.0.7,[::1]",
    "local_sign_in": "False",
    "sign_in_limit": "20",
    "smtp_url": "smtps://user:password@mail.example.org:465",
    "mail_from": "Normata <normata@example.org>",
    "webhook_networks": "10.0.7.0/24,fd00::/8",
    "max_body_bytes": "4096",
    "files_url": "file:///var/lib/normata/files",
    "files_timeout": "2.5",
    "scanner": "tcp://127.0.0.1:3310",
    "scanner_timeout": "5.0",
    "max_file_bytes": "1000",
    "files_quota": "0",
    "body_timeout": "2.5",
    "body_deadline": "60.0",
    "body_rate": "1024",
    "organization_long_reads": "8",
    "caller_long_reads": "3",
    "long_read_processes": "1",
    "long_read_process_after": "1.0",
    "read_timeout": "60.0",
    "address_connections": "64",
    "root_path": "/normata",
    "trust_forwarded_prefix": "True",
    "trusted_proxies": "10.0.0.7,2001:db8::/64",
    "page_cache_mib": "8",
    "rate_limit": "60",
    "address_rate_limit": "600",
    "bad_token_limit": "5",
    "forget_mail": "7",
    "forget_notifications": "90",
    "forget_sessions": "0",
    "forget_tokens": "365",
    "oidc_issuer": "https://id.example",
    "oidc_client_id": "normata",
    "oidc_client_secret": "a secret",
    "oidc_name": "Example",
    "oidc_groups_claim": "roles",
    "oidc_roles": "staff=alpha:viewer",
    "oidc_join": "groups",
    "log_level": "debug",
    "log_format": "text",
    "tracing": "True",
}


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"NORMATA_{name.upper()}", raising=False)


def test_every_setting_is_looked_at_here() -> None:
    assert OTHER.keys() == Settings.model_fields.keys()


@pytest.mark.parametrize(("name", "value"), OTHER.items())
def test_every_setting_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    default = getattr(Settings(), name)
    monkeypatch.setenv(f"NORMATA_{name.upper()}", value)
    assert str(getattr(Settings(), name)) == value != str(default)


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_has_a_default_and_a_sentence(name: str) -> None:
    field = Settings.model_fields[name]
    assert not field.is_required()
    assert (field.description or "").endswith(".")


def test_what_is_given_comes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NORMATA_PORT", "9000")
    assert Settings(port=9001).port == 9001


def test_it_listens_on_loopback_unless_told_otherwise() -> None:
    settings = Settings()
    assert (settings.host, settings.port, settings.database_url) == ("127.0.0.1", 8000, "sqlite:///normata.db")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("port", "0"),
        ("port", "65536"),
        ("port", "http"),
        ("workers", "0"),
        ("database_timeout", "0"),
        ("database_timeout", "nan"),
        ("database_pool_size", "0"),
        ("database_role", "Robert'); DROP TABLE"),
        ("database_statement_cache", "-1"),
        ("allowed_hosts", "normata.example.org:8000"),
        ("allowed_hosts", "https://normata.example.org"),
        ("allowed_hosts", "one.example,,two.example"),
        ("public_url", ""),
        ("public_url", "normata.example.org"),
        ("public_url", "ftp://normata.example.org"),
        ("public_url", "https://"),
        ("public_url", "https://user@normata.example.org"),
        ("public_url", "https://normata.example.org/?a=b"),
        ("public_url", "https://normata.example.org/#a"),
        ("public_url", "https://normata.example.org:99999"),
        ("public_url", "https://normata.example.org\\@evil.example"),
        ("public_url", "https://[::1"),
        ("smtp_url", "mail.example.org"),
        ("smtp_url", "https://mail.example.org"),
        ("smtp_url", "smtp://"),
        ("smtp_url", "smtp://mail.example.org:99999"),
        ("smtp_url", "smtp://mail example.org"),
        ("mail_from", "normata"),
        ("mail_from", "normata@example.org\r\nBcc: x@example.org"),
        ("mail_from", "a@example.org, b@example.org"),
        ("sign_in_limit", "-1"),
        ("max_body_bytes", "1"),
        ("files_url", "/var/lib/files"),
        ("files_url", "file://host/files"),
        ("files_url", "s3://"),
        ("files_url", "s3://key:secret@bucket/files"),
        ("files_url", "s3://bucket/../files"),
        ("files_url", "s3://bucket/files?region=a"),
        ("files_timeout", "0"),
        ("scanner", "clamd"),
        ("scanner", "tcp://127.0.0.1"),
        ("scanner", "tcp://user@127.0.0.1:3310"),
        ("scanner", "tcp://127.0.0.1:3310/path"),
        ("scanner", "unix:clamd.ctl"),
        ("scanner_timeout", "0"),
        ("max_file_bytes", "0"),
        ("files_quota", "-1"),
        ("body_timeout", "0"),
        ("body_deadline", "0"),
        ("body_rate", "0"),
        ("address_connections", "-1"),
        ("root_path", "/"),
        ("root_path", "normata"),
        ("root_path", "/a b"),
        ("trusted_proxies", "proxy.example"),
        ("trusted_proxies", "10.0.0.1/8"),
        ("trusted_proxies", "10.0.0.1,"),
        ("trusted_proxies", "*"),
        ("rate_limit", "-1"),
        ("address_rate_limit", "-1"),
        ("bad_token_limit", "-1"),
        ("oidc_name", "x" * 101),
        ("oidc_groups_claim", ""),
        ("oidc_groups_claim", "two words"),
        ("log_level", "loud"),
        ("log_format", "xml"),
    ],
)
def test_nonsense_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"NORMATA_{name.upper()}", value)
    with pytest.raises(ValidationError) as caught:
        Settings()
    assert [error["loc"] for error in caught.value.errors()] == [(name,)]


def test_other_variables_are_no_business_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NORMATA_COLOUR", "red")
    assert not hasattr(Settings(), "colour")


def test_settings_do_not_change_once_read() -> None:
    with pytest.raises(ValidationError):
        Settings().port = 1  # type: ignore[misc]


@pytest.mark.parametrize(
    ("url", "given", "file"),
    [
        ("sqlite:///normata.db", "", "normata.db.event-key"),
        ("sqlite:////var/lib/normata.db?mode=rw", "", "/var/lib/normata.db.event-key"),
        ("postgresql://user@host/name", "", "normata.event-key"),
        ("sqlite:///normata.db", "/etc/key", "/etc/key"),
    ],
)
def test_the_key_of_events_is_beside_the_file_of_the_database(url: str, given: str, file: str) -> None:
    assert str(Settings(database_url=url, event_key=given).event_key_file) == file


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file with a secret."""
    path = tmp_path / "secret"
    path.write_text("a secret\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_comes_from_a_file(monkeypatch: pytest.MonkeyPatch, secret: Path, name: str) -> None:
    secret.write_text(f"{OTHER[name]}\n", encoding="utf-8")
    monkeypatch.setenv(f"NORMATA_{name.upper()}_FILE", str(secret))
    assert getattr(Settings(), name) == OTHER[name]
    monkeypatch.setenv(f"NORMATA_{name.upper()}", OTHER[name])
    with pytest.raises(BadSetting, match="are both set: remove one of them"):
        Settings()


def test_what_is_hidden_can_come_from_a_file() -> None:
    assert {name for name, field in Settings.model_fields.items() if not field.repr} <= set(SECRETS)


@pytest.mark.parametrize("name", sorted(Settings.model_fields.keys() - set(SECRETS)))
def test_what_is_no_secret_does_not_come_from_a_file(monkeypatch: pytest.MonkeyPatch, secret: Path, name: str) -> None:
    """Not silently: who sets it expects something of it."""
    monkeypatch.setenv(f"NORMATA_{name.upper()}_FILE", str(secret))
    with pytest.raises(BadSetting, match=f"NORMATA_{name.upper()}_FILE is no setting"):
        Settings()


@pytest.mark.parametrize("content", [b"", b"\n", b"two\nlines", b"\xff", b"x" * 70_000])
def test_a_file_without_one_line_is_refused(monkeypatch: pytest.MonkeyPatch, secret: Path, content: bytes) -> None:
    secret.write_bytes(content)
    monkeypatch.setenv("NORMATA_OIDC_CLIENT_SECRET_FILE", str(secret))
    with pytest.raises(BadSetting, match=r"^NORMATA_OIDC_CLIENT_SECRET_FILE: ") as caught:
        Settings()
    assert "lines" not in str(caught.value)


def test_a_secret_that_is_not_there_is_a_fault(monkeypatch: pytest.MonkeyPatch, secret: Path) -> None:
    secret.unlink()
    monkeypatch.setenv("NORMATA_SMTP_URL_FILE", str(secret))
    with pytest.raises(BadSetting, match="cannot be read: No such file"):
        Settings()

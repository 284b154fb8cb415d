"""What holds for every page: its headers, its links, its refusals, its styles and scripts."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Environment, FileSystemBytecodeCache

from normata.console import texts
from normata.console.pages import environment
from normata.identity.sign_in.links import link
from tests.console.browser import Browser, is_refused, new_link, text_of
from tests.databases import on_both
from tests.served import Served, served
from tests.test_structure import SOURCE

SignIn = Callable[[Browser, str], None]

EVIL = "evil.example"


@pytest.fixture
def pages(browser: Browser, sign_in: SignIn, link_of: Callable[[str], str]) -> list[Any]:
    """An answer of each sort: pages, refusals, a redirect."""
    answers = [
        browser.get("/sign-in/"),
        browser.get(f"/sign-in/link/?secret={link_of('editor')}"),
        browser.get("/sign-in/link/?secret=unknown"),
        browser.get("/sign-in/password/"),
        browser.get("/account/"),
    ]
    sign_in(browser, "editor")
    return [*answers, browser.get("/account/"), browser.post("/account/sessions/", session="unknown")]


def test_every_answer_keeps_others_out(pages: list[Any]) -> None:
    assert [answer.status_code for answer in pages] == [200, 200, 403, 405, 303, 200, 404]
    for answer in pages:
        headers = answer.headers
        policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
        assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
        assert {policy[name] for name in ("style-src", "script-src", "form-action", "connect-src")} == {"'self'"}
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-content-type-options"] == "nosniff"


def test_no_page_has_script_or_style_of_its_own(pages: list[Any]) -> None:
    for answer in pages:
        assert "<style" not in answer.text
        assert not re.search(r"\s(style|on\w+)=", answer.text)
        assert all(re.search(r"\ssrc=", tag) for tag in re.findall(r"<script[^>]*>", answer.text))


def test_refusals_are_pages_with_the_id_of_the_request(pages: list[Any], browser: Browser) -> None:
    for answer in pages:
        assert answer.status_code < 400 or answer.headers["x-request-id"] in text_of(answer)
    assert pages[3].headers["allow"] == "POST"
    long = browser.client.post(
        "/sign-in/password/",
        content=b"email=" + b"a" * 70_000,
        headers={"Sec-Fetch-Site": "same-origin", "Content-Type": "application/x-www-form-urlencoded"},
    )
    assert is_refused(long, status=413)


@pytest.mark.parametrize(
    ("content", "media_type", "status"),
    [
        (b"{}", "application/json", 415),
        (b"email=a", "multipart/form-data; boundary=x", 415),
        (b"email=a", "text/plain", 415),
        (b"email=%ff", "application/x-www-form-urlencoded", 400),
        (b"&".join([b"a=b"] * 30), "application/x-www-form-urlencoded", 400),
    ],
)
def test_only_forms_are_read(browser: Browser, content: bytes, media_type: str, status: int) -> None:
    headers = {"Sec-Fetch-Site": "same-origin", "Content-Type": media_type}
    answer = browser.client.post("/sign-in/password/", content=content, headers=headers)
    assert is_refused(answer, status=status)


def test_no_link_follows_the_host_header(instance: Served, link_of: Callable[[str], str]) -> None:
    browser = Browser(instance)
    hosts = {"Host": EVIL, "X-Forwarded-Host": EVIL, "Forwarded": f"host={EVIL}", "X-Forwarded-Prefix": "/evil"}
    for path in ("/sign-in/", f"/sign-in/link/?secret={link_of('editor')}", "/account/", "/sign-in/nothing/"):
        answer = browser.get(path, **hosts)
        assert "evil" not in answer.text
        assert "evil" not in str(answer.headers)
    answer = browser.post("/sign-in/link/", headers=hosts | {"Sec-Fetch-Site": "same-origin"}, secret=link_of("editor"))
    assert answer.headers["location"] == "/app/"
    assert "evil" not in answer.headers["set-cookie"]


def test_links_of_the_command_line_are_made_from_the_setting() -> None:
    assert link("https://normata.example.org/c/", "S") == "https://normata.example.org/c/sign-in/link/?secret=S"


def test_under_a_prefix_every_address_has_it(sqlite_url: str) -> None:
    url = "https://normata.example.org/normata"
    with served(sqlite_url, root_path="/normata", public_url=url) as instance:
        browser = Browser(instance, "https://normata.example.org")
        page = browser.get("/normata/sign-in/")
        addresses = re.findall(r'(?:href|action|src|data-options)="([^"]*)"', page.text)
        assert addresses
        assert all(address.startswith("/normata/") for address in addresses)
        assert all(browser.get(address).status_code in (200, 405) for address in addresses)
        answer = browser.post("/normata/sign-in/link/", secret=new_link(instance, "editor"))
        assert answer.headers["location"] == "/normata/app/"
        assert "Path=/;" in answer.headers["set-cookie"]
        assert browser.get("/normata/account/").status_code == 200


def test_styles_and_scripts_are_kept_for_ever_at_addresses_of_their_contents(browser: Browser) -> None:
    page = browser.get("/sign-in/").text
    for address in re.findall(r'(?:href|src)="(/static/[^"]*)"', page):
        assert re.fullmatch(r"/static/[a-z]+\.[0-9a-f]{12}\.(css|js|svg)", address)
        answer = browser.get(address)
        assert answer.status_code == 200
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert answer.headers["content-type"].startswith(("text/css", "text/javascript", "image/svg+xml"))
        again = browser.get(address, **{"If-None-Match": answer.headers["etag"]})
        assert again.status_code == 304
        assert browser.get(re.sub(r"[0-9a-f]{12}", "0" * 12, address)).status_code == 404


@on_both
def test_what_people_write_is_text(browser: Browser, sign_in: SignIn) -> None:
    browser.client.headers["User-Agent"] = "<script>alert(1)</script>"
    sign_in(browser, "editor")
    answer = browser.get("/account/")
    assert "<script>alert(1)" not in answer.text
    assert "&lt;script&gt;alert(1)" in answer.text
    answer = browser.post("/sign-in/password/", email='"><script>alert(1)</script>', password="x")
    assert "<script>alert(1)" not in answer.text


def test_every_sentence_that_is_used_is_there() -> None:
    sources = [path.read_text("utf-8") for path in SOURCE.joinpath("console").rglob("*.py")]
    templates = [path.read_text("utf-8") for path in SOURCE.joinpath("console").rglob("*.html")]
    named = {key for source in (*sources, *templates) for key in re.findall(r"\btext\(\s*\"([a-z_.]+)\"[,)]", source)}
    assert named <= texts.english().keys()


def test_a_refused_sign_in_is_logged_with_its_cause_and_nothing_else(
    sqlite_url: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with served(sqlite_url, log_level="info") as instance:
        browser = Browser(instance)
        secret = new_link(instance, "editor")
        attempts: list[tuple[str, str, Any]] = [
            ("link_unknown", "/sign-in/link/", {"secret": "A" * 43}),
            ("password_wrong", "/sign-in/password/", {"email": "editor@alpha.example", "password": "hunter2hunter2"}),
            ("invitation_unknown", "/sign-in/invitation/", {"secret": secret, "name": "Mallory"}),
        ]
        answers = [browser.post(path, **fields) for _, path, fields in attempts]
        browser.post("/sign-in/link/", secret=secret)
        browser.get("/account/")
    logged = capfd.readouterr().err
    lines = [json.loads(line) for line in logged.splitlines()]
    told = {line["request_id"]: line for line in lines if line["event"] == "sign_in_refused"}
    for (cause, _, _), answer in zip(attempts, answers, strict=True):
        line = told[answer.headers["x-request-id"]]
        assert (line["cause"], line["level"]) == (cause, "warning")
        assert line.keys() == {"cause", "event", "level", "request_id", "timestamp"}
    for secret_or_name in (secret, "hunter2", "Mallory", "editor@alpha.example", *browser.cookies.values()):
        assert secret_or_name not in logged
    (page,) = (line for line in lines if line["event"] == "request" and line["path"] == "/account/")
    assert (page["user"], page["token"]) == ("user-editor", None)
    assert page["session"]


def test_every_cause_has_a_sentence() -> None:
    sources = [path.read_text("utf-8") for path in SOURCE.rglob("*.py")]
    causes = {cause for source in sources for cause in re.findall(r"SignInRefused\(\s*\"(\w+)\"", source)}
    assert "link_used" in causes
    assert {f"refused.{cause}" for cause in causes} - texts.english().keys() == set()


def test_a_checkout_compiles_a_template_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless Python is told to write no bytecode."""
    kept = environment().bytecode_cache
    assert isinstance(kept, FileSystemBytecodeCache)
    monkeypatch.setattr(kept, "directory", str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    environment().overlay(cache_size=0).get_template("message.html")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    environment().overlay(cache_size=0).get_template("message.html")
    assert len(list(tmp_path.iterdir())) == 1
    monkeypatch.setattr(Environment, "compile", lambda *_, **__: pytest.fail("compiled again"))
    environment().overlay(cache_size=0).get_template("message.html")

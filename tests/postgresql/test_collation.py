"""The same answers in the same order from both databases, whatever locale the server was made with."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, get_args
from uuid import uuid4

import asyncpg
import pytest

from normata.app import create_app
from normata.core.changes.source import FaultyInput
from normata.frameworks.control_query import ControlQuery
from normata.frameworks.framework_list import FrameworkQuery
from normata.settings import Settings
from tests import world
from tests.client import TestClient
from tests.core.db.sessions import own_cluster, session
from tests.databases import migrate, open_url
from tests.postgres import Server
from tests.postgresql.conftest import new_token
from tests.world import ALPHA, EARLIER

pytestmark = pytest.mark.long

# Letters that locales order, fold or compare in ways of their own: case, accents (composed and not), ligatures,
# letters that are one to some and two to others, digits of other scripts, signs that collations skip, and what lies
# beyond the first 65,536 characters.
# ruff: noqa: RUF001 - that they look alike is what they are here for
NASTY = [
    "Ä", "ä", "A\u0308", "a", "A", "AA", "Aa", "aa", "Å", "å", "Z", "z", "ß", "ss", "SS", "ẞ", "İ", "I", "ı", "i",
    "i\u0307", "ﬁ", "fi", "ǆ", "ǅ", "Σ", "σ", "ς", "é", "e\u0301", "e", "E", "ñ", "n", "o", "Ö", "ö", "ø", "œ", "oe",
    "😀", "\uffff", "\U0010ffff", "\ue000", "日本", "ア", "ｱ", "가", "A 1", "A-1", "A_1", "A.1", "A1", "A10", "A2",
    "A02", "٣", "३", "２", "²", "½", "a b", "a\u00a0b", "a\u200bb", "ab", "'", '"', "%", "\\", "(", "[", "~", "!",
    "v1", "V1", "ch", "cz", "d", "lj", "ll", "lz", "1e5", "1.5", "-1", "+1", "0", "00", "9" * 30,
]  # fmt: skip
SEARCHES = ["ä", "Ä", "a\u0308", "ss", "ß", "STRASSE", "i", "İ", "ı", "fi", "ﬁ", "%", "_", "\\", "😀", "σ", "A 1", "２"]


def slug(number: int, text: str) -> str:
    """The text as a slug, unlike all others."""
    return "".join(character for character in text if not character.isspace() and character not in "/\u200b") + (
        f"-{number % 7}"
    )


def bundle() -> dict[str, list[dict[str, Any]]]:
    """The world with nasty names on top, and with every time stated, so that two loads of it are the same."""
    document = world.bundle()
    document["frameworks"].append({"id": "fw-nasty", "identifier": "Ñasty", "name": "Nasty names"})
    document["frameworkAdoptions"].append(
        {"id": "adopt-nasty", "organizationId": ALPHA, "frameworkId": "fw-nasty", "adoptedAt": EARLIER}
    )
    for number, text in enumerate(NASTY):
        common = {"identifier": text, "name": NASTY[-number], "slug": slug(number, text)}
        document["controls"].append({"id": f"{text}-{number}", "frameworkId": "fw-nasty"} | common)
        document["frameworks"].append(
            {"id": f"{text}:{number}", "organizationId": ALPHA, "version": text if number % 3 else None} | common
        )
        document["notifications"].append(
            {"id": f"{text}!{number}", "organizationId": ALPHA, "userId": "user-editor", "type": text}
        )
    for number, item in enumerate(document["frameworks"] + document["controls"] + document["notifications"]):
        item.setdefault("createdAt", f"2025-01-{number % 5 + 1:02}T00:00:00.{number % 3:03}Z")
    for item in document["frameworks"] + document["controls"]:
        item["updatedAt"] = item["createdAt"]
    document["frameworks"][-1]["createdAt"] = "0001-01-01T00:00:00Z"
    document["frameworks"][-2]["createdAt"] = "9999-12-31T23:59:59.999Z"
    document["frameworks"][-2]["updatedAt"] = "9999-12-31T23:59:59.999Z"
    return document


def orders(query: Any) -> list[dict[str, str]]:
    """Every order that a list can be asked for."""
    literal, *_ = get_args(query.model_fields["sort_column"].annotation)
    columns = get_args(literal)
    assert len(columns) >= 9
    return [
        {},
        {"sortDirection": "desc"},
        *({"sortColumn": column, "sortDirection": way} for column in columns for way in ("asc", "desc")),
    ]


def questions() -> Iterator[tuple[str, dict[str, str]]]:
    """Lists and what to ask them."""
    for path, query in (("/controls/", ControlQuery), ("/frameworks/", FrameworkQuery)):
        for order in orders(query):
            yield path, order
        for search in SEARCHES:
            yield path, {"search": search}
    for text in ("Ñasty", "ñasty", "fw-nasty", "SUN-2", "sun-2"):
        yield "/controls/", {"frameworks": text}
    yield "/notifications/", {}
    yield "/notifications/", {"unreadOnly": "true"}


def filled(url: str) -> str:
    """A database with nothing in it, once it has the nasty names."""
    database = open_url(url, create=True)
    migrate(database)
    world.load(database, bundle())
    database.close()
    return url


@pytest.fixture(scope="module")
def sqlite_answers(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], list[bytes]]:
    """What SQLite answers."""
    path = tmp_path_factory.mktemp("collation") / "nasty.db"
    return answers(filled(f"sqlite:///{path}"))


def answers(url: str) -> dict[tuple[str, str], list[bytes]]:
    """The bodies of all pages of all lists, in every order and for every search."""
    headers = {"Authorization": f"Bearer {new_token(url)}"}
    found: dict[tuple[str, str], list[bytes]] = {}
    with TestClient(create_app(Settings(database_url=url, log_level="error", database_timeout=30))) as client:
        for path, asked in questions():
            bodies: list[bytes] = []
            for page in range(1, 20):
                params = {"organizationId": ALPHA, "limit": "25", "page": str(page)} | asked
                answer = client.get(path, params=params, headers=headers)
                assert answer.status_code == 200, answer.text
                bodies.append(answer.content)
                if not answer.json()["items"]:
                    break
            found[path, str(sorted(asked.items()))] = bodies
    return found


def check(url: str, expected: dict[tuple[str, str], list[bytes]]) -> None:
    """Compare question by question: the whole would be too long to read."""
    given = answers(url)
    assert given.keys() == expected.keys()
    for question, bodies in expected.items():
        assert given[question] == bodies, question


def test_there_is_something_to_compare(sqlite_answers: dict[tuple[str, str], list[bytes]]) -> None:
    assert len(sqlite_answers) > 80
    for path, pages in (("/controls/", 5), ("/frameworks/", 4), ("/notifications/", 4)):
        assert len(sqlite_answers[path, "[]"]) >= pages
    assert sum(len(bodies) for (_, asked), bodies in sqlite_answers.items() if "search" in asked) > 50


def test_postgresql_answers_as_sqlite_does(
    postgres: Server, sqlite_answers: dict[tuple[str, str], list[bytes]]
) -> None:
    name = f"normata_{uuid4().hex}"
    try:
        check(filled(postgres.create(name)), sqlite_answers)
    finally:
        postgres.drop(name)


@pytest.fixture(scope="module")
def linguistic_url(postgres: Server) -> Iterator[str]:
    """The address of a database whose own order is that of a language: by ICU, else by the system's C library."""
    name = f"normata_{uuid4().hex}"
    with ExitStack() as stack:
        server, making = postgres, f"CREATE DATABASE \"{name}\" TEMPLATE template0 ENCODING 'UTF8' "
        try:
            server.run(making + "LOCALE_PROVIDER icu ICU_LOCALE 'da-u-kn'")
        except asyncpg.FeatureNotSupportedError:  # built without ICU
            server = stack.enter_context(server_that_knows("da_DK"))
            server.run(making + "LOCALE_PROVIDER libc LOCALE 'da_DK.UTF-8'")
        stack.callback(server.drop, name)
        yield server.url(name)


@contextmanager
def server_that_knows(locale: str) -> Iterator[Server]:
    """A server of its own that has a locale which the system may lack: compiled here, from the system's sources."""
    with tempfile.TemporaryDirectory(prefix="normata-locales-") as folder, pytest.MonkeyPatch.context() as patch:
        target = Path(folder) / f"{locale}.UTF-8"
        try:
            # A warning of the locale's own sources is the code 1, and the locale is there all the same.
            subprocess.run(
                ["localedef", "--no-archive", "-c", "-i", locale, "-f", "UTF-8", str(target)],
                capture_output=True,
                check=False,
            )
        except FileNotFoundError:
            pytest.skip("neither ICU nor localedef is there to make a locale with")
        if not (target / "LC_COLLATE").exists():
            pytest.skip(f"the system has no sources of the locale {locale}")
        Path(folder).chmod(0o755)  # the server may be another user than this
        patch.setenv("LOCPATH", folder)
        with own_cluster() as cluster:
            yield cluster.server


def test_postgresql_with_a_language_of_its_own_answers_as_sqlite_does(
    linguistic_url: str, sqlite_answers: dict[tuple[str, str], list[bytes]]
) -> None:
    with session(linguistic_url) as asking:
        # Danish: upper case after lower, and aa is å, which comes after z. By code point it is the other way round.
        assert asking.value("SELECT 'a' < 'B' AND 'aa' > 'z' AND NOT ('a' < 'B' COLLATE \"C\")") is True
    check(filled(linguistic_url), sqlite_answers)


def test_an_address_that_folds_into_a_longer_one_fares_alike(
    postgres: Server, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """SQLite does not hold texts to their columns' lengths, PostgreSQL does: what is derived must fit both, or none."""
    email = "\ufdfa" * 300 + "@a.example"  # one character each that folds into eighteen
    document = {"users": [{"id": "long", "email": email, "name": "Long"}]}
    name = f"normata_{uuid4().hex}"
    path = tmp_path_factory.mktemp("long") / "long.db"
    taken = []
    try:
        for url in (f"sqlite:///{path}", postgres.create(name)):
            database = open_url(url, create=True)
            migrate(database)
            try:
                world.load(database, document)
                taken.append(True)
            except FaultyInput:
                taken.append(False)
            finally:
                database.close()
    finally:
        postgres.drop(name)
    assert taken in ([True, True], [False, False])

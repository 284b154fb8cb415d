"""The rules that the three lists share: pages, faults, who may ask, and search."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from httpx2 import Response
from starlette.testclient import TestClient

from normata.app import create_app
from normata.bundle import loading
from normata.database import Database
from normata.identity import tokens
from normata.settings import Settings
from tests import world
from tests.databases import open_url
from tests.listing import LISTS, SEARCHED, Listing

Reading = Callable[[str], Listing]
Listings = Callable[..., Listing]
Add = Callable[[dict[str, list[dict[str, Any]]]], None]
Bearer = Callable[..., dict[str, str]]
MakeToken = Callable[..., str]

# Who has more than two pages of five of each list, once `crowded`.
USER = "editor"

all_lists = pytest.mark.parametrize("path", LISTS)
searched_lists = pytest.mark.parametrize("path", SEARCHED)


TEXTS = {
    "street": "Straße des Friedens",
    "summer": "Été À Noël",
    "izmir": "\u0130zmir",
    "greek": "\u039f\u0394\u039f\u03a3 \u039a\u03b1\u03bb\u03ae",
    "wide": "\uff21\uff22\uff23 \uff11\uff12",
    "percent": "50% of",
    "under": "a_b",
    "slash": "c\\d",
    "plain": "axb cd 500 of",
    "breaks": "first\nsecond",
}


@pytest.fixture(scope="module")
def reading(shared_url: str) -> Iterator[Reading]:
    """A list over a world that no test changes, for the many that only read, with a framework and a control a text."""
    named = [
        {"id": f"text-{key}", "name": text, "identifier": f"T-{number}", "slug": f"t-{number}"}
        for number, (key, text) in enumerate(TEXTS.items())
    ]
    document = {"frameworks": named, "controls": [row | {"frameworkId": "fw-sun"} for row in named]}
    database = open_url(shared_url)
    database.write_now(lambda connection: loading.load(connection, world.rows(document)))
    token = database.write_now(
        lambda connection: tokens.create(connection, email=world.USERS["viewer"], scope="read", lifetime=None)
    )
    database.close()
    with TestClient(create_app(Settings(database_url=shared_url, log_level="error"))) as client:
        yield lambda path: Listing(client, path, {"Authorization": f"Bearer {token}"})


@pytest.fixture
def crowded(add: Add) -> None:
    """More frameworks than fit two pages of five; of controls and notifications the world has enough."""
    add(
        {
            "frameworks": [
                {"id": f"fw-{number}", "name": f"Crowd {number % 3}", "identifier": f"C-{number}"}
                for number in range(12)
            ]
        }
    )


# --- The envelope and its pages


@all_lists
def test_envelope(path: str, listing: Listings) -> None:
    """Exactly four members; a hundred items a page, and the first page, unless said."""
    page = listing(path, USER).page()
    assert page.keys() == {"items", "total", "page", "limit"}
    assert (page["page"], page["limit"]) == (1, 100)
    assert page["total"] == len(page["items"]) > 0
    assert {type(page[name]) for name in ("total", "page", "limit")} == {int}


@all_lists
@pytest.mark.usefixtures("crowded")
def test_pages_cover_everything_once(path: str, listing: Listings) -> None:
    everything = listing(path, USER).items(limit=100)
    assert len(everything) > 10
    assert listing(path, USER).walk() == everything
    assert len({item["id"] for item in everything}) == len(everything)


@all_lists
@pytest.mark.usefixtures("crowded")
@pytest.mark.parametrize(("limit", "items"), [("5", 5), ("6", 6), ("100", None)])
def test_limits_within_bounds(path: str, limit: str, items: int | None, listing: Listings) -> None:
    page = listing(path, USER).page(limit=limit)
    assert page["limit"] == int(limit)
    assert len(page["items"]) == (items or page["total"])


@all_lists
@pytest.mark.parametrize(
    "number", [2, 3, 2**31, 2**63, 2**64, 10**30, 10**400], ids=lambda number: f"{len(str(number))} digits"
)
def test_page_past_the_end(path: str, number: int, listing: Listings) -> None:
    """No items and the true total, however far past the end."""
    first = listing(path, "owner").page()
    assert listing(path, "owner").page(page=number) == {
        "items": [],
        "total": first["total"],
        "page": number,
        "limit": 100,
    }


@all_lists
def test_page_number_longer_than_any_integer(path: str, reading: Reading) -> None:
    response = reading(path).get(page="9" * 5_000)
    assert response.status_code in (200, 400)


# --- Faults

NOT_INTEGERS = ["", "abc", "5.5", "1e1", "1_0", "0x10", "NaN", "Infinity", "true", "\u0665", "5 6", "5,6"]


@all_lists
@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        *(("limit", value, "too_small") for value in ("4", "1", "0", "-1", "-100")),
        *(("limit", value, "too_large") for value in ("101", "1000", str(10**30))),
        *(("page", value, "too_small") for value in ("0", "-1", str(-(10**30)))),
        *((name, value, "invalid") for name in ("limit", "page") for value in NOT_INTEGERS),
        ("organizationId", None, "required"),
        ("organizationId", "", "too_short"),
        ("organizationId", "o" * 129, "too_long"),
        *(("organizationId", f"org{character}alpha", "malformed") for character in "\0\t\n\r\x1f\x7f"),
        ("organizationId", world.ALPHA + "\n", "malformed"),
    ],
)
def test_refused_values(path: str, name: str, value: str | None, code: str, reading: Reading) -> None:
    """Outside its bounds a value is refused, never clamped, and the fault names it."""
    assert reading(path).faults(**{name: value}) == [(name, code)]


@all_lists
def test_all_faults_at_once(path: str, reading: Reading) -> None:
    faults = reading(path).faults(limit=4, page=0, organizationId=None)
    assert faults == [("limit", "too_small"), ("organizationId", "required"), ("page", "too_small")]


@searched_lists
def test_all_faults_at_once_with_order_and_search(path: str, reading: Reading) -> None:
    faults = reading(path).faults(
        limit="x", page=-1, organizationId="", sortColumn="colour", sortDirection="up", search="x" * 201
    )
    assert [name for name, _ in faults] == [
        "limit",
        "organizationId",
        "page",
        "search",
        "sortColumn",
        "sortDirection",
    ]


@searched_lists
@pytest.mark.parametrize("direction", ["ASC", "descending", "", "asc,desc"])
def test_unknown_direction(path: str, direction: str, reading: Reading) -> None:
    [fault] = reading(path).get(sortDirection=direction).json()["errors"]
    assert fault == {
        "in": "query",
        "name": "sortDirection",
        "code": "not_allowed",
        "message": "must be one of asc, desc",
        "allowed": ["asc", "desc"],
    }


@all_lists
def test_of_a_repeated_parameter_the_last_counts(path: str, listing: Listings) -> None:
    """For every purpose: what is checked for membership is what is listed."""
    mine, theirs = world.ALPHA, world.BETA
    assert listing(path).page(limit=["7", "9"])["limit"] == 9
    assert listing(path).page(organizationId=[theirs, mine]) == listing(path).page()
    assert listing(path).get(organizationId=[mine, theirs]).status_code == 404


# --- Who may ask


@all_lists
@pytest.mark.parametrize("role", world.ROLES)
@pytest.mark.parametrize("scope", ["read", "write"])
def test_every_member_may_list(path: str, role: str, scope: str, client: TestClient, bearer: Bearer) -> None:
    response = client.get(path, params={"organizationId": world.ALPHA}, headers=bearer(role, scope=scope))
    assert response.status_code == 200


def _without_names(response: Response) -> tuple[int, dict[str, Any], set[tuple[str, str]]]:
    """An answer without what differs between any two answers."""
    request_id = response.headers.pop("x-request-id")
    body = response.json()
    assert body.pop("requestId") == request_id
    return response.status_code, body, set(response.headers.items())


@all_lists
@pytest.mark.parametrize("user", ["viewer", "owner", "nobody"])
def test_foreign_and_unknown_organizations_look_the_same(path: str, user: str, listing: Listings) -> None:
    foreign, unknown = (
        _without_names(listing(path, user).get(organizationId=name)) for name in (world.BETA, "org-nowhere")
    )
    assert foreign == unknown
    assert foreign[0] == 404
    assert foreign[1]["code"] == "not_found"


BARE = 'Bearer realm="normata"'


def _refused(client: TestClient, path: str, authorization: str | list[str] | None) -> str:
    """The challenge of a request that is not authenticated. It breaks other rules, too, but 401 comes first."""
    values = [authorization] if isinstance(authorization, str) else authorization or []
    response = client.get(
        path,
        params={"limit": "nonsense"},
        headers=[(b"Accept", b"text/html"), *((b"Authorization", value.encode("latin-1")) for value in values)],
    )
    assert response.status_code == 401, response.text[:500]
    assert response.json()["code"] == "unauthenticated"
    assert response.json()["errors"] == []
    return response.headers["www-authenticate"]


@all_lists
@pytest.mark.parametrize("authorization", [None, "Basic dXNlcjpwYXNz", "Token abc"])
def test_challenge_without_a_bearer_token(path: str, authorization: str | None, client: TestClient) -> None:
    """Who sends no credentials, or of another scheme, is told of no error (RFC 6750, section 3.1)."""
    assert _refused(client, path, authorization) == BARE


@all_lists
@pytest.mark.parametrize("token", ["", "x", "nrm_", "a b", "x" * 5_000, "nrm_é", "nrm_" + "0" * 49], ids=len)
def test_malformed_token(path: str, token: str, client: TestClient) -> None:
    assert _refused(client, path, f"Bearer {token}").startswith(f'{BARE}, error="invalid_token", error_description="')


@all_lists
@pytest.mark.parametrize("sort", ["unknown", "checksum", "expired", "revoked", "twice", "padded"])
def test_tokens_that_are_no_good(
    path: str, sort: str, client: TestClient, make_token: MakeToken, database: Database
) -> None:
    good = make_token("viewer")
    authorization: str | list[str] = f"Bearer {good}"
    match sort:
        case "unknown":
            authorization = f"Bearer {tokens.generate()}"
        case "checksum":
            authorization = f"Bearer {good[:-1]}{'1' if good[-1] == '0' else '0'}"
        case "expired":
            authorization = f"Bearer {make_token('viewer', lifetime=timedelta(seconds=-1))}"
        case "revoked":
            [row] = database.read_now(tokens.listing)
            assert database.write_now(lambda connection: tokens.revoke(connection, row["id"]))
        case "twice":
            authorization = [f"Bearer {good}"] * 2
        case "padded":
            authorization = f"Bearer {good}="
    assert _refused(client, path, authorization).startswith(f'{BARE}, error="invalid_token", error_description="')


@all_lists
def test_revocation_works_at_once(path: str, client: TestClient, bearer: Bearer, database: Database) -> None:
    def ask() -> int:
        return client.get(path, params={"organizationId": world.ALPHA}, headers=headers).status_code

    headers = bearer("viewer")
    assert ask() == 200
    [row] = database.read_now(tokens.listing)
    database.write_now(lambda connection: tokens.revoke(connection, row["id"]))
    assert ask() == 401


@all_lists
@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "Bearer "])
def test_spellings_of_the_scheme(path: str, scheme: str, client: TestClient, make_token: MakeToken) -> None:
    headers = {"Authorization": f"{scheme} {make_token('viewer')}"}
    assert client.get(path, params={"organizationId": world.ALPHA}, headers=headers).status_code == 200


@all_lists
def test_a_token_without_expiry(path: str, client: TestClient, bearer: Bearer) -> None:
    response = client.get(path, params={"organizationId": world.ALPHA}, headers=bearer("viewer", lifetime=None))
    assert response.status_code == 200


@all_lists
def test_rate_limit(path: str, database_url: str, bearer: Bearer) -> None:
    """A token may ask so often a minute, whatever comes of it; another token has its own count."""
    settings = Settings(database_url=database_url, log_level="error", rate_limit=3)
    first, second = bearer("viewer"), bearer("viewer")
    with TestClient(create_app(settings)) as client:

        def ask(headers: dict[str, str], organization_id: str = world.ALPHA) -> Response:
            return client.get(path, params={"organizationId": organization_id}, headers=headers)

        statuses = [ask(first).status_code, ask(first, "").status_code, ask(first, world.BETA).status_code]
        assert statuses == [200, 400, 404]
        refused = ask(first)
        assert refused.status_code == 429
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert ask(second).status_code == 200


# --- Search, where a list has it


@searched_lists
@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("Straße", {"street"}),
        ("STRASSE", {"street"}),
        ("stra\u1e9ee", {"street"}),
        ("friedens straße", {"street"}),
        ("frieden stras t-0", {"street"}),
        ("friedens straße absent", set()),
        ("été", {"summer"}),
        ("ÉTÉ", {"summer"}),
        ("e\u0301te\u0301", {"summer"}),
        ("à NOËL", {"summer"}),
        ("\u0130ZMIR", {"izmir"}),
        ("i\u0307zmir", {"izmir"}),
        ("οδος", {"greek"}),
        ("ΟΔΟΣ καλή", {"greek"}),
        ("abc 12", {"wide"}),
        ("\uff41\uff42\uff43", {"wide"}),
        ("50%", {"percent"}),
        ("%of", set()),
        ("5%f", set()),
        ("a_b", {"under"}),
        ("a_", {"under"}),
        ("c\\d", {"slash"}),
        ("c\\", {"slash"}),
        ("c\\\\d", set()),
        ("a?b", set()),
        ("a*b", set()),
        ("first second", {"breaks"}),
        ("first\nsecond", {"breaks"}),
        ("t-1 été", {"summer"}),
        ("'", set()),
        ('"', set()),
    ],
)
def test_search(path: str, search: str, found: set[str], reading: Reading) -> None:
    """Every word must occur somewhere, in any case of any script; no character is special."""
    ids = reading(path).ids(search=search)
    assert {item.removeprefix("text-") for item in ids if item.startswith("text-")} == found


@searched_lists
@pytest.mark.parametrize("character", ["%", "_", "\\"])
def test_special_characters_stand_for_themselves(path: str, character: str, reading: Reading) -> None:
    found = reading(path).items(search=character)
    assert 0 < len(found) < len(reading(path).items())
    assert all(any(character in str(value) for value in item.values()) for item in found)


@searched_lists
@pytest.mark.parametrize("blanks", ["", " ", "   ", "\t", "\u3000", " \n "])
def test_blanks_search_for_nothing(path: str, blanks: str, reading: Reading) -> None:
    assert reading(path).page(search=blanks) == reading(path).page()


@searched_lists
def test_search_is_trimmed_before_it_is_measured(path: str, reading: Reading) -> None:
    assert "text-street" in reading(path).ids(search=f"{' ' * 150}strasse{' ' * 150}")


@searched_lists
@pytest.mark.parametrize("search", ["x" * 200, "é" * 200, "ж " * 99 + "ж"])
def test_longest_search(path: str, search: str, reading: Reading) -> None:
    assert reading(path).page(search=search)["total"] == 0


@searched_lists
@pytest.mark.parametrize("search", ["x" * 201, "é" * 201, "x" * 10_000, "a\0b", "\0"])
def test_refused_search(path: str, search: str, reading: Reading) -> None:
    [(name, _)] = reading(path).faults(search=search)
    assert name == "search"


@searched_lists
def test_total_counts_what_the_search_leaves(path: str, reading: Reading) -> None:
    page = reading(path).page(search="t-", limit=5)
    assert (len(page["items"]), page["total"]) == (5, len(TEXTS))

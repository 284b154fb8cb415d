"""How many requests there may be, of a token and of an address, and what answers say of it."""

from __future__ import annotations

from typing import Any

import http_sf
import pytest
from httpx2 import Response

from normata.core.http import rate_limit as module
from normata.core.http.rate_limit import Limit, network_of
from tests.served import Served, refused, served
from tests.world import ALPHA

PAGE = "/frameworks/"
QUERY = {"organizationId": ALPHA}

Fields = dict[str, dict[str, Any]]


def fields(response: Response, name: str) -> Fields:
    """A field of the draft: the parameters of each policy, by its name. It has to be a List of Strings (RFC 9651)."""
    parsed: Any = http_sf.parse(response.headers[name].encode(), tltype="list")
    assert all(type(policy) is str for policy, _ in parsed)
    return {policy: dict(parameters) for policy, parameters in parsed}


def standing(response: Response) -> Fields:
    """How the limits of an answer stand; each must be one of a policy, and within it."""
    policies, limits = fields(response, "ratelimit-policy"), fields(response, "ratelimit")
    assert policies.keys() == limits.keys()
    for name, policy in policies.items():
        assert policy.keys() == {"q", "w"}
        assert limits[name].keys() == {"r", "t"}
        assert 0 <= limits[name]["r"] < policy["q"] or policy["q"] == 0
        assert 0 < limits[name]["t"] <= policy["w"]
    return limits


@pytest.fixture
def limit() -> Limit:
    return Limit("guesses", 2, window=3_600)


def test_each_key_has_its_own_count(limit: Limit) -> None:
    assert [limit.seconds_to_wait("one") for _ in range(2)] == [0, 0]
    assert 1 <= limit.seconds_to_wait("one") <= 3_600
    assert limit.seconds_to_wait("two") == 0


def test_the_limit_tells_how_it_stands(limit: Limit) -> None:
    for left in (b"1", b"0", b"0"):
        headers: list[tuple[bytes, bytes]] = []
        limit.seconds_to_wait("key", headers)
        policy, (name, value) = headers
        assert policy == (b"ratelimit-policy", b'"guesses";q=2;w=3600')
        assert name == b"ratelimit"
        assert value.startswith(b'"guesses";r=' + left + b";t=")


@pytest.mark.parametrize(("quota", "workers", "share"), [(60, 4, 15), (10, 4, 3), (1, 8, 1), (7, 1, 7), (0, 4, 0)])
def test_each_worker_allows_its_share_of_the_quota(quota: int, workers: int, share: int) -> None:
    limit = Limit("guesses", quota, workers=workers)
    headers: list[tuple[bytes, bytes]] = []
    allowed = sum(limit.seconds_to_wait("key", headers) == 0 for _ in range(20))
    assert limit.quota == share
    assert allowed == (share or 20)
    assert [value for name, value in headers[:1]] == ([b'"guesses";q=%d;w=60' % share] if share else [])


def test_a_window_begins_with_the_first_request_and_is_fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000.0
    monkeypatch.setattr(module, "monotonic", lambda: now)
    limit = Limit("guesses", 1)
    assert limit.seconds_to_wait("key") == 0
    now += 59.5
    assert limit.seconds_to_wait("key") == 1
    now += 0.4
    assert limit.seconds_to_wait("key") == 1
    now += 0.1
    assert limit.seconds_to_wait("key") == 0
    assert limit.seconds_to_wait("key") == 60


def test_many_keys_do_not_free_those_that_have_used_up_the_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_KEYS", 100)
    limit = Limit("guesses", 1)
    assert [limit.seconds_to_wait("busy") for _ in range(3)] == [0, 60, 60]
    for number in range(1_000):
        assert limit.seconds_to_wait(f"other {number}") == 0
        assert len(limit._counts) <= 100
    assert limit.seconds_to_wait("busy") > 0


def test_of_a_long_key_the_digest_is_stored(limit: Limit) -> None:
    key = "\ud800" * 10_000
    assert [limit.seconds_to_wait(key) == 0 for _ in range(3)] == [True, True, False]
    assert max(map(len, limit._counts)) < 100


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("2001:0DB8:1:2::9", "2001:db8:1:2::"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("fe80::1%eth0", "fe80::"),
        ("::1", "::"),
        ("", ""),
        ("unix:/run/normata", "unix:/run/normata"),
    ],
)
def test_one_customer_has_one_address(address: str, network: str) -> None:
    assert network_of(address) == network


# --- By token


def test_every_answer_tells_how_the_token_stands(shared_url: str) -> None:
    """A page that is kept, one that the client has, a refusal, and an answer to HEAD."""
    with served(shared_url, rate_limit=5) as service:
        client, headers = service.client, service.bearer("viewer")
        first = client.get(PAGE, params=QUERY, headers=headers)
        answers = [
            first,
            client.get(PAGE, params=QUERY, headers=headers | {"If-None-Match": first.headers["etag"]}),
            client.get(PAGE, headers=headers),
            client.post("/labels/nothing/restore/", headers=headers),
            client.head(PAGE, params=QUERY, headers=headers),
            client.get(PAGE, params=QUERY, headers=headers),
        ]
        assert [answer.status_code for answer in answers] == [200, 304, 400, 404, 200, 429]
        assert [standing(answer)["token"]["r"] for answer in answers] == [4, 3, 2, 1, 0, 0]
        problem = refused(answers[-1], 429, "too_many_requests")
        assert "token" in problem["detail"]
        assert int(answers[-1].headers["retry-after"]) == standing(answers[-1])["token"]["t"]
        assert fields(first, "ratelimit-policy") == {"token": {"q": 5, "w": 60}}
        assert standing(client.get(PAGE, params=QUERY, headers=service.bearer("viewer")))["token"]["r"] == 4


def test_without_a_limit_nothing_is_said(shared: Served) -> None:
    answers = [shared.client.get(PAGE, params=QUERY, headers=headers) for headers in ({}, shared.bearer("viewer"))]
    for answer in answers:
        assert not {"ratelimit", "ratelimit-policy", "retry-after"} & {*answer.headers}


# --- By address


def test_the_limit_of_an_address_counts_whatever_it_asks_for(shared_url: str) -> None:
    """Except for what those look at who watch the service."""
    with served(shared_url, address_rate_limit=4, rate_limit=100) as service:
        client = service.client
        answers = [
            client.get(PAGE, params=QUERY, headers=service.bearer("viewer")),
            client.get(PAGE, params=QUERY),
            client.get("/openapi.json"),
            client.get("/nothing/"),
            client.get(PAGE, params=QUERY, headers=service.bearer("viewer")),
        ]
        assert [answer.status_code for answer in answers] == [200, 401, 200, 404, 429]
        assert [standing(answer)["address"]["r"] for answer in answers] == [3, 2, 1, 0, 0]
        assert standing(answers[0])["token"]["r"] == 99
        assert standing(answers[-1]).keys() == {"address"}, "the token is not looked at"
        assert "address" in refused(answers[-1], 429, "too_many_requests")["detail"]
        assert int(answers[-1].headers["retry-after"]) == standing(answers[-1])["address"]["t"]
        for path in ("/livez", "/livez/", "/readyz", "/readyz/", "/metrics", "/metrics/"):
            watched = client.get(path)
            assert watched.status_code == 200
            assert "ratelimit" not in watched.headers
        assert 'code="too_many_requests",reason="address_rate"' in client.get("/metrics").text


# --- By address, of bad tokens


def test_bad_tokens_are_counted_apart(shared_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("normata.core.http.authentication._DELAY", 0)
    with served(shared_url, bad_token_limit=2) as service:
        answers = [service.client.get(PAGE, params=QUERY) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [401, 401, 429]
        assert [standing(answer)["bad-tokens"]["r"] for answer in answers] == [1, 0, 0]
        good = service.client.get(PAGE, params=QUERY, headers=service.bearer("viewer"))
        assert good.status_code == 200
        assert "ratelimit" not in good.headers

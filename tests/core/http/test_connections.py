"""The requests in flight of an address."""

from __future__ import annotations

from normata.core.http.connections import InFlight


def test_an_address_has_so_many_requests_in_flight() -> None:
    requests = InFlight(2)
    first, second = requests.begin("2001:db8::1"), requests.begin("2001:db8::2")
    assert first == second
    assert requests.begin("2001:db8::3") is None, "a /64 counts as one address"
    other = requests.begin("192.0.2.1")
    assert other is not None
    requests.end(first)
    requests.end(None)
    assert requests.begin("2001:db8::3") == second


def test_nothing_is_counted_without_a_limit() -> None:
    requests = InFlight(0)
    assert {requests.begin("192.0.2.1") for _ in range(1_000)} == {""}
    requests.end("")

"""When two addresses are the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from normata.core.schema.addresses import LONGEST_EMAIL, email_key, email_spellings, is_domain

SAME = [
    ("Kim@Example.ORG", "kim@example.org"),
    ("kate@großbank.example", "kate@xn--grobank-2va.example"),
    ("kate@xn--grobank-2va.example", "KATE@XN--GROBANK-2VA.EXAMPLE"),
    ("kate@großbank.example", "kate@Großbank.example"),
    ("jürgen@example.org", "jürgen@EXAMPLE.org"),
]
LOOK_ALIKES = [
    ("kate@grossbank.example", "kate@großbank.example"),
    ("kate@grossbank.example", "\uff4bate@grossbank.example"),  # full-width k
    ("kate@grossbank.example", "\u212aate@grossbank.example"),  # the Kelvin sign
    ("kate@grossbank.example", "kate@\uff47rossbank.example"),
    ("kate@grossbank.example", "kate@grossbank\u3002example"),  # an ideographic full stop
    ("kate@grossbank.example", "kate@grossbank.example\u200d"),
    ("kate@großbank.example", "kate@gro\u1e9ebank.example"),  # a capital ß
    ("kate@ünï.example", "kate@ÜNÏ.example"),  # IDNA 2008 has no capital letters, and nobody may map them but people
    ("kate@ünï.example", "kate@u\u0308ni\u0308.example"),
    ("strasse@example.org", "straße@example.org"),
    ("jürgen@example.org", "JÜRGEN@example.org"),
    ("kate@xn--grossbank-.example", "kate@grossbank.example"),  # no A-label of anything
]


@pytest.mark.parametrize(("left", "right"), SAME)
def test_the_same_address(left: str, right: str) -> None:
    assert email_key(left) == email_key(right)


@pytest.mark.parametrize(("left", "right"), LOOK_ALIKES)
def test_what_looks_the_same(left: str, right: str) -> None:
    assert email_key(left) != email_key(right)


@given(st.text(min_size=1, max_size=330))
def test_it_is_one_form_that_fits_wherever_the_address_does(address: str) -> None:
    key = email_key(address)
    assert email_key(key) == key
    assert len(key) <= max(len(address), LONGEST_EMAIL)
    assert key in {email_key(spelling) for spelling in email_spellings(address)}


def test_an_endless_label_takes_no_time() -> None:
    address = f"kate@{'ü' * 1_000_000}.example"
    assert email_key(address) == address


def test_all_ways_to_write_it() -> None:
    three = {"Kate@großbank.example", "kate@großbank.example", "kate@xn--grobank-2va.example"}
    assert email_spellings("Kate@großbank.example") == three
    assert email_spellings("kate@xn--grobank-2va.example") == three - {"Kate@großbank.example"}


@pytest.mark.parametrize(
    "domain", ["localhost", "example.org", "a-b.3com.example", "Großbank.example", "xn--grobank-2va.example"]
)
def test_a_domain(domain: str) -> None:
    assert is_domain(domain)


@pytest.mark.parametrize(
    "domain",
    [
        *("", ".", "a..b", "-a.example", "a-.example", "a_b.example", "a b.example", "example.org.", "[192.0.2.1]"),
        *("gro\u1e9ebank.example", "\uff47.example", "grossbank\u3002example", "💩.example", "xn--grossbank-.example"),
        *(f"{'a' * 64}.example", ".".join(["a" * 60] * 5)),
    ],
)
def test_no_domain(domain: str) -> None:
    assert not is_domain(domain)

"""What headers say of the answer that is wanted: its media type, its coding, and whether the client has it already."""

from __future__ import annotations

import pytest

from normata.core.http.negotiation import CODINGS, best_coding, best_media_type, combined, is_current, matches
from tests.listing import LISTS
from tests.served import Served
from tests.world import ALPHA

TAG = b'"0123-br"'


@pytest.mark.parametrize(
    ("accept", "coding"),
    [
        *(("", "identity"), (" ", "identity"), (",;,", "identity"), ("identity", "identity"), ("x", "identity")),
        *(("gzip", "gzip"), ("GZip", "gzip"), ("br", "br"), ("zstd", "zstd"), (" gzip ", "gzip"), (",gzip,", "gzip")),
        # Of what is liked alike the best; what browsers and common clients send.
        *(("gzip, br, zstd", "zstd"), ("gzip, deflate, br, zstd", "zstd"), ("gzip, deflate, br", "br")),
        *(("gzip, deflate", "gzip"), ("deflate", "identity"), ("compress, gzip", "gzip"), ("x-lz4", "identity")),
        # What is liked more.
        *(("gzip, br;q=0.9", "gzip"), ("gzip;q=1.0, br;q=0.999", "gzip"), ("zstd;q=0.5, br;q=0.6, gzip;q=0.4", "br")),
        *(("gzip;q=0.001", "gzip"), ("gzip; q=0.5 , br ; q=0.7", "br"), ("gzip;Q=0.2, br;Q=0.1", "gzip")),
        # The body as it is, where that is liked more than the rest.
        *(("identity, gzip;q=0.5", "identity"), ("gzip;q=0.5, identity", "identity")),
        ("identity;q=0.4, gzip;q=0.5", "gzip"),
        # What is refused.
        *(("gzip;q=0", "identity"), ("gzip;q=0.0, br", "br"), ("zstd;q=0, gzip, br;q=0.000", "gzip")),
        # Anything else.
        *(("*", "zstd"), ("*;q=0.5, gzip", "gzip"), ("zstd;q=0, *", "br"), ("zstd;q=0, br;q=0, *;q=0.1", "gzip")),
        *(("*;q=0", "identity"), ("gzip, *;q=0", "gzip"), ("identity, *;q=0", "identity")),
        *(("identity;q=0, gzip", "gzip"), ("identity;q=0, *", "zstd"), ("identity;q=0, gzip;q=0.1, br;q=0.2", "br")),
        # An element that is repeated counts with its largest weight, and a weight that is none as the whole.
        *(("gzip;q=0.1, br;q=0.5, gzip;q=0.9", "gzip"), ("gzip;q=nonsense, br;q=0.9", "gzip")),
        ("gzip;q=, br;q=0.5", "gzip"),
        *(("gzip;level=9;q=0.2, br;q=0.1", "gzip"), ("gzip;q=-1", "identity"), ("gzip;q=nan", "identity")),
    ],
)  # fmt: skip
def test_the_coding_that_is_wanted_most(accept: str, coding: str) -> None:
    assert best_coding(accept.encode(), ("zstd", "br", "gzip")) == coding


@pytest.mark.parametrize(
    "accept",
    [
        "identity;q=0",
        "identity;q=0, gzip;q=0",
        "identity;q=0, zstd;q=0",
        "*;q=0, identity;q=0",
        "zstd;q=0, identity;q=0",
    ],
)
def test_what_is_refused_is_not_sent_in_a_coding_that_was_never_asked_for(accept: str) -> None:
    """Where nothing is acceptable, a body as it is can be read by everybody (RFC 9110, section 12.5.3)."""
    assert best_coding(accept.encode(), CODINGS) == "identity"


@pytest.mark.parametrize("accept", [b"\xff\xfe", b"gzip;q=\xff", b";" * 5_000, b"," * 5_000, b"x" * 5_000])
def test_no_header_is_too_odd(accept: bytes) -> None:
    assert best_coding(accept, CODINGS) in ("identity", "gzip")


@pytest.mark.parametrize(
    "held",
    [
        *('"0123-br"', 'W/"0123-br"', ' "0123-br" ', "*", " * ", '"a", "0123-br"', '"a","0123-br","b"'),
        *('W/"a", W/"0123-br"', '"", "0123-br"', '"with, comma", "0123-br"', '"0123-br", "0123-br"', ', "0123-br",'),
        '"a"' + ', "b"' * 1_000 + ', "0123-br"',
    ],
    ids=lambda held: held[:30],
)
def test_a_tag_that_is_held(held: str) -> None:
    assert is_current(held.encode(), TAG)


@pytest.mark.parametrize(
    "held",
    [
        *("", " ", "0123-br", '"0123"', '"0123-gzip"', '"0123-BR"', '"x0123-br"', '"0123-br', '0123-br"', "'0123-br'"),
        *('"a", "b"', 'W/"0123-gzip"', '"*"', "**", '*, "a"', '" 0123-br"', '"a"0123-br"b"', "W/", '"', '"a""b"'),
        '"' * 4_001,
    ],
    ids=lambda held: held[:30],
)
def test_a_tag_that_is_not_held(held: str) -> None:
    assert not is_current(held.encode(), TAG)


@pytest.mark.parametrize("wanted", ['"0123-br"', "*", ' "0123-br" ', '"a", "0123-br"', 'W/"a", "0123-br"'])
def test_a_tag_that_is_wanted(wanted: str) -> None:
    assert matches(wanted.encode(), TAG)


@pytest.mark.parametrize("wanted", ["", "0123-br", 'W/"0123-br"', '"a"', '"a", W/"0123-br"', '"*"', '*, "a"'])
def test_a_tag_that_is_not_wanted(wanted: str) -> None:
    """Here a weak tag matches nothing (RFC 9110, section 13.1.1)."""
    assert not matches(wanted.encode(), TAG)


def test_a_repeated_header_is_one_list() -> None:
    sent = [(b"accept", b"a"), (b"if-none-match", b'"x"'), (b"accept", b"b"), (b"if-none-match", TAG)]
    assert combined(sent) == {b"accept": b"a, b", b"if-none-match": b'"x", "0123-br"'}
    assert is_current(combined(sent)[b"if-none-match"], TAG)


# --- Media types

JSON, XLSX = ("application/json",), "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
REPORT = (*JSON, "text/csv", XLSX)


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        *(
            ("", JSON[0]),
            ("*/*", JSON[0]),
            ("application/*", JSON[0]),
            ("text/csv", "text/csv"),
            ("text/*", "text/csv"),
        ),
        *((XLSX, XLSX), (f"{XLSX};q=0.9, text/csv;q=0.8", XLSX), ("text/csv;q=0.9, application/json;q=0.9", JSON[0])),
        *(("text/csv;q=0.9, application/json;q=0.8", "text/csv"), ("*/*;q=0.1, text/csv", "text/csv")),
        *(("application/json;q=0, */*", "text/csv"), ("application/json;q=0, text/*;q=0, */*;q=0.1", XLSX)),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", JSON[0]),
        *(("text/html", None), ("text/csv;q=0", None), ("text/csvx", None), ("image/*", None)),
    ],
)
def test_the_media_type_that_is_wanted_most(accept: str, media_type: str | None) -> None:
    """Of what is liked alike the first (RFC 9110, section 12.5.1)."""
    assert best_media_type(accept.encode(), REPORT) == media_type


@pytest.mark.parametrize(
    "accept",
    [
        *("", "*/*", "application/*", "application/json", "APPLICATION/JSON", "application/json;q=0.1"),
        *("text/html, application/json", "text/html;q=1.0, */*;q=0.1", "application/json; charset=utf-8"),
        *("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "application/json, */*;q=0"),
        *("application/json;q=1, application/*;q=0", " , application/json"),
        *("application/xml , application/json ;q=0.5", "x" * 5_000 + ", application/json"),
    ],
    ids=lambda accept: repr(accept[:40]),
)
def test_json_is_accepted(accept: str) -> None:
    assert best_media_type(accept.encode(), JSON) == JSON[0]


@pytest.mark.parametrize(
    "accept",
    [
        *("text/html", "text/*", "application/xml", "application/jsonx", "application/problem+json", "image/*"),
        *("application/json;q=0", "*/*;q=0", "application/*;q=0.0", "application/json;q=0, */*", "*/json"),
        *("application/*;q=0, */*", "text/html, application/xml;q=0.9", "x" * 5_000),
    ],
    ids=lambda accept: repr(accept[:40]),
)
def test_json_is_not_accepted(accept: str) -> None:
    """The most specific range decides (RFC 9110, section 12.5.1)."""
    assert best_media_type(accept.encode(), JSON) is None


@pytest.mark.parametrize("accept", [[], ["text/html", "application/json"]], ids=["none", "two"])
def test_accept_headers_as_they_are_sent(accept: list[str], shared: Served) -> None:
    """Without the header anything is accepted, and several headers are one list."""
    shared.client.headers.pop("accept", None)
    headers = [*shared.bearer("viewer").items(), *(("Accept", one) for one in accept)]
    response = shared.client.get(LISTS[0].path, params={"organizationId": ALPHA}, headers=headers)
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"

"""What headers say of the wanted answer: the coding of its body, and whether the client has it already."""

from __future__ import annotations

import pytest

from normata.negotiation import best_coding, combined, is_current
from normata.pages import CODINGS

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
    assert best_coding(accept.encode(), CODINGS) == coding


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


def test_a_repeated_header_is_one_list() -> None:
    sent = [(b"accept", b"a"), (b"if-none-match", b'"x"'), (b"accept", b"b"), (b"if-none-match", TAG)]
    assert combined(sent) == {b"accept": b"a, b", b"if-none-match": b'"x", "0123-br"'}
    assert is_current(combined(sent)[b"if-none-match"], TAG)

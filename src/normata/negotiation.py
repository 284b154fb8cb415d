"""What a request's headers say of the answer that is wanted (RFC 9110, sections 8.8, 12 and 13)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

Headers = dict[bytes, bytes]

_ENTITY_TAG = re.compile(rb'(?:W/)?("[^"]*")')


def combined(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Header values by their names in lower case; those of a repeated header joined by commas (section 5.3)."""
    fields: Headers = {}
    for name, value in headers:
        fields[name] = fields[name] + b", " + value if name in fields else value
    return fields


@lru_cache(maxsize=256)
def accepts_json(accept: bytes) -> bool:
    """Whether application/json is acceptable (section 12.5.1): the most specific range decides; empty is anything."""
    weights = _weights(accept)
    if not weights:
        return True
    return next((weights[name] for name in ("application/json", "application/*", "*/*") if name in weights), 0) > 0


@lru_cache(maxsize=256)
def best_coding(accept: bytes, codings: tuple[str, ...]) -> str:
    """Which of ``codings``, the best first, the client wants most (section 12.5.3), else ``identity``."""
    weights = _weights(accept)
    # Who names no weight for it takes a body as it is, but likes anything named better.
    wanted = {"identity": weights.get("identity", 0.0001)}
    wanted |= {coding: weights.get(coding, weights.get("*", 0.0)) for coding in codings}
    best = max((*codings, "identity"), key=wanted.__getitem__)
    return best if wanted[best] > 0 else "identity"  # who wants none at all gets it as it is, as the section allows


def is_current(if_none_match: bytes, entity_tag: bytes) -> bool:
    """Whether the client has the representation with this (quoted) tag already (section 13.1.2, weak comparison)."""
    return if_none_match.strip() == b"*" or entity_tag in _ENTITY_TAG.findall(if_none_match)


def _weights(header: bytes) -> dict[str, float]:
    """The weight of each element of a list such as ``gzip;q=0.5, br``; of an element that is repeated, the largest."""
    weights: dict[str, float] = {}
    for element in header.decode("latin-1").lower().split(","):
        name, *parameters = (piece.strip() for piece in element.split(";"))
        if name:
            weights[name] = max(weights.get(name, 0.0), _weight(parameters))
    return weights


def _weight(parameters: Iterable[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return float(value)
            except ValueError:
                return 1.0
    return 1.0

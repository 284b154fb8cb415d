"""Headers of requests and answers in the OpenAPI document."""

from __future__ import annotations

from typing import Any

# The headers that all answers may have, as components by name.
EVERYWHERE = {
    "RequestId": {
        "description": "Names the request in the log.",
        "required": True,
        "schema": {"type": "string"},
    },
    "RateLimit": {
        "description": (
            "Where the operator has set limits: how those stand that this request was counted against, each with the"
            " requests that remain (`r`) for so many seconds (`t`). A List of Strings with parameters (RFC 9651):"
            ' `"token";r=599;t=60`.'
        ),
        "required": False,
        "schema": {"type": "string"},
    },
    "RateLimitPolicy": {
        "description": 'The same limits: so many requests (`q`) in so many seconds (`w`): `"token";q=600;w=60`.',
        "required": False,
        "schema": {"type": "string"},
    },
}
REFERENCES = {
    name: {"$ref": f"#/components/headers/{name.removeprefix('X-').replace('-', '')}"}
    for name in ("X-Request-Id", "RateLimit", "RateLimit-Policy")
}
VALIDATORS = {
    "ETag": {
        "description": "Names what the answer holds, to be sent back as `If-None-Match` or `If-Match`.",
        "required": True,
        "schema": {"type": "string"},
    }
}
DISPOSITION = {
    "Content-Disposition": {
        "description": "The name of a file with the report (RFC 6266).",
        "required": True,
        "schema": {"type": "string"},
    }
}
CONTENT_RANGE = {
    "Content-Range": {
        "description": "Which bytes of the file these are (RFC 9110, section 14.4).",
        "required": True,
        "schema": {"type": "string"},
    }
}
LOCATION = {
    "Location": {"description": "The address of what was made.", "required": True, "schema": {"type": "string"}}
}
LINK = {
    "Link": {
        "description": (
            "The addresses of other pages with the same parameters (RFC 8288): `first`, `prev`, `next` and `last`, as"
            " far as there are such. Left out where the query is longer than 2,000 bytes."
        ),
        "required": False,
        "schema": {"type": "string"},
    }
}
MEMENTO = {
    "Memento-Datetime": {
        "description": "Of an answer of the past: its moment, in whole seconds (RFC 7089, section 2.1.1).",
        "required": False,
        "schema": {"type": "string"},
    }
}
APPLIED = {
    "Preference-Applied": {
        "description": "`handling=strict` if the request asked for it.",
        "required": False,
        "schema": {"type": "string"},
    }
}
PREFER = {
    "name": "Prefer",
    "in": "header",
    "description": (
        "With `handling=strict` (RFC 7240), a query parameter that this operation does not have is refused. Otherwise"
        " it is ignored, unless only its case, a hyphen or an underscore is wrong."
    ),
    "required": False,
    "schema": {"type": "string"},
}
IF_NONE_MATCH = {
    "name": "If-None-Match",
    "in": "header",
    "description": "The `ETag` of an answer that you have: while it is the same, the answer is 304, without a body.",
    "required": False,
    "schema": {"type": "string"},
}
IF_MATCH = {
    "name": "If-Match",
    "in": "header",
    "description": "The `ETag` of what you know: where something else is there by now, the answer is 412.",
    "required": False,
    "schema": {"type": "string"},
}


def not_modified() -> dict[str, Any]:
    """The response 304, which has no body."""
    return {"description": "The answer is still the one that `If-None-Match` names.", "headers": {**VALIDATORS}}

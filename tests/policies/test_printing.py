"""Policies on paper, on both databases."""

from __future__ import annotations

import pytest
from httpx2 import Response

from normata.policies.printed import as_pdf, parts_of
from tests.policies.steps import TEXT, Policies
from tests.served import refused
from tests.world import ALPHA

_TYPED = "## Rule\n\n1. Lock **the *door***, see [it](https://example.com) or `#it`.\n\n|a|b|\n|-|-|\n|1|2|\n"


def _printed(policies: Policies, policy: str, user: str = "viewer", **query: object) -> Response:
    path, headers = f"/policies/{policy}/pdf/", policies.headers(user)
    return policies.service.client.get(path, params={"organizationId": ALPHA, **query}, headers=headers)  # type: ignore[dict-item]


def test_a_version_is_printed(policies: Policies) -> None:
    policy = policies.make(content=_TYPED)
    refused(_printed(policies, policy), 404, "not_found")
    policies.published(policy)
    policies.draft(policy, "PUT", content=TEXT)
    policies.done("submit", policy)
    printed = _printed(policies, policy)
    assert (printed.status_code, printed.headers["content-type"]) == (200, "application/pdf")
    assert printed.headers["content-disposition"].startswith('attachment; filename="doors-1.pdf"')
    assert printed.content.startswith(b"%PDF-")
    assert _printed(policies, policy, version=1).content == printed.content
    said = _printed(policies, policy, format="json").json()
    known = {"organization": "Alpha", "title": "Doors", "version": 1, "approvedBy": "Viewer", "content": _TYPED}
    assert {name: said[name] for name in known} == known
    assert said["contentSha256"] == policies.versions(policy)[0]["contentSha256"]
    next_one = _printed(policies, policy, version=2, format="json").json()
    assert (next_one["state"], next_one["approvedAt"], next_one["content"]) == ("IN_REVIEW", None, TEXT)
    refused(_printed(policies, policy, version=3), 404, "not_found")
    refused(_printed(policies, policy, "foreigner"), 404, "not_found")


def test_the_parts_of_a_text() -> None:
    heading, listed, table = parts_of(_TYPED)
    assert (heading["level"], heading["words"][0]["text"]) == (1, "Rule")
    words = listed["items"][0]["parts"][0]["words"]
    assert [one["text"] for one in words] == ["Lock ", "the ", "door", ", see ", "it", " or ", "#it", "."]
    assert [one["as"] for one in words[1:3]] == [["strong"], ["strong", "em"]]
    assert words[4]["link"] == "https://example.com"
    assert [[cell[0]["text"] for cell in row] for row in table["rows"]] == [["a", "b"], ["1", "2"]]


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("|a|b|\n|-|-|\n" + "|1|2|\n" * 501, "plain"),
        ("- a\n" * 4_001, "plain"),
        (">" * 12 + " a", "plain"),
        (">" * 11 + " a", "quote"),
        ("x" * 100_001, "plain"),
        ({"rules": ["#let x = 1"]}, "code"),
        (None, "paragraph"),
    ],
    ids=["rows", "pieces", "too deep", "deep", "long", "document", "erased"],
)
def test_what_is_too_large_is_printed_as_typed(content: object, what: str) -> None:
    parts = parts_of(content)
    assert [one["is"] for one in parts] == [what]
    document = {"organization": "Alpha", "title": "Doors", "version": 1, "isImported": True, "contentSha256": "0" * 64}
    times = dict.fromkeys(("approvedAt", "submittedAt", "publishedAt", "approvedBy"))
    assert as_pdf({**document, **times, "content": content}).startswith(b"%PDF-")

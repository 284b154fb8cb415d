"""Templates of policies: their texts, and the policies that begin with them, on both databases."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
from httpx2 import Response

import normata.demo
from normata.links.model import Link
from normata.policies.printed import parts_of
from normata.policies.templates import CSF, ISO_27001, PLACEHOLDERS, TEMPLATES, Template, is_of
from normata.records.kinds import Policy
from tests import stored
from tests.policies.steps import Policies
from tests.served import refused
from tests.world import ALPHA

_CATALOGS = {ISO_27001: "iso-27001-2022", CSF: "nist-csf-2.0"}


def _catalog(framework: str) -> dict[str, Any]:
    path = Path(normata.demo.__file__).with_name(f"{_CATALOGS[framework]}.json")
    catalog: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return catalog


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=list(TEMPLATES))
def test_each_is_a_policy_that_can_be_used(template: Template) -> None:
    assert 400 <= len(template.text.split()) <= 800
    headings = re.findall(r"^## (\d+)\. ", template.text, re.MULTILINE)
    assert headings == [str(number) for number in range(1, len(headings) + 1)]
    assert set(re.findall(r"\{\{(.*?)\}\}", template.text)) == set(PLACEHOLDERS)
    for framework in (ISO_27001, CSF):
        known = {one["identifier"] for one in _catalog(framework)["controls"]}
        assert {one.identifier for one in template.controls if one.framework == framework} <= known
        assert any(one.framework == framework for one in template.controls)


@pytest.mark.parametrize(
    ("framework", "says"),
    [
        (ISO_27001, ("iso27001-2022", "Information security", None)),
        (ISO_27001, ("ISO-27001", "ISO/IEC 27001:2022", "2022")),
        (CSF, ("nist-csf-2.0", "NIST CSF", "2.0")),
        (CSF, ("CSF", "NIST Cybersecurity Framework v2.0", None)),
        (None, ("ISO-27001", "ISO/IEC 27001:2013", "2013")),
        (None, ("CSF", "NIST Cybersecurity Framework", "1.1")),
    ],
)
def test_a_framework_is_known_by_what_it_says(framework: str | None, says: tuple[str, str, str | None]) -> None:
    assert [one for one in (ISO_27001, CSF) if is_of(one, *says)] == [framework] * (framework is not None)


def _create(
    policies: Policies, user: str = "editor", template: str = "backup", *, key: str = "", query: Any = None, **body: Any
) -> Response:
    headers = policies.headers(user) | ({"Idempotency-Key": f'"{key}"'} if key else {})
    sent = {"organizationId": ALPHA, **body}
    path = f"/policy-templates/{template}/policies/"
    return policies.service.client.post(path, json=sent, params=query or {}, headers=headers)


def _adopt(policies: Policies, framework: str) -> None:
    catalog = _catalog(framework)
    key = {"organizationId": ALPHA, "frameworkId": _CATALOGS[framework]}
    adoption = {"id": f"adopted-{_CATALOGS[framework]}", **key, "adoptedAt": "2026-01-02T03:04:05.678Z"}
    policies.service.load({**catalog, "frameworkAdoptions": [adoption]})


def test_a_policy_begins_with_a_template(policies: Policies) -> None:
    _adopt(policies, ISO_27001)
    database = policies.service.database
    before = len(stored.rows(database, Policy)), len(stored.rows(database, Link))
    tried = _create(policies, query={"dryRun": "true"})
    assert (tried.status_code, tried.json()["answer"]["title"]) == (200, TEMPLATES["backup"].title)
    assert (len(stored.rows(database, Policy)), len(stored.rows(database, Link))) == before
    made = _create(policies, "admin", key="once", approverId="member-viewer", title="Copies")
    assert made.status_code == 201, made.text
    policy = made.json()
    assert made.headers["location"].endswith(f"/policies/{policy['id']}/")
    assert (policy["title"], policy["status"]) == ("Copies", "DRAFT")
    assert "{{" not in policy["content"]
    assert "says what Alpha backs up" in policy["content"]
    assert "Exceptions are approved by Viewer," in policy["content"]
    assert _create(policies, "admin", key="once", approverId="member-viewer", title="Copies").json() == policy
    links = stored.rows(database, Link, from_id=policy["id"])
    assert {link["relation"] for link in links} == {"IMPLEMENTS"}
    by_id = {one["id"]: one["identifier"] for one in _catalog(ISO_27001)["controls"]}
    assert {by_id[link["to_id"]] for link in links} == {"A.8.13", "A.8.14", "A.5.29", "A.5.33"}
    assert "by the approver of this policy" in _create(policies).json()["content"]  # and another slug


def test_a_name_is_no_markup(policies: Policies) -> None:
    name = r"Alpha_Beta *GmbH* & <b>Co</b> _x_ [here](https://evil.example) `\ ~~Ltd~~"
    policies.service.sql(f"UPDATE organization SET name = '{name}' WHERE id = '{ALPHA}'")
    content = _create(policies).json()["content"]
    [line] = [part for part in parts_of(content) if name[:5] in repr(part)][:1]
    assert "".join(word["text"] for word in line["words"]).startswith(f"This policy says what {name} backs up")
    assert {*itertools.chain(*(word["as"] for word in line["words"]))} == set()
    assert "Alpha_Beta" in content


def test_who_may_not_create_it(policies: Policies) -> None:
    refused(_create(policies, template="no-such"), 404, "not_found")
    refused(_create(policies, "viewer"), 403, "forbidden")
    refused(_create(policies, approverId="member-viewer"), 403, "forbidden")  # to name one takes an admin
    refused(_create(policies, "foreigner"), 404, "not_found")
    refused(_create(policies, "admin", approverId="nobody"), 400, "validation")
    answer = policies.service.client.post("/policy-templates/backup/policies/", json={"organizationId": ALPHA})
    assert answer.status_code == 401
    assert stored.rows(policies.service.database, Policy, title=TEMPLATES["backup"].title) == []

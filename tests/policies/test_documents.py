"""Versions of policies in bundles and erasures, on both databases."""

from __future__ import annotations

import io
import json

import pytest

from normata.bundle.dumping import dump
from normata.core.changes.source import FaultyInput
from normata.policies.model import PolicyVersion
from normata.policies.versions import hash_of
from tests import stored, world
from tests.cli.commands import Run
from tests.policies.steps import TEXT, Policies
from tests.world import ALPHA


def test_a_dump_has_every_version_and_loads_as_it_is(policies: Policies) -> None:
    policy = policies.make()
    policies.published(policy)
    policies.draft(policy, "PUT", content="Next.")
    database = policies.service.database
    file = io.StringIO()
    database.read_now(lambda transaction: dump(transaction, ALPHA, file))
    dumped = json.loads(file.getvalue())
    versions = dumped["policyVersions"]
    assert {one["state"] for one in versions if one["policyId"] == policy} == {"PUBLISHED", "DRAFT"}
    before = stored.rows(database, PolicyVersion)
    world.load(database, {"policies": dumped["policies"], "policyVersions": versions})
    assert stored.rows(database, PolicyVersion) == before
    [published] = [one for one in versions if one["policyId"] == policy and one["state"] == "PUBLISHED"]
    with pytest.raises(FaultyInput) as refused:
        world.load(database, {"policyVersions": [published | {"content": "Another."}]})
    [fault] = refused.value.faults
    assert "contentSha256" in str(fault)


def test_an_erasure_keeps_approved_texts_unless_it_is_to_remove_them(policies: Policies, normata: Run) -> None:
    service = policies.service
    service.load({"users": [{"id": "user-viewer", "name": "Vi Viewer"}]})
    named = f"{TEXT}\n\nAsk Vi Viewer."
    policy = policies.make(content=named)
    policies.published(policy)
    policies.draft(policy, "PUT", content=f"{named} Or another.")
    [version] = policies.versions(policy)
    command = ("user", "erase", "user-viewer", "--also", "Vi Viewer", "--database", service.url)
    assert f"keep\tpolicyVersions\t{version['id']}\tcontent\n" in normata(*command, "--dry-run").out
    assert "stay: 1; --also-documents" in normata(*command, "--yes").err
    assert policies.versions(policy)[0]["content"] == named
    assert "Vi Viewer" not in policies.draft(policy).json()["content"]
    assert "Vi Viewer" not in policies.read(policy)["content"]
    assert "policies without their texts: 1" in normata(*command, "--yes", "--also-documents").out
    [erased] = policies.versions(policy)
    assert (erased["content"], erased["contentSha256"]) == (None, version["contentSha256"])
    assert erased["erasedAt"] is not None
    assert normata("check", "--database", service.url).code == 0


def test_check_finds_a_text_that_was_changed(policies: Policies, normata: Run) -> None:
    policy = policies.make()
    policies.published(policy)
    service = policies.service
    named = f"version 1 of the policy {policy} of organization {ALPHA} was changed: its"

    def found() -> list[str]:
        return [line for line in normata("check", "--database", service.url).err.splitlines() if policy in line]

    def change(assignments: str) -> None:
        service.sql(f"UPDATE policy_version SET {assignments} WHERE policy_id = '{policy}'")

    assert found() == []
    other = "Leave the door open."
    change(f"content = '{json.dumps(other)}'")
    [fault] = found()
    assert f"{named} text is not the one that was hashed" in fault
    change(f"content_sha256 = '{hash_of(other)}'")
    [fault] = found()
    assert f"{named} hash is not that of its event" in fault

"""A version of a statement from its draft to its proof without the database, on both databases."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from normata.cli.check import faults
from normata.events.sealing import seal_all_now
from normata.operations import SECURITY
from normata.soa_versions import verifying
from normata.soa_versions.model import FILE_FORMATS, SoaVersion
from tests import stored
from tests.cli.commands import Run, failed
from tests.databases import on_both, tamper
from tests.served import Headers, Served, refused
from tests.world import ALPHA, BETA

APPROVER = "member-viewer"


class Statements:
    """What the members of alpha do with versions of the statement of a framework."""

    def __init__(self, service: Served) -> None:
        self.service = service
        self._headers: dict[str, Headers] = {}

    def headers(self, user: str) -> Headers:
        """The header of a user."""
        return self._headers.setdefault(user, self.service.bearer(user))

    def make(self, user: str = "admin", **body: Any) -> Any:
        """The answer to making a version."""
        whole = {"organizationId": ALPHA, "frameworkId": "fw-sun", "title": "For the audit", "approverId": APPROVER}
        return self.service.client.post("/soa-versions/", json=whole | body, headers=self.headers(user))

    def approve(self, version: str, user: str = "viewer") -> Any:
        """The answer to approving one."""
        return self.service.client.post(f"/soa-versions/{version}/approve/", headers=self.headers(user))

    def get(self, path: str, user: str = "auditor", **query: Any) -> Any:
        """The answer to a read of alpha."""
        params = {"organizationId": ALPHA} | query
        return self.service.client.get(f"/soa-versions/{path}", params=params, headers=self.headers(user))

    def proof(self, version: str, **query: Any) -> Any:
        """A proof, once everything is sealed."""
        seal_all_now(self.service.database)
        answer = self.get(f"{version}/proof/", **query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def read_proof(self, version: str) -> Any:
        """The same, as it is read from a file."""
        return verifying.read_proof(json.dumps(self.proof(version)))

    def assess(self, status: str) -> None:
        """Assess a requirement of the framework."""
        path, body = "/controls/sun.A.1/coverage/", {"organizationId": ALPHA, "coverageStatus": status}
        answer = self.service.client.put(path, json=body, headers=self.headers("editor"))
        assert answer.status_code == 200, answer.text


@pytest.fixture
def statements(service: Served) -> Statements:
    """The versions of the world."""
    return Statements(service)


@on_both
def test_from_a_draft_to_its_proof(statements: Statements, normata: Run, tmp_path: Path) -> None:
    service = statements.service
    refused(statements.make("editor"), 403, "forbidden")  # to name an approver takes an admin
    refused(statements.make("auditor", approverId=None), 403, "forbidden")
    for wrong in ({"approverId": "member-auditor"}, {"frameworkId": "fw-star"}, {"otherFrameworkIds": ["fw-star"]}):
        [fault] = refused(statements.make(**wrong), 400, "validation")["errors"]
        assert fault["name"] == next(iter(wrong))
    assert statements.make("editor", approverId=None).json()["number"] == 1
    answer = statements.make(scope="All of it.", otherFrameworkIds=["fw-own"])
    assert answer.status_code == 201
    version = answer.json()
    name = version["id"]
    assert (version["number"], version["state"], version["scope"]) == (2, "DRAFT", "All of it.")
    read = statements.get(f"{name}/")
    assert (read.json(), read.headers["etag"]) == (version, answer.headers["etag"])
    # The files are those that were hashed, whatever changes later.
    statements.assess("NONE")
    files: dict[str, bytes] = {one: statements.get(f"{name}/", format=one).content for one in FILE_FORMATS}
    assert all(sha256(files[one]).hexdigest() == version[f"{one}Sha256"] for one in FILE_FORMATS)
    statement = json.loads(files["json"])
    assert (statement["version"], statement["title"], statement["scope"]) == (2, "For the audit", "All of it.")
    assert statement["approver"]["memberId"] == APPROVER
    # One field of one row is another now; another version lacks the rows of the further framework.
    now = statements.get(f"{name}/comparison/").json()
    [changed] = [one for one in now["changed"] if one["id"] == "sun.A.1"]
    assert {"field": "implemented", "before": "YES", "after": "NO"} in changed["changes"]
    third = statements.make(otherFrameworkIds=[]).json()
    compared = statements.get(f"{name}/comparison/", **{"with": third["id"]}).json()
    assert {one["frameworkId"] for one in compared["removed"]} == {"fw-own"}
    assert (compared["added"], compared["comparedWith"]["number"]) == ([], 3)
    assert [one["field"] for one in compared["head"]] == ["scope", "otherFrameworks"]
    refused(statements.get(f"{name}/comparison/", **{"with": f"soa-{ALPHA}"}), 400, "validation")
    # The approver has learned of both. A checkpoint from before the approval, and the approval itself.
    inbox = service.listing("/notifications/").items()
    made = [one["payload"]["entityId"] for one in inbox if one["type"] == "record.assigned"]
    assert made == [third["id"], name]
    before = statements.proof(name)
    refused(statements.approve(name, "owner"), 403, "forbidden")
    refused(statements.approve(name, "auditor"), 403, "forbidden")
    refused(statements.approve(f"soa-{BETA}"), 404, "not_found")
    assert statements.approve(name).json()["state"] == "APPROVED"
    problem = refused(statements.approve(name), 409, "wrong_state")
    assert (problem["state"], problem["allowed"]) == ("APPROVED", ["DRAFT"])
    assert statements.approve(third["id"]).json()["state"] == "APPROVED"
    listed = statements.get("", frameworkId="fw-sun").json()["items"]
    assert [(one["number"], one["state"]) for one in listed] == [(3, "APPROVED"), (2, "SUPERSEDED"), (1, "DRAFT")]
    after = statements.proof(name)
    assert [one["action"] for one in after["events"]] == ["create", "approve", "supersede"]
    assert {one: statements.get(f"{name}/", format=one).content for one in FILE_FORMATS} == files
    # The proof for an earlier checkpoint is still the same; no checkpoint from before the version proves it.
    assert statements.proof(name, size=before["checkpoint"]["size"])["events"] == before["events"]
    refused(statements.get(f"{name}/proof/", size=10_000), 400, "validation")
    key = normata("events", "key", ALPHA, "--database", service.url).out.strip()
    files["another"] = statements.get(f"{third['id']}/", format="csv").content
    verify_offline(normata, tmp_path, key, files, (before, after))


def verify_offline(
    normata: Run, folder: Path, key: str, files: dict[str, bytes], proofs: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    """On another machine, without the database: each file is proven, and each wrong thing has a sentence of its own."""
    before, after = proofs
    proof, checkpoint = folder / "proof.json", folder / "checkpoint"
    proof.write_text(json.dumps(after))
    for one in FILE_FORMATS:
        (folder / f"soa.{one}").write_bytes(files[one])
        done = normata("soa", "verify", folder / f"soa.{one}", proof, "--key", key)
        assert done.code == 0, done.err
        assert re.search(rf"version 2 as {one.upper()}, approved at \S+ by {APPROVER}", done.out)
    command = ("soa", "verify", folder / "soa.csv", proof)
    checkpoint.write_text(before["checkpoint"]["note"])
    assert "get the proof with size=" in failed(normata(*command, "--key", key, "--checkpoint", checkpoint))
    checkpoint.write_text(f"{before['checkpoint']['origin']}\n1\n{'A' * 43}=\n\n\u2014 x AAAA\n")
    assert "is from before the version" in normata(*command, "--checkpoint", checkpoint).err
    for content, sentence in (
        (files["csv"][:-1] + b"x", "it was changed, or is another file"),
        (files["another"], "the file is that of version 3"),
    ):
        (folder / "soa.csv").write_bytes(content)
        assert sentence in failed(normata(*command, "--key", key))
    proof.write_text(json.dumps(after | {"events": []}))
    assert "has no event" in failed(normata(*command, "--key", key))
    proof.write_text("{}")
    assert "is not a proof of a version" in failed(normata(*command, "--key", key), 2)


def test_nothing_of_a_proof_can_be_changed(statements: Statements) -> None:
    """Each part of it is held against the root that is signed."""
    version = statements.make().json()
    statements.approve(version["id"])
    content = statements.get(f"{version['id']}/", format="json").content
    proof = statements.read_proof(version["id"])
    note = verifying.note_of(proof)
    assert "approved at" in verifying.verify(content, proof, note)
    other = "0" * 64
    for number, event in enumerate(proof["events"]):
        for change in (
            {"event": event["event"].replace("approve", "Approve").replace("create", "Create")},
            {"hash": other},
            {"leaf": event["leaf"] + 1},
            {"inclusionPath": [*event["inclusionPath"], other]},
            {"inclusionPath": event["inclusionPath"][:-1]},
        ):
            events = [*proof["events"][:number], event | change, *proof["events"][number + 1 :]]
            with pytest.raises(verifying.NotProven):
                verifying.verify(content, proof | {"events": events}, note)
    with pytest.raises(verifying.NotProven, match="something else"):
        verifying.verify(content, proof | {"versionId": "other"}, note)


def test_versions_survive_a_dump_and_what_is_changed_by_hand_is_found(
    statements: Statements, normata: Run, tmp_path: Path
) -> None:
    service = statements.service
    version = statements.make().json()
    seal_all_now(service.database)
    dump = tmp_path / "dump.json"
    assert normata("dump", ALPHA, "--output", dump, "--database", service.url).code == 0
    [dumped] = [one for one in json.loads(dump.read_text())["soaVersions"] if one["id"] == version["id"]]
    assert sha256(b64decode(dumped["csvFile"])).hexdigest() == version["csvSha256"]
    target = f"sqlite:///{tmp_path / 'copy.db'}"
    assert normata("load", dump, "--database", target).code == 0
    again = tmp_path / "again.json"
    assert normata("dump", ALPHA, "--output", again, "--database", target).code == 0
    assert again.read_bytes() == dump.read_bytes()
    dump.write_text(json.dumps({"soaVersions": [dumped | {"id": "new", "number": 9, "csvFile": dumped["jsonFile"]}]}))
    assert "is not the file of which csvSha256 is the hash" in normata("load", dump, "--database", target).err

    def found() -> list[str]:
        return service.database.read_now(lambda transaction: list(faults(service.database, transaction, SECURITY)))

    assert found() == []
    tamper(service.database, f"UPDATE soa_version SET csv_file = json_file WHERE id = '{version['id']}'")
    [fault] = found()
    assert "csv_file is not the file of which csvSha256 is the hash" in fault


def test_an_erasure_keeps_files_unless_it_is_to_remove_them(statements: Statements, normata: Run) -> None:
    service = statements.service
    plain = statements.make().json()["id"]
    content = statements.get(f"{plain}/", format="json").content
    service.load({"users": [{"id": "user-viewer", "name": "Vi Viewer"}]})
    named = statements.make(title="With a name").json()["id"]
    command: tuple[str, ...] = ("user", "erase", "viewer@alpha.example", "--database", service.url)
    listed = normata(*command, "--dry-run").out
    assert f"keep\tsoaVersions\t{named}\tfiles\n" in listed
    assert f"\t{plain}\t" not in listed
    done = normata(*command, "--yes")
    assert "versions whose files name them and stay: 1; --also-documents removes" in done.err
    assert statements.get(f"{named}/", format="json").status_code == 200
    command = ("user", "erase", "user-viewer", "--also", "Vi Viewer", "--database", service.url)
    done = normata(*command, "--yes", "--also-documents")
    assert "versions without their files: 1" in done.out
    refused(statements.get(f"{named}/", format="json"), 410, "files_erased")
    assert statements.get(f"{named}/").json()["erasedAt"] is not None
    proof = statements.read_proof(named)
    assert [one["action"] for one in proof["events"]] == ["create", "erase"]
    with pytest.raises(verifying.NotProven, match="version 1"):
        verifying.verify(content, proof, verifying.note_of(proof))
    [row] = [one for one in stored.rows(service.database, SoaVersion) if one["id"] == named]
    assert (row["json_file"], row["json_sha256"] is None) == (None, False)
    assert normata("check", "--database", service.url).code == 0

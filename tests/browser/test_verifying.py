"""Verifying a file of a version in a real browser: what is proven, and each thing that is not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from playwright.sync_api import FilePayload, Page, expect

from normata.demo.files import ORGANIZATION
from normata.events.keys import Signer
from normata.settings import Settings
from tests.browser.conftest import Open
from tests.browser.demonstrated import PLACE


def downloaded(page: Page, name: str, folder: Path) -> bytes:
    """A file that a link leads to."""
    with page.expect_download() as loading:
        page.get_by_role("link", name=name, exact=True).click()
    target = folder / name
    loading.value.save_as(target)
    return target.read_bytes()


def test_a_file_is_proven_and_a_changed_one_is_not(look: Open, tmp_path: Path) -> None:
    page = look()
    page.set_default_timeout(10_000)
    page.goto(f"{PLACE}frameworks/iso-27001-2022/versions/")
    page.get_by_role("link", name="Statement for the certification audit").click()
    page.locator("summary", has_text="Export").click()
    file = downloaded(page, "CSV", tmp_path)
    proof = json.loads(downloaded(page, "Proof", tmp_path))
    page.get_by_role("link", name="Verify a file").click()

    def verify(content: bytes, changed: Mapping[str, object], key: str = "", checkpoint: str = "") -> str:
        given = json.dumps({**proof, **changed}).encode()
        page.get_by_label("File of a version").set_input_files(FilePayload(name="a.csv", mimeType="", buffer=content))
        page.get_by_label("Its proof").set_input_files(FilePayload(name="proof.json", mimeType="", buffer=given))
        note = [FilePayload(name="note.txt", mimeType="", buffer=checkpoint.encode())] if checkpoint else []
        page.get_by_label("A checkpoint").set_input_files(note)
        page.get_by_label("Key of the log").fill(key)
        page.get_by_role("button", name="Verify", exact=True).click()
        status = page.locator("[data-verify] [role=status]")
        expect(status).not_to_be_empty()
        return status.inner_text()

    assert "Proven: this is version 1 as CSV. It was approved at" in verify(file, {})
    right = Signer(Settings().event_key_file).verifier(ORGANIZATION)
    assert "The checkpoint is signed with the key." in verify(file, {}, key=right)
    assert "the file is not that of version 1" in verify(file + b"x", {})
    other = {"others": [{"number": 2, "hashes": proof["others"][0]["hashes"]}]}
    assert "was not verified" in verify(file, other)
    events = [{**one, "event": one["event"].replace('"number":1', '"number":9')} for one in proof["events"]]
    assert "is not what was sealed" in verify(file, {"events": events})
    origin = proof["checkpoint"]["origin"]
    before = f"{origin}\n1\n{'A' * 43}=\n\n\u2014 {origin} AAAA\n"
    assert "is from before the version" in verify(file, {}, checkpoint=before)
    wrong = f"{origin}+00000000+AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    assert "is not signed with this key" in verify(file, {}, key=wrong)
    assert "not what it should be" in verify(file, {"checkpoint": None})

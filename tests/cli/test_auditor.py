"""The commands that the documentation gives an auditor work on the demo as they are printed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest

from normata.demo.files import content_of
from normata.settings import Settings
from tests.test_demo import NORMATA, running, token_in

OPERATIONS = Path(__file__).parents[2] / "docs" / "operations.md"


@pytest.mark.long
@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("bash")), reason="the commands need curl and bash")
def test_what_an_auditor_asks_is_answered_by_the_printed_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"NORMATA_{name.upper()}", raising=False)
    [section] = re.findall(r"#### What an auditor asks\n(.*?)\n#### ", OPERATIONS.read_text("utf-8"), re.DOTALL)
    blocks = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    assert len(blocks) == 3
    url = f"sqlite:///{tmp_path / 'demo.db'}"
    with running(tmp_path, "--database", url) as (port, lines):
        script = "set -e -o pipefail\n" + "".join(blocks).replace(":8000/", f":{port}/")
        environment = os.environ | {
            "NORMATA_TOKEN": token_in(lines),
            "NORMATA_DATABASE_URL": url,
            "PATH": f"{NORMATA.parent}:{os.environ['PATH']}",
        }
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    answer = json.loads((tmp_path / "control.json").read_text("utf-8"))
    day = "2026-03-01T00:00:00.000Z"
    assessment = answer["assessment"]
    assert (assessment["coverageStatus"], assessment["ownerId"]) == ("FULL", "member-ines")
    [piece] = answer["evidence"]["items"]
    assert max(assessment["assessedAt"], piece["collectedAt"], piece["linkedAt"]) < day <= piece["validUntil"]
    content = content_of("authentication-review-2026-02.csv")
    digest = sha256(content).hexdigest()
    assert (tmp_path / "review.csv").read_bytes() == content
    assert digest in {file["sha256"] for file in piece["files"]}
    summed, verified, *found = done.stdout.splitlines()
    assert summed.startswith(digest)
    assert "match the checkpoint" in verified
    events = [json.loads(json.loads(line)["event"]) for line in found]
    uploads = [event for event in events if event["kind"] == "files"]
    assert [event["after"]["sha256"] for event in uploads] == [digest]
    before = {(event["kind"], event["action"]) for event in events if event["at"] < day}
    assert {("files", "create"), ("evidence", "create"), ("links", "create"), ("controlCoverages", "assess")} <= before
    # The printed beginning of the answer is that of the demo.
    assert all(value in section for value in (assessment["assessedAt"], piece["linkedAt"], digest[:12]))

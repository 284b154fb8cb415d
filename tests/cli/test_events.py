"""The commands for events: listing, following, exporting, and verifying without a database."""

from __future__ import annotations

import json
import signal
import stat
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from normata.core.changes.unit_of_work import Change
from normata.events.sealing import seal_all_now
from normata.records.kinds import Label
from tests.cli.commands import GAMMA, NORMATA, PATIENCE, Done, Run, bundle_file, failed
from tests.databases import change, open_url, tamper
from tests.postgres import Server
from tests.prepared import Normata
from tests.world import ALPHA, USERS


def events(normata: Run, *arguments: object) -> list[dict[str, Any]]:
    """The events that a command prints."""
    done = normata("events", *arguments)
    assert (done.code, done.err) == (0, "")
    return [json.loads(line) for line in done.out.splitlines()]


def write_something(normata: Run, folder: Path, url: str, name: str = "label") -> None:
    """Have a command change something, which it seals."""
    document = {"labels": [{"id": name, "organizationId": ALPHA, "name": name}]}
    assert normata("load", bundle_file(folder, document), "--database", url).code == 0


def test_events_name_the_command(normata: Run, folder: Path, database_url: str) -> None:
    write_something(normata, folder, database_url)
    commands: list[tuple[object, ...]] = [
        ("leave", ALPHA, "fw-sun"),
        ("adopt", ALPHA, "fw-sun"),
        ("assess", ALPHA, "sun.A.1", "NONE"),
        ("token", "create", "--user", USERS["viewer"]),
    ]
    for command in commands:
        assert normata(*command, "--database", database_url).code == 0
    so_far = events(normata, "--database", database_url)
    token = next(one["recordId"] for one in so_far if one["kind"] == "accessTokens")
    assert normata("token", "revoke", token, "--database", database_url).code == 0
    found = events(normata, "--database", database_url)
    assert [(one["command"], one["action"], one["kind"]) for one in found] == [
        ("normata load", "load", "labels"),
        ("normata leave", "leave", "frameworkAdoptions"),
        ("normata adopt", "adopt", "frameworkAdoptions"),
        ("normata assess", "assess", "controlCoverages"),
        ("normata token create", "create", "accessTokens"),
        ("normata token revoke", "revoke", "accessTokens"),
    ]
    assert all(one["userId"] is one["tokenId"] is one["address"] is None for one in found)
    of_alpha = events(normata, "alpha", "--database", database_url)
    assert of_alpha == [one for one in found if one["organizationId"] == ALPHA]
    assert normata("check", "--database", database_url).code == 0


def test_list_may_be_said(normata: Run, folder: Path, sqlite_url: str) -> None:
    write_something(normata, folder, sqlite_url)
    assert events(normata, "list", ALPHA, "--database", sqlite_url) == events(normata, "--database", sqlite_url, ALPHA)
    assert failed(normata("events", "org-none", "--database", sqlite_url)).startswith("no organization 'org-none'")


def test_the_demo_and_an_import_are_told_by_their_commands(normata: Run, folder: Path) -> None:
    table = folder / "own.csv"
    table.write_text("identifier,name\nA,One\nB,Two\n")
    assert normata("load", bundle_file(folder, GAMMA)).code == 0
    assert normata("import", table, "--organization", "org-gamma").code == 0
    found = events(normata, "org-gamma")
    assert [(one["command"], one["action"], one["kind"], one["counts"]) for one in found] == [
        ("normata load", "load", "organizations", None),
        ("normata import", "import", "organizations", found[1]["counts"]),
        ("normata import", "import", "frameworks", None),
    ]
    assert found[1]["counts"]["controls"] == {"inserted": 2, "updated": 0}


@pytest.mark.long
def test_new_events_are_followed_until_interrupted(normata: Run, folder: Path, database_url: str) -> None:
    """Each once, sealed or not yet, in the order in which they come."""
    following = Normata(
        [NORMATA, "events", ALPHA, "--follow", "--database", database_url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert following.stdout is not None
    assert following.stderr is not None
    try:
        for name in ("one", "two", "three"):
            write_something(normata, folder, database_url, name)
            assert json.loads(following.stdout.readline())["recordId"] == name
        following.send_signal(signal.SIGINT)
        rest, told = following.communicate(timeout=PATIENCE)
        assert (rest, following.returncode) == ("", 130)
        assert "Traceback" not in told
    finally:
        following.kill()
        following.wait()


@pytest.mark.long
def test_a_closed_pipe_is_no_traceback(normata: Run, folder: Path, sqlite_url: str) -> None:
    labels = [{"id": f"label-{number}", "organizationId": ALPHA, "name": "x" * 400} for number in range(500)]
    assert normata("load", bundle_file(folder, {"labels": labels}), "--database", sqlite_url).code == 0
    piped = f"'{NORMATA}' events --database '{sqlite_url}' | head -n 1"
    done = subprocess.run(["sh", "-c", piped], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == ""


# --- Proof


def test_a_log_is_verified_without_a_database(normata: Run, folder: Path, database_url: str) -> None:
    """And what was tampered with is named, by verify and by check."""
    for name in ("one", "two", "three"):
        write_something(normata, folder, database_url, name)
    options = ("--database", database_url)
    kept, log, keys = folder / "checkpoint", folder / "log.jsonl", folder / "keys"
    kept.write_text(normata("events", "checkpoint", "alpha", *options).out)
    keys.write_text(normata("events", "key", *options).out)
    key = normata("events", "key", "alpha", *options).out.strip()
    assert key.startswith(f"normata/{ALPHA}+")
    assert key in keys.read_text().splitlines()
    assert normata("events", "export", "alpha", "--output", log, *options).code == 0
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert normata("events", "export", "alpha", *options).out == log.read_text()
    for given in (key, keys):
        done = normata("events", "verify", log, kept, "--key", given)
        assert (done.code, done.out, done.err) == (0, "3 events match the checkpoint\n", "")
    assert normata("events", "verify", log, kept).err.startswith("warning: without --key")

    [_, second, _] = events(normata, "alpha", *options)
    with closing(open_url(database_url)) as database:
        tamper(database, f"UPDATE audit_event SET body = replace(body, 'two', 'too') WHERE id = '{second['id']}'")
    checked = normata("check", *options)
    assert checked.code == 1
    assert second["id"] in checked.err
    assert normata("events", "export", "alpha", "--output", log, "--force", *options).code == 0
    done = normata("events", "verify", log, kept, "--key", key)
    assert (done.code, done.out) == (1, "")
    assert second["id"] in done.err
    assert "changed" in done.err


def test_content_that_is_gone_is_no_proof(normata: Run, folder: Path, database_url: str) -> None:
    """Unless an erasure that the key has signed names it: an operator may sign one, and says why."""
    options = ("--database", database_url)
    kept, log = folder / "checkpoint", folder / "log.jsonl"
    write_something(normata, folder, database_url)
    [made] = events(normata, "alpha", *options)
    with closing(open_url(database_url)) as database:
        erasure = Change("erase", Label, ALPHA, counts={"erasedEvents": [made["id"]]})
        change(database, lambda unit: unit.publish(erasure))
        seal_all_now(database)
        tamper(database, f"UPDATE audit_event SET body = '' WHERE id = '{made['id']}'")

    def verified() -> Done:
        kept.write_text(normata("events", "checkpoint", "alpha", *options).out)
        assert normata("events", "export", "alpha", "--output", log, "--force", *options).code == 0
        return normata("events", "verify", log, kept, "--key", normata("events", "key", "alpha", *options).out.strip())

    done = verified()
    assert (done.code, done.out) == (1, "")
    assert made["id"] in done.err
    assert made["id"] in normata("check", *options).err
    assert failed(normata("events", "sign-erasures", "--reason", " ", *options), code=2).startswith(
        "a reason must have"
    )
    done = normata("events", "sign-erasures", "--reason", "made by version 0.1", *options)
    assert (done.code, done.out) == (0, f"organization {ALPHA}: 1 erased event signed\n")
    assert events(normata, "alpha", *options)[-1]["reason"] == "made by version 0.1"
    assert verified().out == "3 events match the checkpoint; of 1 the content was erased\n"
    assert normata("check", *options).code == 0
    done = normata("events", "sign-erasures", "--reason", "again", *options)
    assert done.out == "all erasures are already signed; nothing was changed\n"


def test_a_checkpoint_in_json_is_taken_too(normata: Run, folder: Path, sqlite_url: str) -> None:
    write_something(normata, folder, sqlite_url)
    options = ("--database", sqlite_url)
    kept, log = folder / "checkpoint.json", folder / "log.jsonl"
    kept.write_text(json.dumps({"note": normata("events", "checkpoint", "alpha", *options).out}))
    assert normata("events", "export", "alpha", "--output", log, *options).code == 0
    assert normata("events", "verify", log, kept).code == 0


def test_the_operators_log_is_one_of_its_own(normata: Run, folder: Path, sqlite_url: str) -> None:
    options = ("--database", sqlite_url)
    assert normata("token", "create", "--user", USERS["viewer"], *options).code == 0
    kept, log = folder / "checkpoint", folder / "log.jsonl"
    kept.write_text(normata("events", "checkpoint", "--operator", *options).out)
    assert normata("events", "export", "--operator", "--output", log, *options).code == 0
    assert normata("events", "verify", log, kept).out == "1 events match the checkpoint\n"


@pytest.mark.parametrize("command", ["export", "checkpoint"])
def test_of_several_organizations_one_has_to_be_named(normata: Run, sqlite_url: str, command: str) -> None:
    assert "name" in failed(normata("events", command, "--database", sqlite_url))


@pytest.mark.parametrize("content", ["", "nonsense", "a\nb\nc\n"])
def test_what_is_no_checkpoint_is_told(normata: Run, folder: Path, content: str) -> None:
    (folder / "log").write_text("{}")
    (folder / "checkpoint").write_text(content)
    assert failed(normata("events", "verify", "log", "checkpoint")) == "the checkpoint is not a signed note"


def test_a_file_that_is_not_there_is_told(normata: Run, folder: Path) -> None:
    del folder
    assert failed(normata("events", "verify", "log", "checkpoint")) == "checkpoint: No such file or directory"


def test_the_key_is_beside_the_file_of_the_database(normata: Run, folder: Path) -> None:
    assert normata("load", bundle_file(folder, GAMMA)).code == 0
    assert normata("events", "key").code == 0
    assert stat.S_IMODE((folder / "normata.db.event-key").stat().st_mode) == 0o600


def test_an_older_database_is_sealed_when_it_is_brought_up_to_date(
    normata: Run, postgres: Server, folder: Path
) -> None:
    """What `normata check` looks at must not depend on whether the service has run since."""
    del postgres
    assert normata("load", bundle_file(folder, GAMMA)).code == 0
    with closing(open_url("sqlite:///normata.db")) as database:
        seal_all_now(database)
    assert normata("check").code == 0

"""A client that a generator makes of the OpenAPI document can call every operation of the live server."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from urllib.parse import unquote

import pytest
from pydantic.alias_generators import to_snake

from normata.cli.new_docs import documents
from normata.identity import tokens
from normata.operations import OPERATIONS
from normata.web.operation import ChangeOperation
from normata.wiring import changes_of
from tests import world
from tests.databases import open_url
from tests.server import serving
from tests.web import documented
from tests.web.samples import sample

# What takes files as well as JSON.
FILES = [one for one in OPERATIONS if isinstance(one, ChangeOperation) and one.body_formats]
CALLS = Path(__file__).with_name("call_every_operation.py")


@pytest.fixture(scope="module")
def generator() -> Path:
    """The folder of programs of the environment that ``make test-clients`` makes for the generator."""
    named = os.environ.get("NORMATA_TEST_CLIENTS")
    assert named is not None, "set NORMATA_TEST_CLIENTS, or run `make test-clients`"
    return Path(named).absolute()


def test_every_operation(generator: Path, sqlite_url: str, tmp_path: Path) -> None:
    document, client = tmp_path / "openapi.json", tmp_path / "client"
    document.write_text(documents()["openapi.json"], encoding="utf-8")
    made = subprocess.run(
        [generator / "openapi-python-client", "generate", "--path", document, "--output-path", client],
        env=os.environ | {"PATH": f"{generator}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    # It knows no media types of files, and leaves them out where there is JSON as well.
    told = re.findall(r"(?:WARNING|Unsupported|ERROR).*", made.stdout + made.stderr)
    known = {media_type for one in FILES for media_type in one.body_formats}
    known |= {f"{one.http_method} {one.path}" for one in FILES}
    unknown = [line for line in told if not any(words in line for words in known)]
    assert unknown == [], made.stdout + made.stderr
    database = open_url(sqlite_url)
    token = changes_of(database).make_now(
        lambda unit: tokens.create(unit, email=world.USERS["admin"], scope="write", lifetime=None)
    )
    database.close()
    requests = []
    # Those that read come first: a change may take away what they are about.
    for operation in sorted(OPERATIONS, key=lambda operation: isinstance(operation, ChangeOperation)):
        made_sample = sample(operation, user="admin")
        arguments = {to_snake(name): value for name, value in made_sample.query.items()}
        if "{id}" in operation.path:
            arguments["id"] = unquote(made_sample.path.split("/")[2])
        model = operation.body.__name__ if isinstance(operation, ChangeOperation) and operation.body else None
        if operation in FILES:
            model = f"{operation.operation_id[0].upper()}{operation.operation_id[1:]}JsonBody"
        body = [model, made_sample.body] if model is not None else [None, None]
        requests.append([operation.tag, operation.operation_id, arguments, *body])
    with serving(sqlite_url) as base:
        called = subprocess.run(
            [generator / "python", CALLS, client, base, token],
            input=json.dumps(requests),
            capture_output=True,
            text=True,
            check=False,
        )
    assert called.returncode == 0, called.stderr
    answers = {name: (status, parsed) for name, status, parsed in map(json.loads, called.stdout.splitlines())}
    assert answers == {
        operation.operation_id: (
            documented.success(operation),
            operation.answer.__name__ if operation.answer else "NoneType",
        )
        for operation in OPERATIONS
    }

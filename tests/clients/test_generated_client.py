"""A client that a generator makes of the OpenAPI document can call every operation of the live server."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import get_args
from urllib.parse import unquote

import pytest
from pydantic import BaseModel, RootModel
from pydantic.alias_generators import to_snake

from normata.cli.new_docs import DOCUMENTS
from normata.core.http.operation import ChangeOperation, Operation, ReadOperation
from normata.identity.tokens import tokens
from normata.operations import OPERATIONS
from normata.wiring import changes_of
from tests import world
from tests.core.http import documented
from tests.core.http.samples import enough, harmless_first, sample
from tests.databases import change, open_url
from tests.server import serving

# What takes files as well as JSON.
FILES = [one for one in OPERATIONS if isinstance(one, ChangeOperation) and one.body_formats]
CALLS = Path(__file__).with_name("call_every_operation.py")


@pytest.fixture(scope="module")
def generator() -> Path:
    """The folder of programs of the environment that ``make test-clients`` makes for the generator."""
    named = os.environ.get("NORMATA_TEST_CLIENTS")
    assert named is not None, "set NORMATA_TEST_CLIENTS, or run `make test-clients`"
    return Path(named).absolute()


def turn(operation: Operation) -> tuple[bool, bool, int]:
    """When an operation is called: those that take away what others are about come last, the largest last of all."""
    is_change = isinstance(operation, ChangeOperation)
    ends = ("/matches/{id}/", "/members/{id}/", "/organizations/{id}/")
    return is_change, operation.method == "DELETE", ends.index(operation.path) if operation.path in ends else -1


def test_every_operation(generator: Path, sqlite_url: str, tmp_path: Path) -> None:
    document, client = tmp_path / "openapi.json", tmp_path / "client"
    document.write_text(DOCUMENTS["openapi.json"](), encoding="utf-8")
    made = subprocess.run(
        [generator / "openapi-python-client", "generate", "--path", document, "--output-path", client],
        env=os.environ | {"PATH": f"{generator}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    # It knows no media types of files, and leaves them out where there is JSON or a form as well.
    told = re.findall(r"(?:WARNING|Unsupported|ERROR).*", made.stdout + made.stderr)
    known = {media_type for one in FILES for media_type in one.body_formats}
    known |= {f"{one.http_method} {one.path}" for one in FILES}
    unknown = [line for line in told if not any(words in line for words in known)]
    assert unknown == [], made.stdout + made.stderr
    database = open_url(sqlite_url)
    changes = changes_of(database)

    change(database, world.remember)

    def token_of(user: str) -> str:
        return changes.make_now(lambda unit: tokens.create(unit, email=world.USERS[user], scope="admin", lifetime=None))

    made_tokens = {user: token_of(user) for user in {enough(operation) for operation in OPERATIONS} | {"owner"}}
    database.close()
    requests = []
    for operation in sorted(harmless_first(OPERATIONS), key=turn):
        user = enough(operation) if operation.authority != "organization" else "owner"
        made_sample = sample(operation, user=user)
        arguments = {to_snake(name): value for name, value in made_sample.query.items()}
        if "{id}" in operation.path:
            arguments["id"] = unquote(made_sample.path.split("/")[operation.path.split("/").index("{id}")])
        model = operation.body.__name__ if isinstance(operation, ChangeOperation) and operation.body else None
        if operation in FILES:
            model = f"{operation.operation_id[0].upper()}{operation.operation_id[1:]}JsonBody"
        body = [model, made_sample.body] if model is not None else [None, None]
        if isinstance(operation, ChangeOperation) and operation.body_stream is not None:
            body = [None, "The bytes of a file"]
        requests.append([operation.tag, operation.operation_id, arguments, *body, made_tokens[user]])
        if operation in FILES:  # as a file in a form, too
            form = [f"{str(model).removesuffix('JsonBody')}FilesBody", "identifier,name\n1,Berths\n"]
            named = arguments | {"name": "Docks"}
            requests.append([operation.tag, operation.operation_id, named, *form, made_tokens[user]])
    with serving(sqlite_url) as base:
        called = subprocess.run(
            [generator / "python", CALLS, client, base],
            input=json.dumps(requests),
            capture_output=True,
            text=True,
            check=False,
        )
    assert called.returncode == 0, called.stderr
    lines = [json.loads(line) for line in called.stdout.splitlines()]
    assert len(lines) == len(OPERATIONS) + len(FILES)
    assert all((status, parsed) == (200, "ImportResult") for name, status, parsed in lines if name.startswith("import"))
    answers = {name: (status, parsed) for name, status, parsed in lines}
    assert answers == {
        operation.operation_id: (
            documented.success(operation),
            "File" if isinstance(operation, ReadOperation) and operation.sends_file else _parsed(operation.answer),
        )
        for operation in OPERATIONS
    }


def _parsed(answer: type[BaseModel] | None) -> str:
    """The name of the model that an answer is read as: of several, the first one is what the samples ask for."""
    if answer is not None and issubclass(answer, RootModel):
        answer = get_args(answer.model_fields["root"].annotation)[0]
    return "NoneType" if answer is None else answer.__name__

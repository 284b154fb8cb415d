"""A client that a generator makes of the OpenAPI document can call every operation of the live server."""

from __future__ import annotations

import builtins
import json
import os
import re
import shutil
import subprocess
from keyword import iskeyword
from pathlib import Path
from typing import get_args
from urllib.parse import unquote

import pytest
from pydantic import BaseModel, RootModel
from pydantic.alias_generators import to_snake

from normata.catalogs.operations import ImportResult
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
# Those of their samples are there already.
TABLES = {
    **{one.operation_id: "identifier,name\n1,Berths\n" for one in FILES if one.answer is ImportResult},
    "importEntitlementReviewItems": "person,system,entitlement\nJo,Mail,Reader\n",
}
# Refused once another step was taken, so each is called in a world of its own.
STEPS = frozenset(
    (
        *("addEntitlementReviewItems", "importEntitlementReviewItems", "decideEntitlementReviewItems"),
        *("finishEntitlementReview", "putRiskReviewRecurrence", "reviewVendorAssessment", "changePolicy"),
        *("deleteEntitlementReviewRecurrence", "deleteRiskReviewRecurrence", "deleteExternalId", "removeWebhook"),
    )
)
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


def argument(name: str) -> str:
    """What the generator calls a parameter: it changes keywords and names of built-in functions, but for ``id``."""
    is_taken = iskeyword(name) or (name in dir(builtins) and name != "id")
    return f"{to_snake(name)}_" if is_taken else to_snake(name)


def copy_of(url: str, folder: Path) -> str:
    """A copy of a closed database in a new folder."""
    folder.mkdir()
    path = Path(url.removeprefix("sqlite:///"))
    for file in path.parent.glob(f"{path.name}*"):
        (shutil.copytree if file.is_dir() else shutil.copy)(file, folder / file.name)
    return f"sqlite:///{folder / path.name}"


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
        arguments = {argument(name): value for name, value in made_sample.query.items()}
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
            is_catalog = operation.answer is ImportResult
            table = TABLES.get(operation.operation_id) or made_sample.body["table"]
            form = [f"{str(model).removesuffix('JsonBody')}FilesBody", table]
            named = arguments | ({"name": "Docks"} if is_catalog else {})
            requests.append([operation.tag, operation.operation_id, named, *form, made_tokens[user]])
    alone = [[request] for request in requests if request[1] in STEPS]
    urls = [copy_of(sqlite_url, tmp_path / f"alone-{number}") for number in range(len(alone))]
    together = [request for request in requests if request[1] not in STEPS]
    lines = []
    for url, of_one_world in zip([sqlite_url, *urls], [together, *alone], strict=True):
        with serving(url) as base:
            called = subprocess.run(
                [generator / "python", CALLS, client, base],
                input=json.dumps(of_one_world),
                capture_output=True,
                text=True,
                check=False,
            )
        assert called.returncode == 0, called.stderr
        lines += [json.loads(line) for line in called.stdout.splitlines()]
    assert len(lines) == len(OPERATIONS) + len(FILES)
    imports = {parsed: status for name, status, parsed in lines if name.startswith("import")}
    assert imports == {"ImportResult": 200, "EntitlementReviewItems": 200, "RegisterResult": 200}
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

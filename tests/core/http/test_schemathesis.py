"""Schemathesis, with all its checks, against the running server: what OpenAPI says holds for whatever is sent."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest

from normata.core.http.operation import ChangeOperation, ListOperation, Operation, ReadOperation
from normata.core.schema.paging import PastQuery
from normata.operations import OPERATIONS
from normata.records.base import Restorable
from normata.records.kinds import IntegrationCheck, Policy, Task
from tests.core.http.samples import sample, takes_body, takes_query
from tests.listing import LISTS
from tests.served import served
from tests.server import PLAIN, serving
from tests.world import ALPHA


def configuration(token: str, chosen: Sequence[Operation], *, real: bool) -> str:
    """A header for every request and, where ``real``, an organization and ids that exist.

    It is of the chosen operations alone: Schemathesis looks through all of it many times for each request.
    """
    lines = [f'headers = {{ Authorization = "Bearer {token}" }}']
    for operation in chosen:
        found = []
        if real and takes_query(operation):
            found.append(f'"query.organizationId" = "{ALPHA}"')
        if real and "{id}" in operation.path:
            found.append(f'"path.id" = "{sample(operation, user="admin").row_id}"')
        checks = ""
        if operation.operation_id in NAMING or isinstance(operation, ListOperation):
            # A list refuses cursors that it has not made, and most of them deep pages.
            statuses = ["2xx", "3xx", "400", "401", "403", "404", "409"]
            checks = f"\nchecks.positive_data_acceptance.expected-statuses = {statuses}"
        if isinstance(operation, ChangeOperation):
            # What its schema takes may break a rule that no schema can tell, come with a key that came before, name
            # another state, or be a file of another type.
            refused = {
                "400": operation.has_rules,
                "412": operation.is_conditional,
                "415": bool(operation.body_formats),
                "422": operation.takes_key,
            }
            statuses = ["2xx", "401", "403", "404", "409", *(status for status, holds in refused.items() if holds)]
            checks = f"\nchecks.positive_data_acceptance.expected-statuses = {statuses}"
            # What its schema refuses since it is long may be longer than a body.
            refusals = ["400", "401", "403", "404", "405", "406", "409", "413", "415", "422", "428", "429", "5xx"]
            checks += f"\nchecks.negative_data_rejection.expected-statuses = {refusals}"
        lines.append(
            f'[[operations]]\ninclude-operation-id = "{operation.operation_id}"\n'
            f"parameters = {{ {', '.join(found)} }}{checks}"
        )
    return "\n".join(lines)


# Reads whose query names what must exist, or a moment that must be known.
NAMING = {
    *("previewAdoption", "compareSoaVersion", "getSoaVersion", "getSoaVersionProof"),
    *("getCoverageHistory", "getCoverageHistories", "listCoverageChanges"),
    *(one.operation_id for one in OPERATIONS if isinstance(one, ReadOperation) and issubclass(one.query, PastQuery)),
}

# All kinds have the same operations, made by the same code. These three have all sorts of columns, documents, and a
# restore that answers null.
OTHER_KINDS = {kind.path for kind in Restorable.kinds if kind not in (Task, Policy, IntegrationCheck)}
CHOSEN = [one for one in OPERATIONS if one.path.split("/")[1] not in OTHER_KINDS]
# Changes differ in their bodies; what an id can be, they all read alike.
CHANGES = [next(one for one in CHOSEN if one not in LISTS and takes_body(one) is body) for body in (False, True)]


def runs() -> Iterator[Any]:
    """The operations of each run, on what exists or on anything; and its phases.

    To try all takes two minutes of a processor, which is for `make test-schemathesis`. Other runs try some of them,
    with the requests that follow from the schema: the other tests of this folder look at every operation.
    """
    if os.environ.get("NORMATA_TEST_SCHEMATHESIS") == "all":
        every = "examples,coverage,fuzzing,stateful"
        # Those of a path stay together, since one may be asked with what another answers.
        for part in (CHOSEN[start : start + 30] for start in range(0, len(CHOSEN), 30)):
            yield pytest.param("sqlite", part, True, every, id=f"{part[0].operation_id} and on, on SQLite")
        some = [*(one for one in LISTS if one in CHOSEN), *CHANGES]
        yield pytest.param("postgresql", some, False, every, id="some operations on anything, on PostgreSQL")
        return
    yield pytest.param("sqlite", CHOSEN[::36], True, "examples,coverage", id="some operations on SQLite")


@pytest.mark.long
@pytest.mark.parametrize(("database_url", "chosen", "real", "phases"), [*runs()], indirect=["database_url"])
def test_holds_against_anything_sent(
    database_url: str, tmp_path: Path, chosen: Sequence[Operation], real: bool, phases: str
) -> None:
    with served(database_url) as service:
        token = service.token("admin")
    file = tmp_path / "schemathesis.toml"
    file.write_text(configuration(token, chosen, real=real))
    # It sends more bad tokens than the service takes from one address.
    with serving(database_url, settings={"NORMATA_BAD_TOKEN_LIMIT": "0"}) as base:
        # In a checkout the first request has the document made, which takes longer than Schemathesis waits.
        assert httpx2.get(f"{base}/openapi.json", timeout=120, verify=PLAIN).status_code == 200
        finished = subprocess.run(
            [
                Path(sys.executable).with_name("schemathesis"),
                f"--config-file={file}",
                "run",
                f"{base}/openapi.json",
                f"--phases={phases}",
                "--checks=all",
                # To delete an adoption or a statement leaves the framework or the control, and a dry run leaves all.
                "--exclude-checks=use_after_free",
                "--max-examples=2",
                "--seed=1",
                "--no-color",
                "--warnings=off",  # nobody reads them where all checks hold, and to find them takes a sixth of the time
                *(f"--include-operation-id={operation.operation_id}" for operation in chosen),
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    assert finished.returncode == 0, finished.stdout[-30_000:] + finished.stderr[-2_000:]
    assert f"{len(chosen)} selected / {len(OPERATIONS)} total" in finished.stdout

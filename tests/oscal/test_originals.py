"""Documents of OSCAL that leave as they came: the catalogs of frameworks and the profiles of baselines."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from normata.bundle.dumping import dump
from normata.catalogs.importing import import_for_all
from normata.catalogs.reading import Input, read_inputs
from normata.cli.check import faults
from normata.core.changes.source import FaultyInput
from normata.core.db.types import now
from normata.erasure.erasing import erase
from normata.erasure.person import ErasureRequest
from normata.events.keys import Signer
from normata.frameworks import source_model
from normata.frameworks.source_model import SourceDocument
from normata.operations import SECURITY
from normata.settings import Settings
from tests import stored
from tests.catalogs.oscal_documents import UUID, catalog, control
from tests.catalogs.test_oscal_profile import LOW, profile, selection
from tests.databases import change, on_both
from tests.files.rows import contents
from tests.served import Served, served
from tests.world import ALPHA, BETA, USERS

# White space, the order of members, escapes and the byte-order mark are what would get lost.
CATALOG = "\ufeff\r\n" + json.dumps(catalog(control("wt-1"), control("wt-2")), indent=3, ensure_ascii=True) + "\r\n "
PROFILE = yaml.safe_dump(profile(selection("wt-1"))).replace("\n", "\r\n")


@pytest.fixture
def service(database_url: str) -> Iterator[Served]:
    """The application over a world of the test's own."""
    with served(database_url) as opened:
        yield opened


def import_own(service: Served, content: str, media_type: str = "application/json") -> Any:
    """Import a document as alpha's own: the answer."""
    headers = service.bearer("admin") | {"Content-Type": media_type}
    answer = service.client.post(f"/imports/?organizationId={ALPHA}", content=content.encode(), headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


def publish(service: Served, *documents: str) -> None:
    """Import documents for all organizations, as the command does."""
    contents_of = [one.encode() for one in documents]
    published = read_inputs([Input(f"{len(one)}", "", lambda one=one: one) for one in contents_of])  # type: ignore[misc]
    change(service.database, lambda unit: import_for_all(unit, published, skip_unknown=False))


def original(service: Served, framework: str = UUID, user: str = "viewer", **query: str) -> Any:
    """The answer to the request for a document."""
    organization = BETA if user == "foreigner" else ALPHA
    return service.client.get(
        f"/frameworks/{framework}/oscal/",
        params={"organizationId": organization, "original": "true"} | query,
        headers=service.bearer(user),
    )


def rows(service: Served) -> list[dict[str, Any]]:
    """What is stored of documents."""
    return stored.rows(service.database, SourceDocument)


def imports(service: Served) -> list[Any]:
    """The events of imports, the newest first."""
    service.wait_for_seals()
    return service.listing("/events/", "owner").items(action="import")


@on_both
def test_an_imported_document_leaves_as_it_came(service: Served) -> None:
    [framework] = import_own(service, CATALOG)["frameworkIds"]
    answer = original(service, framework)
    assert answer.content == CATALOG.encode()
    assert answer.headers["content-type"] == "application/json"
    named = original(service, framework, format="oscal")
    assert (named.content, named.headers["content-type"]) == (CATALOG.encode(), "application/oscal+json")
    assert original(service, framework, user="foreigner").status_code == 404

    # The same again is no change. A newer version takes its place.
    [before] = rows(service)
    events = imports(service)
    import_own(service, CATALOG)
    assert (rows(service), imports(service)) == ([before], events)
    import_own(service, newer := CATALOG.strip("\ufeff \r\n"))
    assert original(service, framework).content == newer.encode()
    [after] = rows(service)
    assert (after["id"], after["size"]) == (before["id"], len(newer))
    last = next(event for event in imports(service) if event["kind"] == "sourceDocuments")
    assert last["userId"] == "user-admin"
    assert last["after"]["sha256"] == after["sha256"]
    assert "content" not in last["after"]


@on_both
def test_a_profile_is_the_original_of_its_baseline(service: Served) -> None:
    publish(service, CATALOG, PROFILE)
    assert original(service, user="foreigner").content == CATALOG.encode()
    answer = original(service, baseline=LOW)
    assert (answer.content, answer.headers["content-type"]) == (PROFILE.encode(), "application/yaml")
    assert ".yaml" in answer.headers["content-disposition"]
    assert original(service, baseline="High").status_code == 404
    flow = yaml.safe_dump(catalog(control("wt-1")), default_flow_style=True)  # it begins with a bracket, as JSON does
    publish(service, flow)
    assert original(service).headers["content-type"] == "application/yaml"

    # A profile that an organization imports for itself is its own.
    own = yaml.safe_dump(profile(selection("wt-2"), title="Own", uuid="33333333-3333-4333-8333-333333333333"))
    import_own(service, own, "application/yaml")
    assert original(service, baseline="Own").content == own.encode()
    assert original(service, user="foreigner", baseline="Own").status_code == 404
    assert {(row["baseline_id"] == LOW, row["organization_id"]) for row in rows(service) if row["baseline_id"]} == {
        (True, None),
        (False, ALPHA),
    }


def test_a_dump_has_the_documents(service: Served) -> None:
    [framework] = import_own(service, CATALOG)["frameworkIds"]
    file = io.StringIO()
    service.database.read_now(lambda transaction: dump(transaction, ALPHA, file))
    bundle = json.loads(file.getvalue())
    [row] = bundle["sourceDocuments"]
    service.sql("DELETE FROM source_document")
    assert original(service, framework).status_code == 404
    service.load({"sourceDocuments": [row]})
    assert original(service, framework).content == CATALOG.encode()
    signer = Signer(Settings().event_key_file)
    found = service.database.read_now(lambda transaction: list(faults(service.database, transaction, SECURITY, signer)))
    assert not [fault for fault in found if "imported from" in fault]
    service.sql("UPDATE source_document SET content = 'x'")
    found = service.database.read_now(lambda transaction: list(faults(service.database, transaction, SECURITY, signer)))
    assert [fault for fault in found if "imported from" in fault]
    with pytest.raises(FaultyInput, match="1 fault"):
        service.load({"sourceDocuments": [row | {"content": row["content"] + " "}]})


def test_a_framework_without_a_document_says_why(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = original(service, "fw-own")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert "was not imported as OSCAL" in answer.json()["detail"]
    monkeypatch.setattr("normata.catalogs.sources.LARGEST", 100)
    done = import_own(service, CATALOG)
    assert {"name": "originals that are too large to keep", "count": 1} in done["omitted"]
    assert original(service, done["frameworkIds"][0]).status_code == 404
    assert source_model.LARGEST == 16 * 2**20


@pytest.mark.parametrize("query", [{"model": "poam"}, {"asOf": now()}, {"original": "false", "baseline": "Low"}])
def test_an_original_has_no_other_form(service: Served, query: dict[str, str]) -> None:
    assert original(service, "fw-own", **query).status_code == 400


PARTY = {"uuid": "44444444-4444-4444-8444-444444444444", "type": "person", "name": "Zo\u00eb O'Brien-\u00d6l\u00e7er"}


@pytest.mark.parametrize(
    "written",
    [
        json.dumps,
        lambda document: "\ufeff" + json.dumps(document),
        lambda document: json.dumps(document, ensure_ascii=False),
        yaml.safe_dump,
        lambda document: yaml.safe_dump(document, allow_unicode=True, default_style="'"),
        lambda document: yaml.safe_dump(document, default_flow_style=True, width=20),
        lambda document: (
            yaml.safe_dump(document | {"catalog": catalog(control("wt-1"))["catalog"]}) + f"# {PARTY['name']}\n"
        ),
    ],
)
def test_a_document_goes_with_a_person_whom_it_names(service: Served, written: Callable[[Any], str]) -> None:
    document = catalog(control("wt-1"))
    document["catalog"]["metadata"]["parties"] = [PARTY]
    content = written(document)
    kind = "json" if content[0] in "\ufeff{" else "yaml"
    [framework] = import_own(service, content, f"application/{kind}")["frameworkIds"]
    assert original(service, framework).status_code == 200
    request, signer = ErasureRequest(USERS["viewer"], also=[PARTY["name"]]), Signer(Settings().event_key_file)
    change(service.database, lambda unit: erase(unit, request, signer, contents()))
    assert original(service, framework, user="editor").status_code == 404

"""Dumping: all of one organization, nothing of another, and the same again after a load."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from normata.bundle import loading, reading
from normata.bundle.arrays import ARRAYS, HISTORY, OPERATORS_OWN
from normata.bundle.dumping import dump
from normata.cli import demo
from normata.core.changes.source import FaultyInput
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.database import Database
from normata.core.db.transaction import Transaction
from normata.core.schema.wire import wire_names
from normata.coverage.recompute import stored_coverage
from normata.demo.files import ORGANIZATION
from normata.files.opening import open_store
from normata.identity import preferences
from normata.identity.model import User
from normata.identity.tokens import tokens
from normata.records.base import Restorable
from normata.settings import Settings
from tests import stored, world
from tests.databases import build, change, migrate, open_url
from tests.oscal.rows import bare_document
from tests.world import ALPHA, BETA

pytestmark = pytest.mark.long

# Each database is dumped from once, and loaded into once; between two of the same sort there is no other difference.
across = pytest.mark.parametrize(
    ("database_url", "empty_url"), [("sqlite", "postgresql"), ("postgresql", "sqlite")], indirect=True
)


def text_of(transaction: Transaction, organization_id: str = ALPHA) -> str:
    file = io.StringIO()
    dump(transaction, organization_id, file)
    return file.getvalue()


def dumped(database: Database, organization_id: str = ALPHA) -> str:
    return database.read_now(lambda transaction: text_of(transaction, organization_id))


def load_file(database: Database, path: Path) -> None:
    change(database, lambda unit: loading.load(unit, reading.read([path])))


@pytest.fixture(scope="module")
def demo_database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    database = open_url(f"sqlite:///{tmp_path_factory.mktemp('demo') / 'demo.db'}", create=True)
    migrate(database)
    demo.fill(database, lambda *_: None, open_store(Settings()))
    yield database
    database.close()


@across
def test_preferences_of_people_are_dumped_and_loaded(database: Database, empty: Database, tmp_path: Path) -> None:
    wanted = {"time_zone": "Asia/Kolkata", "date_format": "YEAR_MONTH_DAY", "theme": "DARK"}
    change(database, lambda unit: preferences.change(unit, "user-editor", wanted))
    path = tmp_path / "dump.json"
    path.write_text(dumped(database), encoding="utf-8")
    load_file(empty, path)
    row = stored.row(empty, User, "user-editor")
    assert {name: row[name] for name in wanted} == wanted


@pytest.mark.parametrize("organization_id", [ALPHA, BETA])
def test_a_dump_loads_into_an_empty_database_and_dumps_the_same(
    database: Database, empty: Database, tmp_path: Path, organization_id: str
) -> None:
    path = tmp_path / "dump.json"
    first = dumped(database, organization_id)
    path.write_text(first, encoding="utf-8")
    load_file(empty, path)
    assert dumped(empty, organization_id) == first


def test_the_demo_dumped_and_loaded_dumps_the_same(demo_database: Database, empty: Database, tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    first = dumped(demo_database, ORGANIZATION)
    path.write_text(first, encoding="utf-8")
    load_file(empty, path)
    assert dumped(empty, ORGANIZATION) == first


def test_loading_a_dump_where_it_came_from_changes_nothing(database: Database, tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    path.write_text(dumped(database), encoding="utf-8")
    before = world.contents(database)
    load_file(database, path)
    assert world.contents(database) == before


@across
def test_two_organizations_dumped_and_loaded_one_after_the_other(
    database: Database, empty: Database, tmp_path: Path
) -> None:
    """The frameworks that both adopted come twice, and are the same."""
    world.load(database, {"frameworkAdoptions": [{"id": "a", "organizationId": BETA, "frameworkId": "fw-sun"}]})
    for organization_id in (ALPHA, BETA):
        path = tmp_path / f"{organization_id}.json"
        path.write_text(dumped(database, organization_id), encoding="utf-8")
        load_file(empty, path)
    assert [dumped(empty, organization_id) for organization_id in (ALPHA, BETA)] == [
        dumped(database, organization_id) for organization_id in (ALPHA, BETA)
    ]


OWN_ARRAYS = [*(array for array, table in ARRAYS.items() if table not in OPERATORS_OWN), HISTORY]


MATCH = {"id": "of-document", "sourceControlId": "sun.A.2", "targetControlId": "moon.A.2", "matchLevel": "PARTIAL"}
# What a dump has that the world does not.
MORE: dict[str, list[dict[str, Any]]] = {
    "controlWordings": [
        {
            "id": "wording-sun",
            "controlId": "sun.A.2",
            "identifier": "A.2",
            "name": "The sun is watched",
            "description": "Before noon.",
            "version": "1",
            "validFrom": "2025-01-01T00:00:00.000Z",
            "replacedAt": "2025-06-01T00:00:00.000Z",
            "isEditorial": True,
            "staleSince": "2025-06-01T00:00:00.000Z",
        }
    ],
    "baselines": [{"id": "base-sun", "frameworkId": "fw-sun", "name": "Morning", "description": "Before noon."}],
    "baselineControls": [{"id": "selected", "baselineId": "base-sun", "controlId": "sun.A.2"}],
    "sourceDocuments": [bare_document("profile-sun", "fw-sun")["sourceDocuments"] | {"baselineId": "base-sun"}],
    "mappingDocuments": [{"id": "doc-sun", "document": "urn:sun:map", "name": "Sun to moon", "version": "2"}],
    "controlMatches": [MATCH | {"mappingDocumentId": "doc-sun", "rationale": "semantic", "strength": "8"}],
    "setAsideMatches": [
        {"id": "aside", "organizationId": ALPHA, "matchId": "of-document", "justification": "We read it differently."}
    ],
}


def test_every_array_is_there_with_every_field_of_every_row(
    database: Database, empty: Database, tmp_path: Path
) -> None:
    world.load(database, MORE)
    path = tmp_path / "dumped.json"
    path.write_text(dumped(database), encoding="utf-8")
    load_file(empty, path)
    assert dumped(empty) == dumped(database)
    document = json.loads(dumped(database))
    assert list(document) == OWN_ARRAYS
    for array, items in document.items():
        assert items, f"the world has rows for {array}"
        for item in items:
            assert array == HISTORY or list(item) == list(wire_names(ARRAYS[array]).values())


def test_nothing_of_another_organization_is_in_it(database: Database) -> None:
    text = dumped(database)
    for foreign in (BETA, "foreign", "fw-star", "fw-old", "star.A", "nobody"):
        assert foreign not in text
    for shared in ("fw-sun", "fw-moon", "fw-own", "sun.A.1->moon.A.1", "moon.A.1->own.A.2"):
        assert json.dumps(shared) in text


def test_tokens_and_audit_events_stay_behind(database: Database, client: Any, bearer: Any) -> None:
    kind = Restorable.kinds[0]
    answer = client.post(f"/{kind.path}/{world.record_id(kind, 'archived')}/restore/", headers=bearer("editor"))
    assert answer.status_code == 200
    hidden = tokens.digest(bearer("editor")["Authorization"].removeprefix("Bearer "))
    text = dumped(database)
    assert hidden not in text
    assert answer.headers["X-Request-Id"] not in text
    assert list(json.loads(text)) == OWN_ARRAYS


@across
@pytest.mark.parametrize(
    ("document", "brings"),
    [
        (
            {"audits": [{"id": "x", "organizationId": ALPHA, "name": "A", "frameworkId": "fw-star"}]},
            {"fw-star"},
        ),
        (
            {"auditItems": [{"id": "x", "organizationId": ALPHA, "name": "F", "controlId": "star.A.3"}]},
            {"fw-star", "star.A.3"},
        ),
        (
            {
                "controlCoverages": [
                    {"id": "x", "organizationId": ALPHA, "controlId": "star.A.3", "coverageStatus": "FULL"}
                ]
            },
            {"fw-star", "star.A.3", "star.A.4->moon.A.4"},
        ),
        (
            {"notifications": [{"id": "x", "organizationId": ALPHA, "userId": "user-nobody"}]},
            {"user-nobody"},
        ),
    ],
)
def test_what_a_row_refers_to_comes_along(
    database: Database, empty: Database, tmp_path: Path, document: dict[str, Any], brings: set[str]
) -> None:
    world.load(database, document)
    path = tmp_path / "dump.json"
    first = dumped(database)
    path.write_text(first, encoding="utf-8")
    assert all(json.dumps(name) in first for name in brings)
    load_file(empty, path)
    assert dumped(empty) == first


def test_a_kind_that_is_added_dumps_with_what_it_refers_to(database_url: str, tmp_path: Path) -> None:
    """Nothing but its class says that an exemption refers to a control."""
    target = f"sqlite:///{tmp_path / 'target.db'}"
    build(target, with_world=False)
    done = subprocess.run(
        [sys.executable, "-m", "tests.bundle.exemption", database_url, target],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, second = json.loads(done.stdout)
    document = json.loads(first)
    [exemption] = document["exemptions"]
    assert (exemption["slug"], exemption["shortId"], exemption["controlId"]) == ("not-here", 1, "star.A.3")
    assert "star.A.3" in {control["id"] for control in document["controls"]}
    assert second == first


EXOTIC = [
    "🚲 \U0010ffff",
    "a\u2028b\u2029c\x85",
    '"quoted" \\ / \'',
    "tab\t\r\nline\x1b\x7f",
    "ÅÅ\u200f\ufeff",
    "</script>",
]


@across
def test_exotic_text_survives(database: Database, empty: Database, tmp_path: Path) -> None:
    rows = [
        {"id": f"x{number}", "organizationId": ALPHA, "title": text, "content": {text: [text]}}
        for number, text in enumerate(EXOTIC)
    ]
    world.load(database, {"policies": rows})
    path = tmp_path / "dump.json"
    path.write_text(dumped(database), encoding="utf-8")
    load_file(empty, path)
    kept = {item["id"]: item for item in json.loads(dumped(empty))["policies"]}
    assert [(kept[row["id"]]["title"], kept[row["id"]]["content"]) for row in rows] == [
        (text, {text: [text]}) for text in EXOTIC
    ]


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=30)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
CONTENT = st.recursive(
    st.none() | st.booleans() | st.integers() | FINITE | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
RATING = st.none() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(-(2**53) + 1, 2**53 - 1)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(title=TEXT, content=CONTENT, rating=RATING)
def test_any_text_content_and_number_dumps_the_same_again(
    empty: Database, tmp_path: Path, title: str, content: Any, rating: float | None
) -> None:
    document = {
        "organizations": [{"id": ALPHA, "name": "Alpha"}],
        "policies": [{"id": "p", "organizationId": ALPHA, "title": title, "content": content}],
        "assets": [{"id": "a", "organizationId": ALPHA, "name": title, "confidentialityRating": rating}],
    }
    path = tmp_path / "document.json"
    path.write_text(json.dumps(document), encoding="utf-8")

    def there_and_back(unit: UnitOfWork) -> None:
        assert text_of(unit).count("[]") == len(OWN_ARRAYS)
        loading.load(unit, reading.read([path]))
        raise Dumped(text_of(unit))

    first = _dump_and_undo(empty, there_and_back)
    path.write_text(first, encoding="utf-8")
    assert _dump_and_undo(empty, there_and_back) == first
    kept = json.loads(first)
    assert kept["policies"][0]["title"] == kept["assets"][0]["name"] == title
    assert json.dumps(kept["policies"][0]["content"]) == json.dumps(content)
    assert kept["assets"][0]["confidentialityRating"] == rating


class Dumped(Exception):
    """Carries a dump out of a transaction that is rolled back."""


def _dump_and_undo(database: Database, work: Callable[[UnitOfWork], None]) -> str:
    with pytest.raises(Dumped) as caught:
        change(database, work)
    return str(caught.value.args[0])


@pytest.mark.parametrize("written", ["1e400", "-1e400", "1" + "0" * 5_000])
def test_a_number_that_cannot_be_written_again_is_refused(database: Database, tmp_path: Path, written: str) -> None:
    """It is either refused, or kept whole: never stored as something that a dump cannot say."""
    path = tmp_path / "document.json"
    policy = '{"id": "p", "organizationId": "org-alpha", "title": "P", "content": {"n": NUMBER}}'
    path.write_text('{"policies": [POLICY]}'.replace("POLICY", policy).replace("NUMBER", written))
    try:
        load_file(database, path)
    except FaultyInput:
        return
    assert f'"n": {written}' in dumped(database)


def test_numbers_leave_as_they_came(database: Database) -> None:
    ratings = {"confidentialityRating": 3, "integrityRating": 2.5, "availabilityRating": 1000.0}
    world.load(database, {"assets": [{"id": "x", "organizationId": ALPHA, "name": "A"} | ratings]})
    text = dumped(database)
    assert '"confidentialityRating": 3, "integrityRating": 2.5, "availabilityRating": 1000}' in text.replace(
        ', "createdAt"', "}"
    )


@across
def test_the_catalog_order_survives(database: Database, empty: Database, tmp_path: Path) -> None:
    names = ["c", "a", "b"]
    world.load(
        database,
        {
            "frameworks": [{"id": "f", "organizationId": ALPHA, "name": "F"}],
            "controls": [{"id": name, "frameworkId": "f", "name": name} for name in names],
        },
    )
    path = tmp_path / "dump.json"
    path.write_text(dumped(database), encoding="utf-8")
    load_file(empty, path)
    controls = json.loads(dumped(empty))["controls"]
    assert [control["id"] for control in controls if control["frameworkId"] == "f"] == names


@across
def test_coverage_is_computed_again_from_a_dump(database: Database, empty: Database, tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    path.write_text(dumped(database), encoding="utf-8")
    load_file(empty, path)
    here, there = (
        opened.read_now(lambda transaction: stored_coverage(transaction, ALPHA)) for opened in (database, empty)
    )
    assert there == here
    assert len(here) == 39

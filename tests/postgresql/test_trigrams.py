"""The index of trigrams on a server that has `pg_trgm`: whom it serves, what makes it, and what `check` says of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any, cast

import pytest
from sqlalchemy import text

from normata.core.db.database import Database
from normata.core.db.transaction import NO_TENANT, NotPermitted, Statement, TenantScope, Transaction, Work
from normata.core.db.trigrams import HAS_TRIGRAMS, NO_HITS, Hits, texts_of
from normata.operations import SECURITY
from normata.records.search.indexing import INDEXING
from normata.tables import Table
from tests.core.db.sessions import Service, session
from tests.databases import migrate, open_url
from tests.postgresql.row_level import IN_ALPHA, IN_BETA
from tests.world import ALPHA, BETA

IN_BOTH = TenantScope((ALPHA, BETA), (ALPHA, BETA))
TABLES = [name for name, table in Table.metadata.tables.items() if HAS_TRIGRAMS in table.info]
_ADD = (
    'INSERT INTO task (id, organization_id, slug, short_id, title, "order", type, status, priority, created_at,'
    " updated_at, search_text) VALUES ('{0}', '{1}', '{0}', {2}, 'x', 0, 'x', 'TODO', 'x', now(), now(), '{3}')"
)


@pytest.fixture
def database(trigrams_url: str) -> Iterator[Database]:
    with closing(open_url(trigrams_url)) as opened:
        yield opened


@pytest.fixture
def service(trigrams_url: str) -> Iterator[Service]:
    opened = Service(trigrams_url)
    yield opened
    opened.close()


def faults(database: Database) -> list[str]:
    return database.read_now(lambda transaction: list(database.faults(transaction, Table.metadata, SECURITY)))


def run(database: Database, *statements: str) -> None:
    database.alter_now(lambda connection: [connection.exec_driver_sql(one) for one in statements])


def hits(service: Service, scope: TenantScope, organization: str, *words: str) -> Hits:
    return service.read(lambda transaction: transaction.hits(words, organization, ["task"]), scope)


def test_the_function_serves_only_whom_the_policies_serve(database: Database, service: Service) -> None:
    run(database, _ADD.format("ours", ALPHA, 900, "zyxwvut"), _ADD.format("theirs", BETA, 901, r"zyxwvut \secret"))
    assert hits(service, IN_ALPHA, ALPHA, "zyxwvut") == Hits({"task": json.dumps(["ours"])})
    assert hits(service, IN_BETA, BETA, "zyxwvut") == Hits({"task": json.dumps(["theirs"])})
    for scope, organization in ((IN_ALPHA, BETA), (NO_TENANT, ALPHA), (IN_ALPHA, ""), (IN_ALPHA, "%")):
        assert hits(service, scope, organization, "zyxwvut") == NO_HITS
    # A pattern that ends with its escape character is an error for a text that has the rest.
    for word in ("zyx\\", "zyxwvut%", "z_xwvut", "zyx' OR true --"):
        assert hits(service, IN_ALPHA, ALPHA, word) == Hits({"task": "[]"})


def test_the_service_reads_and_writes_no_texts_past_the_function(service: Service) -> None:
    for table in TABLES:
        for statement in (f"SELECT * FROM {texts_of(table)}", f"DELETE FROM {texts_of(table)}"):
            with pytest.raises(NotPermitted):
                service.write(_executing(statement), IN_ALPHA)


def _executing(statement: str) -> Work[Any]:
    return lambda transaction: transaction.rows(cast("Statement", text(statement)))


def test_new_texts_are_found_before_they_are_indexed_and_after(
    database: Database, service: Service, trigrams_url: str
) -> None:
    several = "INSERT INTO label (id, organization_id, slug, name, created_at, updated_at, search_text) SELECT {}"
    rows = "'x' || n, '{0}', 'x' || n, 'x', now(), now(), 'zyxwvut ' || n FROM generate_series({1}, {2}) AS n"
    run(database, *(several.format(rows.format(ALPHA, *part)) for part in ((1, 200), (201, 400), (1001, 1400))))

    def found() -> tuple[set[str], bool, int]:
        few = service.read(lambda transaction: transaction.hits(["zyxwvut"], ALPHA, ["label"]), IN_ALPHA).few
        waits = service.read(lambda transaction: transaction.texts_wait(), IN_ALPHA)
        with session(trigrams_url) as opened:
            new = opened.value("SELECT count(*) FROM new_trigram_text WHERE kind = 'label' AND text LIKE 'zyx%'")
        return set(json.loads(few["label"])), waits, new

    every = {f"x{number}" for number in (*range(1, 401), *range(1001, 1401))}
    assert found() == (every, True, 800)
    run(database, "UPDATE label SET search_text = 'qwertzu' WHERE id = 'x1001'")
    assert found() == (every - {"x1001"}, True, 799)
    assert service.read(_found, IN_BOTH) == [ALPHA]
    assert service.write(lambda transaction: transaction.index_texts()) is False
    assert not service.read(_found, IN_BOTH)
    assert found() == (every - {"x1001"}, False, 0)
    run(database, "UPDATE label SET search_text = 'zyxwvut' WHERE id = 'x1001'", "DELETE FROM label WHERE id = 'x1'")
    assert found() == (every - {"x1"}, False, 1)
    assert faults(database) == []


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("UPDATE new_trigram_text SET text = 'other' WHERE kind = 'task'", "searches know other texts of"),
        (
            "DELETE FROM new_trigram_text WHERE kind = 'control'",
            "rows of the table control; drop the table control_trigram_text",
        ),
        ("DROP TRIGGER task_texts_update ON task", "the trigger task_texts_update of the table task is missing"),
        ("ALTER TABLE task DISABLE TRIGGER task_texts_insert", "task_texts_insert of the table task is not as"),
        ("DROP INDEX task_trigram_text_trigrams", "searches have no index of trigrams of the table task"),
        ("GRANT SELECT ON task_trigram_text TO normata_service", "has SELECT on the table task_trigram_text"),
        ("ALTER FUNCTION rows_with_words SECURITY INVOKER", "the function rows_with_words is not as Normata makes it"),
        ("GRANT EXECUTE ON FUNCTION rows_with_words TO PUBLIC", "PUBLIC) may execute the function rows_with_words"),
    ],
)
def test_what_is_wrong_with_it_is_found(database: Database, statement: str, sentence: str) -> None:
    run(database, statement)
    assert sum(sentence in fault for fault in faults(database)) == 1


def test_a_migration_makes_it_once_the_server_has_the_extension(database: Database, service: Service) -> None:
    """Without, searches go on without an index."""
    function = "CREATE OR REPLACE FUNCTION rows_with_words(organization text, words text, tables text, few integer)"
    run(
        database,
        "DROP EXTENSION pg_trgm CASCADE",
        *(f"DROP TABLE {texts_of(table)}" for table in (*TABLES, "new")),
        *(
            f"DROP FUNCTION {table}_texts_{event}() CASCADE"
            for table in TABLES
            for event in ("insert", "update", "delete")
        ),
        f"{function} RETURNS TABLE (name text, ids text) LANGUAGE sql AS 'SELECT NULL, NULL WHERE false'",
        _ADD.format("early", ALPHA, 900, "zyxwvut"),
    )
    assert hits(service, IN_ALPHA, ALPHA, "zyxwvut") == NO_HITS
    migrate(database)
    assert faults(database) == []
    assert hits(service, IN_ALPHA, ALPHA, "zyxwvut") == Hits({"task": json.dumps(["early"])})


def test_check_warns_where_the_server_lacks_the_extension(postgres_url: str, trigrams_url: str) -> None:
    with session(postgres_url) as opened:
        has_extension = opened.value("SELECT count(*) FROM pg_extension WHERE extname = 'pg_trgm'")
    for url, warns in ((postgres_url, not has_extension), (trigrams_url, False)):
        with closing(open_url(url)) as database:
            assert any("the extension pg_trgm" in one for one in database.read_now(_warnings_of(database))) is warns


def _warnings_of(database: Database) -> Work[list[str]]:
    return lambda transaction: list(database.warnings(transaction))


def _found(transaction: Transaction) -> list[str]:
    assert INDEXING.find is not None
    return list(INDEXING.find(transaction, [ALPHA, BETA], ""))

"""Searches with an index of trigrams on PostgreSQL, by its extension `pg_trgm`; makes the index and checks it.

Each table with texts has another one with only these, which triggers write: so a change of anything else costs nothing.
To index a text takes a tenth of a create, so texts first go to a table of new ones, which searches read from one end to
the other, and a job indexes them together.

The service may not read those, and row-level security would not use their index for LIKE, since an error of that could
betray a text. So a function searches them with its owner's rights: only in the organizations that the transaction may
read, and for plain words, whose patterns it makes itself.

`normata migrate` makes all of it if the server has the extension. Otherwise the function finds nothing out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, Integer, MetaData, bindparam, exc, func, select
from sqlalchemy import String as SqlString

from normata.core.db import trigrams
from normata.core.db.postgresql import functions
from normata.core.db.postgresql.functions import Ask, Function
from normata.core.db.schema_items import Item, differences
from normata.core.db.transaction import Transaction
from normata.core.db.trigrams import NO_HITS, TEXTS_OF, Hits, tables_with, texts_of

NEW = f"new{TEXTS_OF}"
_BATCH = 256  # new texts that are worth indexing
_MOST = 2_000  # new texts that are indexed in one transaction

_HAS_EXTENSION = "SELECT extnamespace::regnamespace::text FROM pg_extension WHERE extname = 'pg_trgm'"

# A row for each table: a JSON array of the few ids, or null if more rows have the words; none if no index helps. The
# server plans the search of each table anew, for these words: by the index, or, if it expects many, one by one until
# they are enough.
_SEARCH = f"""\
DECLARE
    conditions text;
BEGIN
    IF array_position(NULLIF(current_setting('normata.readable', true), '')::text[], organization) IS NULL
        OR NOT EXISTS (SELECT FROM unnest(string_to_array(words, ' ')) AS word WHERE word ~ '[[:alnum:]]{{3}}')
    THEN
        RETURN;
    END IF;
    SELECT string_agg(format('text LIKE %L', '%' || regexp_replace(word, '[\\\\%_]', '\\\\\\&', 'g') || '%'), ' AND ')
    INTO conditions FROM unnest(string_to_array(words, ' ')) AS word;
    conditions := '(organization_id = $1 OR organization_id IS NULL) AND ' || conditions;
    FOREACH name IN ARRAY string_to_array(tables, ' ') LOOP
        EXECUTE format('SELECT CASE WHEN count(*) < $2 THEN coalesce(json_agg(id)::text, ''[]'') END FROM ('
            'SELECT * FROM (SELECT id FROM public.%I WHERE %s LIMIT $2) AS indexed'
            ' UNION ALL SELECT id FROM public.{NEW} WHERE kind = $3 AND %2$s LIMIT $2) AS found',
            name || '{TEXTS_OF}', conditions) INTO ids USING organization, few, name;
        RETURN NEXT;
    END LOOP;
END
"""
_ARE_NEW = f"SELECT count(*) = {_BATCH} FROM (SELECT FROM public.{NEW} LIMIT {_BATCH}) AS waiting"
# Who changes one of these texts waits, and then finds it among those that are indexed.
_INDEX = f"""\
DECLARE
    one text;
    moved int;
BEGIN
    FOR one IN SELECT DISTINCT kind FROM public.{NEW} LOOP
        EXECUTE format('WITH moved AS (DELETE FROM public.{NEW} WHERE (id, kind) IN (SELECT id, kind FROM public.{NEW}'
            ' WHERE kind = $1 LIMIT {_MOST} FOR UPDATE SKIP LOCKED) RETURNING id, organization_id, text)'
            ' INSERT INTO public.%I SELECT * FROM moved', one || '{TEXTS_OF}') USING one;
        GET DIAGNOSTICS moved = ROW_COUNT;
        PERFORM gin_clean_pending_list(format('public.%I', one || '{TEXTS_OF}_trigrams')::regclass);
        IF moved = {_MOST} THEN
            RETURN true;
        END IF;
    END LOOP;
    RETURN false;
END
"""
_NAME = "rows_with_words"


def _functions(*, has_index: bool) -> Iterator[Function]:
    """What the service may call: the search, whether new texts wait for the index, and what indexes some of them.

    The last returns whether there are more. Without an index they do nothing.
    """
    for name, arguments, result, body, without, kind in (
        (
            _NAME,
            "organization text, words text, tables text, few integer",
            "TABLE (name text, ids text)",
            _SEARCH,
            "BEGIN RETURN; END",
            "STABLE",
        ),
        ("new_texts_wait", "", "boolean", f"BEGIN RETURN ({_ARE_NEW}); END", "BEGIN RETURN false; END", "STABLE"),
        ("index_new_texts", "", "boolean", _INDEX, "BEGIN RETURN false; END", "VOLATILE"),
    ):
        types = ", ".join(argument.rpartition(" ")[2] for argument in arguments.split(", "))
        yield Function(
            name,
            f"public.{name}({types})",
            f"CREATE OR REPLACE FUNCTION public.{name}({arguments}) RETURNS {result} LANGUAGE plpgsql {kind}"
            " SECURITY DEFINER SET search_path = public, pg_temp SET jit = off"
            f" SET max_parallel_workers_per_gather = 0 AS $$ {body if has_index else without} $$",
        )


def hits(transaction: Transaction, words: Sequence[str], organization_id: str, kinds: Iterable[str]) -> Hits:
    """The few rows of each table that have all folded words, and the tables that have more of them."""
    if not words:
        return NO_HITS
    found = transaction.rows(
        _HITS,
        {"organization": organization_id, "words": " ".join(words), "tables": " ".join(kinds), "few": trigrams.FEW},
    )
    return Hits(
        {name: ids for name, ids in found if ids is not None}, frozenset(name for name, ids in found if ids is None)
    )


_ARGUMENTS = (*(bindparam(name, type_=SqlString()) for name in ("organization", "words", "tables")),)
_found: Any = getattr(func, _NAME)(*_ARGUMENTS, bindparam("few", type_=Integer())).table_valued("name", "ids")
_HITS = select(_found.c.name, _found.c.ids)


def texts_wait(transaction: Transaction) -> bool:
    """Whether there are so many new texts that they are worth indexing."""
    return bool(transaction.scalar(select(func.new_texts_wait())))


def index_texts(transaction: Transaction) -> bool:
    """Index some new texts; returns whether there are more."""
    return bool(transaction.scalar(select(func.index_new_texts())))


# --- Making the index


def secure(connection: Connection, role: str, metadata: MetaData) -> None:
    """Make the index if the server has the extension, and the function that searches."""
    kinds = tables_with(metadata)
    if not kinds:
        return
    run = connection.exec_driver_sql
    run(_SETTINGS)
    has_index = _make_extension(connection)
    if has_index:
        schema = run(_HAS_EXTENSION).scalar_one()
        there = {table for (table,) in run(_TABLES).all()}
        stored = _stored_triggers(lambda sql: run(sql).all())
        run(
            f'CREATE TABLE IF NOT EXISTS {NEW} (kind varchar COLLATE "C", id varchar COLLATE "C",'
            ' organization_id varchar COLLATE "C", text varchar COLLATE "C" NOT NULL, PRIMARY KEY (id, kind))'
        )
        for kind in kinds:
            texts = texts_of(kind)
            run(
                f'CREATE TABLE IF NOT EXISTS {texts} (id varchar COLLATE "C" PRIMARY KEY,'
                ' organization_id varchar COLLATE "C", text varchar COLLATE "C" NOT NULL)'
            )
            for function in _trigger_functions(kind):
                functions.secure(connection, role, function)
            wanted = _triggers(kind)
            is_whole = {NEW, texts} <= there and all(
                stored.get(name) == definition for name, definition in wanted.items()
            )
            if not is_whole:
                # From here on nobody writes, so that no text is missed.
                for name, definition in wanted.items():
                    run(f"DROP TRIGGER IF EXISTS {name.name} ON {kind}")
                    run(definition)
                run(f"DROP INDEX IF EXISTS {texts}_trigrams")
                run(f"TRUNCATE {texts}")
                run(f"DELETE FROM {NEW} WHERE kind = '{kind}'")
                run(f"INSERT INTO {texts} SELECT id, organization_id, search_text FROM {kind} ORDER BY created_at")
            run(f"CREATE INDEX IF NOT EXISTS {texts}_trigrams ON {texts} USING gin (text {schema}.gin_trgm_ops)")
            if not is_whole:
                run(f"ANALYZE {texts}")
    for one in _functions(has_index=has_index):
        functions.secure(connection, role, one)


_SETTINGS = "SELECT set_config('maintenance_work_mem', '256MB', true)"


def _make_extension(connection: Connection) -> bool:
    try:
        with connection.begin_nested():
            connection.exec_driver_sql("CREATE EXTENSION IF NOT EXISTS pg_trgm")
    except exc.DBAPIError:  # the server does not have it, or the login may not add it to the database
        return False
    return True


def _triggers(kind: str) -> dict[Item, str]:
    """The triggers that write the texts of a table, with their definitions."""
    found: dict[Item, str] = {}
    for event, each in (
        ("INSERT", "REFERENCING NEW TABLE AS changed FOR EACH STATEMENT"),
        ("UPDATE OF organization_id, search_text", "FOR EACH ROW"),  # not for a change of anything else
        ("DELETE", "REFERENCING OLD TABLE AS earlier FOR EACH STATEMENT"),
    ):
        name = f"{kind}_texts_{event.partition(' ')[0].lower()}"
        found[Item("trigger", kind, name)] = (
            f"CREATE TRIGGER {name} AFTER {event} ON {kind} {each} EXECUTE FUNCTION {name}()"
        )
    return found


def _trigger_functions(kind: str) -> Iterator[Function]:
    """Their functions, which have the owner's rights: the service may not write the texts itself."""
    texts = texts_of(kind)
    bodies = {
        "insert": f"""
            INSERT INTO {NEW} SELECT '{kind}', id, organization_id, search_text FROM changed;""",
        # New texts first: if one is just being indexed, the second statement knows.
        "update": f"""
            IF OLD.search_text <> NEW.search_text OR OLD.organization_id IS DISTINCT FROM NEW.organization_id THEN
                INSERT INTO {NEW} VALUES ('{kind}', NEW.id, NEW.organization_id, NEW.search_text)
                ON CONFLICT (id, kind) DO UPDATE SET organization_id = excluded.organization_id, text = excluded.text;
                DELETE FROM {texts} WHERE id = OLD.id;
            END IF;""",
        "delete": f"""
            DELETE FROM {NEW} WHERE kind = '{kind}' AND id IN (SELECT id FROM earlier);
            DELETE FROM {texts} WHERE id IN (SELECT id FROM earlier);""",
    }
    for event, body in bodies.items():
        name = f"{kind}_texts_{event}"
        definition = (
            f"CREATE OR REPLACE FUNCTION public.{name}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER"
            f" SET search_path = public, pg_temp AS $$ BEGIN{body} RETURN NULL; END $$"
        )
        yield Function(name, f"public.{name}()", definition, is_trigger=True)


# --- Checking it


def faults(ask: Ask, role: str, metadata: MetaData, *, only_schema: bool) -> Iterator[str]:
    """The faults of the index, a sentence each; the texts are compared unless it is ``only_schema``."""
    kinds = tables_with(metadata)
    if not kinds:
        return
    has_index = bool(ask(_HAS_EXTENSION))
    for one in _functions(has_index=has_index):
        yield from functions.faults(ask, role, one)
    if not has_index:
        return
    there = {table for (table,) in ask(_TABLES)}
    indexes = {name for (name,) in ask("SELECT indexname::text FROM pg_indexes WHERE schemaname = 'public'")}
    wanted: dict[Item, object] = {}
    for kind in kinds:
        texts = texts_of(kind)
        if kind not in there:
            continue  # the schema is out of date, which is reported elsewhere
        if not {NEW, texts} <= there or f"{texts}_trigrams" not in indexes:
            yield f"searches have no index of trigrams of the table {kind}; run `normata migrate`"
            continue
        wanted |= _triggers(kind)
        for function in _trigger_functions(kind):
            yield from functions.faults(ask, role, function)
        ((wrong,),) = ask(_WRONG.format(kind=kind, texts=texts, new=NEW)) if not only_schema else ((0,),)
        if wrong:
            yield (
                f"searches know other texts of {wrong} rows of the table {kind};"
                f" drop the table {texts}, and run `normata migrate`"
            )
    yield from differences(wanted, _stored_triggers(ask))


def warnings(ask: Ask) -> Iterator[str]:
    """What slows searches, a sentence."""
    if not ask(_HAS_EXTENSION):
        yield (
            "the database does not have the extension pg_trgm, so a search of many records reads all of their texts;"
            " install it on the server, and run `normata migrate`"
        )


def is_own(trigger: str) -> bool:
    """Whether a trigger writes the texts, by its name."""
    return "_texts_" in trigger


def _stored_triggers(ask: Ask) -> dict[Item, object]:
    found: dict[Item, object] = {}
    for table, name, enabled, definition in ask(_TRIGGERS):
        plain = " ".join(definition.replace("public.", "").split())
        found[Item("trigger", table, name)] = plain if enabled == "O" else f"off: {plain}"
    return found


_TABLES = "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'"
_TRIGGERS = (
    "SELECT c.relname::text, t.tgname::text, t.tgenabled::text, pg_get_triggerdef(t.oid)"
    " FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid"
    " WHERE c.relnamespace = 'public'::regnamespace AND NOT t.tgisinternal AND t.tgname LIKE '%\\_texts\\_%'"
)
_WRONG = """\
SELECT count(*) FROM {kind} AS r FULL JOIN (
    SELECT id, organization_id, text FROM {texts}
    UNION ALL SELECT id, organization_id, text FROM {new} WHERE kind = '{kind}'
) AS t ON t.id = r.id
WHERE (r.search_text, r.organization_id) IS DISTINCT FROM (t.text, t.organization_id)
"""

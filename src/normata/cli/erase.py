"""The command that removes a person's name and address from all data: ``user erase``."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from normata.cli.shared import DatabaseOption, change, echo, fail, opened, settings_with
from normata.core.log import visible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from normata.core.db.database import Database
    from normata.erasure.erasing import Erased
    from normata.erasure.person import ErasureRequest, Person
    from normata.erasure.survey import Place, Survey
    from normata.files.searching import FileContents
    from normata.files.store import FileStore


def erase_user(  # noqa: PLR0917 - Typer makes options of them
    who: Annotated[str, typer.Argument(metavar="EMAIL|ID", help="The person, by email address or by the user's id.")],
    also: Annotated[
        list[str] | None,
        typer.Option(
            "--also", metavar="TEXT", help="Another name or address of theirs, such as a former one. May be repeated."
        ),
    ] = None,
    keep_name: Annotated[
        bool,
        typer.Option("--keep-name", help="Keep the name in texts, where it may mean others; remove only the address."),
    ] = False,
    also_documents: Annotated[
        bool,
        typer.Option(
            "--also-documents",
            help="Also remove the files of versions, and the uploaded files, that name them. Hashes and events stay.",
        ),
    ] = False,
    also_file: Annotated[
        list[str] | None,
        typer.Option(
            "--also-file", metavar="ID", help="Also remove this uploaded file, whatever is in it. May be repeated."
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List where the person is named; change nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    database: DatabaseOption = None,
) -> None:
    """Remove a person's name and email address from all data, permanently (GDPR, article 17).

    Their account, memberships, tokens, sessions, passwords and passkeys end immediately. In texts that others have
    written, `[erased]` replaces the address, and a name of two words or more. Events that name the person lose their
    content, and can still be verified. Files of versions of the statement of applicability, and uploaded ones, are
    records that law demands to keep, so they stay and are listed, unless --also-documents says otherwise. Uploaded
    files are searched if they are text; --dry-run also lists those that cannot be searched, and those that the person
    has uploaded. Existing backups and dumps do not change.
    """
    from normata.erasure.erasing import erase
    from normata.erasure.person import ErasureRequest
    from normata.events.keys import Signer
    from normata.events.sealing import seal_all_now
    from normata.files.opening import open_store
    from normata.files.searching import FileContents

    settings = settings_with(database_url=database)
    signer, store = Signer(settings.event_key_file), open_store(settings)
    erasure_request = ErasureRequest(who, tuple(also or ()), keep_name, also_documents, tuple(also_file or ()))
    contents = FileContents(store)
    with opened(database, create=False) as source:
        # First in a read, so that no writer waits until all files have been read.
        person, found = _looked_up(source, erasure_request, contents)
        if dry_run:
            _list(person, found, erasure_request)
            return
        if not yes:
            _ask(erasure_request, person, found)
        seal_all_now(source)  # seal the events before their content is erased
        erased = change(source, lambda unit: erase(unit, erasure_request, signer, contents))
        _report(erasure_request, erased)
        _remove_bytes(store, erased)
        _scrub(source)


def _looked_up(source: Database, erasure_request: ErasureRequest, contents: FileContents) -> tuple[Person, Survey]:
    from normata.core.db.transaction import Transaction
    from normata.erasure.person import find_person
    from normata.erasure.survey import require_files, survey

    def work(transaction: Transaction) -> tuple[Person, Survey]:
        person = find_person(transaction, erasure_request)
        require_files(transaction, erasure_request)
        return person, survey(transaction, person, contents)

    return source.read_now(work)


def _list(person: Person, found: Survey, erasure_request: ErasureRequest) -> None:
    """Print a line for each row that names the person: what becomes of it, the key, and the columns that do."""
    from normata.erasure.survey import to_remove

    for place in found.own:
        _print("delete", place)
    for place in found.places:
        _print("delete" if place.table.transient else "change", place)
    removed = to_remove(found, erasure_request)
    for place in removed:
        _print("delete", place)
    gone = {(place.table, place.key) for place in removed}
    for place in (*found.documents, *found.uploads):
        if (place.table, place.key) not in gone:
            _print("keep", place)
    for place in found.unsearched:
        _print("unsearched", place)
    _warn(person, found)


def _print(what: str, place: Place) -> None:
    typer.echo("\t".join(map(visible, (what, *place.location))))


def _ask(erasure_request: ErasureRequest, person: Person, found: Survey) -> None:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        fail("there is no terminal to ask for confirmation; use --yes to erase without it")
    from normata.erasure.columns import called

    _warn(person, found)
    counts = Counter(called(place.table) for place in found.places)
    places = f"rows that name them: {_counted(counts)}" if counts else "no other text names them"
    echo(f"{erasure_request.who} will be erased for good; {places}", err=True)
    if not typer.confirm("Erase them?", err=True):
        fail("nothing was changed")


def _report(erasure_request: ErasureRequest, erased: Erased) -> None:
    from normata.files.model import File
    from normata.policies.model import PolicyVersion
    from normata.soa_versions.model import SoaVersion

    if not (erased.deleted or erased.changed or erased.events or erased.documents):
        echo(f"{erasure_request.who}: already erased")
    else:
        echo(f"{erasure_request.who}: erased")
        for what, counts in (("deleted", erased.deleted), ("changed", erased.changed)):
            if counts:
                echo(f"{what}: {_counted(counts)}")
        if erased.events:
            echo(f"events without their content: {erased.events}")
        for table, what in (
            (SoaVersion, "versions without their files"),
            (PolicyVersion, "versions of policies without their texts"),
            (File, "files without their bytes"),
        ):
            if rows := erased.documents.get(table):
                echo(f"{what}: {len(rows)}")
    _warn(erased.person, erased.found)
    removed = {(table, row.id) for table, rows in erased.documents.items() for row in rows}
    remaining = Counter(place.table for place in erased.found.documents if (place.table, place.key[0]) not in removed)
    if count := remaining[SoaVersion]:
        echo(f"versions whose files name them and stay: {count}; --also-documents removes these files", err=True)
    if count := remaining[PolicyVersion]:
        echo(f"versions of policies that name them and stay: {count}; --also-documents removes their texts", err=True)
    if count := remaining[File]:
        echo(f"uploaded files that name them and stay: {count}; --also-documents removes their bytes", err=True)


def _remove_bytes(store: FileStore, erased: Erased) -> None:
    """Remove the bytes of files from the store. The service would do it, too, within a day."""
    from normata.files.model import File
    from normata.files.store import place_of

    try:
        for row in erased.documents.get(File, ()):
            store.remove(place_of(row.organization_id, row.id, row.sha256))
    except OSError as error:
        echo(
            f"warning: {store.address} still has bytes of files ({error.strerror or error}); the running service"
            " removes them within a day",
            err=True,
        )


def _warn(person: Person, found: Survey) -> None:
    if person.user_id is None:
        echo("warning: no user has this address; it is searched for nevertheless", err=True)
    if person.namesakes:
        echo(
            "warning: another user has the same name, and texts may mean them; --keep-name leaves the name in texts",
            err=True,
        )
    if found.ambiguous:
        echo(
            f"warning: {found.ambiguous} texts have a word that may be the name or an ordinary word, and are not"
            f" changed; --also with the name changes them, too",
            err=True,
        )
    if found.unsearched:
        kinds = Counter(place.columns[0] for place in found.unsearched)
        echo(
            f"warning: uploaded files that cannot be searched for them: {len(found.unsearched)} ({_counted(kinds)});"
            " --dry-run lists them, and --also-file removes one",
            err=True,
        )
    for place in found.ids:
        echo(
            f"warning: an id contains the name or address, and cannot be changed: {' '.join(place.location)}", err=True
        )


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {counts[name]}" for name in sorted(counts))


def _scrub(source: Database) -> None:
    from normata.errors import Unavailable

    try:
        is_done = source.scrub()
    except Unavailable as error:
        fail(f"the person was erased, but the file still has some of the bytes ({error}); run the command again")
    if not is_done:
        echo(
            "the server has the old rows until it vacuums, and its WAL and backups until they are deleted: see"
            " docs/postgresql.md",
            err=True,
        )

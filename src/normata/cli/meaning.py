"""Changes in meaning by an upgrade of the database: what people see and may do, and not how it is stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, inspect, text

from normata.cli import files as output_files
from normata.core.db.altering import AlteringTransaction
from normata.coverage.engine import Level
from normata.coverage.recompute import current_coverage
from normata.coverage.upgrades import ReportedChange

_ABSENT = "-"


@dataclass(frozen=True, slots=True)
class Subject:
    """A subject of changes in meaning: its name for one and for several, and what an upgrade may do to them.

    ``sql`` selects an id, the organization or null, what tells people which it is, and the value. ``needs`` are the
    columns of ``table`` that it selects: a schema that lacks one has nothing to compare, unless ``earlier`` selects the
    same of it; that needs the columns ``earlier_needs`` of ``earlier_table``.
    """

    name: str
    one: str
    many: str
    has: str
    table: str
    needs: tuple[str, ...]
    sql: str
    earlier_table: str = ""
    earlier_needs: tuple[str, ...] = ()
    earlier: str = ""


@dataclass(frozen=True, slots=True)
class Difference:
    """The meaning of one row before and after."""

    subject: Subject
    organization: str
    place: str
    before: str
    after: str


Snapshot = Mapping[str, Mapping[tuple[str, ...], tuple[str, str, str]]]

_PLACE = "f.identifier || ' ' || c.identifier"
_OF_CONTROL = "JOIN control AS c ON c.id = x.control_id JOIN framework AS f ON f.id = c.framework_id"

COVERAGE = Subject(
    "coverage",
    *("control", "controls", "changed {} coverage", "effective_coverage", ("status",)),
    f"SELECT x.control_id, x.organization_id, {_PLACE}, x.status FROM effective_coverage AS x {_OF_CONTROL}",  # noqa: S608
)
SUBJECTS = (
    COVERAGE,
    Subject(
        "assessment",
        *("assessment", "assessments", "changed {} status", "control_coverage", ("coverage_status",)),
        f"SELECT x.id, x.organization_id, {_PLACE}, x.coverage_status FROM control_coverage AS x {_OF_CONTROL}",  # noqa: S608
    ),
    Subject(
        "applicability",
        *("control", "controls", "changed whether {}", "effective_coverage", ("applies",)),
        f"SELECT x.control_id, x.organization_id, {_PLACE}, x.applies FROM effective_coverage AS x {_OF_CONTROL}",  # noqa: S608
        # Before that was stored, a control applied unless its own assessment excluded it.
        *("control_coverage", ("is_applicable",)),
        f"SELECT x.control_id, x.organization_id, {_PLACE}, coalesce(a.is_applicable, true)"  # noqa: S608
        f" FROM effective_coverage AS x {_OF_CONTROL} LEFT JOIN control_coverage AS a"
        " ON a.organization_id = x.organization_id AND a.control_id = x.control_id",
    ),
    Subject(
        "match",
        *("match", "matches", "changed {} level", "control_match", ("match_level", "organization_id")),
        "SELECT x.id, x.organization_id, s.identifier || ' -> ' || t.identifier, x.match_level FROM control_match AS x"
        " JOIN control AS s ON s.id = x.source_control_id JOIN control AS t ON t.id = x.target_control_id",
    ),
    Subject(
        "type",
        *("control", "controls", "changed {} type", "control", ("type",)),
        "SELECT c.id, f.organization_id, f.identifier || ' ' || c.identifier, c.type FROM control AS c"
        " JOIN framework AS f ON f.id = c.framework_id",
    ),
    Subject(
        "role",
        *("member", "members", "changed {} role", "membership", ("role",)),
        "SELECT x.id, x.organization_id, x.id, x.role FROM membership AS x",
    ),
    Subject(
        "address",
        *("person", "persons", "changed the address that {} found by", "user_account", ("email_folded",)),
        "SELECT x.id, NULL, x.id, x.email_folded FROM user_account AS x",
    ),
)
_BY_NAME = {subject.name: subject for subject in SUBJECTS}
_LEVELS = {COVERAGE.name, "assessment", "match"}


def snapshot(connection: Connection, *, computes: bool = False) -> Snapshot:
    """The meaning of everything now. With ``computes``, coverage is as it would be after it is computed again."""
    reading = inspect(connection)
    tables = set(reading.get_table_names())
    found: dict[str, dict[tuple[str, ...], tuple[str, str, str]]] = {}

    def has(table: str, needs: Sequence[str]) -> bool:
        return table in tables and {*needs} <= {column["name"] for column in reading.get_columns(table)}

    for subject in SUBJECTS:
        sql = subject.sql if has(subject.table, subject.needs) else ""
        if not sql and subject.table in tables and has(subject.earlier_table, subject.earlier_needs):
            sql = subject.earlier
        if sql:
            rows = connection.execute(text(sql)).all()
            found[subject.name] = {
                (row[0], row[1] or ""): (row[1] or "", row[2], _value(subject, row[3])) for row in rows
            }
    if computes and COVERAGE.name in found:
        found[COVERAGE.name] = _computed(connection)
    return found


def _computed(connection: Connection) -> dict[tuple[str, ...], tuple[str, str, str]]:
    transaction = AlteringTransaction(connection)
    places = {
        row[0]: row[1]
        for row in connection.execute(
            text(f"SELECT c.id, {_PLACE} FROM control AS c JOIN framework AS f ON f.id = c.framework_id")  # noqa: S608
        )
    }
    return {
        (control, organization): (organization, places.get(control, control), found.effective.name)
        for organization in connection.scalars(text("SELECT id FROM organization ORDER BY id")).all()
        for control, found in current_coverage(transaction, organization).items()
    }


def _value(subject: Subject, value: Any) -> str:
    if value is None:
        return _ABSENT
    if subject.name == "applicability":
        return "applies" if value else "does not apply"
    if subject.name in _LEVELS and value in set(Level):
        return Level(value).name
    return str(value)


def differences(before: Snapshot, after: Snapshot) -> list[Difference]:
    """The differences between what both schemas can express, and missing and new rows."""
    found = []
    for name in sorted(before.keys() & after.keys(), key=list(_BY_NAME).index):
        old, new = before[name], after[name]
        for key in sorted(old.keys() | new.keys()):
            organization, place, _ = new.get(key) or old[key]
            values = [some[key][2] if key in some else _ABSENT for some in (old, new)]
            if values[0] != values[1]:
                found.append(Difference(_BY_NAME[name], organization, place, *values))
    return found


def sentences(found: Sequence[Difference]) -> Iterator[str]:
    """The changes, one line for each subject, with the organizations."""
    for subject in SUBJECTS:
        of_subject = [difference for difference in found if difference.subject is subject]
        if not of_subject:
            continue
        count = len(of_subject)
        by_organization = Counter(one.organization for one in of_subject if one.organization)
        where = ", ".join(f"{organization}: {number}" for organization, number in sorted(by_organization.items())[:10])
        more = ", …" if len(by_organization) > 10 else ""
        things, its = (subject.one, "its") if count == 1 else (subject.many, "their")
        if subject.name == "applicability":
            its = "it applies" if count == 1 else "they apply"
        elif subject.name == "address":
            its = "it is" if count == 1 else "they are"
        yield f"{count} {things} {subject.has.format(its)}{f' ({where}{more})' if where else ''}"


def write_report(
    path: Path, found: Sequence[Difference], recorded: Sequence[ReportedChange] = (), *, force: bool
) -> None:
    """Write the changes to a file (CSV), readable only by its owner.

    ``recorded`` has what upgrades, this one and those before, have recorded of controls: they name the rule.
    """
    changed = ((one.subject.name, one.organization, one.place, one.before, one.after, "") for one in found)
    noted = (
        ("recorded", row.organization, f"{row.framework} {row.control}", row.before, row.after, row.rule)
        for row in recorded
    )
    head = ("what", "organization", "which", "before", "after", "rule")
    output_files.write_table(path, head, chain(changed, noted), force=force)

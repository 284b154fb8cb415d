"""Computes coverage again after an upgrade with other rules, and records what has changed, and why.

It runs within migrations: it uses tables and columns of that version, and writes without a unit of work. There are no
events, and no notifications of single controls or conflicts: admins are notified once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import BindParameter, Boolean, Connection, Select, bindparam, column, insert, or_, select, table, update

from normata.core.db.types import document, now, timestamp
from normata.core.schema.table import new_id
from normata.coverage.applicability import Scope, not_applicable
from normata.coverage.engine import Computed, Level, Place, compute_ranked, upwards

EXCLUDED_ABOVE = "EXCLUDED_ABOVE"
OWN_REQUIREMENT = "OWN_REQUIREMENT"
GROUP_ROLL_UP = "GROUP_ROLL_UP"
FOLLOWS = "FOLLOWS"

NOTIFICATION_TYPE = "coverage.rules_changed"

_AT_ONCE = 500  # rows in one statement


class _Stored(NamedTuple):
    status: int
    is_indirect: bool
    own: int
    rank: int
    applies: bool
    conflict: str | None


class _Controls(NamedTuple):
    """The controls that an organization has adopted: ``decisions`` has those that it excludes."""

    places: Mapping[str, Place]
    scopes: Mapping[str, Scope]
    decisions: Mapping[str, bool]
    assessed: Mapping[str, Level]


# The matches that count, in older schemas. Upgrades from later ones have queries of their own.
_MATCH = table(
    "control_match",
    *map(column, ("id", "source_control_id", "target_control_id", "match_level", "organization_id", "retired_at")),
)
_SET_ASIDE = table("set_aside_match", *map(column, ("organization_id", "match_id")))
_ORGANIZATION_ID: BindParameter[str] = bindparam("organization")
ALL_MATCHES = select(_MATCH.c.source_control_id, _MATCH.c.target_control_id, _MATCH.c.match_level).where(
    or_(_MATCH.c.organization_id.is_(None), _MATCH.c.organization_id == _ORGANIZATION_ID)
)
MATCHES_THAT_COUNT = ALL_MATCHES.where(
    _MATCH.c.retired_at.is_(None),
    _MATCH.c.id.not_in(select(_SET_ASIDE.c.match_id).where(_SET_ASIDE.c.organization_id == _ORGANIZATION_ID)),
)


def compute_anew(connection: Connection, matches: Select[Any], *, with_baselines: bool = False) -> None:
    """Compute and store the coverage of every organization, and its conflicts.

    ``with_baselines`` is true if the schema has them.
    """
    for organization_id in connection.scalars(select(_ORGANIZATION.c.id).order_by(_ORGANIZATION.c.id)).all():
        controls = _read_controls(connection, organization_id, with_baselines=with_baselines)
        stored = {
            row.control_id: _Stored(*(getattr(row, name) for name in _Stored._fields))
            for row in connection.execute(select(*_EFFECTIVE.c).where(_EFFECTIVE.c.organization_id == organization_id))
        }
        pairs = connection.execute(matches, {"organization": organization_id})
        found = _compute(controls, [(source, target, Level(level)) for source, target, level in pairs])
        if not _write(connection, organization_id, stored, found):
            continue
        revised = update(_REVISION).where(_REVISION.c.organization_id == organization_id)
        connection.execute(revised.values(revision=new_id()))
        changes = list(_changes(controls, stored, found))
        _note(connection, organization_id, changes)
        if changes or any(row.conflict and row.conflict != _conflict_of(stored, name) for name, row in found.items()):
            _notify(connection, organization_id)


def _read_controls(connection: Connection, organization_id: str, *, with_baselines: bool) -> _Controls:
    adopted = select(_ADOPTION.c.framework_id).where(_ADOPTION.c.organization_id == organization_id)
    controls = connection.execute(
        select(*_CONTROL.c).where(_CONTROL.c.framework_id.in_(adopted)).order_by(_CONTROL.c.position)
    ).all()
    assessments = connection.execute(
        select(_ASSESSMENT.c.control_id, _ASSESSMENT.c.coverage_status, _ASSESSMENT.c.is_applicable).where(
            _ASSESSMENT.c.organization_id == organization_id
        )
    ).all()
    outside = _outside_of_baselines(connection, organization_id) if with_baselines else frozenset()
    # Before baselines existed, only the assessment decided whether a control applies.
    decisions = {
        row.control_id: row.is_applicable
        for row in assessments
        if row.is_applicable is False or (with_baselines and row.is_applicable)
    }
    places = {row.id: Place(row.parent_id, row.type == "CATEGORY" or row.is_decomposed) for row in controls}
    scopes = {
        row.id: Scope(places[row.id].is_group, row.is_mandatory, decisions.get(row.id), row.id not in outside)
        for row in controls
    }
    return _Controls(
        places,
        scopes,
        decisions,
        {row.control_id: Level(row.coverage_status) for row in assessments if row.coverage_status is not None},
    )


def _outside_of_baselines(connection: Connection, organization_id: str) -> frozenset[str]:
    """The controls of adopted frameworks that are not in the baseline of their adoption."""
    selected = (
        select(_SELECTED.c.control_id)
        .join(_ADOPTION, _ADOPTION.c.baseline_id == _SELECTED.c.baseline_id)
        .where(_ADOPTION.c.organization_id == organization_id, _SELECTED.c.retired_at.is_(None))
    )
    baselined = select(_ADOPTION.c.framework_id).where(
        _ADOPTION.c.organization_id == organization_id, _ADOPTION.c.baseline_id.is_not(None)
    )
    outside = select(_CONTROL.c.id).where(_CONTROL.c.framework_id.in_(baselined), _CONTROL.c.id.not_in(selected))
    return frozenset(connection.scalars(outside))


def _compute(controls: _Controls, matches: Sequence[tuple[str, str, Level]]) -> dict[str, _Stored]:
    left_out = frozenset(not_applicable(controls.places, controls.scopes))
    computed, ranks = compute_ranked(controls.places, matches, controls.assessed, left_out)
    against = conflicts(controls.places, matches, controls.assessed, left_out, computed)
    return {
        control: _Stored(
            int(found.effective),
            found.indirect,
            int(found.own),
            ranks.get(control, 0),
            control not in left_out,
            against.get(control),
        )
        for control, found in computed.items()
    }


def conflicts(
    places: Mapping[str, Place],
    matches: Collection[tuple[str, str, Level]],
    assessed: Mapping[str, Level],
    left_out: Collection[str],
    computed: Mapping[str, Computed],
) -> dict[str, str]:
    """The conflicts by control, as ``conflicts.py`` finds them in a current schema."""
    matched = {
        target
        for source, target, level in matches
        if level == Level.FULL and source in computed and computed[source].effective == Level.FULL
    }
    counted = {control: level for control, level in assessed.items() if control in places and control not in left_out}
    less = [control for control, level in counted.items() if level < Level.FULL]
    contradicted = {
        group for control in less if not places[control].is_group for group in upwards(places[control].parent, places)
    }
    found = {control: "MATCHES" for control in less if control in matched}
    for control in contradicted & counted.keys():
        if places[control].is_group and counted[control] == Level.FULL:
            found[control] = "BELOW"
    return found


def _changes(
    controls: _Controls, stored: Mapping[str, _Stored], found: Mapping[str, _Stored]
) -> Iterator[Mapping[str, Any]]:
    """Each control whose status is another, with the rule that has changed it."""
    parents = {place.parent for place in controls.places.values()}
    for control, row in found.items():
        before = stored.get(control)
        if before is not None and before.status != row.status:
            decision, place = controls.decisions.get(control), controls.places[control]
            yield {
                "control_id": control,
                "rule": _rule(before, row, place, decision, has_children=control in parents),
                "status_before": Level(before.status).name,
                "status_after": Level(row.status).name,
            }


def _conflict_of(stored: Mapping[str, _Stored], control: str) -> str | None:
    return stored[control].conflict if control in stored else None


def _rule(before: _Stored, found: _Stored, place: Place, decision: bool | None, *, has_children: bool) -> str:
    if not found.applies and decision is None:
        return EXCLUDED_ABOVE
    if before.own == found.own:
        return FOLLOWS
    if place.is_group:
        return GROUP_ROLL_UP
    return OWN_REQUIREMENT if has_children else FOLLOWS


def _write(
    connection: Connection, organization_id: str, stored: Mapping[str, _Stored], found: Mapping[str, _Stored]
) -> bool:
    """Store the differences; returns whether there are any."""
    changed = [
        {"of": organization_id, "control": control, **{f"new_{name}": value for name, value in row._asdict().items()}}
        for control, row in found.items()
        if control in stored and stored[control] != row
    ]
    new = [
        {"organization_id": organization_id, "control_id": control, **row._asdict()}
        for control, row in found.items()
        if control not in stored
    ]
    for some in _batches(changed):
        connection.execute(_UPDATE, some)
    for some in _batches(new):
        connection.execute(insert(_EFFECTIVE), some)
    return bool(changed or new)


def _note(connection: Connection, organization_id: str, changes: Sequence[Mapping[str, Any]]) -> None:
    before = select(_CHANGE.c.control_id, _CHANGE.c.rule).where(_CHANGE.c.organization_id == organization_id)
    noted = {tuple(row) for row in connection.execute(before)}
    rows = [
        {"organization_id": organization_id, "changed_at": now(), **change}
        for change in changes
        if (change["control_id"], change["rule"]) not in noted
    ]
    for some in _batches(rows):
        connection.execute(insert(_CHANGE), some)


def _notify(connection: Connection, organization_id: str) -> None:
    """Notify owners and admins, unless an earlier step of the upgrade has."""
    notified = set(
        connection.scalars(
            select(_NOTIFICATION.c.user_id).where(
                _NOTIFICATION.c.organization_id == organization_id,
                _NOTIFICATION.c.type == NOTIFICATION_TYPE,
                _NOTIFICATION.c.read_at.is_(None),
            )
        )
    )
    admins = connection.scalars(
        select(_MEMBER.c.user_id)
        .where(
            _MEMBER.c.organization_id == organization_id,
            _MEMBER.c.role.in_(("admin", "owner")),
            _MEMBER.c.removed_at.is_(None),
        )
        .order_by(_MEMBER.c.user_id)
    ).all()
    rows = [
        {
            "id": new_id(),
            "organization_id": organization_id,
            "user_id": user_id,
            "type": NOTIFICATION_TYPE,
            "category": "CONTROLS",
            "payload": rules_changed_payload(organization_id),
            "created_at": now(),
        }
        for user_id in admins
        if user_id not in notified
    ]
    if rows:
        connection.execute(insert(_NOTIFICATION), rows)


def rules_changed_payload(organization_id: str) -> dict[str, Any]:
    """The content of the notification that an upgrade has changed coverage."""
    return {
        "titleKey": "notifications.control.rules_changed.title",
        "bodyKey": "notifications.control.rules_changed.body",
        "params": {},
        "url": "/controls/",
        "entityType": "Organization",
        "entityId": organization_id,
        "entityLabel": None,
        "entityMeta": None,
    }


def _batches(rows: Sequence[Mapping[str, Any]]) -> Iterator[Sequence[Mapping[str, Any]]]:
    return (rows[start : start + _AT_ONCE] for start in range(0, len(rows), _AT_ONCE))


_ORGANIZATION = table("organization", column("id"))
_ADOPTION = table("framework_adoption", *map(column, ("organization_id", "framework_id", "baseline_id")))
_SELECTED = table("baseline_control", *map(column, ("baseline_id", "control_id", "retired_at")))
_CONTROL = table(
    "control",
    *map(column, ("id", "framework_id", "parent_id", "type", "position")),
    column("is_mandatory", Boolean()),
    column("is_decomposed", Boolean()),
)
_ASSESSMENT = table(
    "control_coverage",
    *map(column, ("organization_id", "control_id", "coverage_status")),
    column("is_applicable", Boolean()),
)
_EFFECTIVE = table(
    "effective_coverage",
    *map(column, ("organization_id", "control_id", "status", "own", "rank", "conflict")),
    column("is_indirect", Boolean()),
    column("applies", Boolean()),
)
_CHANGE = table(
    "upgrade_change",
    *map(column, ("organization_id", "control_id", "rule", "status_before", "status_after")),
    column("changed_at", timestamp()),
)
_MEMBER = table("membership", *map(column, ("organization_id", "user_id", "role", "removed_at")))
_NOTIFICATION = table(
    "notification",
    *map(column, ("id", "organization_id", "user_id", "type", "category", "read_at")),
    column("payload", document()),
    column("created_at", timestamp()),
)
_REVISION = table("list_revision", column("organization_id"), column("revision"))

_UPDATE = (
    update(_EFFECTIVE)
    .where(_EFFECTIVE.c.organization_id == bindparam("of"), _EFFECTIVE.c.control_id == bindparam("control"))
    .values({name: bindparam(f"new_{name}") for name in _Stored._fields})
)

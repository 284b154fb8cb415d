"""Changed wordings of controls: what an import stores about them, and which assessments become stale.

Assessments are not written. Each earlier wording is stored once for all organizations, with whether assessments of it
are stale; :mod:`normata.coverage.staleness` compares the times.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import BindParameter, bindparam, insert, select, update

from normata.core.changes.rows import PendingRow
from normata.core.changes.unit_of_work import Change, UnitOfWork, insert_of, update_of
from normata.core.db.security import Write
from normata.core.db.transaction import Transaction, batches
from normata.core.schema.table import new_id, sql_table
from normata.core.schema.text import same_wording
from normata.coverage.published import WordingsChanged
from normata.coverage.staleness import ASSESSED_ON, HAS_ASSESSED, is_made_on
from normata.frameworks.model import Control, ControlCoverage, FrameworkAdoption
from normata.frameworks.wording_model import ControlWording

MAX_NAMED = 500  # controls that an event lists

# The tables that recording a wording writes, for the declarations of operations.
WORDING_WRITES: tuple[Write, ...] = (insert_of(ControlWording), update_of(ControlWording, "stale_since"))

WORDED = ("identifier", "name", "description")  # the columns that make up the wording of a control


class Wording(NamedTuple):
    """The wording of a control."""

    identifier: str
    name: str
    description: str | None

    def is_as(self, other: Wording) -> bool:
        """Whether two wordings are the same apart from white space and letter case."""
        return all(same_wording(one, another) for one, another in zip(self, other, strict=True))


@dataclass(frozen=True, slots=True)
class RewordedControl:
    """A control whose wording an import changes. ``version`` is the framework's version before."""

    id: str
    framework_id: str
    organization_id: str | None
    version: str | None
    before: Wording
    after: Wording

    @property
    def differing(self) -> list[str]:
        """The columns whose words differ."""
        pairs = zip(WORDED, self.before, self.after, strict=True)
        return [name for name, before, after in pairs if not same_wording(before, after)]


@dataclass(slots=True)
class Rewording:
    """The changed wordings of an import. If it is editorial, no assessment becomes stale.

    ``stale`` has the controls whose assessments become stale, by organization.
    """

    is_editorial: bool = False
    controls: Sequence[RewordedControl] = ()
    stale: dict[str, tuple[str, ...]] = field(default_factory=dict)


def reworded_controls(controls: Iterable[PendingRow], frameworks: Iterable[PendingRow]) -> list[RewordedControl]:
    """The stored controls among pending rows that get another wording, with the framework's version before."""
    versions = {row.id: row.stored["version"] for row in frameworks if row.stored is not None}
    found = []
    for row in controls:
        if row.stored is None or row.long is None:  # a new control, or one whose texts do not change
            continue
        before, after = _wording(row.stored, row.stored_long or {}), _wording(row.final, row.long)
        if not before.is_as(after):
            framework, owner = row.final["framework_id"], row.final["organization_id"]
            found.append(RewordedControl(row.id, framework, owner, versions.get(framework), before, after))
    return found


def record_rewording(unit: UnitOfWork, rewording: Rewording) -> None:
    """Store the earlier wordings of changed controls, and publish the consequences for organizations."""
    if not rewording.controls:
        return
    earlier: dict[str, Sequence[_Earlier]] = {}
    for batch in batches(rewording.controls):
        earlier.update(_record(unit, batch, is_editorial=rewording.is_editorial))
    by_owner = Counter(control.organization_id for control in rewording.controls)
    for owner, count in sorted(by_owner.items(), key=lambda item: str(item[0])):
        counts = {"inserted": count, "updated": 0, "editorial": rewording.is_editorial}
        unit.publish(Change("import", ControlWording, owner, counts=counts))
    for organization_id, frameworks in _adopters(unit, rewording.controls).items():
        reworded = [control.id for control in rewording.controls if control.framework_id in frameworks]
        _publish(unit, organization_id, reworded, earlier, rewording)


@dataclass(slots=True)
class _Earlier:
    """An earlier wording of a control, with when assessments of it became stale: before this import, and now."""

    id: str
    wording: Wording
    valid_from: str | None
    replaced_at: str
    is_editorial: bool
    was_stale_since: str | None = None
    stale_since: str | None = None


def _wording(row: Mapping[str, Any], long: Mapping[str, Any]) -> Wording:
    return Wording(row["identifier"], row["name"], long["description"])


def _record(
    unit: UnitOfWork, controls: Sequence[RewordedControl], *, is_editorial: bool
) -> Mapping[str, Sequence[_Earlier]]:
    """Store the wordings of controls before this import, and return all earlier ones, by control."""
    found: defaultdict[str, list[_Earlier]] = defaultdict(list)
    for row in unit.rows(_HISTORY, {"ids": [control.id for control in controls]}):
        wording = Wording(row.identifier, row.name, row.description)
        found[row.control_id].append(
            _Earlier(
                row.id,
                wording,
                row.valid_from,
                row.replaced_at,
                row.is_editorial,
                was_stale_since=row.stale_since,
            )
        )
    new, changed = [], []
    for control in controls:
        history = found[control.id]
        valid_from = history[-1].replaced_at if history else None
        # If the clock was set back, a wording must not end before it begins.
        replaced_at = max(unit.moment, valid_from or "")
        last = _Earlier(new_id(), control.before, valid_from, replaced_at, is_editorial)
        history.append(last)
        _judge(history, control.after)
        new.append(
            {
                **{name: getattr(last, name) for name in ("id", "valid_from", "replaced_at", "is_editorial")},
                **control.before._asdict(),
                "control_id": control.id,
                "version": control.version,
                "stale_since": last.stale_since,
                "organization_id": control.organization_id,
            }
        )
        changed += [
            {"wording": one.id, "since": one.stale_since}
            for one in history[:-1]
            if one.stale_since != one.was_stale_since
        ]
    unit.execute_many(_INSERT, new)
    if changed:
        unit.execute_many(_UPDATE, changed)
    return found


def _judge(history: Sequence[_Earlier], now: Wording) -> None:
    """Set the time since when assessments of each earlier wording are stale.

    An assessment is valid for the wording that it was made on. If an editorial change follows while it is valid, it is
    valid for the next wording, too. Any other change makes it stale, until the control again has a wording that it is
    valid for.
    """
    wordings = [*(one.wording for one in history), now]
    for start, judged in enumerate(history):
        held, since = [judged.wording], None
        for number in range(start, len(history)):
            following = wordings[number + 1]
            if any(following.is_as(one) for one in held):
                since = None
            elif since is None and history[number].is_editorial:
                held.append(following)
            elif since is None:
                since = history[number].replaced_at
        judged.stale_since = since


def _adopters(unit: UnitOfWork, controls: Sequence[RewordedControl]) -> Mapping[str, set[str]]:
    """The organizations that have adopted frameworks of these controls, with these frameworks."""
    adopters: defaultdict[str, set[str]] = defaultdict(set)
    owners = {control.framework_id: control.organization_id for control in controls}
    for batch in batches(sorted(owners)):
        for organization_id, framework_id in unit.rows(_ADOPTERS, {"ids": batch}):
            adopters[organization_id].add(framework_id)
    if None in owners.values():  # an import of a centralized catalog concerns organizations other than the caller's
        unit.extend_reach(sorted(adopters))
    return dict(sorted(adopters.items()))


def _publish(
    unit: UnitOfWork,
    organization_id: str,
    reworded: Sequence[str],
    earlier: Mapping[str, Sequence[_Earlier]],
    rewording: Rewording,
) -> None:
    """Publish one event about the changed wordings, for an organization that has adopted their frameworks."""
    assessed, stale, holding = [], [], []
    for control_id, made_at in _assessed(unit, organization_id, reworded):
        assessed.append(control_id)
        history = earlier[control_id]
        judged = next((one for one in history if is_made_on(one.valid_from, one.replaced_at, made_at)), None)
        if judged is not None and judged.was_stale_since is None and judged.stale_since is not None:
            stale.append(control_id)
        elif judged is not None and judged.was_stale_since is not None and judged.stale_since is None:
            holding.append(control_id)
    if stale:
        rewording.stale[organization_id] = tuple(stale)
    counts = {
        "reworded": len(reworded),
        "assessed": len(assessed),
        "stale": len(stale),
        "holding": len(holding),
        "editorial": rewording.is_editorial,
        "controlIds": assessed[:MAX_NAMED],
    }
    unit.publish(WordingsChanged("reword", Control, organization_id, counts=counts, stale=tuple(stale)))


def _assessed(
    transaction: Transaction, organization_id: str, controls: Sequence[str]
) -> Iterator[tuple[str, str | None]]:
    for batch in batches(controls):
        for row in transaction.rows(_ASSESSED, {"organization": organization_id, "ids": batch}):
            yield row.control_id, row.made_at


_WORDING, _ASSESSMENT, _ADOPTION = sql_table(ControlWording), sql_table(ControlCoverage), sql_table(FrameworkAdoption)
_IDS: BindParameter[str] = bindparam("ids", expanding=True)

_HISTORY = (
    select(*_WORDING.c)
    .where(_WORDING.c.control_id.in_(_IDS))
    .order_by(_WORDING.c.control_id, _WORDING.c.replaced_at, _WORDING.c.id)
)
_INSERT = insert(_WORDING).values({column.name: bindparam(column.name, type_=column.type) for column in _WORDING.c})
_UPDATE = (
    update(_WORDING)
    .where(_WORDING.c.id == bindparam("wording"))
    .values(stale_since=bindparam("since", type_=_WORDING.c.stale_since.type))
)
_ADOPTERS = select(_ADOPTION.c.organization_id, _ADOPTION.c.framework_id).where(_ADOPTION.c.framework_id.in_(_IDS))
_ASSESSED = (
    select(_ASSESSMENT.c.control_id, ASSESSED_ON.label("made_at"))
    .where(_ASSESSMENT.c.organization_id == bindparam("organization"), _ASSESSMENT.c.control_id.in_(_IDS), HAS_ASSESSED)
    .order_by(_ASSESSMENT.c.control_id)
)

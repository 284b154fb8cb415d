"""Reading links: with the name of each end, its status, and whether it is live."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, model_validator
from sqlalchemy import (
    BindParameter,
    ColumnElement,
    CompoundSelect,
    Integer,
    Select,
    String,
    bindparam,
    case,
    cast,
    func,
    literal,
    null,
    select,
    type_coerce,
    union_all,
)

from normata.core.db.transaction import Transaction, batches
from normata.core.schema.descriptions import known_values
from normata.core.schema.fields import COVERAGE_STATUSES, Identifier, Timestamp, Token
from normata.core.schema.paging import PageQuery, envelope, fetch_page
from normata.core.schema.table import sql_table
from normata.core.schema.wire import Wire
from normata.errors import NotFound
from normata.frameworks.model import Control, EffectiveCoverage, FrameworkAdoption
from normata.identity.model import Membership, User
from normata.links.model import RELATIONS, End, Link, ends_of
from normata.links.relations import CONTROLS, MEMBERS, LinkedKind
from normata.records.archive.queries import KINDS

_Ids = Annotated[list[Identifier], Field(max_length=100)]
Relation = Annotated[
    Token,
    Field(
        description="How the first is related to the second." + known_values(RELATIONS),
        json_schema_extra={"x-extensible-enum": list(RELATIONS)},
    ),
]


class LinkEnd(Wire):
    """What a link leads from or to: a record, a control, or a member."""

    kind: str = Field(description="The kind: that of a record as in its path, `controls`, or `memberships`.")
    id: str = Field(description="The id.")
    label: str = Field(description="The name, title or acronym.")
    identifier: str | None = Field(
        description="The short id of a record, or the identifier of a control; null if there is none."
    )
    status: str | None = Field(
        description="The status of a record, or the effective coverage status of a control; null if there is none."
    )
    is_live: bool = Field(
        description="False for an archived record, a removed member, and a control of a framework that is not adopted."
    )


class LinkAnswer(Wire):
    """A link between two of an organization's records, controls and members."""

    id: str
    organization_id: str
    from_: LinkEnd = Field(alias="from", description="What the link leads from. `RELATES` has no direction.")
    to: LinkEnd = Field(description="What the link leads to.")
    relation: Relation
    note: str | None = Field(description="A note on the link; null if there is none.")
    created_at: Timestamp


class LinkQuery(PageQuery):
    """The query of the list of links."""

    repeated: ClassVar[tuple[str, ...]] = ("id",)

    kind: Annotated[LinkedKind | None, Field(description="Only links of what has this kind and `id`.")] = None
    id: Annotated[
        _Ids | None,
        Field(
            description="Only links from or to what has this id, or one of these where it is repeated, of this `kind`."
        ),
    ] = None
    relation: Annotated[Token | None, Field(description="Only links with this relation, such as `IMPLEMENTS`.")] = None

    @model_validator(mode="after")
    def _names_one_kind(self) -> Self:
        if (self.kind is None) != (self.id is None):
            raise ValueError("must have both kind and id, or neither")
        return self


def list_links(transaction: Transaction, query: LinkQuery) -> dict[str, Any]:
    """A page of an organization's live links, in two statements, and one more to count them.

    Those of some things come by relation, the oldest first; all of them come with the newest first.
    """
    order: Sequence[Any]
    if query.kind is not None and query.id is not None:
        # By their ids alone: SQLite without statistics reads all of an organization's links rather than both indexes.
        statement = _LIVE.where(_LINK.id.in_(ids_of_links(query.organization_id, query.kind, *query.id)))
        order = [_LINK.relation.asc(), _LINK.created_at.asc(), _LINK.id.asc()]
    else:
        statement = _LIVE.where(_LINK.organization_id == query.organization_id)
        order = [_LINK.created_at.desc(), _LINK.id.desc()]
    if query.relation is not None:
        statement = statement.where(_LINK.relation == query.relation)
    found = fetch_page(transaction, statement, order, query)
    return envelope(_as_wire(transaction, query.organization_id, found.rows), found, query)


def one_link(transaction: Transaction, organization_id: str, link_id: str) -> dict[str, Any]:
    """A live link. Raises NotFound."""
    found = links_by_id(transaction, organization_id, [link_id])
    if link_id not in found:
        raise NotFound
    return found[link_id]


def links_by_id(transaction: Transaction, organization_id: str, ids: Collection[str]) -> dict[str, dict[str, Any]]:
    """The live links with these ids, in wire form."""
    rows = [
        row
        for batch in batches(sorted(ids))
        for row in transaction.rows(_BY_IDS, {"organization": organization_id, "ids": batch})
    ]
    return {link["id"]: link for link in _as_wire(transaction, organization_id, rows)}


def ids_of_links(organization_id: str, kind: str, *row_ids: str) -> CompoundSelect[Any]:
    """The ids of the links that lead from or to some things of a kind, also of those that were removed."""
    own = select(_LINK.id).where(_LINK.organization_id == organization_id)
    return union_all(
        own.where(_LINK.from_id.in_(row_ids), _LINK.from_kind == kind),
        own.where(_LINK.to_id.in_(row_ids), _LINK.to_kind == kind),
    )


def _as_wire(transaction: Transaction, organization_id: str, rows: Iterable[Any]) -> list[dict[str, Any]]:
    """Links in wire form. The ends are named in one statement."""
    links = [(row, *ends_of(row._asdict())) for row in rows]
    named = named_ends(transaction, organization_id, {end for _, *ends in links for end in ends})
    return [
        {
            "id": row.id,
            "organizationId": row.organization_id,
            "from": named[start],
            "to": named[end],
            "relation": row.relation,
            "note": row.note,
            "createdAt": row.created_at,
        }
        for row, start, end in links
    ]


def named_ends(transaction: Transaction, organization_id: str, ends: Collection[End]) -> Mapping[End, dict[str, Any]]:
    """What an organization calls these records, controls and members, as a :class:`LinkEnd`; one statement.

    What does not exist has its id as its label, and is not live.
    """
    ids: defaultdict[str, list[str]] = defaultdict(list)
    for kind, row_id in sorted(ends):
        ids[kind].append(row_id)
    known = tuple(kind for kind in (CONTROLS, MEMBERS, *KINDS) if kind in ids)
    # What a newer version has linked may be of a kind that this one does not know.
    named = {end: _end(end, end.id, None, None, is_live=False) for end in ends}
    if known:
        parameters = {"organization": organization_id} | {f"of_{kind}": ids[kind] for kind in known}
        for row in transaction.rows(_names(known), parameters):
            end = End(row.kind, row.id)
            named[end] = _end(end, row.label, row.identifier, row.status, is_live=bool(row.is_live))
    return named


def _end(end: End, label: str, identifier: str | None, status: str | None, *, is_live: bool) -> dict[str, Any]:
    return {
        "kind": end.kind,
        "id": end.id,
        "label": label,
        "identifier": identifier,
        "status": status,
        "isLive": is_live,
    }


_LINK = sql_table(Link).c
_LIVE = select(*_LINK).where(_LINK.removed_at.is_(None))
_ORGANIZATION: BindParameter[str] = bindparam("organization", type_=_LINK.organization_id.type)
_BY_IDS = _LIVE.where(_LINK.organization_id == _ORGANIZATION, _LINK.id.in_(bindparam("ids", expanding=True)))


# Building a statement takes longer than executing it; things mostly have links to a few kinds.
@lru_cache(maxsize=128)
def _names(kinds: tuple[str, ...]) -> CompoundSelect[Any]:
    """The names of rows of these kinds, by the ids in a parameter of each."""
    own = {CONTROLS: _control_names, MEMBERS: _member_names}
    return union_all(*(own[kind]() if kind in own else _record_names(kind) for kind in kinds))


_NONE = cast(null(), String())


def _record_names(kind: str) -> Select[Any]:
    table = KINDS[kind].sql().c
    return select(
        *_named_as(kind, table.id, table[KINDS[kind].title_column()]),
        (cast(table.short_id, String()) if "short_id" in table else _NONE).label("identifier"),
        (table.status if "status" in table else _NONE).label("status"),
        table.archived_at.is_(None).label("is_live"),
    ).where(table.organization_id == _ORGANIZATION, _is_among(kind, table.id))


def _control_names() -> Select[Any]:
    control, adoption, coverage = sql_table(Control), sql_table(FrameworkAdoption), sql_table(EffectiveCoverage)
    rank = func.coalesce(type_coerce(coverage.c.status, Integer()), 0)
    is_live = adoption.c.id.is_not(None)
    adopted = (adoption.c.framework_id == control.c.framework_id) & (adoption.c.organization_id == _ORGANIZATION)
    covered = (coverage.c.control_id == control.c.id) & (coverage.c.organization_id == _ORGANIZATION)
    return (
        select(
            *_named_as(CONTROLS, control.c.id, control.c.name),
            control.c.identifier,
            case((is_live, case(dict(enumerate(COVERAGE_STATUSES)), value=rank)), else_=None).label("status"),
            is_live.label("is_live"),
        )
        .select_from(control.outerjoin(adoption, adopted).outerjoin(coverage, covered))
        .where(_is_among(CONTROLS, control.c.id))
    )


def _member_names() -> Select[Any]:
    member, user = sql_table(Membership), sql_table(User)
    return (
        select(
            *_named_as(MEMBERS, member.c.id, user.c.name),
            _NONE.label("identifier"),
            _NONE.label("status"),
            member.c.removed_at.is_(None).label("is_live"),
        )
        .select_from(member.join(user, user.c.id == member.c.user_id))
        .where(member.c.organization_id == _ORGANIZATION, _is_among(MEMBERS, member.c.id))
    )


def _named_as(kind: str, row_id: ColumnElement[Any], label: ColumnElement[Any]) -> tuple[ColumnElement[Any], ...]:
    return literal(kind).label("kind"), row_id.label("id"), label.label("label")


def _is_among(kind: str, row_id: ColumnElement[Any]) -> ColumnElement[bool]:
    return row_id.in_(bindparam(f"of_{kind}", expanding=True))

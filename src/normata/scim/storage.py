"""What the SCIM protocol reads and changes: the people and groups of an organization, in one transaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from functools import cache
from hashlib import sha256
from typing import Any, cast

from scim2_models import (
    InvalidFilterException,
    InvalidValueException,
    Meta,
    Reference,
    Resource,
    ResourceType,
    ResponseParameters,
    SearchRequest,
)
from scim2_server.storage import ScimStorage, SearchPage
from sqlalchemy import ColumnElement, Select, bindparam, exists, func, or_, select

from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.transaction import Transaction
from normata.core.schema.addresses import email_key
from normata.core.schema.table import sql_table
from normata.identity.memberships import is_in, is_out
from normata.identity.model import Membership
from normata.identity.model import User as Account
from normata.identity.provisioning import groups, people
from normata.identity.provisioning.people import Provider
from normata.identity.provisioning_model import ProvisionedGroup, ProvisionedGroupMember, ProvisionedPerson
from normata.scim.filters import (
    LONGEST_FILTER,
    Compare,
    Condition,
    always,
    compares,
    compares_any,
    compares_flag,
    condition,
)
from normata.scim.profiles import profile_of, resource_of, text_of
from normata.scim.resources import Group, GroupMember, PersonGroup, User

_MOST_MEMBERS = 20_000  # of the groups of one page


class Storage(ScimStorage):
    """The resources of one organization at ``moment``. ``transaction`` is a unit of work if something changes."""

    def __init__(self, transaction: Transaction, provider: Provider, moment: str) -> None:
        self._transaction = transaction
        self._provider = provider
        self._moment = moment
        self._parameters = {"organization": provider.organization_id, "moment": moment}

    def get(
        self,
        resource_type: ResourceType,
        resource_id: str,
        *,
        response_parameters: ResponseParameters[Any] | None = None,
    ) -> Resource[Any]:
        """A resource. Raises NotFound."""
        organization_id = self._provider.organization_id
        if resource_type.name == "User":
            row = people.person(self._transaction, organization_id, resource_id, self._moment)
            (user,) = self._people([row])
            return user
        row = groups.group(self._transaction, organization_id, resource_id)
        (group,) = self._groups([row], with_members=_has_members(response_parameters))
        return group

    def search(
        self, resource_types: list[ResourceType], search_request: SearchRequest[Any], *, position: Any = None
    ) -> SearchPage:
        """A page of people and then groups, or of one of them. Raises InvalidFilterException."""
        del position
        wanted = search_request.filter
        if wanted is not None and len(wanted) > LONGEST_FILTER:
            raise InvalidFilterException(detail=f"A filter has at most {LONGEST_FILTER} characters")
        total, found = 0, list[Resource[Any]]()
        start, count = search_request.start_index_0 or 0, search_request.count or 0
        refusals = []
        for resource_type in resource_types:
            try:
                statement = _statement(resource_type, wanted)
            except InvalidFilterException as error:
                refusals.append(error)  # no resource of a type has an attribute that it does not have
                continue
            number = self._transaction.scalar(*self._counting(statement))
            found += self._part(resource_type, statement, start - total, count - len(found), search_request)
            total += number or 0
        if len(refusals) == len(resource_types):
            raise refusals[0]
        return SearchPage(total, found)

    def _counting(self, statement: Select[Any]) -> tuple[Select[Any], dict[str, str]]:
        return select(func.count()).select_from(statement.subquery()), self._parameters

    def _part(
        self, resource_type: ResourceType, statement: Select[Any], start: int, count: int, shown: SearchRequest[Any]
    ) -> Sequence[Resource[Any]]:
        """Some resources of one type, from the place ``start`` on, which is negative after those of another type."""
        if count <= 0:
            return []
        are_people = resource_type.name == "User"
        key = sql_table(Membership).c.id if are_people else sql_table(ProvisionedGroup).c.id
        ordered = statement.order_by(key).limit(count).offset(max(start, 0))
        rows = self._transaction.rows(ordered, self._parameters)
        return self._people(rows) if are_people else self._groups(rows, with_members=_has_members(shown))

    def create(self, resource_type: ResourceType, resource: Resource[Any]) -> Resource[Any]:
        """Create a person or a group. Raises what :mod:`people` and :mod:`groups` raise."""
        unit, provider = self._unit(), self._provider
        if resource_type.name == "User":
            profile = profile_of(cast(User, resource), makes_account=True)
            return self.get(resource_type, people.create(unit, provider, profile))
        name, external_id = _group_values(cast(Group, resource))
        member_ids = member_ids_of(cast(Group, resource).members)
        return self.get(resource_type, groups.create(unit, provider, name, external_id, member_ids))

    def update(
        self, resource_type: ResourceType, resource: Resource[Any], *, expected_version: str | None = None
    ) -> Resource[Any]:
        """Change a person or a group to ``resource``. The transaction has read it, and so knows its version."""
        del expected_version
        resource_id = str(resource.id)
        if resource_type.name == "User":
            profile = profile_of(cast(User, resource), makes_account=False)
            people.change(self._unit(), self._provider, resource_id, profile)
        else:
            group = cast(Group, resource)
            self.set_members(group, member_ids_of(group.members))
        return self.get(resource_type, resource_id)

    def set_members(self, group: Group, member_ids: Collection[str]) -> None:
        """Change a group, and make exactly these its members."""
        organization_id, group_id = self._provider.organization_id, str(group.id)
        before = {row.membership_id for row in groups.members_of(self._transaction, organization_id, [group_id])}
        self.change_group(group, added=set(member_ids) - before, removed=before - set(member_ids))

    def change_group(self, group: Group, *, added: Collection[str], removed: Collection[str]) -> None:
        """Change a group, and some of its members."""
        name, external_id = _group_values(group)
        unit, provider = self._unit(), self._provider
        groups.change(unit, provider, str(group.id), name, external_id, added=added, removed=removed)

    def delete(self, resource_type: ResourceType, resource_id: str, *, expected_version: str | None = None) -> None:
        """Delete a person or a group. Raises what :mod:`people` and :mod:`groups` raise."""
        del expected_version
        remove = people.remove if resource_type.name == "User" else groups.remove
        remove(self._unit(), self._provider, resource_id)

    def _unit(self) -> UnitOfWork:
        assert isinstance(self._transaction, UnitOfWork)  # noqa: S101 - only GET comes without one
        return self._transaction

    def _people(self, rows: Sequence[Any]) -> Sequence[User]:
        """The resources of some people, with their groups."""
        theirs: defaultdict[str, list[PersonGroup]] = defaultdict(list)
        for row in groups.groups_of(self._transaction, self._provider.organization_id, [row.id for row in rows]):
            theirs[row.membership_id].append(
                PersonGroup(value=row.id, ref=Reference(f"Groups/{row.id}"), display=row.name)
            )
        found = []
        for row in rows:
            active = not is_out(row, self._moment)
            user = resource_of(row, active=active)
            user.groups = theirs.get(row.id)
            user.meta = _meta("User", row.provisioned_created_at, row.provisioned_changed_at, row.name, active)
            found.append(user)
        return found

    def _groups(self, rows: Sequence[Any], *, with_members: bool) -> Sequence[Group]:
        """The resources of some groups. With their members, they are fewer if there would be too many members."""
        organization_id = self._provider.organization_id
        theirs: defaultdict[str, list[GroupMember]] = defaultdict(list)
        if with_members and rows:
            parameters = {"of": organization_id, "groups": [row.id for row in rows]}
            sizes = {row.group_id: row.members for row in self._transaction.rows(_SIZES, parameters)}
            rows = _first(rows, sizes)
            for row in groups.members_of(self._transaction, organization_id, [row.id for row in rows]):
                theirs[row.group_id].append(
                    GroupMember(
                        value=row.membership_id,
                        ref=Reference(f"Users/{row.membership_id}"),
                        type="User",
                    )
                )
        return [
            Group(
                id=row.id,
                external_id=row.external_id,
                display_name=row.name,
                members=theirs.get(row.id),
                meta=_meta("Group", row.created_at, row.changed_at),
            )
            for row in rows
        ]


def member_ids_of(members: Sequence[GroupMember] | None) -> list[str]:
    """The ids of the members of a group, each once. Raises InvalidValueException for one without an id."""
    if any(not member.value or "\0" in member.value for member in members or ()):
        raise InvalidValueException(detail="A member is named by its value, the id of a user")
    return list(dict.fromkeys(str(member.value) for member in members or ()))


def _group_values(group: Group) -> tuple[str, str | None]:
    name = (text_of(group.display_name, "displayName") or "").strip()
    if not name:
        raise InvalidValueException(detail="displayName must not be empty")
    return name, text_of(group.external_id, "externalId")


def _has_members(parameters: ResponseParameters[Any] | None) -> bool:
    """Whether the answer shows the members of groups."""
    if parameters is None:
        return True
    if parameters.attributes:
        return any(_attribute(path) == "members" for path in parameters.attributes)
    return all(str(path).lower().rpartition(":")[2] != "members" for path in parameters.excluded_attributes or ())


def _attribute(path: Any) -> str:
    return str(path).lower().rpartition(":")[2].partition(".")[0]


def _first(rows: Sequence[Any], sizes: dict[str, int]) -> Sequence[Any]:
    """The first groups with not too many members together; at least one."""
    total = 0
    for number, row in enumerate(rows):
        total += sizes.get(row.id, 0)
        if total > _MOST_MEMBERS and number:
            return rows[:number]
    return rows


def _meta(name: str, created_at: str | None, changed_at: str | None, *more: object) -> Meta:
    version = sha256(repr((created_at, changed_at, *more)).encode()).hexdigest()[:32]
    values: dict[str, Any] = {"created": created_at, "last_modified": changed_at}
    return Meta(resource_type=name, version=f'W/"{version}"', **values)


# --- Statements


def _statement(resource_type: ResourceType, wanted: Any) -> Select[Any]:
    """The statement of those that a filter wants, of one type. Raises InvalidFilterException."""
    are_people = resource_type.name == "User"
    every: Select[Any] = _PEOPLE if are_people else groups.EVERY
    if wanted is None:
        return every
    return every.where(condition(wanted.ast, _attributes_of_people() if are_people else _attributes_of_groups()))


_MEMBER, _ACCOUNT = sql_table(Membership), sql_table(Account)
_PERSON, _GROUP, _GROUP_MEMBER = (
    sql_table(one) for one in (ProvisionedPerson, ProvisionedGroup, ProvisionedGroupMember)
)
_IS_IN = is_in(bindparam("moment", type_=_MEMBER.c.expires_at.type))
_PEOPLE: Select[Any] = people.EVERY.where(or_(_PERSON.c.id.is_not(None), _IS_IN))
_SIZES: Any = (
    select(_GROUP_MEMBER.c.group_id, func.count().label("members"))
    .where(
        _GROUP_MEMBER.c.organization_id == bindparam("of"),
        _GROUP_MEMBER.c.group_id.in_(bindparam("groups", expanding=True)),
    )
    .group_by(_GROUP_MEMBER.c.group_id)
)


@cache
def _attributes_of_people() -> dict[str, Compare]:
    """What filters of people compare."""
    user_name: ColumnElement[Any] = func.coalesce(_PERSON.c.user_name_folded, _ACCOUNT.c.email_folded)

    def in_group(is_wanted: Condition) -> Condition:
        return exists().where(_GROUP_MEMBER.c.membership_id == _MEMBER.c.id, is_wanted)

    return {
        "id": compares(_MEMBER.c.id),
        "username": compares(user_name, email_key),
        "externalid": compares(_PERSON.c.external_id),
        "active": compares_flag(_IS_IN),
        "emails.value": compares(_ACCOUNT.c.email_folded, email_key),
        "emails.type": always,
        "emails.primary": always,
        "groups.value": compares_any(in_group, _GROUP_MEMBER.c.group_id),
    }


@cache
def _attributes_of_groups() -> dict[str, Compare]:
    """What filters of groups compare."""

    def has_member(is_wanted: Condition) -> Condition:
        return exists().where(_GROUP_MEMBER.c.group_id == _GROUP.c.id, is_wanted)

    return {
        "id": compares(_GROUP.c.id),
        "displayname": compares(func.lower(_GROUP.c.name), str.lower),
        "externalid": compares(_GROUP.c.external_id),
        "members.value": compares_any(has_member, _GROUP_MEMBER.c.membership_id),
    }

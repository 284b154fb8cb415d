"""A person and a group of each organization that a provider maintains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import insert

from normata.core.changes.unit_of_work import Change, UnitOfWork
from normata.identity.provisioning_model import ProvisionedGroup, ProvisionedGroupMember, ProvisionedPerson

PROVISIONED = (ProvisionedPerson, ProvisionedGroup, ProvisionedGroupMember)
_MADE = {"created_at": "2026-01-02T03:04:05.678Z", "changed_at": "2026-01-02T03:04:05.678Z"}


def provision(unit: UnitOfWork, members: Mapping[str, str]) -> None:
    """Add them, with the member of each organization."""
    for organization_id, member_id in members.items():
        of: dict[str, Any] = {"organization_id": organization_id}
        person: dict[str, Any] = {"id": f"person-{organization_id}", **of, **_MADE}
        person["user_id"] = member_id.replace("member-", "user-")
        person |= {"membership_id": member_id, "user_name": f"{member_id}@provider.example", "made_account": False}
        person |= {"external_id": f"of-{member_id}", "details": {"displayName": f"The {member_id}"}}
        ProvisionedPerson.derive(person)
        group = {"id": f"group-{organization_id}", "name": "Everybody", "external_id": None, **of, **_MADE}
        among = {"group_id": group["id"], "membership_id": member_id, **of}
        for table, row in zip(PROVISIONED, (person, group, among), strict=True):
            unit.rows(insert(table).values(row))
        unit.publish(Change("create", ProvisionedPerson, organization_id, str(person["id"]), person))
        unit.publish(Change("create", ProvisionedGroup, organization_id, str(group["id"]), group))

"""What Okta sends, by its documents on SCIM 2.0: written by hand, and not recorded.

It looks for a person before it creates them, replaces them by PUT, deactivates by PATCH without a path or by PUT, and
pushes groups with PATCH.
"""

from __future__ import annotations

from typing import Any

from tests.scim.dialogue import GROUP, USER, Exchange, patch


def _person(active: bool = True, **more: Any) -> dict[str, Any]:
    return {
        "schemas": [USER],
        "userName": "ines@alpha.example",
        "name": {"givenName": "Ines", "familyName": "Okonkwo"},
        "emails": [{"primary": True, "value": "ines@alpha.example", "type": "work"}],
        "displayName": "Ines Okonkwo",
        "locale": "en-US",
        "externalId": "00ujl29u0le5T6Aj10h7",
        "groups": [],
        "password": "1mz050nq",
        "active": active,
    } | more


PEOPLE = (
    Exchange("GET", "/Users?startIndex=1&count=2", has={"startIndex": 1, "itemsPerPage": 2}),
    Exchange(
        "GET",
        '/Users?filter=userName%20eq%20"ines@alpha.example"&startIndex=1&count=100',
        has={"totalResults": 0, "itemsPerPage": 0},
    ),
    Exchange(
        "POST",
        "/Users",
        _person(),
        201,
        has={"userName": "ines@alpha.example", "active": True, "name.givenName": "Ines", "password": None},
        notes={"ines": "id", "location": "meta.location"},
    ),
    Exchange("GET", "/Users/{ines}", has={"externalId": "00ujl29u0le5T6Aj10h7", "meta.location": "{location}"}),
    Exchange("GET", '/Users?filter=userName%20eq%20"INES@alpha.example"', has={"Resources.0.id": "{ines}"}),
    Exchange("POST", "/Users", _person(), 409, has={"scimType": "uniqueness", "status": "409"}),
    Exchange(
        "PUT",
        "/Users/{ines}",
        _person(id="{ines}", displayName="Ines Okonkwo-Bell", meta={"resourceType": "User"}),
        has={"displayName": "Ines Okonkwo-Bell", "active": True},
    ),
)
DEACTIVATED = (
    patch("/Users/{ines}", {"op": "replace", "value": {"active": False}}),
    Exchange("GET", "/Users/{ines}", has={"active": False}),
)
REACTIVATED_AND_REPLACED = (
    patch("/Users/{ines}", {"op": "replace", "value": {"active": True}}),
    Exchange("GET", "/Users/{ines}", has={"active": True}),
    Exchange("PUT", "/Users/{ines}", _person(False, id="{ines}"), has={"active": False}),
    Exchange("PUT", "/Users/{ines}", _person(id="{ines}"), has={"active": True}),
)
GROUPS = (
    Exchange(
        "GET", '/Groups?filter=displayName%20eq%20"normata-editor"&startIndex=1&count=100', has={"totalResults": 0}
    ),
    Exchange(
        "POST",
        "/Groups",
        {
            "schemas": [GROUP],
            "displayName": "normata-editor",
            "members": [{"value": "{ines}", "display": "ines@alpha.example"}],
        },
        201,
        has={"displayName": "normata-editor", "members.0.value": "{ines}"},
        notes={"group": "id"},
    ),
    Exchange("GET", "/Users/{ines}", has={"groups.0.value": "{group}", "groups.0.display": "normata-editor"}),
)
LEFT_THE_GROUP = (
    patch("/Groups/{group}", {"op": "remove", "path": 'members[value eq "{ines}"]'}),
    Exchange("GET", "/Groups/{group}", has={"members": None}),
)
RENAMED_AND_FILLED = (
    patch(
        "/Groups/{group}",
        {"op": "replace", "value": {"id": "{group}", "displayName": "normata-auditor"}},
        {"op": "add", "path": "members", "value": [{"value": "{ines}", "display": "ines@alpha.example"}]},
    ),
    Exchange("GET", "/Groups/{group}", has={"displayName": "normata-auditor", "members.0.value": "{ines}"}),
)
DELETED = (
    Exchange("DELETE", "/Groups/{group}", status=204),
    Exchange("GET", "/Groups/{group}", status=404, has={"status": "404"}),
)

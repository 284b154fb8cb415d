"""What Microsoft Entra ID sends, by its documents on SCIM: written by hand, and not recorded.

Its operations have capitals, its booleans are texts, its paths filter values, and it removes members by lists of them.
"""

from __future__ import annotations

from tests.scim.dialogue import ENTERPRISE, GROUP, USER, Exchange, patch

_DEPARTMENT = f"{ENTERPRISE}:department"

PEOPLE = (
    Exchange("GET", '/Users?filter=userName%20eq%20"non-existent%20user"', has={"totalResults": 0}),
    Exchange(
        "POST",
        "/Users",
        {
            "schemas": [USER, ENTERPRISE],
            "externalId": "0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef",
            "userName": "tove@alpha.example",
            "active": "True",
            "displayName": "Tove Lindqvist",
            "emails": [{"primary": True, "type": "work", "value": "Tove.Lindqvist@alpha.example"}],
            "meta": {"resourceType": "User"},
            "name": {"formatted": "Tove Lindqvist", "familyName": "Lindqvist", "givenName": "Tove"},
            "roles": [],
            ENTERPRISE: {"department": "Robotics", "manager": {"value": "41"}},
        },
        201,
        has={"active": True, "externalId": "0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef", "schemas": [USER]},
        notes={"tove": "id"},
    ),
    Exchange(
        "GET",
        '/Users?filter=externalId%20eq%20"0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef"',
        has={"Resources.0.id": "{tove}"},
    ),
    Exchange(
        "GET", '/Users?filter=emails%5Btype%20eq%20"work"%5D.value%20eq%20"tove@alpha.example"', has={"totalResults": 1}
    ),
    patch(
        "/Users/{tove}",
        {"op": "Replace", "path": 'emails[type eq "work"].value', "value": "tove.lind@alpha.example"},
        {"op": "Replace", "path": "name.familyName", "value": "Lind"},
        {"op": "Add", "path": 'emails[type eq "other"].value', "value": "tl@alpha.example"},
        {"op": "Add", "path": _DEPARTMENT, "value": "Compliance"},
        {"op": "Add", "path": 'phoneNumbers[type eq "work"].value', "value": "+1 555 0100"},
        {"op": "Replace", "value": {"displayName": "Tove Lind", "name.formatted": "Tove Lind", _DEPARTMENT: "Board"}},
    ),
    Exchange(
        "GET",
        "/Users/{tove}",
        has={
            "emails.0.value": "tove.lind@alpha.example",
            "emails.1.value": "tl@alpha.example",
            "name.familyName": "Lind",
            "displayName": "Tove Lind",
            ENTERPRISE: None,
        },
    ),
)
DISABLED = (
    patch("/Users/{tove}", {"op": "Replace", "path": "active", "value": "False"}),
    Exchange("GET", "/Users/{tove}?attributes=active", has={"active": False, "userName": None, "id": "{tove}"}),
)
ENABLED = (patch("/Users/{tove}", {"op": "Replace", "path": "active", "value": "True"}),)
GROUPS = (
    Exchange("GET", '/Groups?excludedAttributes=members&filter=displayName%20eq%20"Auditors"', has={"totalResults": 0}),
    Exchange(
        "POST",
        "/Groups",
        {
            "schemas": [GROUP, "http://schemas.microsoft.com/2006/11/ResourceManagement/ADSCIM/2.0/Group"],
            "externalId": "normata-editor",
            "displayName": "Compliance team",
            "meta": {"resourceType": "Group"},
        },
        201,
        has={"displayName": "Compliance team", "externalId": "normata-editor"},
        notes={"group": "id"},
    ),
    patch("/Groups/{group}", {"op": "Add", "path": "members", "value": [{"$ref": None, "value": "{tove}"}]}),
    Exchange("GET", "/Groups/{group}?excludedAttributes=members", has={"members": None, "id": "{group}"}),
    Exchange(
        "GET",
        '/Groups?filter=id%20eq%20"{group}"%20and%20members%20eq%20"{tove}"&attributes=id',
        has={"totalResults": 1},
    ),
)
LEFT_THE_GROUP = (
    patch("/Groups/{group}", {"op": "Remove", "path": "members", "value": [{"$ref": None, "value": "{tove}"}]}),
    patch("/Groups/{group}", {"op": "Replace", "path": "displayName", "value": "normata-admin"}),
    Exchange("GET", "/Groups/{group}", has={"displayName": "normata-admin", "members": None}),
)
IN_AGAIN = (patch("/Groups/{group}", {"op": "Add", "path": "members", "value": [{"value": "{tove}"}]}),)
DELETED = (
    Exchange("DELETE", "/Users/{tove}", status=204),
    Exchange("GET", "/Users/{tove}", status=404, has={"status": "404"}),
    Exchange("DELETE", "/Users/{tove}", status=404),
    Exchange("GET", "/Groups/{group}", has={"members": None}),
)

"""Examples of the lists of controls and frameworks, for the documentation."""

_CSF = {
    "id": "nist-csf-2.0",
    "name": "NIST Cybersecurity Framework 2.0",
    "identifier": "NIST-CSF-2.0",
    "identifierColor": "#1D4F91",
}

CONTROL_PAGE = {
    "items": [
        {
            "id": "iso-27001-2022:A.5.11",
            "frameworkId": "iso-27001-2022",
            "parentId": "iso-27001-2022:A.5",
            "identifier": "A.5.11",
            "name": "Return of assets",
            "slug": "a-5-11-return-of-assets",
            "purpose": "Nothing of the organization's stays with those who leave it.",
            "type": "CONTROL",
            "description": None,
            "isMandatory": False,
            "isCentralized": True,
            "createdAt": "2025-02-10T09:30:00.000Z",
            "updatedAt": "2025-02-10T09:30:00.000Z",
            "framework": {
                "id": "iso-27001-2022",
                "name": "ISO/IEC 27001:2022",
                "identifier": "ISO-27001",
                "identifierColor": "#0B6E4F",
                "version": "2022",
                "isCentralized": True,
            },
            "parent": {"id": "iso-27001-2022:A.5", "identifier": "A.5", "name": "Organizational controls"},
            "coverage": {"coverageStatus": "NONE", "coverageGap": None},
            "effectiveCoverageStatus": "PARTIAL",
            "isIndirectlyCovered": True,
            "sourceMatches": [
                {
                    "id": "match:PR.AA-01--A.5.11",
                    "matchLevel": "PARTIAL",
                    "matchedControl": {
                        "id": "nist-csf-2.0:PR.AA-01",
                        "identifier": "PR.AA-01",
                        "name": "Managed identities and credentials",
                        "slug": "pr-aa-01-managed-identities-and-credentials",
                        "framework": _CSF,
                    },
                }
            ],
            "children": [],
        }
    ],
    "total": 402,
    "page": 1,
    "limit": 5,
}

_ADOPTION = {"id": "adoption-nist-csf-2.0", "adoptedAt": "2025-02-10T09:30:00.000Z"}

FRAMEWORK_PAGE = {
    "items": [
        _CSF
        | {
            "organizationId": None,
            "slug": "nist-csf-2-0",
            "version": "2.0",
            "publishedAt": "2024-02-26T00:00:00.000Z",
            "deprecatedAt": None,
            "description": None,
            "lastSyncAt": None,
            "createdAt": "2025-02-10T09:30:00.000Z",
            "updatedAt": "2025-02-10T09:30:00.000Z",
            "createdBy": None,
            "isActive": True,
            "isCentralized": True,
            "isAdopted": True,
            "requiredTier": "free-trial",
            "_count": {"controls": 134},
            "frameworkAdoptions": [_ADOPTION],
            "adoption": _ADOPTION,
        }
    ],
    "total": 3,
    "page": 1,
    "limit": 100,
}

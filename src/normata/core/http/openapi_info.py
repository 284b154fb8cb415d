"""The parts of the OpenAPI document about the whole API: its conventions, and the tags of its operations."""

from __future__ import annotations

from typing import Any

from normata import __version__
from normata.core.http.openapi_changes import TRYING_AND_RETRYING

_DESCRIPTION = """\
Normata is a self-hosted compliance service. An organization adopts frameworks and assesses how far it covers each
control. Normata works out at once what that means for every framework whose controls are mapped onto each other, and
can prove it. It also keeps the records of the organization's management system, and restores the ones that were
archived.

## First steps

`normata demo` prints an organization, a token and requests to paste. Every request needs a token:

```
curl -H 'Authorization: Bearer <ACCESS_TOKEN>' 'http://127.0.0.1:8000/frameworks/?organizationId=org-harbourlight'
```

`normata token create --user EMAIL --scope read|write|admin` creates a token, and so does `POST /me/tokens/`. A token
acts as its user until it expires or is revoked: in all of the user's organizations, or in the one that it is narrowed
to. What a user may do depends on the role in the organization. Each role includes the ones before
it:

- `viewer` reads, with a token of any scope. What changes something takes the scope `write`, and what manages people,
  tokens and organizations the scope `admin`.
- `editor` assesses controls, makes matches and links, and makes, changes, archives and restores records.
- `admin` adopts and leaves frameworks, makes frameworks and their controls, imports catalogs, invites people, and gives
  roles up to its own.
- `owner` appoints and removes owners, and removes the organization.

An organization or anything in it that you may not see gets the same answer as what does not exist.

## Conventions

- Bodies are JSON. Reports can also be had as CSV and XLSX, and imports also take other media types. Every field is
  present in every answer, and `null` where there is no value. A body that makes or changes something is refused if it
  has an unknown field, and so is a query with an unknown parameter. The operations with a header `Prefer` ignore those,
  unless it is `handling=strict`.
- Success is 200. It is 201 with `Location` for one new thing, and 304 for an answer that you have already.
- Timestamps are RFC 3339 in UTC with milliseconds: `2026-11-20T09:14:03.120Z`. A request may use any offset of RFC
  3339, or a plain date, which is midnight UTC.
- Identifiers are opaque strings of 1 to 255 characters. In a path, an id is one percent-encoded segment. Where a
  request names an organization, it may use the slug instead.
- Enums that list their values under `x-extensible-enum` are open: new values may appear, so accept values that you do
  not know. Coverage status, match level and control type are closed.
- Paths work with and without the trailing slash.
- Every answer has an `X-Request-Id`. Send your own to find your request in the log.
- Where the operator has set limits on requests, every answer tells how they stand in `RateLimit` and `RateLimit-Policy`
  (draft-ietf-httpapi-ratelimit-headers): `"token";r=599;t=60` leaves 599 requests for the next 60 seconds.

## Lists

Lists come in pages. `limit` is from 5 to 100 (default 100) and `page` starts at 1. `total` counts the items on all
pages, after filtering. A page past the end has no items. Every order ends with the id, so pages never overlap. Null
sorts last. The header `Link` has the addresses of other pages.

## Assessments

An assessment is what the organization itself records of a control. What follows from it for other controls is stored in
the same transaction, so the next answer has it. `PUT` replaces an assessment, and clears every field that is left out.
`PATCH` takes up to 500 assessments, and leaves a field alone that is left out. A request that changes many things
stores all of them, or nothing.

## Errors

Every answer that is not a success is a problem (RFC 9457) with a `code` for programs. All faults of an invalid request
are reported at once, each with its location, such as `assessments/3/justification` in a body. What needs the database,
such as which control is named, is checked once the form of the request is right. 503 means that the database cannot be
reached, or did not answer in time. `Retry-After` says when to try again. A change that was in progress at that moment
may have been stored all the same: try again, and a restore that was done is answered `not_archived`.
"""

TAGS = [
    {"name": "Account", "description": "Who you are, and where you are a member."},
    {
        "name": "Members",
        "description": "Who works in the organization, as what, and what becomes of their work when they leave.",
    },
    {
        "name": "Vendors",
        "description": "Questionnaires for vendors, their answers, and what the organization makes of them.",
    },
    {
        "name": "Tokens",
        "description": "Access tokens: your own, those of service accounts, and those that reach the organization.",
    },
    {
        "name": "Frameworks",
        "description": "Catalogs of controls, which of them the organization has adopted, and how far it covers them.",
    },
    {
        "name": "Coverage",
        "description": "What the organization says of controls, what follows from it, and why.",
    },
    {
        "name": "Reports",
        "description": "Where the organization stands with a framework, for those who work on it and for auditors.",
    },
    {
        "name": "Policies",
        "description": "Policies from the draft to the published version: who submits, approves and publishes them.",
    },
    {"name": "Risks", "description": "The risk matrix, and the acceptance of risks by their owners."},
    {"name": "Audits", "description": "The scope of an audit, its checklist, and findings that are made from it."},
    {"name": "Incidents", "description": "What happened in an incident, and what was done about it."},
    {"name": "Entitlement reviews", "description": "Who may do what in which system, and whether it stays so."},
    {"name": "Findings", "description": "The verification of what audits have found."},
    {
        "name": "Versions of statements",
        "description": "Statements of applicability as they were on a day: numbered, approved, and proven by the log.",
    },
    {
        "name": "Events",
        "description": "What was done, by whom, and what was before and after; sealed, so that it cannot be changed"
        " without a trace.",
    },
    {"name": "Notifications", "description": "Messages from the service to the current user."},
    {
        "name": "Saved views",
        "description": "Lists of the console as people want to see them again: with filters, order and columns.",
    },
    {
        "name": "Webhooks",
        "description": "Events as they happen, sent to addresses of other systems: signed, in order, at least once.",
    },
    {"name": "Due dates", "description": "What has to be done by a date, across all kinds of records."},
    {
        "name": "Records",
        "description": (
            "What the organization's management system consists of: nineteen kinds of records, which all lead the same"
            " life. An archived record is read-only, and can be restored. Nothing is ever deleted."
        ),
    },
    {"name": "Files", "description": "Files that records have: uploaded once, never changed, proven by their SHA-256."},
    {
        "name": "Links",
        "description": "What belongs together: records, controls and members, each link with its relation.",
    },
    {
        "name": "Comments",
        "description": "What members say about records and controls.",
    },
    {
        "name": "Archive",
        "description": "What is archived, across kinds, and many records archived or restored at once.",
    },
    {
        "name": "Restore",
        "description": (
            "Restoring archived records, by the same contract for every kind. The record must be archived (else 409"
            " `not_archived`) and its slug must be free (else 409 `slug_taken`, with the id of the live record that has"
            " it as `conflictingId`). Only the archived state changes. One transaction restores the record, writes an"
            " audit event and notifies the responsible member. An answer of 200 means that all of it is stored."
        ),
    },
]

INFO: dict[str, Any] = {
    "title": "Normata",
    "summary": "A self-hosted compliance service: frameworks, live coverage, and records that are never lost.",
    "description": f"{_DESCRIPTION}\n{TRYING_AND_RETRYING}",
    "license": {"name": "Apache License 2.0", "identifier": "Apache-2.0"},
    "version": __version__,
}

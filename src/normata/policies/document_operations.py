"""The operation that prints a version of a policy."""

from __future__ import annotations

from typing import Any

from normata.core.http.formats import JSON, Formats, pdf
from normata.core.http.operation import Operation, ReadOperation
from normata.core.schema.text import slugify
from normata.policies.document import DocumentQuery, PolicyDocument, read_document
from normata.policies.printed import as_pdf
from normata.records.kinds import Policy
from normata.reports.pdf import is_installed

FORMATS = Formats(
    present=lambda document: document,
    file_name=lambda document: f"{slugify(document['title']) or 'policy'}-{document['version']}",
    by_name={"pdf": pdf(as_pdf, "pdf", is_installed, lambda _: None), "json": JSON},
)

_EXAMPLE: dict[str, Any] = {
    "policyId": "policy-cryptography",
    "organization": "Harbourlight Robotics",
    "title": "Cryptography and Key Management",
    "version": 4,
    "state": "PUBLISHED",
    "isImported": False,
    "approvedBy": "Ines Albrecht",
    "submittedAt": "2026-11-18T09:14:03.120Z",
    "approvedAt": "2026-11-20T15:02:41.007Z",
    "publishedAt": "2026-11-20T15:10:02.500Z",
    "contentSha256": "b137985ff484fb600db93107c77b0365c80d78f5b429ded0fd97361d077999eb",
    "content": "## Approved methods\n\nOnly methods of the current list are used.",
}

OPERATIONS: tuple[Operation, ...] = (
    ReadOperation(
        path=f"/{Policy.path}/{{id}}/pdf/",
        operation_id="getPolicyDocument",
        tag="Policies",
        summary="Print a policy",
        description="""\
A version of a policy on paper: a head with the organization, the title, the number of the version, who has approved it
and when, and the hash of its text; then the text with its headings, lists and tables. It is the version in force, or
the one that `version` names, also in review. The same version gives the same bytes.""",
        about=Policy,
        id_description="The id of the policy.",
        query=DocumentQuery,
        build=lambda transaction, request: read_document(transaction, request.id, request.query),
        formats=FORMATS,
        is_long=True,
        answer=PolicyDocument,
        answer_description="The document.",
        example=_EXAMPLE,
    ),
)

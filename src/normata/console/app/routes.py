"""The pages of the console, with their paths and handlers."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator
from typing import NamedTuple
from urllib.parse import unquote

from starlette.responses import Response

from normata.console.app import (
    assessing,
    audits,
    comments,
    conflicts,
    control_additions,
    controls,
    due,
    entitlement_reviews,
    events,
    frameworks,
    gap_work,
    home,
    inbox,
    incidents,
    links,
    over_time,
    own_frameworks,
    owning,
    policies,
    policy_templates,
    questionnaires,
    reports,
    risk_reviews,
    risks,
    saved_views,
    search,
    start,
    steps,
    vendor_assessments,
    versions,
)
from normata.console.app.notes import note_of
from normata.console.app.of_then import answer_of_then
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.past import PARAMETER, has_past
from normata.console.app.records import archive, attached, change_many, details, editing, lists, registers
from normata.console.app.settings import accounts, invitations, members, organization, risk_levels, tokens, webhooks
from normata.console.page_request import Console, Endpoint, Handler, PageRequest
from normata.core.http.roles import Role
from normata.errors import NotFound

OrganizationHandler = Callable[[OrganizationRequest], Awaitable[Response]]


class Page(NamedTuple):
    """A page of each organization. ``path`` is below the organization's, and ends with a slash unless it is empty.

    ``role`` is the lowest role that may see it. ``shows_again`` is true if a form that is sent with ``again`` is shown
    once more with what was typed, and nothing is saved.
    """

    path: str
    get: OrganizationHandler | None = None
    post: OrganizationHandler | None = None
    role: Role = "viewer"
    shows_again: bool = False


PAGES: tuple[Page, ...] = (
    Page("", get=home.show),
    Page("controls/", get=controls.show_list),
    Page("coverage/", post=assessing.assess_many),
    Page("controls/{id}/", get=controls.show_one),
    Page("controls/{id}/coverage/", post=assessing.assess_one, shows_again=True),
    Page("controls/{id}/confirm/", post=assessing.confirm, role="editor"),
    Page("controls/{id}/set-aside/", post=conflicts.set_aside, role="editor"),
    Page(
        "controls/{id}/add/{kind}/",
        get=control_additions.show,
        post=control_additions.add,
        role="editor",
        shows_again=True,
    ),
    Page("find/", get=search.find),
    Page("frameworks/", get=frameworks.show_list),
    Page("frameworks/{id}/", get=frameworks.show_one),
    Page("frameworks/{id}/adoption/", get=frameworks.preview, post=frameworks.adopt_or_leave),
    Page("frameworks/{id}/gaps/", get=reports.show_gaps),
    Page("frameworks/{id}/gaps/file/", get=reports.gaps_file),
    Page("frameworks/{id}/oscal/file/", get=reports.oscal_file),
    Page("frameworks/{id}/plan/", get=reports.show_plan),
    Page("frameworks/{id}/over-time/", get=over_time.show_framework),
    Page("coverage/changes/", get=over_time.show_changes),
    Page("frameworks/{id}/statement-of-applicability/", get=reports.show_applicability),
    Page("frameworks/{id}/statement-of-applicability/file/", get=reports.applicability_file),
    Page("frameworks/{id}/versions/", get=versions.show_list, post=versions.make),
    Page("frameworks/{id}/work/", get=gap_work.show, post=gap_work.assess),
    Page("upload/", get=own_frameworks.show_upload, post=own_frameworks.upload, role="admin"),
    Page("frameworks/{id}/edit/", get=own_frameworks.show_edit, post=own_frameworks.edit, role="admin"),
    Page("due/", get=due.show),
    Page("inbox/", get=inbox.show, post=inbox.mark),
    Page("events/", get=events.show),
    Page("events/checkpoint/file/", get=events.checkpoint_file),
    Page("settings/", get=organization.show, post=organization.change),
    Page("settings/risk-levels/", get=risk_levels.show, post=risk_levels.change, role="admin"),
    Page("settings/members/", get=members.show_list),
    Page("settings/members/{id}/", get=members.show_one, post=members.change),
    Page("settings/invitations/", get=invitations.show, post=invitations.change, role="auditor"),
    Page("settings/webhooks/", get=webhooks.show_list, post=webhooks.create, role="admin"),
    Page("settings/webhooks/{id}/", get=webhooks.show_one, post=webhooks.change, role="admin"),
    Page("settings/tokens/", get=tokens.show, post=tokens.revoke, role="auditor"),
    Page("settings/service-accounts/", get=accounts.show_list, post=accounts.create, role="auditor"),
    Page("settings/service-accounts/{id}/", get=accounts.show_one, post=accounts.change, role="auditor"),
    Page("soa-versions/{id}/", get=versions.show_one, post=versions.approve),
    Page("soa-versions/{id}/comparison/", get=versions.show_comparison),
    Page("soa-versions/{id}/file/", get=versions.version_file),
    Page("soa-versions/{id}/proof/file/", get=versions.proof_file),
    Page("verify/", get=versions.show_verification),
    Page("crosswalk/", get=frameworks.show_crosswalk),
    Page("risk-matrix/", get=risks.show_matrix),
    Page("policy-templates/", get=policy_templates.show_list, role="editor"),
    Page("policy-templates/{id}/", get=policy_templates.show_one, post=policy_templates.create, role="editor"),
    Page("policies/{id}/steps/", post=policies.take_step),
    Page("policies/{id}/draft/", get=policies.show_draft, post=policies.write_draft, role="editor", shows_again=True),
    Page("policies/{id}/file/", get=policies.document_file),
    Page("policies/{id}/versions/", get=policies.show_versions),
    Page("policies/{id}/acknowledgements/", get=policies.show_acknowledgements),
    Page("risks/{id}/accept/", post=risks.accept),
    Page("vendor-assessments/{id}/steps/", post=vendor_assessments.take_step, role="editor"),
    Page("vendor-assessments/{id}/link/", post=vendor_assessments.make_link, role="editor"),
    Page("vendor-assessments/{id}/answers/", get=vendor_assessments.show_answers, post=vendor_assessments.save_answers),
    Page("questionnaires/", get=questionnaires.show_list),
    Page("questionnaires/{id}/", get=questionnaires.show_one, post=questionnaires.remove),
    Page(
        "questionnaires/{id}/change/",
        get=questionnaires.show_change,
        post=questionnaires.change,
        role="editor",
        shows_again=True,
    ),
    Page(
        "new-questionnaire/",
        get=questionnaires.show_new,
        post=questionnaires.create,
        role="editor",
        shows_again=True,
    ),
    Page("standard-questionnaire/", get=questionnaires.show_standard),
    Page("auditItems/{id}/verify/", post=steps.verify, role="editor"),
    Page("records/{kind}/{id}/external-ids/", post=steps.remove_external_id, role="editor"),
    Page("records/{kind}/{id}/recurrence/", post=steps.set_recurrence, role="editor"),
    Page("finalize/{id}/", post=steps.finalize, role="editor"),
    Page("entitlement-reviews/{id}/", get=entitlement_reviews.show, post=entitlement_reviews.change),
    Page(
        "entitlement-reviews/{id}/upload/",
        get=entitlement_reviews.show_upload,
        post=entitlement_reviews.upload,
        role="editor",
    ),
    Page("incidents/{id}/steps/", post=incidents.take_step, role="editor"),
    Page("audits/", get=audits.show_programme),
    Page("audits/{id}/", get=audits.show, post=audits.change),
    Page("audits/{id}/report/file/", get=audits.report_file),
    Page("risk-reviews/{id}/", get=risk_reviews.show, post=risk_reviews.change),
    Page("records/", get=lists.show_kinds),
    Page("records/{kind}/", get=lists.show_list),
    # Any id is one of a record: "new", too.
    Page("new/{kind}/", get=editing.show_new, post=editing.make, role="editor", shows_again=True),
    Page("export/{kind}/file/", get=registers.download),
    Page("import/{kind}/", get=registers.show_import, post=registers.import_, role="editor"),
    Page("change/{kind}/", post=change_many.change_many, role="editor", shows_again=True),
    Page("files/{id}/file/", get=attached.download),
    Page("records/{kind}/{id}/owner/", post=owning.change, role="editor"),
    Page("records/{kind}/{id}/files/", post=attached.change_files, role="editor"),
    Page("records/{kind}/{id}/", get=details.show_one),
    Page("records/{kind}/{id}/edit/", get=editing.show_edit, post=editing.change, role="editor", shows_again=True),
    Page("links/", post=links.change, role="editor"),
    Page("comments/", post=comments.write),
    Page("comments/{id}/", get=comments.show_one, post=comments.change),
    Page("views/", get=saved_views.show_list, post=saved_views.create),
    Page("views/{id}/", get=saved_views.show_one, post=saved_views.change),
    Page("archive/", get=archive.show, post=archive.archive_or_restore),
)


_SHOWN_AGAIN = re.compile(
    "|".join(f"/app/[^/]+/{re.sub('{[^}]+}', '[^/]+', page.path)}" for page in PAGES if page.shows_again)
)


def shows_again(path: str) -> bool:
    """Whether the page at a path shows a form once more that is sent with ``again``."""
    return _SHOWN_AGAIN.fullmatch(path) is not None


def app_endpoints(console: Console) -> Iterator[Endpoint]:
    """The endpoints of all pages. Fixed paths come before those with an id in the same place."""
    yield Endpoint(console, "/app/", get=start.choose)
    for page in sorted(PAGES, key=lambda page: (page.path.count("{"), page.path)):
        get, post = (handler and of_organization(handler, page.role, page.path) for handler in (page.get, page.post))
        yield Endpoint(console, f"/app/{{organization}}/{page.path}", get=get, post=post)
    yield Endpoint(console, "/app/{organization}/{nothing:path}", get=of_organization(start.nothing))


def of_organization(handler: OrganizationHandler, least: Role = "viewer", path: str = "") -> Handler:
    """A page of an organization, for its members only: for others it does not exist (404).

    Members with a role lower than ``least`` get 403. ``path`` is that of the page, below the organization.
    """
    shows_past = has_past(path.split("/")[:-1])

    async def answer(page_request: PageRequest) -> Response:
        visitor = await page_request.required_visitor()
        slug = unquote(page_request.request.path_params["organization"])
        membership = next(
            (membership for membership in visitor.memberships if membership.organization_slug == slug), None
        )
        if membership is None:
            raise NotFound
        organization_request = OrganizationRequest(page_request.console, page_request.request, visitor, membership)
        organization_request.require(least)
        sent = organization_request.query.get(PARAMETER)
        if sent is not None:
            return await answer_of_then(organization_request, sent, handler, shows_past=shows_past)
        organization_request.has_past = shows_past
        organization_request.note = note_of(organization_request)
        return await handler(organization_request)

    return answer
